"""What a printed number stands for, to compute with: every value that rounds to it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from mlsysim import units
from mlsysim.artifacts.numbers import DIGITS, NBSP, exact_number, format_number, with_unit
from mlsysim.artifacts.quotes import Printed

__all__ = ["Interval", "exact", "of_quote", "typed"]

# Dimensions of what is counted. A chapter says "16 B" for a parameter, so these are plain numbers.
_COUNTED = ("[tokens]", "[sequences]", "[parameters]", "[work]")
# An artifact keeps so much of a number.
_KEPT = Fraction(10, 10**DIGITS)
_BITS = 1000  # of a power
_SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
_NUMBER = re.compile(r"(?P<digits>−?\$?[\d,]+(?:\.\d+)?)(?:×10(?P<power>[⁻⁰-⁹¹²³]+))?")


@dataclass(frozen=True)
class Interval:
    """Everything from `low` to `high` in base units, all that a printed number may stand for.

    `face` is what a pocket calculator has: the digits as they are printed. `unit` is for showing.
    `digit` is the size of the last digit, of a number that stands alone.
    """

    low: Fraction
    high: Fraction
    face: Fraction
    dimension: Any
    unit: str = ""
    digit: Fraction = Fraction(0)

    def __add__(self, other: Interval) -> Interval:
        return self._sum(other, other.low, other.high, self.face + other.face)

    def __sub__(self, other: Interval) -> Interval:
        return self._sum(other, -other.high, -other.low, self.face - other.face)

    def __mul__(self, other: Interval) -> Interval:
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        dimension = self.dimension * other.dimension
        return Interval(min(ends), max(ends), self.face * other.face, dimension)

    def __truediv__(self, other: Interval) -> Interval:
        if other.low <= 0 <= other.high or not other.face:
            raise ArithmeticError("a division by what may be zero")
        ends = [a / b for a in (self.low, self.high) for b in (other.low, other.high)]
        dimension = self.dimension / other.dimension
        return Interval(min(ends), max(ends), self.face / other.face, dimension)

    def _sum(self, other: Interval, low: Fraction, high: Fraction, face: Fraction) -> Interval:
        if self.dimension != other.dimension:
            raise ArithmeticError("a sum of values of different dimensions")
        return Interval(self.low + low, self.high + high, face, self.dimension, self.unit)

    def raised(self, power: int) -> Interval:
        """The value to the power of a whole number."""
        made = exact(1)
        for _ in range(abs(power)):
            made = made * self
            if max(made.high.numerator.bit_length(), made.high.denominator.bit_length()) > _BITS:
                raise ArithmeticError("a number of more digits than anybody prints")
        return made if power >= 0 else exact(1) / made

    def root(self) -> Interval:
        """The square root. Raises ArithmeticError below zero."""
        if self.low < 0:
            raise ArithmeticError("a root of what may be less than zero")
        low, high, face = (_root(each) for each in (self.low, self.high, self.face))
        slack = high * _KEPT
        return Interval(low - slack, high + slack, face, self.dimension ** Fraction(1, 2))

    def rounded(self, to_whole: Callable[[Fraction], int]) -> Interval:
        """A plain number rounded by `math.floor` or `math.ceil`; ArithmeticError for others."""
        if self.dimension != units.dimension(""):
            raise ArithmeticError("a rounded value with a unit")
        low, high, face = (Fraction(to_whole(each)) for each in (self.low, self.high, self.face))
        return Interval(low, high, face, self.dimension)

    def is_like(self, other: Interval) -> bool:
        """Whether the two are of one dimension, counted things apart."""
        return bool(self.dimension == other.dimension)

    def to_its_digit(self) -> Interval:
        """All that rounds to a number that stands alone, also to one that is exact."""
        low, high = self.face - self.digit / 2, self.face + self.digit / 2
        return replace(self, low=min(low, self.low), high=max(high, self.high))

    def meets(self, other: Interval, slack: Fraction = Fraction(0)) -> bool:
        """Whether both can stand for the same value, but for a part `slack` of it."""
        size = max(abs(self.low), abs(self.high), abs(other.low), abs(other.high))
        apart = max(self.low - other.high, other.low - self.high)
        return apart <= size * (slack + _KEPT)

    def shown(self, unit: str) -> str:
        """The values as a reader would print them in a unit: one number, or the range."""
        scale = _base(Fraction(1), unit)[0] if unit else Fraction(1)
        texts = [_short(each / scale) for each in (self.face, self.low, self.high)]
        told = with_unit(texts[0], unit)
        return told if texts[1] == texts[2] else f"{told} ({texts[1]} to {texts[2]})"


def exact(number: int | Fraction) -> Interval:
    """A plain number that is what it says."""
    one = Fraction(number)
    return Interval(one, one, one, units.dimension(""))


def typed(digits: str, unit: str = "") -> Interval:
    """A number typed in a chapter: whole numbers are exact, others known to half a last digit.

    The last digit of a whole number is the last that is not zero; it counts only behind an ≈.

    >>> typed("8").low, typed("2.5").low, typed("3", "ms").high
    (Fraction(8, 1), Fraction(49, 20), Fraction(3, 1000))
    """
    plain = digits.replace(",", "")
    if "." in plain:
        return _known(Fraction(plain), unit, digit=_last_digit(plain, 0))
    zeros = len(plain) - len(plain.rstrip("0"))
    known = _known(Fraction(plain), unit, digit=Fraction(10) ** zeros)
    return replace(known, low=known.face, high=known.face)


def of_quote(value: Printed) -> Interval | None:
    """What the text of a quote stands for; None of a word.

    A number that is printed in full is exact; another is known to half a unit of its last digit.
    """
    found = _NUMBER.match(value.text)
    if isinstance(value.value, (bool, str)) or not found:
        return None
    digits = found["digits"].replace("$", "").replace(",", "").replace("−", "-")
    power = int((found["power"] or "0").translate(_SUPERSCRIPTS))
    number, unit = Fraction(digits) * Fraction(10) ** power, value.printed_unit
    known = _known(number, unit, digit=_last_digit(digits, power))
    whole = Fraction(repr(value.value))
    kept = _base(whole, value.unit)[0] if value.unit else whole
    if abs(kept - known.face) <= abs(kept) * _KEPT:
        return replace(known, low=known.face, high=known.face)
    return known


def _last_digit(digits: str, power: int) -> Fraction:
    """A unit of the last digit of a number."""
    return Fraction(10) ** (power - len(digits.partition(".")[2]))


def _known(number: Fraction, unit: str, *, digit: Fraction) -> Interval:
    face, dimension = _base(number, unit)
    digit = digit * _base(Fraction(1), unit)[0]
    return Interval(face - digit / 2, face + digit / 2, face, dimension, unit, digit)


def _base(number: Fraction, unit: str) -> tuple[Fraction, Any]:
    """A number in base units, and its dimension without what is counted."""
    if not unit:
        return number, units.dimension("")
    root = units.Quantity(number, units.unit(unit)).to_root_units()
    dimension = root.dimensionality
    for counted in _COUNTED:
        dimension = dimension / units.ureg.UnitsContainer({counted: dimension.get(counted, 0)})
    return Fraction(root.magnitude), dimension


def _root(number: Fraction) -> Fraction:
    return Fraction(math.sqrt(number))


def _short(number: Fraction) -> str:
    """Four significant digits, or all of a whole number of no more than six."""
    if number.denominator == 1 and abs(number) < 10**6:
        return exact_number(int(number))
    return format_number(float(number)).replace(NBSP, " ")
