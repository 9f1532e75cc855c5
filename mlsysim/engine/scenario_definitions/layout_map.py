"""A map of layouts: the fastest for each tensor and pipeline degree, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.lists import Counts
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._layout_space import COLUMNS, LayoutSpace
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import LayoutError
from mlsysim.solvers import DistributedModel
from mlsysim.units import Quantity
from mlsysim.units.quantities import gigabytes, percent, seconds

__all__ = ["LayoutMapScenario"]


@record
class LayoutMapScenario(Scenario):
    """The fastest layout of a training step for each pair of a tensor and a pipeline degree.

    In each cell of the map every context degree, interleaving, microbatch, recomputation and ZeRO
    stage up to `most_sharding` is looked at; data parallelism takes what is left of the fleet.

    Equation: cell (t, p) = min step time over layouts with these degrees that exist and fit.

    Assumptions: all layouts share the step's efficiency, overlap and kernels.

    Excludes: degrees that the map does not name, and how well a framework runs a layout.

    >>> from mlsysim import Scenarios
    >>> case = Scenarios.ReferenceLayoutMap
    >>> case.cells_by_state["fits"], case.cells
    (35, 64)
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step whose layout is searched")
    most_sharding: int = declared(
        at_least=0, at_most=3, description="highest ZeRO stage that is looked at"
    )
    tensor_degrees: Counts = declared(at_least=1, description="rows of the map")
    pipeline_degrees: Counts = declared(at_least=1, description="columns of the map")

    @output()
    def cells(self) -> int:
        """Cells of the map. Equation: tensor degrees * pipeline degrees."""
        return len(self.table())

    @output()
    def cells_by_state(self) -> dict[str, int]:
        """Cells by what became of them.

        Equation: count of cells whose fastest layout fits, of those in which no layout fits, and of
        those in which none exists.
        """
        found = dict.fromkeys(("fits", "too_large", "none_exists"), 0)
        for row in self.table():
            found[row["state"]] += 1
        return found

    @output("s")
    def step_time_at(self) -> dict[str, Quantity]:
        """Step time of the fastest layout of each cell that has one.

        Equation: min over layouts with these two degrees that fit.
        """
        return {_cell(row): seconds(row["step_time_s"]) for row in self._fitting()}

    @output()
    def over_best_at(self) -> dict[str, float]:
        """Step time of each cell over that of the fastest. Equation: step_time_at / min."""
        best = min(row["step_time_s"] for row in self._fitting())
        return {_cell(row): row["step_time_s"] / best for row in self._fitting()}

    @output("s")
    def tensor_parallel_at(self) -> dict[str, Quantity]:
        """Exposed tensor-parallel communication in each cell. Equation: ledger.tensor_parallel."""
        return {_cell(row): seconds(row["tensor_parallel_s"]) for row in self._fitting()}

    @output("s")
    def bubble_at(self) -> dict[str, Quantity]:
        """Time that the pipeline of each cell waits. Equation: ledger.bubble."""
        return {_cell(row): seconds(row["bubble_s"]) for row in self._fitting()}

    @output()
    def interleaving_at(self) -> dict[str, int]:
        """Parts of the model on each stage in each cell. Equation: interleaving of its layout."""
        return {_cell(row): row["v_stages"] for row in self._fitting()}

    @output()
    def microbatches_at(self) -> dict[str, int]:
        """Microbatches of a replica in each cell. Equation: B / (replicas * microbatch)."""
        return {_cell(row): row["microbatches"] for row in self._fitting()}

    @output("%")
    def bubble_rule_at(self) -> dict[str, Quantity]:
        """The bubble in shares of the busy time, by the rule of thumb for equal stages.

        Equation: (pipeline - 1) / (interleaving_at * microbatches_at).
        """
        return {
            _cell(row): percent((row["pp_size"] - 1) / (row["v_stages"] * row["microbatches"]))
            for row in self._fitting()
        }

    @output()
    def link_ratio(self) -> float:
        """Rate of an accelerator's links inside a node over its rate between nodes.

        Equation: fleet.links.link_rate / fleet.links.network_rate.
        """
        links = self.step.fleet.links
        return float(links.link_rate / links.network_rate)

    @output()
    def tensor_rule(self) -> dict[str, float]:
        """Time of tensor-parallel collectives in a step, over that with two accelerators.

        With i of the t accelerators in each of n nodes, all sequences of a step take the time
        t ((i - 1) / i / link rate + (n - 1) / n / i / network rate) up to a factor that is the
        same for all t, and without latencies.

        Equation: t * ((i - 1) / i + (n - 1) / n / i * link_ratio).
        """
        node = self.step.fleet.node.accelerators
        found = {}
        for t in self.tensor_degrees:
            inside = min(t, node)
            if t > 1 and t % inside == 0 and node % inside == 0:
                between = (1 - inside / t) / inside * self.link_ratio
                found[f"tp{t}"] = t * ((inside - 1) / inside + between)
        return found

    @output()
    def idle_at(self) -> dict[str, int]:
        """Accelerators of the fleet that belong to no replica, in each cell that leaves any.

        Equation: accelerators - tensor * context * pipeline * data.
        """
        return {_cell(row): row["idle"] for row in self._fitting() if row["idle"]}

    @output("GB")
    def lacking_at(self) -> dict[str, Quantity]:
        """Memory that the leanest layout of a cell lacks, where none fits.

        Equation: min memory over layouts of the cell - memory capacity.
        """
        return {
            _cell(row): gigabytes(row["lacking_gb"])
            for row in self.table()
            if row["state"] == "too_large"
        }

    def table_rows(self) -> list[dict[str, Any]]:
        """One row a cell: its fastest layout with the ledger, or why there is none."""
        rows = [*self._found()]
        if not any(row["state"] == "fits" for row in rows):
            raise LayoutError("no cell of the map has a layout that exists and fits")
        return rows

    def _found(self) -> Iterator[dict[str, Any]]:
        tensor, pipeline = self.tensor_degrees, self.pipeline_degrees
        layouts = LayoutSpace(self.step, self.most_sharding)
        plain = DistributedModel.solve_grid(
            **layouts.shared, axes={"tp_size": tensor, "pp_size": pipeline}
        )
        why = {(r.tp_size, r.pp_size): str(r.reason) for r in plain.itertuples()}
        capacity = self.step.fleet.node.accelerator.capacity_bytes
        for t in tensor:
            for p in pipeline:
                here = (layouts["tp_size"] == t) & (layouts["pp_size"] == p)
                row: dict[str, Any] = {"tp_size": t, "pp_size": p}
                fits = here & layouts["feasible"]
                if fits.any():
                    found = layouts.row(layouts.least("step_time", fits))
                    yield row | {"state": "fits", "reason": "", "lacking_gb": ""} | found
                elif here.any():
                    found = layouts.row(layouts.least("memory", here))
                    lacking = found["memory_gb"] - capacity / 1e9
                    reason = "does not fit the memory"
                    state = {"state": "too_large", "reason": reason, "lacking_gb": lacking}
                    yield row | state | found
                else:
                    none = {"state": "none_exists", "reason": why[t, p], "lacking_gb": ""}
                    yield row | none | dict.fromkeys(COLUMNS, "")

    def _fitting(self) -> list[Mapping[str, Any]]:
        return [row for row in self.table() if row["state"] == "fits"]


def _cell(row: Mapping[str, Any]) -> str:
    return f"tp{row['tp_size']}_pp{row['pp_size']}"
