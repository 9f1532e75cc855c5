"""The pipeline schedule: what a microbatch costs each stage, the bubble, what overlap hides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["StageSlot", "bubble_time", "exposed_reduction", "slowest"]


@dataclass(frozen=True)
class StageSlot:
    """Seconds that one microbatch takes on one stage, by what they are spent on."""

    forward: float
    backward: float
    recomputation: float
    tensor_parallel: float
    tensor_parallel_backward: float
    point_to_point: float

    @property
    def backward_pass(self) -> float:
        """Seconds of the backward pass: backward, recomputation and its tensor-parallel part."""
        return self.backward + self.recomputation + self.tensor_parallel_backward

    @property
    def total(self) -> float:
        """Seconds of the whole slot, in the order of the ledger."""
        return (
            self.forward
            + self.backward
            + self.recomputation
            + self.tensor_parallel
            + self.point_to_point
        )


def slowest(slots: Sequence[StageSlot]) -> StageSlot:
    """The stage that sets the pace; the last of equals, which holds the output head."""
    paced = slots[0]
    for slot in slots[1:]:
        if slot.total >= paced.total:
            paced = slot
    return paced


def bubble_time(slot_times: Sequence[float], interleaving: int) -> float:
    """Seconds in which the slowest stage waits for the pipeline to fill and drain.

    A microbatch passes all stages before the first result; the slowest stage is busy for its own
    slot only. With equal slots this is (p - 1) slots, and interleaving v parts a stage divides it
    by v. Source: Narayanan et al. 2021 (arXiv 2104.04473), section 2.2.

    >>> bubble_time([2.0, 2.0, 2.0, 2.0], 1), bubble_time([2.0, 2.0, 2.0, 2.0], 2)
    (6.0, 3.0)
    """
    total = 0.0
    for time in slot_times:
        total += time
    return (total - max(slot_times)) / interleaving


def exposed_reduction(
    reductions: Sequence[float],
    backward_passes: Sequence[float],
    stage_layers: Sequence[int],
    *,
    overlap: bool,
) -> float:
    """Seconds of the gradient reduction that no other work hides: the longest over the stages.

    Gradients are final only in a stage's last backward pass, so that is all that can hide them: all
    of it but the first layer's share, plus the backward passes that earlier stages still have to
    do. Without overlap the whole reduction follows the last backward pass.

    >>> exposed_reduction([3.0, 3.0], [1.0, 1.0], [4, 4], overlap=True)
    2.25
    >>> exposed_reduction([3.0, 3.0], [1.0, 1.0], [4, 4], overlap=False)
    3.0
    """
    exposed = 0.0
    still_to_do = 0.0
    for reduction, backward, layers in zip(reductions, backward_passes, stage_layers, strict=True):
        window = backward * (1 - 1 / layers) + still_to_do if overlap else 0.0
        exposed = max(exposed, reduction - window)
        still_to_do += backward
    return exposed
