"""Plain numbers as quantities: the constructors that outputs share."""

from __future__ import annotations

from mlsysim.units import Quantity, unit

__all__ = ["gigabytes", "percent", "seconds"]


def seconds(value: float) -> Quantity:
    """A number of seconds.

    >>> seconds(8.0)
    <Quantity(8.0, 'second')>
    """
    return Quantity(value, unit("s"))


def gigabytes(value: float) -> Quantity:
    """A number of GB.

    >>> gigabytes(2.5)
    <Quantity(2.5, 'gigabyte')>
    """
    return Quantity(value, unit("GB"))


def percent(share: float) -> Quantity:
    """A share of 1, in percent.

    >>> percent(0.25)
    <Quantity(25.0, 'percent')>
    """
    return Quantity(100 * share, unit("%"))
