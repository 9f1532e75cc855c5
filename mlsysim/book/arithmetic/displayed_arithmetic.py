"""Arithmetic displayed between quotes: whether the result follows from what is printed.

A reader with a pocket calculator has the printed numbers alone. Each stands for all values that
round to it; a result that none of these gives is refused. What is no plain arithmetic, because a
letter or an unknown word stands in it, is left alone and not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from mlsysim.artifacts.quotes import Printed
from mlsysim.book.arithmetic._chain_reader import value_of
from mlsysim.book.arithmetic._chain_tokens import Token, tokens
from mlsysim.book.arithmetic._formulas import Display, displays, one_line
from mlsysim.book.arithmetic._printed_values import Interval, exact
from mlsysim.book.source.scanner import ROLE

__all__ = ["Equation", "equations"]

_ABOUT = Fraction(5, 100)  # by which the two sides of ≈ may differ beyond what rounding allows
_MOST = 400  # tokens of a side
_DASHES = ("-", "\N{HYPHEN}", "\N{NON-BREAKING HYPHEN}", "\N{EN DASH}", "\N{MINUS SIGN}")
# Words beside a sentence's arithmetic that take part in it: half of 3 × 4 = 6. Behind a result, as
# in = 6 of them, a common word takes part only before a number: = 6 to 8, = 6 and a half.
_PART_BEFORE = re.compile(
    r"(?:of|times|by|plus|minus|than|to|over|per|twice|half|double|from|and)$", re.I
)
_PART_AFTER = re.compile(r"(?:times|per|of|plus|minus|more|less|an?|each|and|to|or)\b", re.I)
_RESULT_GOES_ON = re.compile(
    r"(?:times|per|plus|minus|an?|each|(?:thousand|[mbtr]+illion)s?)\b|(?:more|less)\s+than\b"
    r"|(?:of|less|to|or)\s+(?:[\d$½¼¾]|\{quote\})"
    r"|and\s+(?:\d+/|[½¼¾]|(?:an?|one|two|three)\s+(?:half|third|quarter)s?\b)",
    re.I,
)


@dataclass(frozen=True)
class Equation:
    """Two sides that a page says are equal, or about equal: what is given, and the result."""

    line: int
    text: str
    given: Interval
    result: Interval
    about: bool

    @property
    def follows(self) -> bool:
        """Whether the printed numbers allow the result."""
        if not self.given.is_like(self.result):
            return False
        if self.about:
            return self.given.meets(self.result.to_its_digit(), _ABOUT)
        return self.given.meets(self.result)

    @property
    def follows_to_the_digit(self) -> bool:
        """Whether the printed digits, taken as they stand, give the result to its last digit."""
        off = abs(self.given.face - self.result.face)
        return self.follows and (not self.result.digit or off <= self.result.digit / 2)

    @property
    def wrong(self) -> str:
        """Why the equation is refused; empty if it is not."""
        if self.follows:
            return ""
        if not self.given.is_like(self.result):
            return f'"{self.text}" does not follow: the two sides have units of different kinds'
        unit = self.result.unit or self.given.unit
        return (
            f'"{self.text}" does not follow: the printed numbers give {self.given.shown(unit)}; '
            "mend it, print what is missing, or more digits"
        )


def equations(text: str, printed: Callable[[str], Printed]) -> list[Equation]:
    r"""Every equation of a page in which quotes stand and both sides can be computed.

    `printed` tells what a quote prints.

    >>> from mlsysim.artifacts.quotes import Printed
    >>> page = "$12\\,\\mathrm{s} \\times 3 = {quote}`step.time`$ and $a = {quote}`step.time`$."
    >>> found = equations(page, lambda spec: Printed("36 s", spec, 36.2, "s", spec))
    >>> [(each.text, each.wrong) for each in found]
    [('12 s × 3 = 36 s', '')]
    """
    return [each for display in displays(text) for each in _in_display(display, printed)]


def _in_display(display: Display, printed: Callable[[str], Printed]) -> Iterator[Equation]:
    """The equations of one formula or text."""
    found = tokens(display.text, printed, math=display.math)
    for chain in _chains(found):
        last: _Side | None = None
        about = False
        for part in chain:
            if isinstance(part, Token):
                about |= part.kind == "about"
                if part.kind == "barrier":
                    last, about = None, False
                continue
            side = _side(part, math=True) if display.math else _side_of_prose(part, display.text)
            if side is None:
                continue
            computed = last and not (last.alone and side.alone)
            shown = computed or display.math  # in a sentence 3.2 = 8 may be anything
            if (
                last
                and shown
                and (last.quoted or side.quoted)
                and (equation := _equation(last, side))
            ):
                given, result = equation
                start, end = last.start, side.end
                line = display.line + display.text.count("\n", 0, end)
                text = _shown(display.text[start:end], printed)
                yield Equation(line, text, given, result, about)
            last, about = side, False


@dataclass(frozen=True)
class _Side:
    """A side that is a number: what it stands for, whether it holds a quote or is one alone."""

    known: Interval
    quoted: bool
    alone: bool
    start: int
    end: int


def _equation(left: _Side, right: _Side) -> tuple[Interval, Interval] | None:
    """What is given and what results; None where a unit is not said on one side."""
    given, result = (right, left) if left.alone and not right.alone else (left, right)
    plain = exact(1)
    if not left.known.is_like(right.known) and any(
        each.known.is_like(plain) for each in (left, right)
    ):
        return None
    return given.known, result.known


def _chains(found: list[Token]) -> Iterator[list[list[Token] | Token]]:
    """Parts between the ends of equations, divided by signs of equality and order."""
    chain: list[list[Token] | Token] = []
    side: list[Token] = []
    depth = 0
    for token in found:
        depth += (token.kind == "open") - (token.kind == "close")
        if depth <= 0 and token.kind in ("equal", "about", "barrier", "end"):
            chain.append(side)
            side = []
            if token.kind == "end":
                yield chain
                chain = []
            else:
                chain.append(token)
        else:
            side.append(token)
    yield [*chain, side]


def _side(part: list[Token], *, math: bool) -> _Side | None:
    """A side of an equation; None if it is no plain arithmetic."""
    if not part or len(part) > _MOST:
        return None
    try:
        known = value_of(part, math=math)
    except (ArithmeticError, RecursionError, ValueError):
        return None
    quoted = any(token.kind == "quote" for token in part)
    numbers = [token for token in part if token.kind in ("quote", "number")]
    alone = len(numbers) == 1 and not any(t.kind in ("operator", "function") for t in part)
    return _Side(known, quoted, alone, part[0].start, part[-1].end)


def _side_of_prose(part: list[Token], text: str) -> _Side | None:
    """The arithmetic of a sentence that touches the sign before or after it."""
    if not part:
        return None
    after_sign = text[: part[0].start].rstrip()[-1:] in ("=", "≈")
    at = [number for number, token in enumerate(part) if token.kind == "other"]
    before_sign = text[part[-1].end :].lstrip()[:1] in ("=", "≈")
    if at and after_sign and before_sign:
        return None
    if at:
        if _is_range(part, at[0] if after_sign else at[-1]):
            return None
        part = part[: at[0]] if after_sign else part[at[-1] + 1 :]
    side = _side(part, math=False)
    if side is None:
        return None
    if not after_sign and _PART_BEFORE.search(text[: side.start].rstrip()):
        return None
    after = text[side.end :].lstrip()
    goes_on = _RESULT_GOES_ON if side.alone and side.known.unit != "%" else _PART_AFTER
    if not before_sign and goes_on.match(after):
        return None
    return side


def _is_range(part: list[Token], at: int) -> bool:
    """Whether a dash between two numbers stands there: 7–8."""
    around = part[max(at - 1, 0) : at + 2]
    ends = [token.kind in ("number", "quote") for token in (around[0], around[-1])]
    return part[at].text in _DASHES and len(around) == 3 and all(ends)


def _shown(text: str, printed: Callable[[str], Printed]) -> str:
    """The equation as it is printed, on one line."""
    return one_line(ROLE.sub(lambda role: printed(" ".join(role["spec"].split())).text, text))
