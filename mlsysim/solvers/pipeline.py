"""The pipeline schedule: layers of each stage, the bubble, and what the schedule can hide."""

from __future__ import annotations

from typing import NamedTuple

from mlsysim.solvers.elementwise import Count, Flag, Number, choose, larger, smaller

__all__ = [
    "Stages",
    "Window",
    "bubble_time",
    "exposed_reduction",
    "leaves_a_stage_empty",
    "over_stages",
    "split_layers",
]


class Stages(NamedTuple):
    """Layers of a stage of each kind, and how many stages there are of it.

    In the order of the pipeline: the first stage (embedding), interior ones with a layer more than
    the others, the other interior ones, and the last (output head), which is the only one if p = 1.
    """

    first: Count
    more: Count
    base: Count
    last: Count
    n_first: Count
    n_more: Count
    n_base: Count


def split_layers(layers: Count, pipeline: Count, *, slots_for_ends: Flag = False) -> Stages:
    """The stated split of layers over stages: equal, and what is left over one each.

    The last stage holds the output head and the first the embedding, so extra layers go to the
    stages between, then to the first. With `slots_for_ends` embedding and head each count as a
    layer.

    >>> split_layers(10, 4)[:4], split_layers(10, 4)[4:]
    ((2, 3, 2, 2), (1, 2, 0))
    >>> split_layers(70, 12, slots_for_ends=True)[:4]
    (5, 7, 6, 5)
    """
    ends = choose(slots_for_ends, choose(pipeline > 1, 1, 0), 0)
    share = (layers + 2 * ends) // pipeline
    extra = layers + 2 * ends - share * pipeline
    interior = larger(pipeline - 2, 0)
    n_more = smaller(extra, interior)
    return Stages(
        first=share + extra - n_more - ends,
        more=share + 1,
        base=share,
        last=share - ends,
        n_first=choose(pipeline > 1, 1, 0),
        n_more=n_more,
        n_base=interior - n_more,
    )


def leaves_a_stage_empty(layers: Count, pipeline: Count) -> Flag:
    """Whether embedding and head, each in the place of a layer, fill a stage of their own.

    >>> leaves_a_stage_empty(10, 6), leaves_a_stage_empty(10, 7)
    (False, True)
    """
    return (pipeline > 1) & ((layers + 2) // pipeline < 2)


def over_stages(stages: Stages, layer: Number, head: Number) -> tuple[Number, Number, Count]:
    """Sum over stages of `layer` a layer and `head` on the last; the largest; and its layers.

    >>> over_stages(split_layers(10, 4), 1.0, 0.5)
    (10.5, 3.0, 3)
    """
    total = layer * (
        stages.first * stages.n_first
        + stages.more * stages.n_more
        + stages.base * stages.n_base
        + stages.last
    )
    largest, layers = stages.last * layer + head, stages.last
    for each, count in (
        (stages.first, stages.n_first),
        (stages.more, stages.n_more),
        (stages.base, stages.n_base),
    ):
        slower = (each * layer > largest) & (count > 0)
        largest, layers = choose(slower, each * layer, largest), choose(slower, each, layers)
    return total + head, largest, layers


def bubble_time(all_stages: Number, slowest: Number, interleaving: Number) -> Number:
    """Seconds in which the slowest stage waits for the pipeline to fill and drain.

    A microbatch passes all stages before its result is there, and the slowest stage is busy for its
    own slot only. With equal slots this is (p - 1) slots; interleaving v parts a stage divides it
    by v. Source: Narayanan et al. 2021 (arXiv 2104.04473), section 2.2.

    >>> bubble_time(8.0, 2.0, 1), bubble_time(8.0, 2.0, 2)
    (6.0, 3.0)
    """
    return (all_stages - slowest) / interleaving


class Window(NamedTuple):
    """Seconds of work behind which a collective can run: all, and those that leave it its wires.

    In `network` of them nothing else is sent between nodes, in `links` nothing inside the node.
    """

    whole: Number
    network: Number
    links: Number

    def repeated(self, count: Number, more: Number = 0.0) -> Window:
        """`count` such windows one after the other, and `more` seconds that use no wires.

        >>> Window(3.0, 2.0, 1.0).repeated(2, 0.5)
        Window(whole=6.5, network=4.5, links=2.5)
        """
        return Window(*(count * each + more for each in self))

    def excess(self, between: Number, within: Number) -> Number:
        """Seconds by which a collective, `between` nodes and `within` them, outlasts the window.

        >>> Window(6.0, 5.0, 1.0).excess(2.0, 3.0), Window(6.0, 5.0, 4.0).excess(2.0, 3.0)
        (2.0, -1.0)
        """
        wires = larger(between - self.network, within - self.links)
        return larger(between + within - self.whole, wires)


def exposed_reduction(
    between: Number,
    within: Number,
    window: Window,
    parts: Number,
    later: Number,
    *,
    overlap: Flag,
) -> Number:
    """Seconds of a stage's collective over the replicas that no other work hides.

    It keeps the network busy for `between` seconds and the links inside a node for `within`. With
    overlap it goes part by part behind the `window` in which the stage still computes; at least its
    last part comes after that. `later` seconds pass until the other stages are done as well.
    Without overlap all of it follows the step's last backward pass.

    >>> half = Window(0.5, 0.5, 0.5)
    >>> exposed_reduction(2.0, 1.0, half, 4, 0.0, overlap=True)
    2.5
    >>> long = half.repeated(18)
    >>> [exposed_reduction(2.0, 1.0, long, 4, 0.0, overlap=hides) for hides in (True, False)]
    [0.75, 3.0]
    """
    left = larger((between + within) / parts, window.excess(between, within)) - later
    return choose(overlap, larger(left, 0.0), between + within)
