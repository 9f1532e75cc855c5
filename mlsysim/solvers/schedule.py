"""The schedule of a pipeline, pass by pass, against which the closed form of its bubble is held."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from mlsysim.errors import LayoutError
from mlsysim.solvers.inputs import Inputs
from mlsysim.solvers.layer import parts_of
from mlsysim.solvers.pipeline import bubble_time, over_stages, split_layers

__all__ = ["Pass", "Slots", "apart", "in_flight", "pass_order", "simulated", "slots_of"]


class Pass(NamedTuple):
    """One microbatch going through one part of a stage; times in seconds, all counted from 0."""

    stage: int
    part: int
    microbatch: int
    is_backward: bool
    start: float
    end: float


def pass_order(
    stage: int, stages: int, microbatches: int, parts: int
) -> list[tuple[bool, int, int]]:
    """The order of the passes of one stage: whether backward, microbatch, part.

    One forward, one backward: forward passes until the first gradient can be there, then one of
    each in turn, then the backward passes that are left. With several parts the microbatches go in
    groups as large as the pipeline, each group through a part before the next part begins. Source:
    Narayanan et al. 2021 (arXiv 2104.04473), section 2.2.

    >>> [f"{'B' if back else 'F'}{microbatch}" for back, microbatch, _ in pass_order(1, 3, 3, 1)]
    ['F0', 'F1', 'B0', 'F2', 'B1', 'B2']
    """
    forward, backward = [], []
    for first in range(0, microbatches, stages if parts > 1 else microbatches):
        group = range(first, min(first + stages, microbatches) if parts > 1 else microbatches)
        forward += [(False, each, part) for part in range(parts) for each in group]
        backward += [(True, each, part) for part in reversed(range(parts)) for each in group]
    ahead = stages - stage - 1
    if parts > 1:
        ahead = 2 * ahead + (parts - 1) * stages
    ahead = min(ahead, len(forward))
    steady = [each for pair in zip(forward[ahead:], backward, strict=False) for each in pair]
    return forward[:ahead] + steady + backward[len(forward) - ahead :]


def simulated(
    forward: Sequence[Sequence[float]], backward: Sequence[Sequence[float]], microbatches: int
) -> list[Pass]:
    """Every pass of a step with its times; `forward[stage][part]` and `backward` are in seconds.

    A pass starts when its stage is free and what it needs is there: the same microbatch from the
    part before it, or its gradient from the part after it. Passing it on takes no time beyond that
    of the passes. In the order of the stages, and of each stage in the order of time.

    >>> two = simulated([[1.0], [1.0]], [[2.0], [2.0]], 2)
    >>> [(each.start, each.end) for each in two if each.stage == 0]
    [(0.0, 1.0), (1.0, 2.0), (4.0, 6.0), (7.0, 9.0)]

    Raises LayoutError if some pass waits for ever.
    """
    stages, parts = len(forward), len(forward[0])
    orders = [pass_order(stage, stages, microbatches, parts) for stage in range(stages)]
    needs = {
        (stage, part, is_backward): _needed(stage, part, stages, parts, is_backward=is_backward)
        for stage, part, is_backward in product(range(stages), range(parts), (False, True))
    }
    ends: dict[tuple[int, int, bool], list[float | None]] = {
        each: [None] * microbatches for each in needs
    }
    done: list[list[Pass]] = [[] for _ in range(stages)]
    waiting = True
    while waiting:
        waiting = False
        for stage, (order, made) in enumerate(zip(orders, done, strict=True)):
            free = made[-1].end if made else 0.0
            while len(made) < len(order):
                is_backward, microbatch, part = order[len(made)]
                needed = needs[stage, part, is_backward]
                ready = 0.0 if needed is None else ends[needed][microbatch]
                if ready is None:
                    break
                start = ready if ready > free else free
                free = start + (backward if is_backward else forward)[stage][part]
                made.append(Pass(stage, part, microbatch, is_backward, start, free))
                ends[stage, part, is_backward][microbatch] = free
                waiting = True
    if any(len(made) < len(order) for made, order in zip(done, orders, strict=True)):
        raise LayoutError(
            f"the schedule of {stages} stages, {parts} parts each, and {microbatches} microbatches "
            "comes to a stop: interleaving needs microbatches in groups of the stages"
        )
    return [each for made in done for each in made]


def _needed(
    stage: int, part: int, stages: int, parts: int, *, is_backward: bool
) -> tuple[int, int, bool] | None:
    """The stage, part and kind of the pass that must come before; none for the first of all."""
    if not is_backward:
        if stage:
            return stage - 1, part, False
        return (stages - 1, part - 1, False) if part else None
    if stage < stages - 1:
        return stage + 1, part, True
    return (0, part + 1, True) if part < parts - 1 else (stage, part, False)


def in_flight(passes: Sequence[Pass], stage: int) -> int:
    """The most parts whose activations a stage keeps at once.

    Those of a pass are there from its beginning until its backward pass has ended.

    >>> [in_flight(simulated([[1.0]] * 3, [[2.0]] * 3, 9), stage) for stage in range(3)]
    [3, 2, 1]
    """
    kept = most = 0
    for each in passes:
        if each.stage == stage:
            kept += -1 if each.is_backward else 1
            most = max(most, kept)
    return most


class Slots(NamedTuple):
    """Seconds of a microbatch on every part of every stage, its slowest stage, and the bubble.

    `layers` are those of the stages, `total` is what all stages need for one microbatch, `bubble`
    the closed form of the time in which the slowest stage waits.
    """

    layers: list[int]
    forward: list[list[float]]
    backward: list[list[float]]
    total: float
    slowest: float
    bubble: float

    def passes(self, microbatches: int) -> list[Pass]:
        """The schedule of a step."""
        return simulated(self.forward, self.backward, microbatches)

    def closed_form(self, microbatches: int) -> float:
        """Seconds of the whole schedule as the model of a step has it."""
        return microbatches * self.slowest + self.bubble


def slots_of(x: Inputs, *, has_head: bool = True) -> Slots:
    """What a microbatch of a step costs each stage, without the output head if there is none.

    Half of the time of handing over belongs to each direction; a third of the head's is forward.
    """
    parts = parts_of(x)
    stages = split_layers(x.layers, x.pipeline, slots_for_ends=x.slots_for_ends)
    head = parts.head if has_head else 0.0
    layers = [stages.first] * stages.n_first + [stages.more] * stages.n_more
    layers += [stages.base] * stages.n_base + [stages.last]
    forward, both = parts.layer.forward_pass, parts.layer.total
    sent = parts.hand_over / (2.0 * x.interleaving)
    share = [each / x.interleaving for each in layers]
    ahead = [[each * forward + sent] * x.interleaving for each in share]
    back = [[each * (both - forward) + sent] * x.interleaving for each in share]
    ahead[-1][-1] += head / 3.0
    back[-1][-1] += head * 2.0 / 3.0
    total, slowest, _ = over_stages(stages, both, head)
    total, slowest = total + x.pipeline * parts.hand_over, slowest + parts.hand_over
    bubble = bubble_time(total, slowest, x.interleaving)
    return Slots(layers, ahead, back, total, slowest, bubble)


def apart(simulated: float, closed_form: float) -> float:
    """How much longer one time is than the other, as a share; what only rounding makes is none.

    >>> apart(1.1, 1.0), apart(1.0 + 1e-15, 1.0)
    (0.1, 0.0)
    """
    # Sums of many passes differ in their last digits from a product.
    return round(simulated / closed_form - 1.0, 12) + 0.0
