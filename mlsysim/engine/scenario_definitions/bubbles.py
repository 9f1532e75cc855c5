"""The bubble of a pipeline at several depths and interleavings, by the model and simulated."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.lists import Counts
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import LayoutError
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.distributed import solved
from mlsysim.solvers.schedule import apart, in_flight, slots_of
from mlsysim.units import Quantity
from mlsysim.units.quantities import gigabytes, percent, seconds

__all__ = ["PipelineBubbleScenario"]


@record
class PipelineBubbleScenario(Scenario):
    """The bubble of a step at several depths and interleavings: by the model, and simulated.

    Equation: each row = DistributedModel.solve with pp_size and v_stages of that row, on the fleet
    and the batch of the step; simulated = makespan of its schedule - microbatches * slowest slot.

    Assumptions: the microbatch keeps its size, so that a deeper pipeline leaves fewer replicas with
    more microbatches each.

    Excludes: rows whose layout cannot exist.
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step that is varied")
    depths: Counts = declared(at_least=1, description="pipeline depths")
    interleavings: Counts = declared(at_least=1, description="parts of a stage")

    def check(self) -> None:
        """Refuse a table in which nothing exists."""
        if not self.table():
            raise LayoutError("no depth and interleaving gives a step that exists")

    @output()
    def rows(self) -> int:
        """Layouts that exist. Equation: rows of the table."""
        return len(self.table())

    @output()
    def microbatches(self) -> dict[str, int]:
        """Microbatches of a replica. Equation: batch / (replicas * microbatch)."""
        return {_key(row): row["microbatches"] for row in self.table()}

    @output("s")
    def bubble(self) -> dict[str, Quantity]:
        """The bubble by the model.

        Equation: DistributedModel.solve(...).pipeline_bubble_latency.
        """
        return {_key(row): seconds(row["bubble_s"]) for row in self.table()}

    @output("%")
    def bubble_share(self) -> dict[str, Quantity]:
        """The bubble's share of the step. Equation: bubble / step_time."""
        return {_key(row): percent(row["bubble_s"] / row["step_time_s"]) for row in self.table()}

    @output("s")
    def point_to_point(self) -> dict[str, Quantity]:
        """What handing over takes.

        Equation: DistributedModel.solve(...).pp_communication_latency.
        """
        return {_key(row): seconds(row["point_to_point_s"]) for row in self.table()}

    @output()
    def in_flight(self) -> dict[str, float]:
        """Microbatches whose activations the first stage keeps at most, as simulated.

        Equation: max over time of (forward passes begun - backward passes ended) / interleaving.
        """
        return {_key(row): row["in_flight"] for row in self.table()}

    @output("GB")
    def activations(self) -> dict[str, Quantity]:
        """Activations on the fullest accelerator.

        Equation: total memory - state, of DistributedModel.solve(...).
        """
        return {_key(row): gigabytes(row["activations_gb"]) for row in self.table()}

    @output("s")
    def step_time(self) -> dict[str, Quantity]:
        """Step time, also where the memory does not suffice. Equation: sum of the ledger."""
        return {_key(row): seconds(row["step_time_s"]) for row in self.table()}

    @output("%")
    def limit(self) -> Quantity:
        """The bubble against the work that no depth exceeds on this fleet and batch, if v = 1.

        Equation: accelerators * microbatch / (batch * tensor_parallel).
        """
        step = self.step
        placed = step.fleet.total_accelerators * step.sequences_per_microbatch
        return percent(placed / (step.global_batch_sequences * step.tensor_parallel))

    @output("%")
    def most_apart(self) -> Quantity:
        """The largest difference between simulated time and closed form, but for rounding.

        Equation: max over rows of |makespan / closed_form - 1|.
        """
        return percent(max(abs(row["apart"]) for row in self.table()))

    def table_rows(self) -> Iterator[dict[str, Any]]:
        """One row a depth and interleaving that exists: times in seconds, memory in GB."""
        given, step = self.step.solver_arguments(), self.step
        for depth, part in itertools.product(self.depths, self.interleavings):
            replicas = step.fleet.total_accelerators // (step.tensor_parallel * depth)
            slots = max(replicas, 1) * step.sequences_per_microbatch
            count = given.batch_size // slots
            try:
                found = solved(replace(given, pp_size=depth, v_stages=part, microbatch_count=count))
            except LayoutError:
                continue
            slot = slots_of(found.inputs)
            passes = slot.passes(count)
            makespan = max(each.end for each in passes)
            yield {
                "depth": depth,
                "interleaving": part,
                "replicas": replicas,
                "microbatches": count,
                "bubble_s": float(found.ledger.bubble),
                "simulated_s": makespan - count * slot.slowest,
                "apart": apart(makespan, slot.closed_form(count)),
                "point_to_point_s": float(found.ledger.point_to_point),
                "step_time_s": float(found.ledger.total),
                "in_flight": in_flight(passes, 0) / part,
                "activations_gb": found.step.memory.activations / 1e9,
                "fits": found.feasible,
            }


def _key(row: Mapping[str, Any]) -> str:
    return f"p{row['depth']}_v{row['interleaving']}"
