"""Time of collectives, in seconds: rings of equal members, latency per step and bytes over a rate.

Alpha-beta model: a step costs `latency` seconds plus its bytes over `rate` (bytes per second and
member, one direction). Source: Thakur et al. 2005; Patarasuk and Yuan 2009 for the ring all-reduce.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Group", "all_gather_time", "all_reduce_time", "point_to_point_time"]


@dataclass(frozen=True)
class Group:
    """Members of a collective: `inside` of them in each of `nodes` nodes, and both kinds of link.

    Rates are bytes per second and member, latencies seconds per ring step.
    """

    inside: int
    nodes: int
    link_rate: float
    link_latency: float
    network_rate: float
    network_latency: float


def all_gather_time(size: float, group: Group) -> float:
    """Time until every member holds all `size` bytes, of which each held an equal part.

    A reduce-scatter of `size` bytes takes the same time. Within a node the ring has n - 1 steps of
    size / n; across nodes each member gathers the part of its own rank over the network first.

    >>> all_gather_time(400.0, Group(4, 1, 100.0, 0.5, 1.0, 1.0))
    4.5
    """
    inside, nodes = group.inside, group.nodes
    between = (nodes - 1) * (size / (inside * nodes) / group.network_rate + group.network_latency)
    within = (inside - 1) * (size / inside / group.link_rate + group.link_latency)
    return between + within


def all_reduce_time(size: float, group: Group) -> float:
    """Time until every member holds the sum of `size` bytes: a reduce-scatter, then an all-gather.

    2 (n - 1) / n of the bytes cross each link.

    >>> all_reduce_time(400.0, Group(4, 1, 100.0, 0.0, 1.0, 0.0))
    6.0
    """
    return 2 * all_gather_time(size, group)


def point_to_point_time(size: float, rate: float, latency: float) -> float:
    """Time to send `size` bytes to one neighbour.

    >>> point_to_point_time(100.0, 50.0, 0.5)
    2.5
    """
    return latency + size / rate
