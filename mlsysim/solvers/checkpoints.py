"""Checkpoints and interruptions: which part of a run's time makes progress, and how to choose it.

Times are seconds. Interruptions come at random at a constant mean rate, also while a checkpoint is
written and while the run starts again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = [
    "Interrupted",
    "Shares",
    "daly_interval",
    "exponential_less_one",
    "restart_that_leaves",
    "shares",
    "waste",
    "young_interval",
]

# Terms of the series below; for arguments up to a half the next one is beyond a float's digits.
_TERMS = 20
_INFINITE = 1000.0  # whose exponential is beyond all floats
_HALVINGS = 60  # of an interval, beyond the digits of a float


class Shares(NamedTuple):
    """Shares of the elapsed time, which add up to 1."""

    progress: float
    checkpoints: float
    lost_work: float
    restarts: float


def exponential_less_one(x: float) -> float:
    """The exponential of x, less one, by its series: math.exp differs between processors.

    The argument is halved until it is small, and the result put together again by
    e^2y - 1 = (e^y - 1) (e^y + 1).

    >>> exponential_less_one(0.0)
    0.0
    >>> abs(exponential_less_one(1.0) - 1.718281828459045) < 1e-15
    True
    """
    if x > _INFINITE:
        return math.inf
    if x > 0.5:
        half = exponential_less_one(x / 2)
        return half * (half + 2)
    total = 1.0
    for term in range(_TERMS, 1, -1):
        total = 1 + total * x / term
    return x * total


def young_interval(write: float, between: float) -> float:
    """Time of progress between two checkpoints that makes `waste` least, after Young 1974.

    `write` is the time of a checkpoint, `between` the mean time between interruptions. Equation:
    sqrt(2 * write * between).

    >>> young_interval(2.0, 100.0)
    20.0
    """
    return math.sqrt(2 * write * between)


def daly_interval(write: float, between: float) -> float:
    """The interval of Daly 2006, which comes closer to the best of `shares`.

    Equation: sqrt(2 w M) * (1 + sqrt(w / (2 M)) / 3 + w / (18 M)) - w with w the time of a
    checkpoint and M the mean time between interruptions; M once w reaches 2 M.

    >>> round(daly_interval(2.0, 100.0), 3)
    18.689
    """
    if write >= 2 * between:
        return between
    small = write / (2 * between)
    return young_interval(write, between) * (1 + math.sqrt(small) / 3 + small / 9) - write


def waste(interval: float, write: float, restart: float, between: float) -> float:
    """Share of the elapsed time that makes no progress, to first order.

    Each interval pays for a checkpoint, and each interruption for half an interval and a restart.
    Equation: write / interval + (interval / 2 + restart) / between.

    >>> waste(20.0, 2.0, 5.0, 100.0)
    0.25
    """
    return write / interval + (interval / 2 + restart) / between


def shares(interval: float, write: float, restart: float, between: float) -> Shares:
    """Where the elapsed time goes if interruptions are memoryless; no order is neglected.

    Work goes on in pieces of a = interval + write, and a piece that is interrupted starts again.
    With M the mean time between interruptions it takes M e^(restart/M) (e^(a/M) - 1) on average,
    which is the model of Daly 2006. Equation: progress = interval / M * e^(-restart/M) /
    (e^(a/M) - 1); checkpoints = progress * write / interval; restarts = 1 - e^(-restart/M);
    lost work = the rest.

    >>> found = shares(20.0, 2.0, 5.0, 100.0)
    >>> round(found.progress, 4), round(math.fsum(found), 12)
    (0.7731, 1.0)
    """
    grown = exponential_less_one((interval + write) / between)
    again = exponential_less_one(restart / between)
    running = 1 / (1 + again)
    return Shares(
        progress=interval / between / grown * running,
        checkpoints=write / between / grown * running,
        lost_work=(1 - (interval + write) / between / grown) * running,
        restarts=again * running if running else 1.0,
    )


class Interrupted(NamedTuple):
    """A run that is interrupted: seconds of a checkpoint, of a restart, and between interruptions.

    >>> run = Interrupted(write=2.0, restart=5.0, between=100.0)
    >>> run.young_interval, round(run.best.progress, 4)
    (20.0, 0.7734)
    """

    write: float
    restart: float
    between: float

    @property
    def young_interval(self) -> float:
        """Seconds of progress between checkpoints after Young 1974."""
        return young_interval(self.write, self.between)

    @property
    def daly_interval(self) -> float:
        """Seconds of progress between checkpoints after Daly 2006."""
        return daly_interval(self.write, self.between)

    def waste(self, interval: float) -> float:
        """Share of the time without progress at that interval, to first order."""
        return waste(interval, self.write, self.restart, self.between)

    def shares(self, interval: float) -> Shares:
        """Where the time goes at that interval."""
        return shares(interval, self.write, self.restart, self.between)

    @property
    def best(self) -> Shares:
        """Where the time goes at the interval of Daly 2006."""
        return self.shares(self.daly_interval)


def restart_that_leaves(progress: float, run: Interrupted) -> float:
    """Seconds of the restart with which that share of the time makes progress; 0 if none does.

    The run's own restart takes no part. Equation: M * ln(progress without restarts / progress),
    with M = run.between, found by halving, since math.log differs between processors.

    >>> run = Interrupted(write=2.0, restart=5.0, between=100.0)
    >>> round(restart_that_leaves(run.best.progress, run), 9)
    5.0
    """
    low, high = 0.0, run.between
    while run._replace(restart=high).best.progress > progress:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = run._replace(restart=middle).best.progress >= progress
        low, high = (middle, high) if enough else (low, middle)
    return low
