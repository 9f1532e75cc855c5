"""The two kinds of link that a collective crosses."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Links"]


class Links(NamedTuple):
    """Rates in bytes per second and accelerator, one direction; latencies in seconds a ring step.

    In a sweep arrays stand in place of floats, as in `solvers.elementwise`.
    """

    link_rate: float
    link_latency: float
    network_rate: float
    network_latency: float
