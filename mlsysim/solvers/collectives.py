"""Time of collectives, in seconds: rings of equal members, latency per step and bytes over a rate.

Alpha-beta model: a step costs `latency` seconds plus its bytes over `rate` (bytes per second and
member, one direction). Source: Thakur et al. 2005; Patarasuk and Yuan 2009 for the ring all-reduce.
"""

from __future__ import annotations

from typing import NamedTuple

from mlsysim.registry.links import Links
from mlsysim.solvers.elementwise import Count, Number, choose, larger, smaller

__all__ = [
    "Group",
    "Links",
    "all_gather_time",
    "all_reduce_time",
    "gather_parts",
    "group_of",
    "point_to_point_time",
]


class Group(NamedTuple):
    """Members of a collective: `inside` of them in each of `nodes` nodes."""

    inside: Count
    nodes: Count


def group_of(members: Count, stride: Count, node_size: Count) -> Group:
    """`members` ranks, `stride` apart, on nodes that are filled in the order of ranks.

    >>> group_of(16, 8, 8), group_of(8, 2, 8)
    (Group(inside=1, nodes=16), Group(inside=4, nodes=2))
    """
    inside = smaller(members, larger(1, node_size // stride))
    # ASSUME collectives: a group that fills its nodes unevenly costs as if each member had a node
    # of its own.
    even = (members % inside == 0) & (node_size % (inside * stride) == 0)
    inside = choose(even | (members * stride >= node_size) & (members % inside == 0), inside, 1)
    return Group(inside, members // inside)


def all_gather_time(size: Number, group: Group, links: Links) -> Number:
    """Time until every member holds all `size` bytes, of which each held an equal part.

    A reduce-scatter of `size` bytes takes the same time. Within a node the ring has n - 1 steps of
    size / n; across nodes each member gathers the part of its own rank over the network first.

    >>> all_gather_time(400.0, Group(4, 1), Links(100.0, 0.5, 1.0, 1.0))
    4.5
    """
    between, within = gather_parts(size, group, links)
    return between + within


def gather_parts(size: Number, group: Group, links: Links) -> tuple[Number, Number]:
    """Seconds of an all-gather that keep the network busy, and those that keep the node's links.

    >>> gather_parts(400.0, Group(4, 2), Links(100.0, 0.5, 50.0, 1.0))
    (2.0, 4.5)
    """
    inside, nodes = group
    between = (nodes - 1) * (size / (inside * nodes) / links.network_rate + links.network_latency)
    within = (inside - 1) * (size / inside / links.link_rate + links.link_latency)
    return between, within


def all_reduce_time(size: Number, group: Group, links: Links) -> Number:
    """Time until every member holds the sum of `size` bytes: a reduce-scatter, then an all-gather.

    2 (n - 1) / n of the bytes cross each link.

    >>> all_reduce_time(400.0, Group(4, 1), Links(100.0, 0.0, 1.0, 0.0))
    6.0
    """
    return 2.0 * all_gather_time(size, group, links)


def point_to_point_time(size: Number, group: Group, links: Links) -> Number:
    """Time to send `size` bytes to the next member, at the pace of the slowest hop of the group.

    >>> point_to_point_time(100.0, Group(1, 2), Links(50.0, 0.5, 25.0, 1.0))
    5.0
    """
    inside = links.link_latency + size / links.link_rate
    across = links.network_latency + size / links.network_rate
    return choose(group.nodes > 1, across, inside)
