"""Uneven stages: how layers and the output head are split over a pipeline, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.lists import Counts
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._step_columns import alone
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.layer import parts_of
from mlsysim.solvers.schedule import apart, slots_of
from mlsysim.units import Quantity
from mlsysim.units.quantities import percent, seconds

__all__ = ["StageSplitScenario"]


@record
class StageSplitScenario(Scenario):
    """How evenly a model can be split over its pipeline, at several depths and in two ways.

    Split by layers, all stages get equally many, and those in the middle what is left over. Split
    by slots, embedding and output head each take the place of a layer.

    Equation: unevenness = slowest slot / mean slot - 1; waiting = 1 - microbatches * mean slot /
    closed form.

    Assumptions: one replica stands alone, with as many microbatches as a replica of the step has;
    the schedule is plain 1F1B.

    Excludes: what replicas exchange, the optimizer, and splits inside a layer.
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step whose model is split")
    depths: Counts = declared(at_least=1, description="pipeline depths")

    def check(self) -> None:
        """Refuse depths that the solver refuses."""
        self.table()

    @output("ms")
    def head_time(self) -> Quantity:
        """The output head with the loss, of one microbatch on one rank, forward and backward.

        Equation: 3 * 2 b s h V / (tensor degree * peak rate * efficiency) + bytes of the loss /
        (memory bandwidth * share of it that kernels reach).
        """
        return seconds(parts_of(self.step.result.inputs).head)

    @output("ms")
    def layer_time(self) -> Quantity:
        """A layer, of one microbatch on one rank, forward and backward.

        Equation: matrix products + memory-bound kernels + exposed tensor- and context-parallel
        communication of both passes.
        """
        return seconds(parts_of(self.step.result.inputs).layer.total)

    @output()
    def head_in_layers(self) -> float:
        """The output head with the loss, against a layer. Equation: head_time / layer_time."""
        parts = parts_of(self.step.result.inputs)
        return float(parts.head / parts.layer.total)

    @output("%")
    def unevenness(self) -> dict[str, Quantity]:
        """How much longer the slowest slot is than the mean. Equation: slowest / mean - 1."""
        return {_key(row): percent(row["unevenness"]) for row in self.table()}

    @output("%")
    def waiting(self) -> dict[str, Quantity]:
        """Share of the time for which a stage waits in the mean, for others or in the bubble.

        Equation: 1 - microbatches * mean slot / (microbatches * slowest slot + bubble).
        """
        return {_key(row): percent(row["waiting"]) for row in self.table()}

    @output("%")
    def simulated_apart(self) -> dict[str, Quantity]:
        """How much longer the simulated time is than the closed form, but for rounding.

        Equation: makespan / closed_form - 1.
        """
        return {_key(row): percent(row["apart"]) for row in self.table()}

    @output("%")
    def most_apart(self) -> Quantity:
        """The largest difference between simulated time and closed form, but for rounding.

        Equation: max over rows of |makespan / closed_form - 1|.
        """
        return percent(max(abs(row["apart"]) for row in self.table()))

    def table_rows(self) -> Iterator[dict[str, Any]]:
        """One row a depth and split: layers of the stages, slots in seconds, and shares."""
        count = self.step.microbatches_per_replica
        for depth in self.depths:
            for split in ("layers", "slots"):
                slots = slots_of(alone(self.step, depth, v_stages=1, stage_split=split).inputs)
                closed, mean = slots.closed_form(count), slots.total / depth
                yield {
                    "depth": depth,
                    "split": split,
                    "first": slots.layers[0],
                    "most": max(slots.layers),
                    "last": slots.layers[-1],
                    "slowest_s": slots.slowest,
                    "mean_s": mean,
                    "unevenness": slots.slowest / mean - 1.0,
                    "waiting": 1.0 - count * mean / closed,
                    "apart": apart(max(each.end for each in slots.passes(count)), closed),
                }


def _key(row: Mapping[str, Any]) -> str:
    return f"p{row['depth']}_{row['split']}"
