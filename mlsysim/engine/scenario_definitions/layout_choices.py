"""The choices in a layout: what each is worth, and which layouts are as good as the fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mlsysim.declared import declared, record
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions.layouts import CHOICES, Layouts
from mlsysim.engine.scenario_definitions.published import PublishedStepTimesScenario
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import InputError, LayoutError, nearest
from mlsysim.outputs import output
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.arguments import RECOMPUTATION
from mlsysim.units import Quantity, to_si, unit

__all__ = ["LayoutChoicesScenario"]


@record
class LayoutChoicesScenario(Scenario):
    """What each choice of a layout is worth, and how many layouts are as good as the fastest.

    All layouts of the step's fleet are solved, as in LayoutSearchScenario.

    Equation: the table = layouts than which none that fits is both faster and smaller.

    Assumptions: all layouts share the step's efficiency, overlap and kernels; errors of the model
    are as large for layouts as they were, in the mean, for the published runs.

    Excludes: the work of moving to another layout, and how well a framework runs it.
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
    def fitting(self) -> int:
        """Layouts that exist and fit. Equation: count."""
        return int(self._all["feasible"].sum())

    @output()
    def faster_than_step(self) -> int:
        """Layouts that fit and are faster than the step's own. Equation: count."""
        time = self._all["step_time"]
        return int((self._all["feasible"] & (time < self._own)).sum())

    @output("s")
    def changing(self) -> dict[str, Quantity]:
        """Step time if one choice alone may change, and all others stay those of the step.

        Data parallelism takes what is left of the fleet. Equation: min over layouts that fit and
        agree with the step in all choices but this one.
        """
        every = self._all["feasible"]
        return {
            name: self._fastest(every & self._agrees(*(c for c in CHOICES if c != name)))
            for name in CHOICES
        }

    @output("s")
    def keeping(self) -> dict[str, Quantity]:
        """Step time if one choice stays that of the step, and all others may change.

        Equation: min over layouts that fit and agree with the step in this choice.
        """
        every = self._all["feasible"]
        return {name: self._fastest(every & self._agrees(name)) for name in CHOICES}

    @output("%")
    def changing_saves(self) -> dict[str, Quantity]:
        """Share of the step that changing one choice alone saves. Equation: 1 - changing / step."""
        return {name: _percent(1 - to_si(t) / self._own) for name, t in self.changing.items()}

    @output("%")
    def keeping_costs(self) -> dict[str, Quantity]:
        """What one choice of the step costs the fastest layout. Equation: keeping / best - 1."""
        best = to_si(self.best_step_time)
        return {name: _percent(to_si(t) / best - 1) for name, t in self.keeping.items()}

    @output("s")
    def best_step_time(self) -> Quantity:
        """Step time of the fastest layout that fits. Equation: min over layouts."""
        return self._fastest(self._all["feasible"])

    @output("s")
    def best_recomputing(self) -> dict[str, Quantity]:
        """The fastest layout with each form of recomputation. Equation: min over those that fit."""
        return {
            word: self._fastest(
                self._all["feasible"] & (self._all["activation_recomputation"] == i)
            )
            for i, word in enumerate(RECOMPUTATION)
        }

    @output("s")
    def best_with_tensor(self) -> dict[str, Quantity]:
        """The fastest layout with each tensor degree. Equation: min over those that fit."""
        return {
            f"tp{degree}": self._fastest(self._all["feasible"] & (self._all["tp_size"] == degree))
            for degree in sorted({int(t) for t in self._all["tp_size"][self._all["feasible"]]})
        }

    @output()
    def rescued_by_recomputation(self) -> int:
        """Layouts that fit with full recomputation and not without any. Equation: count."""
        return int(self._rescued().sum())

    @output("s")
    def best_rescued(self) -> Quantity:
        """The fastest layout that fits with full recomputation alone. Equation: min over these."""
        time, how = self._all["step_time"], self._all["activation_recomputation"]
        return _seconds(float(time[how == 2][self._rescued()].min()))

    @output()
    def run_layout(self) -> dict[str, Any]:
        """The layout of the published run, on the step's fleet. Equation: as published."""
        row = self._all.row(self._of_run)
        return {name: row[column] for name, column in {**CHOICES, "data": "dp_size"}.items()}

    @output("s")
    def run_layout_time(self) -> Quantity:
        """Time of the step with that layout. Equation: DistributedModel.solve(...)."""
        return _seconds(float(self._all["step_time"][self._of_run]))

    @output("GB")
    def run_layout_memory(self) -> Quantity:
        """Memory of the step with that layout. Equation: DistributedModel.solve(...)."""
        return _gigabytes(self._all["memory"][self._of_run])

    @output("%")
    def run_layout_over_best(self) -> Quantity:
        """What that layout takes longer than the fastest. Equation: run_layout_time / best - 1."""
        return _percent(to_si(self.run_layout_time) / to_si(self.best_step_time) - 1)

    @output()
    def beaten_by(self) -> int:
        """Layouts that are both faster and smaller than that of the run. Equation: count."""
        found, i = self._all, self._of_run
        better = (found["step_time"] < found["step_time"][i]) & (
            found["memory"] < found["memory"][i]
        )
        return int((better & found["feasible"]).sum())

    @output("%")
    def tolerance(self) -> Quantity:
        """Error of the model that is granted to each layout. Equation: published.mean_error."""
        return _percent(to_si(self.published.mean_error))

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

    @output("GB")
    def leanest_within(self) -> dict[str, Quantity]:
        """The least memory at which a layout is within that share of the fastest.

        Equation: min memory over layouts with step time <= best * (1 + share).
        """
        shares = {"best": 0.0, "five_percent": 0.05, "ten_percent": 0.1}
        return {
            name: _gigabytes(self._all["memory"][self._close(share)].min())
            for name, share in shares.items()
        }

    @output("GB")
    def leanest_without_recomputation(self) -> Quantity:
        """The least memory of a layout that repeats no whole forward pass. Equation: min memory."""
        kept = self._all["activation_recomputation"] < 2
        return _gigabytes(self._all["memory"][kept].min())

    @output("s")
    def best_in_share(self) -> dict[str, Quantity]:
        """The fastest layout that leaves a part of the memory free.

        Equation: min step time over layouts with memory <= share * capacity.
        """
        capacity = self.step.fleet.node.accelerator.capacity_bytes
        shares = {"half": 0.5, "four_fifths": 0.8}
        return {
            name: self._fastest(self._all["memory"] <= share * capacity)
            for name, share in shares.items()
        }

    @output("GB")
    def step_memory(self) -> Quantity:
        """Memory of the step's own layout. Equation: result.step.memory.total."""
        return _gigabytes(self.step.result.step.memory.total)

    def table(self) -> Sequence[Mapping[str, Any]]:
        """Layouts that none beats in both time and memory, fastest first."""
        everything, fits = self._all, self._all["feasible"]
        rows, leanest = [], float("inf")
        for i in everything.order(fits):
            memory = float(everything["memory"][i])
            if memory < leanest:
                leanest = memory
                rows.append(everything.row(i))
        return rows

    @property
    def _all(self) -> Layouts:
        if "_layouts" not in self.__dict__:
            self.__dict__["_layouts"] = Layouts(self.step, self.most_sharding)
        found: Layouts = self.__dict__["_layouts"]
        return found

    @property
    def _own(self) -> float:
        return float(self.step.result.ledger.total)

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
        same = self._all["tp_size"] > 0
        for name, column in CHOICES.items():
            same = same & (self._all[column] == int(own[name]))
        if not same.any():
            layout = ", ".join(f"{column} {own[name]}" for name, column in CHOICES.items())
            raise LayoutError(f"the layout of {self.run} is none on the step's fleet: {layout}")
        return int(same.nonzero()[0][0])

    def _close(self, share: float) -> Any:
        limit = to_si(self.best_step_time) * (1 + share)
        return self._all["feasible"] & (self._all["step_time"] <= limit)

    def _rescued(self) -> Any:
        """Among layouts with full recomputation, those that would not fit without any."""
        how, fits = self._all["activation_recomputation"], self._all["feasible"]
        # Layouts that differ in recomputation alone stand in the same order for each of its forms.
        return fits[how == 2] & ~fits[how == 0]

    def _fastest(self, among: Any) -> Quantity:
        if not among.any():
            raise LayoutError("no layout is left among those that fit and meet a condition")
        return _seconds(float(self._all["step_time"][among].min()))

    def _agrees(self, *choices: str) -> Any:
        """Which layouts have these choices as the step has them."""
        replica = self.step.replica
        own = {
            "tensor": self.step.tensor_parallel,
            "context": 1,
            "pipeline": self.step.pipeline_depth,
            "interleaving": replica.interleaving,
            "microbatch": self.step.sequences_per_microbatch,
            "recomputation": RECOMPUTATION.index(replica.activation_recomputation),
            "sharding": 0,
        }
        same = self._all["tp_size"] > 0
        for choice in choices:
            same = same & (self._all[CHOICES[choice]] == own[choice])
        return same


# Whose range among the fastest layouts is worth a look; data parallelism follows from the others.
_RANGES = {name: column for name, column in CHOICES.items() if name != "recomputation"}
_RANGES["data"] = "dp_size"


def _seconds(value: float) -> Quantity:
    return Quantity(value, unit("s"))


def _gigabytes(value: Any) -> Quantity:
    return Quantity(float(value) / 1e9, unit("GB"))


def _percent(share: float) -> Quantity:
    return Quantity(100 * share, unit("%"))
