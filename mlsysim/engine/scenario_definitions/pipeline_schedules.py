"""The schedule of a pipeline, drawn pass by pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._step_columns import alone
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import LayoutError
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.schedule import Pass, Slots, apart, in_flight, slots_of
from mlsysim.units import Quantity
from mlsysim.units.quantities import percent, seconds

__all__ = ["PipelineScheduleScenario"]

_MOST_PASSES = 100_000  # of a drawn step: what takes a second, and far more than can be drawn


@record
class PipelineScheduleScenario(Scenario):
    """The passes of one step through a pipeline, simulated one by one.

    Each stage does one forward and one backward pass in turn, once its first gradient is there;
    with interleaving it holds several parts of the model, and takes them in turn.

    Equation: start of a pass = max(end of the stage's last pass, end of the pass that it needs).

    Assumptions: the model and the microbatch are those of the step; passing on is a part of the
    pass.

    Excludes: what replicas exchange and the optimizer, which follow the last pass.
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step whose passes are timed")
    stages: int = declared(at_least=1, description="stages of the pipeline")
    microbatches: int = declared(at_least=1, description="microbatches of the drawn step")
    interleaving: int = declared(at_least=1, description="parts of each stage; 1 is plain 1F1B")
    has_head: bool = declared(description="the last stage has the output head beside its layers")

    def check(self) -> None:
        """Refuse stages, parts and microbatches that the solver refuses, or that are too many."""
        passes = 2 * self.stages * self.interleaving * self.microbatches
        if passes > _MOST_PASSES:
            raise LayoutError(
                f"stages = {self.stages}, interleaving = {self.interleaving} and microbatches = "
                f"{self.microbatches} make {passes} passes; expected at most {_MOST_PASSES}"
            )
        self._made  # noqa: B018

    @output("s")
    def forward_slot(self) -> Quantity:
        """A forward pass of one microbatch through the first stage.

        Equation: layers of the stage * forward pass of a layer + handing over.
        """
        return seconds(math.fsum(self._made[0].forward[0]))

    @output("s")
    def backward_slot(self) -> Quantity:
        """A backward pass of one microbatch through the first stage.

        Equation: layers of the stage * backward pass of a layer + handing over.
        """
        return seconds(math.fsum(self._made[0].backward[0]))

    @output("s")
    def makespan(self) -> Quantity:
        """Time from the first pass to the end of the last. Equation: max(end of a pass)."""
        return seconds(self._makespan)

    @output("s")
    def closed_form(self) -> Quantity:
        """The same as DistributedModel has it.

        Equation: microbatches * slowest slot + (sum of the stages' slots - slowest slot) /
        interleaving.
        """
        return seconds(self._made[0].closed_form(self.microbatches))

    @output("%")
    def difference(self) -> Quantity:
        """How much longer the simulated time is than the closed form, but for rounding.

        Equation: makespan / closed_form - 1.
        """
        return percent(apart(self._makespan, self._made[0].closed_form(self.microbatches)))

    @output("s")
    def bubble(self) -> Quantity:
        """Time in which the slowest stage waits. Equation: makespan - microbatches * its slot."""
        return seconds(self._makespan - self.microbatches * self._made[0].slowest)

    @output("%")
    def bubble_share(self) -> Quantity:
        """The bubble's share of the time. Equation: bubble / makespan."""
        return percent(1.0 - self.microbatches * self._made[0].slowest / self._makespan)

    @output("%")
    def bubble_over_work(self) -> Quantity:
        """The bubble against the work of the slowest stage.

        Equation: bubble / (microbatches * slowest slot); (p - 1) / (v m) if all slots are equal.
        """
        return percent(self._makespan / (self.microbatches * self._made[0].slowest) - 1.0)

    @output()
    def in_flight(self) -> dict[str, float]:
        """Microbatches whose activations each stage keeps at most; a part counts as its share.

        Equation: max over time of (forward passes begun - backward passes ended) / interleaving.
        """
        return {
            f"stage_{stage + 1}": in_flight(self._made[1], stage) / self.interleaving
            for stage in range(self.stages)
        }

    @output()
    def messages(self) -> int:
        """Times that a microbatch or its gradient is passed on.

        Equation: 2 * (stages * interleaving - 1).
        """
        return 2 * (self.stages * self.interleaving - 1)

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """One row a pass, stages and microbatches counted from 1, times in seconds."""
        return [
            {
                "stage": each.stage + 1,
                "microbatch": each.microbatch + 1,
                "chunk": each.part + 1,
                "pass": "backward" if each.is_backward else "forward",
                "start_s": each.start,
                "end_s": each.end,
            }
            for each in self._made[1]
        ]

    @property
    def _makespan(self) -> float:
        return max(each.end for each in self._made[1])

    @cached_property
    def _made(self) -> tuple[Slots, list[Pass]]:
        solved = alone(
            self.step,
            self.stages,
            v_stages=self.interleaving,
            microbatch_count=self.microbatches,
            batch_size=self.microbatches * self.step.sequences_per_microbatch,
        )
        slots = slots_of(solved.inputs, has_head=self.has_head)
        return slots, slots.passes(self.microbatches)
