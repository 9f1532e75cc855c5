"""What stands around a quote: a unit typed beside a number that the quote prints with its own."""

from __future__ import annotations

import re

from mlsysim import units
from mlsysim.artifacts.numbers import NBSP
from mlsysim.artifacts.quotes import Printed
from mlsysim.errors import InputError, UnitError

__all__ = ["check_around"]

_GAP = rf"(?:[ \t{NBSP}~-]|\\[,; ]|&nbsp;)*"
_TEXT = re.compile(rf"{_GAP}(?P<unit>\\?%|[A-Za-zµ][\w/*²³]*)")
_MATH = re.compile(
    rf"{_GAP}(?:(?P<percent>\\%)|\\(?:mathrm|text|operatorname)\{{\W*(?P<unit>[\w/]+))"
)
_PERCENT = re.compile(rf"{_GAP}(?:per[ {NBSP}-]?cent\b|percentage\b|\\?%)", re.IGNORECASE)
_DOLLAR = re.compile(r"(?:\\\$|USD|US-Dollars?)\s*$")
# Words for units of which the vocabulary knows the symbol alone.
_WORDS = re.compile(
    r"(?:nano|micro|milli)?seconds?|minutes?|hours?|days?|(?:kilo|mega|giga|tera|kibi|mebi|gibi|tebi)?"
    r"(?:bytes?|bits?|watts?|joules?)|tokens?|sequences?|parameters?|dollars?|(?:peta|tera|giga)?FLOPs?"
)


def check_around(value: Printed, before: str, after: str, *, math: bool) -> None:
    """Refuse a unit that is typed before or after a quote, which prints its own or has none.

    `before` and `after` are the rest of the line. So no page says "50% percent", and none says GB
    of a number in GiB. Raises InputError with what to write.
    """
    if isinstance(value.value, (bool, str)):
        return
    said = _typed_unit(value, after, math=math)
    if not said and "$" in value.text and _DOLLAR.search(before):
        said = before.split()[-1]
    if not said:
        return
    if value.unit or " in " in value.spec or value.text.endswith("%"):
        raise InputError(
            f'prints "{value.text}" with its unit, and "{said}" is typed beside it; leave that '
            "out, or ask for another unit by `in UNIT`"
        )
    raise InputError(
        f'prints "{value.text}", a plain number, and "{said}" is typed beside it; '
        + ("write `as .0%` for a share" if "%" in said or "cent" in said else "it has no unit")
    )


def _typed_unit(value: Printed, after: str, *, math: bool) -> str:
    """The unit at the start of `after`, or nothing."""
    if found := _PERCENT.match(after):
        return found[0].strip()
    found = (_MATH if math else _TEXT).match(after)
    if not found or not found["unit"]:
        return ""
    word = found["unit"]
    plain = not (value.unit or value.text.endswith("%"))
    if _WORDS.fullmatch(word):
        return "" if plain else word
    if (plain and len(word) == 1) or word in ("min", "m", "d", "g", "h", "b"):
        return ""  # as likely a word or a symbol of a formula
    try:
        units.unit(word)
    except UnitError:
        return ""
    return word
