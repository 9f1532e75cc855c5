"""Rows of a table of reliability: where the time of a fleet goes, over its interval or its size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from mlsysim.solvers.checkpoints import Interrupted

__all__ = ["at_best", "largest", "over_interval"]


def over_interval(
    accelerators: int, fleet: Interrupted, doublings: int
) -> Iterator[dict[str, Any]]:
    """Four intervals a doubling, as many doublings either way of Young's."""
    interval = fleet.young_interval
    quarter = math.sqrt(math.sqrt(2))
    for _ in range(4 * doublings):
        interval = interval / quarter
    for _ in range(8 * doublings + 1):
        yield _row("interval", accelerators, fleet, interval)
        interval = interval * quarter


def at_best(series: str, accelerators: int, fleet: Interrupted) -> dict[str, Any]:
    """A fleet at the interval of Daly 2006."""
    return _row(series, accelerators, fleet, fleet.daly_interval)


def largest(reaches: Callable[[int], bool]) -> int:
    """The largest size of a fleet that reaches something which larger fleets reach less and less.

    0 if not even one accelerator does.

    >>> largest(lambda n: n <= 1000)
    1000
    """
    if not reaches(1):
        return 0
    low, high = 1, 2
    while reaches(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return low


def _row(series: str, accelerators: int, fleet: Interrupted, interval: float) -> dict[str, Any]:
    """The case, its shares in percent, and the first order beside them."""
    shares = fleet.shares(interval)._asdict()
    return {
        "series": series,
        "accelerators": accelerators,
        "mean_time_between_h": fleet.between / 3600,
        "checkpoint_s": fleet.write,
        "interval_min": interval / 60,
        **{f"{name}_percent": 100 * share for name, share in shares.items()},
        "first_order_waste_percent": 100 * fleet.waste(interval),
    }
