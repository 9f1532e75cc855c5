"""A value as a text prints it: what `KEY in UNIT as FORMAT` asks for, and its digits and unit.

Titles of scenarios are printed with this when an artifact is made, so nothing here reads chapters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mlsysim import units
from mlsysim.artifacts.numbers import format_number, with_unit
from mlsysim.errors import InputError, MlsysimError, UnitError

__all__ = ["QUOTE", "Spec", "could_be", "filled", "parse", "text_of"]

_WORDS = re.compile(r"\s*(?P<key>\S+)(?:\s+in\s+(?P<unit>\S+))?(?:\s+as\s+(?P<format>\S+))?\s*")
_KEY = re.compile(r"[A-Za-z_]\w*(?:\.\w[\w-]*)*")
_GRAMMAR = "KEY, KEY in UNIT, KEY as FORMAT, or KEY in UNIT as FORMAT"
# A quote in a text without markup.
QUOTE = re.compile(r"\{quote\}(?:`(?P<spec>[^`]*)`)?")


@dataclass(frozen=True)
class Spec:
    """What a quote asks for: a key, and perhaps a unit and a format."""

    key: str
    unit: str = ""
    format: str = ""

    def __str__(self) -> str:
        unit = f" in {self.unit}" if self.unit else ""
        return self.key + unit + (f" as {self.format}" if self.format else "")


def parse(text: str) -> Spec:
    """The parts of a quote.

    >>> parse("step.step_time in ms as ,.0f")
    Spec(key='step.step_time', unit='ms', format=',.0f')

    Raises InputError for a text of another form.
    """
    found = _WORDS.fullmatch(text)
    if not found:
        raise InputError(f"expected {_GRAMMAR}")
    key = found["key"]
    if not _KEY.fullmatch(key):
        raise InputError(f"{key!r} is no key; expected names joined by dots, then {_GRAMMAR}")
    return Spec(key, found["unit"] or "", found["format"] or "")


def text_of(value: int | float | bool | str, unit: str, spec: Spec) -> str:
    """A value as `spec` asks for it.

    Raises UnitError or InputError for a unit or a format that the value cannot have.
    """
    if isinstance(value, (bool, str)):
        return _word(value, spec)
    return _number(value, unit, spec)


def filled(text: str, entry: Callable[[str], Mapping[str, Any]]) -> str:
    """A text without markup, such as a title, with each quote in it as what it prints.

    `entry` gives value and unit of a key. A quote without UNIT and FORMAT prints the value in the
    unit that it has. Raises MlsysimError with the quote.

    >>> filled("On {quote}`fleet` H100", lambda _: {"value": 1024, "unit": ""})
    'On 1,024 H100'
    """

    def print_one(found: re.Match[str]) -> str:
        if found["spec"] is None:
            raise InputError("no complete quote; write {quote}`KEY in UNIT as FORMAT`")
        try:
            spec = parse(found["spec"])
            told = entry(spec.key)
            return text_of(told["value"], told["unit"], spec)
        except MlsysimError as error:
            raise type(error)(f"quote `{found['spec']}`: {error}") from None

    return QUOTE.sub(print_one, text)


def could_be(text: str, printed: str) -> bool:
    """Whether a text with quotes may print as another one: all but the numbers is the same."""
    return (
        re.fullmatch(".+".join(map(re.escape, re.split(r"\{quote\}(?:`[^`]*`)?", text))), printed)
        is not None
    )


def _word(value: bool | str, spec: Spec) -> str:
    if spec.unit or spec.format:
        raise InputError(f"the value is {value!r}, no number; leave out what follows the key")
    return value if isinstance(value, str) else str(value).lower()


def _number(value: int | float, unit: str, spec: Spec) -> str:
    target = unit
    if spec.unit:
        target = units.unit_text(units.unit(spec.unit))
        value = _converted(value, unit, target)
    if spec.format.endswith("%"):
        if target:
            raise InputError(
                f"the format {spec.format!r} is for shares of one, and this is in {target}; "
                f"write {spec.format.removesuffix('%') + 'f'!r}"
            )
        return format_number(value, spec.format)
    return with_unit(format_number(value, spec.format), target)


def _converted(value: int | float, unit: str, target: str) -> int | float:
    """`value` in another unit, rounded once; a plain number may be printed in %."""
    if unit == target:
        return value
    if not unit:
        if target == "%":
            return float(Fraction(repr(value)) * 100)
        raise UnitError(f"the value is a plain number, so it cannot be printed in {target}")
    try:
        return units.convert(value, unit, target)
    except UnitError as error:
        raise UnitError(f"the value is in {unit}; {error}") from None
