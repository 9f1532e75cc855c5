"""Regular expressions for what scenario files hold, as a JSON Schema for editors gives them."""

from __future__ import annotations

import re

__all__ = ["NAME", "NUMBER", "quantity", "reference"]

NAME = r"[A-Za-z]\w*"
NUMBER = r"[0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?"
# How units of one dimension are spelled; of other dimensions only the form is checked.
_ANY_UNIT = r"(1/)?[A-Za-zµ%][A-Za-z0-9*/]*"
_DECIMAL = "[kMGTPEZ]?"
_SPELLINGS = (
    (re.compile(r"([kMGTPEZ]|[KMGT]i)?[Bb]"), "([kMGTPEZ]|[KMGT]i)?[Bb]"),
    (re.compile(r"[mµun]?s|min|h|d"), "([mµun]?s|min|h|d)"),
    (re.compile(r"[kMGTPEZ]?(?P<word>FLOP|tok|seq|param|USD)"), None),
)
# The collection of each class whose objects have names; all others are scenarios.
_COLLECTIONS = {
    "TransformerModel": "Models",
    "Fleet": "Fleets",
    "Accelerator": "Hardware",
    "Fabric": "Hardware",
    "Node": "Hardware",
}


def collection(kind: str) -> str:
    """The collection in which an object of this class has its name."""
    return _COLLECTIONS.get(kind, "Scenarios")


def reference(kind: str) -> str:
    """A full name of an object of this class."""
    return rf"^{collection(kind)}\.{NAME}$"


def quantity(unit: str, *, positive: bool) -> str:
    """A text of number and unit; the sign is refused where the range leaves it no room."""
    sign = r"\+?" if positive else "[+-]?"
    return rf"^\s*{sign}{NUMBER}\s*{_unit(unit)}\s*$"


def _unit(unit: str) -> str:
    """What can stand for a unit: others of its dimension, so far as that is plain to see."""
    if unit == "%":
        return "%"
    factors = [_spelling(factor) for factor in re.split(r"([*/])", unit)]
    return "".join(factors) if all(factors) else _ANY_UNIT


def _spelling(factor: str) -> str:
    if factor in ("*", "/"):
        return re.escape(factor)
    for form, spelled in _SPELLINGS:
        found = form.fullmatch(factor)
        if found:
            return spelled or _DECIMAL + found["word"]
    return ""
