"""How far a value moved, in the terms in which a reader of the book would notice it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Amount", "Move", "Noticed", "amount_of", "moved", "noticed"]

Value = int | float | bool | str

# A number with its thousands and its power of ten, as pages print it.
_NUMBER = re.compile(r"[-\N{MINUS SIGN}]?\d[\d,]*(?:\.\d+)?(?:×10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?")
_POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_SEEN = len("7.73")  # three digits; behind them nobody notices a change in passing


@dataclass(frozen=True)
class Amount:
    """A value with its unit."""

    value: Value
    unit: str = ""

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return "yes" if self.value else "no"
        if isinstance(self.value, str):
            return f"{self.value} {self.unit}".rstrip()
        return f"{self.value:,} {self.unit}".rstrip().removesuffix(".0")


def amount_of(entry: Mapping[str, Any]) -> Amount:
    """Value and unit of an entry of an artifact."""
    return Amount(entry["value"], entry["unit"])


@dataclass(frozen=True)
class Move:
    """A value before and after; one of both is None where it came or went.

    >>> str(Move(Amount(7.72, "s"), Amount(7.73, "s")))
    '7.72 s -> 7.73 s (+0.13 %)'
    """

    old: Amount | None
    new: Amount | None

    @property
    def is_change(self) -> bool:
        """Whether there is a value before and after."""
        return self.old is not None and self.new is not None

    @property
    def share(self) -> float | None:
        """The difference in parts of the old value; None where that would mislead.

        It does of words, between units, from zero, and of what lies near zero for its kind: a bias
        that went from 0.001 to 0.003 did not grow by 200 %. So a value that changed its sign, or
        more than doubled its size, is told by its difference.
        """
        numbers = self._numbers()
        if not numbers:
            return None
        old, new = numbers
        if not old or old * new < 0 or not 0.5 <= abs(new / old) <= 2:
            return None
        return new / old - 1

    @property
    def difference(self) -> float | None:
        """The difference in the unit of both; None of words and between units."""
        numbers = self._numbers()
        return numbers[1] - numbers[0] if numbers else None

    def _numbers(self) -> tuple[float, float] | None:
        if self.old is None or self.new is None or self.old.unit != self.new.unit:
            return None
        old, new = self.old.value, self.new.value
        if isinstance(old, (bool, str)) or isinstance(new, (bool, str)):
            return None
        return old, new

    @property
    def how_far(self) -> str:
        """The difference as text: a share, an amount, or nothing where neither says anything."""
        if self.share is not None:
            return percent(self.share)
        if self.difference is None or self.new is None:
            return ""
        return f"{self.difference:+.3g} {self.new.unit}".rstrip().replace("-", "\N{MINUS SIGN}")

    def __str__(self) -> str:
        old, new = (str(each) if each is not None else "nothing" for each in (self.old, self.new))
        far = f" ({self.how_far})" if self.how_far else ""
        return f"{old} -> {new}{far}"


def percent(share: float) -> str:
    """A share as text with its sign.

    >>> percent(0.0013), percent(-0.25), percent(4e-12)
    ('+0.13 %', '−25 %', '+4e-10 %')
    """
    text = f"{100 * share:+.2g} %" if abs(share) < 0.0995 else f"{100 * share:+.3g} %"
    return text.replace("-", "\N{MINUS SIGN}", 1) if share < 0 else text


def moved(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Move | None:
    """What became of an entry of an artifact; None if value and unit are the same."""
    before = amount_of(old) if old is not None else None
    after = amount_of(new) if new is not None else None
    same = before == after and type(before and before.value) is type(after and after.value)
    return None if same else Move(before, after)


@dataclass(frozen=True, order=True)
class Noticed:
    """How much a reader would notice of a printed text that became another; most is sorted first.

    `rank` 0: another sign or order of magnitude, or other words; 1: in a heading or a caption; 2: a
    digit before the fourth; 3: one behind it.
    """

    rank: int
    minus_size: float


def noticed(old: str, new: str, *, prominent: bool = False) -> Noticed:
    """How much a reader would notice of `old` that became `new`.

    >>> noticed("7.72 s", "7.73 s").rank, noticed("9.9 s", "10.1 s").rank
    (2, 0)
    >>> noticed("1,023", "1,024")
    Noticed(rank=3, minus_size=-0.0009765625)
    """
    numbers = [_read(text) for text in (old, new)]
    words = [_NUMBER.sub("#", text) for text in (old, new)]
    if None in numbers or words[0] != words[1]:
        return Noticed(0, -math.inf)
    before, after = (each or 0.0 for each in numbers)
    size = abs(after - before) / max(abs(before), abs(after), 1e-300)
    if before * after <= 0 or _order(before) != _order(after):
        return Noticed(0, -size)
    if prominent:
        return Noticed(1, -size)
    return Noticed(2 if _leading(before) != _leading(after) else 3, -size)


def _read(text: str) -> float | None:
    """The number in a printed text; None if there is none, or more than one."""
    found = _NUMBER.findall(text)
    if len(found) != 1:
        return None
    mantissa, _, power = found[0].replace("\N{MINUS SIGN}", "-").replace(",", "").partition("×10")
    return float(mantissa) * 10.0 ** int(power.translate(_POWERS) or 0)


def _order(value: float) -> int:
    return math.floor(math.log10(abs(value)))


def _leading(value: float) -> str:
    """The digits before the fourth."""
    return f"{abs(value):.11e}"[:_SEEN]
