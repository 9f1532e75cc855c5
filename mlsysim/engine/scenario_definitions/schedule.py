"""Pipelines: a schedule drawn pass by pass, and the bubble at any depth and interleaving."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from mlsysim.declared import declared, record
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions.rows import alone, counts, gigabytes, percent, seconds
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import LayoutError
from mlsysim.outputs import output
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.schedule import Pass, Slots, apart, in_flight, slots_of
from mlsysim.units import Quantity

__all__ = ["PipelineBubbleScenario", "PipelineScheduleScenario"]

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
        self._made()

    @output("s")
    def forward_slot(self) -> Quantity:
        """A forward pass of one microbatch through the first stage.

        Equation: layers of the stage * forward pass of a layer + handing over.
        """
        return seconds(math.fsum(self._made()[0].forward[0]))

    @output("s")
    def backward_slot(self) -> Quantity:
        """A backward pass of one microbatch through the first stage.

        Equation: layers of the stage * backward pass of a layer + handing over.
        """
        return seconds(math.fsum(self._made()[0].backward[0]))

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
        return seconds(self._made()[0].closed_form(self.microbatches))

    @output("%")
    def difference(self) -> Quantity:
        """How much longer the simulated time is than the closed form, but for rounding.

        Equation: makespan / closed_form - 1.
        """
        return percent(apart(self._makespan, self._made()[0].closed_form(self.microbatches)))

    @output("s")
    def bubble(self) -> Quantity:
        """Time in which the slowest stage waits. Equation: makespan - microbatches * its slot."""
        return seconds(self._makespan - self.microbatches * self._made()[0].slowest)

    @output("%")
    def bubble_share(self) -> Quantity:
        """The bubble's share of the time. Equation: bubble / makespan."""
        return percent(1.0 - self.microbatches * self._made()[0].slowest / self._makespan)

    @output("%")
    def bubble_over_work(self) -> Quantity:
        """The bubble against the work of the slowest stage.

        Equation: bubble / (microbatches * slowest slot); (p - 1) / (v m) if all slots are equal.
        """
        return percent(self._makespan / (self.microbatches * self._made()[0].slowest) - 1.0)

    @output()
    def in_flight(self) -> dict[str, float]:
        """Microbatches whose activations each stage keeps at most; a part counts as its share.

        Equation: max over time of (forward passes begun - backward passes ended) / interleaving.
        """
        return {
            f"stage_{stage + 1}": in_flight(self._made()[1], stage) / self.interleaving
            for stage in range(self.stages)
        }

    @output()
    def messages(self) -> int:
        """Times that a microbatch or its gradient is passed on.

        Equation: 2 * (stages * interleaving - 1).
        """
        return 2 * (self.stages * self.interleaving - 1)

    def table(self) -> Sequence[Mapping[str, Any]]:
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
            for each in self._made()[1]
        ]

    @property
    def _makespan(self) -> float:
        return max(each.end for each in self._made()[1])

    def _made(self) -> tuple[Slots, list[Pass]]:
        if "_found" not in self.__dict__:
            solved = alone(
                self.step,
                self.stages,
                v_stages=self.interleaving,
                microbatch_count=self.microbatches,
                batch_size=self.microbatches * self.step.sequences_per_microbatch,
            )
            slots = slots_of(solved.inputs, has_head=self.has_head)
            self.__dict__["_found"] = slots, slots.passes(self.microbatches)
        found: tuple[Slots, list[Pass]] = self.__dict__["_found"]
        return found


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
    depths: str = declared(description="pipeline depths, separated by commas")
    interleavings: str = declared(description="parts of a stage, separated by commas")

    def check(self) -> None:
        """Refuse lists that are none, and a table in which nothing exists."""
        if not self._rows():
            raise LayoutError("no depth and interleaving gives a step that exists")

    @output()
    def rows(self) -> int:
        """Layouts that exist. Equation: rows of the table."""
        return len(self._rows())

    @output()
    def microbatches(self) -> dict[str, int]:
        """Microbatches of a replica. Equation: batch / (replicas * microbatch)."""
        return {_key(row): row["microbatches"] for row in self._rows()}

    @output("s")
    def bubble(self) -> dict[str, Quantity]:
        """The bubble by the model.

        Equation: DistributedModel.solve(...).pipeline_bubble_latency.
        """
        return {_key(row): seconds(row["bubble_s"]) for row in self._rows()}

    @output("s")
    def simulated(self) -> dict[str, Quantity]:
        """The bubble of the simulated schedule.

        Equation: makespan - microbatches * slowest slot.
        """
        return {_key(row): seconds(row["simulated_s"]) for row in self._rows()}

    @output("%")
    def bubble_share(self) -> dict[str, Quantity]:
        """The bubble's share of the step. Equation: bubble / step_time."""
        return {_key(row): percent(row["bubble_s"] / row["step_time_s"]) for row in self._rows()}

    @output("s")
    def point_to_point(self) -> dict[str, Quantity]:
        """What handing over takes.

        Equation: DistributedModel.solve(...).pp_communication_latency.
        """
        return {_key(row): seconds(row["point_to_point_s"]) for row in self._rows()}

    @output()
    def in_flight(self) -> dict[str, float]:
        """Microbatches whose activations the first stage keeps at most, as simulated.

        Equation: max over time of (forward passes begun - backward passes ended) / interleaving.
        """
        return {_key(row): row["in_flight"] for row in self._rows()}

    @output("GB")
    def activations(self) -> dict[str, Quantity]:
        """Activations on the fullest accelerator. Equation: DistributedModel.solve(...)."""
        return {_key(row): gigabytes(row["activations_gb"]) for row in self._rows()}

    @output("s")
    def step_time(self) -> dict[str, Quantity]:
        """Step time, also where the memory does not suffice. Equation: sum of the ledger."""
        return {_key(row): seconds(row["step_time_s"]) for row in self._rows()}

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
        return percent(max(abs(row["apart"]) for row in self._rows()))

    def table(self) -> Sequence[Mapping[str, Any]]:
        """One row a depth and interleaving that exists: times in seconds, memory in GB."""
        return self._rows()

    def _rows(self) -> list[dict[str, Any]]:
        if "_found" not in self.__dict__:
            self.__dict__["_found"] = [*self._solved()]
        found: list[dict[str, Any]] = self.__dict__["_found"]
        return found

    def _solved(self) -> Iterator[dict[str, Any]]:
        given, step = self.step.solver_arguments(), self.step
        depths = counts("depths", self.depths, least=1)
        parts = counts("interleavings", self.interleavings, least=1)
        for depth, part in itertools.product(depths, parts):
            replicas = step.fleet.total_accelerators // (step.tensor_parallel * depth)
            slots = max(replicas, 1) * step.sequences_per_microbatch
            count = given["batch_size"] // slots
            changes = {"pp_size": depth, "v_stages": part, "microbatch_count": count}
            try:
                found = DistributedModel.solve(**{**given, **changes})
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
