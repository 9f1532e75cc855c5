"""What speaks for a choice among layouts: the model's own error, and runs that others published."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._layout_space import CHOICES, LayoutSpace
from mlsysim.engine.scenario_definitions._published_rows import Run
from mlsysim.engine.scenario_definitions.published_steps import PublishedStepTimesScenario
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import InputError, LayoutError, nearest
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.arguments import RECOMPUTATION
from mlsysim.solvers.statistics import mean
from mlsysim.units import Quantity, to_si
from mlsysim.units.quantities import gigabytes, percent, seconds

__all__ = ["LayoutEvidenceScenario"]


@record
class LayoutEvidenceScenario(Scenario):
    """How many layouts are as good as the fastest, and how a published layout compares with them.

    All layouts of the step's fleet are solved, as in LayoutSearchScenario.

    Equation: close layouts = those that fit with step time <= best * (1 + the model's mean error).

    Assumptions: errors of the model are as large for layouts as they were, in the mean, for the
    published runs, and independent of one another.

    Excludes: what the layouts have in common, which makes their difference better known than
    either time.
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step whose layout is searched")
    most_sharding: int = declared(
        at_least=0, at_most=3, description="highest ZeRO stage that is looked at"
    )
    published: PublishedStepTimesScenario = declared(
        description="runs that say how far off the model is in the mean"
    )
    run: str = declared(description="the published run whose layout is tried on the step")

    def check(self) -> None:
        """Refuse a run that is not among the published ones."""
        self._row  # noqa: B018

    @output()
    def run_layout(self) -> dict[str, Any]:
        """The layout of the published run, on the step's fleet. Equation: as published."""
        row = self._all.row(self._of_run)
        return {name: row[column] for name, column in {**CHOICES, "data": "dp_size"}.items()}

    @output("s")
    def run_layout_time(self) -> Quantity:
        """Time of the step with that layout.

        Equation: DistributedModel.solve(...).step_latency_total.
        """
        return seconds(float(self._all["step_time"][self._of_run]))

    @output("GB")
    def run_layout_memory(self) -> Quantity:
        """Memory of the step with that layout.

        Equation: state_memory + activation_memory of DistributedModel.solve(...).
        """
        return gigabytes(float(self._all["memory"][self._of_run]) / 1e9)

    @output("%")
    def run_layout_over_best(self) -> Quantity:
        """What that layout takes longer than the fastest. Equation: run_layout_time / best - 1."""
        return percent(to_si(self.run_layout_time) / self._best - 1)

    @output()
    def beaten_by(self) -> int:
        """Layouts that are both faster and smaller than that of the run.

        Equation: count(step time < run_layout_time, memory < run_layout_memory).
        """
        found, i = self._all, self._of_run
        better = (found["step_time"] < found["step_time"][i]) & (
            found["memory"] < found["memory"][i]
        )
        return int((better & found["feasible"]).sum())

    @output("%")
    def tolerance(self) -> Quantity:
        """Error of the model that is granted to each layout. Equation: published.mean_error."""
        return percent(to_si(self.published.mean_error))

    @output("%")
    def interleaved_bias(self) -> Quantity:
        """Mean signed error of the published runs that interleave on the step's accelerator.

        Equation: mean(predicted / measured - 1) over these runs.
        """
        return percent(mean([run.error for run in self._interleaved()]))

    @output()
    def interleaved_microbatch(self) -> int:
        """The most sequences in a microbatch of those runs. Equation: max over these runs."""
        return max(int(run.result.inputs.microbatch) for run in self._interleaved())

    @output()
    def within(self) -> dict[str, int]:
        """Layouts that fit and take at most that share longer than the fastest.

        Equation: count of step time <= best * (1 + share), for one, two, five and ten percent and
        for the tolerance.
        """
        shares = {"one_percent": 0.01, "two_percent": 0.02, "five_percent": 0.05}
        shares |= {"ten_percent": 0.1, "tolerance": to_si(self.tolerance)}
        return {name: int(self._close(share).sum()) for name, share in shares.items()}

    @output()
    def within_tolerance(self) -> dict[str, int]:
        """Smallest and largest of each choice among the layouts within the tolerance.

        Equation: min and max over layouts with step time <= best * (1 + tolerance).
        """
        close = self._close(to_si(self.tolerance))
        found: dict[str, int] = {}
        for name, column in _RANGES.items():
            values = self._all[column][close]
            found |= {f"least_{name}": int(values.min()), f"most_{name}": int(values.max())}
        return found

    def _interleaved(self) -> list[Run]:
        own = self.step.fleet.node.accelerator.name
        runs = [run for run in self.published.solved if run.accelerator == own]
        found = [run for run in runs if run.result.inputs.interleaving > 1]
        if not found:
            raise LayoutError(f"no published run interleaves on {own}")
        return found

    @cached_property
    def _all(self) -> LayoutSpace:
        return LayoutSpace(self.step, self.most_sharding)

    @property
    def _best(self) -> float:
        return self._all.fastest(self._all["feasible"])

    def _close(self, share: float) -> Any:
        return self._all["feasible"] & (self._all["step_time"] <= self._best * (1 + share))

    @property
    def _row(self) -> Mapping[str, str]:
        """The published run, by its name."""
        rows = {row["run"]: row for row in self.published.runs}
        if self.run not in rows:
            raise InputError(f"run = {self.run!r}: no such run; {nearest(self.run, rows)}")
        return rows[self.run]

    @property
    def _of_run(self) -> int:
        """The place of the run's layout among all."""
        own = {name: self._row[column] for name, column in CHOICES.items()}
        own["recomputation"] = str(RECOMPUTATION.index(own["recomputation"]))
        same = self._all.having({name: int(value) for name, value in own.items()})
        if not same.any():
            layout = ", ".join(f"{column} {own[name]}" for name, column in CHOICES.items())
            raise LayoutError(f"the layout of {self.run} is none on the step's fleet: {layout}")
        return int(same.nonzero()[0][0])


# Whose range among the fastest layouts is worth a look; data parallelism follows from the others.
_RANGES = {name: column for name, column in CHOICES.items() if name != "recomputation"}
_RANGES["data"] = "dp_size"
