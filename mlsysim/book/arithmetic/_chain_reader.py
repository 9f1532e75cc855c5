"""The value of displayed arithmetic: a recursive descent over the tokens of one side."""

from __future__ import annotations

import math

from mlsysim.book.arithmetic._chain_tokens import Token
from mlsysim.book.arithmetic._printed_values import Interval, exact

__all__ = ["value_of"]

_HIGHEST = 24  # power


def value_of(part: list[Token], *, math: bool) -> Interval:
    r"""The value of one side of an equation, of a formula or of a sentence.

    In a formula a number, a fraction or a bracket before a quote multiplies it.

    >>> from mlsysim.book.arithmetic._chain_tokens import tokens
    >>> side = tokens("\\frac{1 + 2}{4}\\,\\mathrm{ms} \\times 8", lambda _: None, math=True)
    >>> value_of(side, math=True).shown("ms")
    '6\xa0ms'

    Raises ArithmeticError if it is no plain arithmetic: a letter, a function, two numbers side by
    side, a sum of different kinds.
    """
    return _Reader(part, math=math).whole()


class _Reader:
    """One reading; each method reads one level of precedence."""

    def __init__(self, part: list[Token], *, math: bool) -> None:
        self.part = part
        self.math = math
        self.at = 0

    def whole(self) -> Interval:
        value = self._sum()
        if self.at < len(self.part):
            raise ArithmeticError("more than one value")
        return value

    def _next(self) -> Token | None:
        return self.part[self.at] if self.at < len(self.part) else None

    def _take(self, kind: str, *texts: str) -> str:
        token = self._next()
        if token and token.kind == kind and (not texts or token.text in texts):
            self.at += 1
            return token.text
        return ""

    def _sum(self) -> Interval:
        negative = self._take("operator", "-")
        value = self._product()
        if negative:
            value = exact(-1) * value
        while sign := self._take("operator", "+", "-"):
            other = self._product()
            value = value + other if sign == "+" else value - other
        return value

    def _product(self) -> Interval:
        value = self._factor()
        divided = False
        while True:
            if sign := self._take("operator", "*", "/"):
                divided = sign == "/"
                other = self._factor()
                value = value * other if sign == "*" else value / other
            elif self._multiplies(divided=divided):
                value = value * self._factor()
            else:
                return value

    def _multiplies(self, *, divided: bool) -> bool:
        """Whether a bracket, a fraction, a root or a quote follows, without a sign."""
        token, before = self._next(), self.part[self.at - 1]
        if not token or token.text == "^":
            return False
        if token.kind == "quote":  # not in a sentence, as step 2 <time>, nor in 1 / 2 <time>
            return self.math and not divided and before.kind != "quote"
        mixed = before.kind == "number" and token.text.endswith("frac")  # as in 3 1/2
        return token.kind in ("open", "function") and not mixed

    def _factor(self) -> Interval:
        """A value with its power and its unit."""
        first = self._next()
        value = self._atom()
        if self._take("function", "^"):
            if value.unit or not first or first.kind == "unit":
                raise ArithmeticError("a power of a unit")
            power = self._group()
            if power.low != power.high or power.face.denominator != 1 or abs(power.face) > _HIGHEST:
                raise ArithmeticError("a power that is no whole number")
            value = value.raised(int(power.face))
        while (token := self._next()) and token.kind == "unit" and token.known:
            self.at += 1
            value = _in_unit(value, token.known)
        return value

    def _atom(self) -> Interval:
        token = self._next()
        if token is None:
            raise ArithmeticError("a value is missing")
        self.at += 1
        if token.known:
            return token.known
        if token.text.endswith("frac"):
            top = self._group()
            return top / self._group()
        if token.text == "\\sqrt":
            return self._group().root()
        if token.kind != "open":
            raise ArithmeticError("no value")
        value = self._sum()
        close = self._next()
        if not close or close.kind != "close":
            raise ArithmeticError("a bracket is missing")
        self.at += 1
        if "floor" in token.text or "ceil" in token.text:
            return value.rounded(math.floor if "floor" in token.text else math.ceil)
        return value

    def _group(self) -> Interval:
        """What stands in braces, or a single digit."""
        token = self._next()
        if token and (token.kind == "open" or (token.kind == "number" and len(token.text) == 1)):
            return self._atom()
        raise ArithmeticError("no group")


def _in_unit(value: Interval, one: Interval) -> Interval:
    """A number with the unit behind it; `one` is one of that unit."""
    made = value * one
    digit = value.digit * one.face
    return Interval(made.low, made.high, made.face, made.dimension, one.unit, digit)
