"""Least squares for a few constants, in plain arithmetic: every machine finds the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

__all__ = ["least_squares"]

# The errors under each of several sets of constants, which may cost little more than under one.
Errors = Callable[[Sequence[Sequence[float]]], Sequence[Sequence[float]]]

_STEP = 1e-6  # relative step of a difference quotient
_ROUNDS = 30
_CLOSE = 1e-8  # relative gain below which another round changes nothing that is published


def least_squares(
    errors: Errors,
    start: Sequence[float],
    lower: Sequence[float],
    upper: Sequence[float],
) -> list[float]:
    """The constants within bounds that make the sum of squared errors least: damped Gauss-Newton.

    >>> def errors(sets):
    ...     return [[x - 2, y - x] for x, y in sets]
    >>> [round(x, 6) for x in least_squares(errors, [1, 1], [0, 0], [9, 9])]
    [2.0, 2.0]
    """
    here = list(map(float, start))
    [found] = errors([here])
    cost = math.fsum(e * e for e in found)
    damping = 1e-3
    for _ in range(_ROUNDS):
        slopes = _slopes(errors, here, found, upper)
        improved = False
        while damping < 1e9:
            there = _clamped(here, _direction(slopes, found, damping), lower, upper)
            [then] = errors([there])
            new_cost = math.fsum(e * e for e in then)
            if new_cost < cost:
                gain = 1 - new_cost / cost
                here, found, cost, improved = there, then, new_cost, gain > _CLOSE
                damping /= 10
                break
            damping *= 10
        if not improved:
            break
    return here


def _slopes(
    errors: Errors, here: Sequence[float], found: Sequence[float], upper: Sequence[float]
) -> list[list[float]]:
    """Change of every error with each constant, in units of that constant's own size."""
    steps = [
        _STEP if value * (1 + _STEP) <= most else -_STEP
        for value, most in zip(here, upper, strict=True)
    ]
    moved = [
        [value * (1 + step) if i == which else value for i, value in enumerate(here)]
        for which, step in enumerate(steps)
    ]
    return [
        [(new - old) / step for new, old in zip(then, found, strict=True)]
        for then, step in zip(errors(moved), steps, strict=True)
    ]


def _direction(
    slopes: Sequence[Sequence[float]], found: Sequence[float], damping: float
) -> list[float]:
    """The relative change of each constant that the linear model asks for."""
    normal = [
        [math.fsum(a * b for a, b in zip(row, column, strict=True)) for column in slopes]
        for row in slopes
    ]
    for i, row in enumerate(normal):
        row[i] = row[i] * (1 + damping) + 1e-12
    right = [-math.fsum(a * e for a, e in zip(row, found, strict=True)) for row in slopes]
    return _solved(normal, right)


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """The solution of a small linear system, by elimination with the largest pivot."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(i + 1, size):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    answer = [0.0] * size
    for i in reversed(range(size)):
        known = math.fsum(rows[i][k] * answer[k] for k in range(i + 1, size))
        answer[i] = (rows[i][size] - known) / rows[i][i]
    return answer


def _clamped(
    here: Sequence[float], change: Sequence[float], lower: Sequence[float], upper: Sequence[float]
) -> list[float]:
    return [
        min(max(value * (1 + move), low), high)
        for value, move, low, high in zip(here, change, lower, upper, strict=True)
    ]
