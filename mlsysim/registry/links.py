"""The two kinds of link that a collective crosses."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Links"]


class Links(NamedTuple):
    """Rates in bytes per second and accelerator, one direction; latencies in seconds a ring step.

    Floats, or arrays of them in a sweep.
    """

    link_rate: Any
    link_latency: Any
    network_rate: Any
    network_latency: Any
