"""Numbers of a condition: exact fractions in base units, and their arithmetic with units."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mlsysim import units

__all__ = ["Value", "computed"]

_COMPUTE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


@dataclass(frozen=True)
class Value:
    """An exact number in base units, with its dimension and the unit to show it in.

    `typed` is true for what a person typed and what is computed of such numbers alone.
    """

    magnitude: Fraction
    dimension: Any
    unit: str
    typed: bool = False

    @classmethod
    def of(cls, number: Fraction | float, unit: str, *, typed: bool = False) -> Value:
        """A number of an artifact or of a condition, as it is written there.

        >>> Value.of(400, "Gb/s").magnitude
        Fraction(50000000000, 1)
        """
        exact = number if isinstance(number, Fraction) else Fraction(repr(number))
        if not unit:
            return cls(exact, units.dimension(""), "", typed)
        root = units.Quantity(exact, units.unit(unit)).to_root_units()
        return cls(Fraction(root.magnitude), root.dimensionality, unit, typed)

    def shown(self, digits: int = 6) -> str:
        """The number in its unit, to so many significant digits."""
        number = self.magnitude
        if self.unit:
            number /= Value.of(Fraction(1), self.unit).magnitude
        return f"{float(number):.{digits}g} {self.unit}".rstrip()


def computed(sign: str, left: Value, right: Value) -> Value:
    """Two values joined by + - * or /; for + and - they must be of one dimension.

    Raises ZeroDivisionError.
    """
    magnitude = _COMPUTE[sign](left.magnitude, right.magnitude)
    typed = left.typed and right.typed
    if sign in "+-":
        return Value(magnitude, left.dimension, left.unit, typed)
    dimension = _COMPUTE[sign](left.dimension, right.dimension)
    return Value(magnitude, dimension, _unit(sign, left, right), typed)


def _unit(sign: str, left: Value, right: Value) -> str:
    """The unit to show a product or a quotient in."""
    shares = ("", "%")
    if left.unit in shares and right.unit in shares:
        if sign == "/":
            return "" if right.unit else left.unit
        return "%" if left.unit != right.unit else ""
    if right.unit in shares:
        return left.unit
    if sign == "*" and left.unit in shares:
        return right.unit
    return units.unit_text(_COMPUTE[sign](_root(left.unit), _root(right.unit)))


def _root(unit: str) -> Any:
    """The base units of a unit, as pint's."""
    return units.Quantity(1, units.unit(unit) if unit else "").to_root_units().units
