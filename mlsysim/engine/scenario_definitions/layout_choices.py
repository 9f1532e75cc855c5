"""The choices in a layout: what each is worth in time and in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._layout_space import CHOICES, LayoutSpace
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.arguments import RECOMPUTATION
from mlsysim.units import Quantity, to_si
from mlsysim.units.quantities import gigabytes, percent, seconds

__all__ = ["LayoutChoicesScenario"]


@record
class LayoutChoicesScenario(Scenario):
    """What each choice of a layout is worth, in time and in memory.

    All layouts of the step's fleet are solved, as in LayoutSearchScenario.

    Equation: the table = layouts than which none that fits is both faster and smaller.

    Assumptions: all layouts share the step's efficiency, overlap and kernels.

    Excludes: the work of moving to another layout, and how well a framework runs it.
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step whose layout is searched")
    most_sharding: int = declared(
        at_least=0, at_most=3, description="highest ZeRO stage that is looked at"
    )

    @output()
    def fitting(self) -> int:
        """Layouts that exist and fit. Equation: count(memory <= capacity)."""
        return int(self._all["feasible"].sum())

    @output()
    def faster_than_step(self) -> int:
        """Layouts that fit and are faster than the step's own.

        Equation: count(step time < that of the step).
        """
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
        return {name: percent(1 - to_si(t) / self._own) for name, t in self.changing.items()}

    @output("%")
    def keeping_costs(self) -> dict[str, Quantity]:
        """What one choice of the step costs the fastest layout. Equation: keeping / best - 1."""
        best = to_si(self.best_step_time)
        return {name: percent(to_si(t) / best - 1) for name, t in self.keeping.items()}

    @output("s")
    def best_step_time(self) -> Quantity:
        """Step time of the fastest layout that fits. Equation: min over layouts."""
        return self._fastest(self._all["feasible"])

    @output("s")
    def best_saves(self) -> dict[str, Quantity]:
        """What the fastest layout saves in each part of the ledger; negative where it costs.

        Equation: part of the step - part of the fastest layout.
        """
        i = self._all.least("step_time", self._all["feasible"])
        own = self.step.result.ledger._asdict()
        return {
            name: seconds(math.fsum(float(own[part]) - float(self._all[part][i]) for part in parts))
            for name, parts in _PARTS.items()
        }

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
        """Layouts that fit with full recomputation and not without any.

        Equation: count(memory, full <= capacity < memory, none).
        """
        return int(self._rescued().sum())

    @output("s")
    def best_rescued(self) -> Quantity:
        """The fastest layout that fits with full recomputation alone. Equation: min over these."""
        return self._fastest(self._rescued())

    @output("GB")
    def leanest_within(self) -> dict[str, Quantity]:
        """The least memory at which a layout is within that share of the fastest.

        Equation: min memory over layouts with step time <= best * (1 + share).
        """
        shares = {"best": 0.0, "five_percent": 0.05, "ten_percent": 0.1}
        return {
            name: gigabytes(float(self._all["memory"][self._close(share)].min()) / 1e9)
            for name, share in shares.items()
        }

    @output("GB")
    def leanest_without_recomputation(self) -> Quantity:
        """The smallest layout of the table that repeats no whole forward pass.

        Equation: min memory over rows of the table without full recomputation.
        """
        kept = [row for row in self.table() if row["activation_recomputation"] != "full"]
        return gigabytes(min(row["memory_gb"] for row in kept))

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
        return gigabytes(self.step.result.step.memory.total / 1e9)

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """Layouts that none beats in both time and memory, fastest first."""
        everything, fits = self._all, self._all["feasible"]
        rows, leanest = [], float("inf")
        for i in everything.order(fits):
            memory = float(everything["memory"][i])
            if memory < leanest:
                leanest = memory
                rows.append(everything.row(i))
        return rows

    @cached_property
    def _all(self) -> LayoutSpace:
        return LayoutSpace(self.step, self.most_sharding)

    @property
    def _own(self) -> float:
        return float(self.step.result.ledger.total)

    def _close(self, share: float) -> Any:
        limit = to_si(self.best_step_time) * (1 + share)
        return self._all["feasible"] & (self._all["step_time"] <= limit)

    def _rescued(self) -> Any:
        """Layouts that fit with full recomputation, and would not fit without any."""
        how, fits = self._all["activation_recomputation"], self._all["feasible"]
        rescued = fits & (how == 2)
        # Layouts that differ in recomputation alone stand in the same order for each of its forms.
        rescued[how == 2] &= ~fits[how == 0]
        return rescued

    def _fastest(self, among: Any) -> Quantity:
        return seconds(self._all.fastest(among))

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
        return self._all.having({choice: own[choice] for choice in choices})


# Parts of the ledger that are told together.
_PARTS = {
    "matrix_products": ("forward", "backward", "recomputation"),
    "memory": ("memory_bound", "optimizer"),
    "tensor_parallel": ("tensor_parallel",),
    "other_communication": ("context_parallel", "point_to_point", "data_parallel"),
    "bubble": ("bubble",),
}
