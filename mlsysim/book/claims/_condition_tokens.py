"""The words, numbers and signs of a claim's condition."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from mlsysim import units
from mlsysim.errors import InputError

__all__ = ["EXPECTED", "RESERVED", "Token", "expanded", "number", "tokens"]

RESERVED = {"and", "or", "not", "is", "within"}
EXPECTED = (
    "a condition compares keys and numbers, as in `step.bubble < 0.1 * step.step_time`, "
    "`a.time / b.time = 2 within 10 %` or `step.precision is bf16`"
)

_SPACED = "write + - * / with a space on either side; without, they belong to a key or a unit"
_FACTOR = r"[A-Za-zµ][A-Za-z0-9]*(?:\*\*[1-9])?"
_TOKEN = re.compile(
    rf"""
    (?P<key>[A-Za-z_]\w*(?:\.[\w*][\w*-]*)+)
  | (?P<number>[-−]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{{1,2}}(?!\d))?)
    (?:\s*(?P<unit>%|(?:1/)?{_FACTOR}(?:[*/]{_FACTOR})*)(?![\w.(]))?
  | (?P<word>[A-Za-z_][\w-]*)
  | (?P<text>'[^']*')
  | (?P<sign><=|>=|[<>=(),])
  | (?P<operator>[-−+*/])
    """,
    re.VERBOSE,
)
_KINDS = ("key", "number", "word", "text", "sign", "operator")


@dataclass(frozen=True)
class Token:
    """A part of a condition: a kind of `_KINDS`, its text, and where that stands."""

    kind: str
    text: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """The parts of a condition in order. Raises InputError for what cannot stand in one."""
    found: list[Token] = []
    at = 0
    while rest := text[at:].lstrip():
        at = len(text) - len(rest)
        match = _TOKEN.match(text, at)
        if not match:
            raise InputError(f"{rest.split()[0]!r} is not understood; {EXPECTED}")
        kind = next(kind for kind in _KINDS if match[kind] is not None)
        end = match.end()
        if kind == "number" and match["unit"] in RESERVED:
            end = match.end("number")
        if kind == "number" and rest[0] in "-−" and found and _ends_value(found[-1]):
            kind, end = "operator", at + 1
        found.append(Token(kind, text[at:end], at, end))
        _check(found[-1], text)
        at = end
    return found


def _ends_value(token: Token) -> bool:
    return token.kind in ("key", "number", "text") or token.text == ")"


def _check(token: Token, text: str) -> None:
    """Refuse a number with commas, and an operator without a space on either side."""
    before, after = text[: token.start], text[token.end :]
    if token.kind == "number" and re.match(r",\d", after):
        raise InputError(
            f"{(token.text + after).split()[0]!r}: write a number without commas, and a space "
            "after the comma between two values"
        )
    if token.kind == "operator" and not (before[-1:].isspace() and after[:1].isspace()):
        raise InputError(f"{(before[-8:] + token.text + after[:8]).strip()!r}: {_SPACED}")


def expanded(text: str, name: Callable[[str], str]) -> str:
    """`text` with every key replaced by `name(key)`, and single spaces."""
    parts, last = [], 0
    for token in tokens(text):
        if token.kind == "key":
            parts += [text[last : token.start], name(token.text)]
            last = token.end
    return " ".join("".join([*parts, text[last:]]).split())


def number(token: Token) -> tuple[Fraction, str]:
    """A number as typed, exactly, and the symbols of its unit. Raises UnitError."""
    found = _TOKEN.fullmatch(token.text)
    digits, unit = (found["number"], found["unit"]) if found else (token.text, None)
    exact = Fraction(digits.replace("−", "-"))
    return exact, units.unit_text(units.unit(unit)) if unit else ""
