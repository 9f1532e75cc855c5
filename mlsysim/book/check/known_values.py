"""The values that a chapter could quote, found by a number that somebody typed."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from mlsysim import units
from mlsysim.book.check._written_numbers import COUNTED, TypedNumber, words

__all__ = ["Known", "KnownValues", "values_of"]

_SURE = 4  # significant digits by which a number without a unit is known
_ROUND = 16  # odd part below which a whole number is round in binary
_FAMILY = 12  # keys that differ in their last part alone
_COUNTED = ("tok", "seq", "param", "USD")


@dataclass(frozen=True)
class Known:
    """A value of an artifact; `revision` names the commit of one that is no longer published."""

    scenario: str
    key: str
    value: int | float
    unit: str
    revision: str = ""
    description: str = ""

    @property
    def path(self) -> str:
        """The key as a quote writes it without a short name."""
        return f"{self.scenario}.{self.key}"


def values_of(content: dict[str, Any], revision: str = "") -> list[Known]:
    """The numbers of an artifact, but zeros."""
    found = []
    for part in ("outputs", "inputs"):
        for key, entry in content.get(part, {}).items():
            value = entry.get("value")
            if isinstance(value, (int, float)) and not isinstance(value, bool) and value:
                unit, description = (str(entry.get(part, "")) for part in ("unit", "description"))
                found.append(Known(content["name"], key, value, unit, revision, description))
    return found


@cache
def _factor(unit: str) -> tuple[float, str]:
    """What one of a unit is in base units, and its dimension as text."""
    powers = sorted((name, int(power)) for name, power in units.dimension(unit).items())
    dimension = " ".join(f"{name}{power}" for name, power in powers)
    one = units.to_si(units.Quantity(Fraction(1), units.unit(unit))) if unit else 1.0
    return one, dimension


class KnownValues:
    """Values by dimension, sorted, so that a typed number finds those it could stand for."""

    def __init__(self, values: Iterable[Known]) -> None:
        values = list(dict.fromkeys(values))
        self._families = Counter(_family(known) for known in values if not known.revision)
        by_kind: dict[str, list[tuple[float, int, Known]]] = defaultdict(list)
        for number, known in enumerate(values):
            factor, dimension = _factor(known.unit)
            by_kind[dimension].append((abs(known.value) * factor, number, known))
            by_kind["as published"].append((float(abs(known.value)), number, known))
            if not known.unit or (known.unit.endswith(_COUNTED) and "/" not in known.unit):
                by_kind[COUNTED].append((abs(known.value) * factor, number, known))
        self._sorted = {kind: sorted(each) for kind, each in by_kind.items()}

    def match(self, typed: TypedNumber) -> list[Known]:
        """The values that print as what was typed, whatever the sign; the likeliest first.

        A number of one significant digit must be the value exactly, for it is near to many. One
        that says little by itself needs a sentence with a word of the key or of its description.
        One of three digits without a unit is near to some member of every large family of keys,
        such as the times of a hundred runs; these need a unit or another digit.
        """
        kind, factor = COUNTED, 1.0
        if typed.unit != COUNTED:
            factor, kind = _factor(typed.unit) if typed.unit else (1.0, "as published")
        size = abs(typed.value)
        half = typed.last / 2 if typed.significant > 1 else Fraction(0)
        low, high = float(size - half) * factor, float(size + half) * factor
        found = self._between(kind, low, high)
        if kind == "as published":  # a share may stand for a percentage
            found += self._between(_factor("")[1], low, high)
            if typed.significant < _SURE:
                found = [each for each in found if self._families[_family(each)] < _FAMILY]
        elif typed.unit == "%":  # and a percentage for a share, but not for a count
            found = [each for each in found if each.unit or isinstance(each.value, float)]
        if typed.context is not None and not _is_telling(typed):
            found = [each for each in found if typed.context & _words(each)]
        return sorted(
            dict.fromkeys(found), key=lambda known: (bool(known.revision), len(known.key))
        )

    def _between(self, kind: str, low: float, high: float) -> list[Known]:
        values = self._sorted.get(kind, [])
        first = bisect_left(values, low * (1 - 1e-12), key=_size)
        last = bisect_right(values, high * (1 + 1e-12), key=_size)
        return [known for _, _, known in values[first:last]]


def _family(known: Known) -> str:
    """The key without its last part; a key of one part is a family of its own."""
    return known.path.rpartition(".")[0] if "." in known.key else known.path


def _is_telling(typed: TypedNumber) -> bool:
    """Whether a number is hardly met by chance: three digits and a unit, or four of no round one.

    Powers of two and small multiples of them are round, for sizes and counts of every kind.
    """
    if typed.unit:
        return typed.significant >= _SURE - 1
    whole = typed.value.denominator == 1
    return typed.significant >= _SURE and not (whole and _odd_part(int(abs(typed.value))) < _ROUND)


def _odd_part(number: int) -> int:
    """A whole number without its factors of two."""
    return number // (number & -number) if number else 0


@cache
def _words(known: Known) -> frozenset[str]:
    """The words that a sentence about this value may have."""
    name = re.sub(r"([a-z])(?=[A-Z])", r"\1 ", f"{known.scenario} {known.key}")
    return words(f"{re.sub('[_.-]', ' ', name)} {known.description}")


def _size(entry: tuple[float, int, Known]) -> float:
    return entry[0]
