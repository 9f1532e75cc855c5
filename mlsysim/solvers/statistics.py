"""Statistics of errors, with sums that round once so that every machine prints the same digits."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["mean", "median", "rank_correlation"]


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean.

    >>> mean([1.0, 2.0, 6.0])
    3.0
    """
    return math.fsum(values) / len(values)


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle.

    >>> median([3.0, 1.0, 2.0]), median([4.0, 1.0, 2.0, 3.0])
    (2.0, 2.5)
    """
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation; equal values share their mean rank.

    >>> rank_correlation([1.0, 2.0, 3.0], [10.0, 30.0, 20.0])
    0.5
    """
    ranks = [_ranks(first), _ranks(second)]
    middle = (len(first) + 1) / 2
    away = [[rank - middle for rank in each] for each in ranks]
    covariance = math.fsum(a * b for a, b in zip(*away, strict=True))
    spreads = [math.fsum(a * a for a in each) for each in away]
    return covariance / math.sqrt(spreads[0] * spreads[1])


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    first = {value: place for place, value in reversed([*enumerate(ordered, start=1)])}
    last = {value: place for place, value in enumerate(ordered, start=1)}
    return [(first[value] + last[value]) / 2 for value in values]
