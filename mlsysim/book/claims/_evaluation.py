"""Whether a condition holds: exact arithmetic with units on the values of artifacts."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mlsysim.book.claims._conditions import (
    Arithmetic,
    Call,
    Comparison,
    Is,
    Junction,
    Key,
    Node,
    Not,
    Number,
)
from mlsysim.book.claims._exact_values import Value, computed
from mlsysim.errors import InputError, UnitError

__all__ = ["Evaluation"]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


class Evaluation:
    """One evaluation of a condition; it notes every value that it meets, for the report.

    `entry` gives the value and unit of a key, `matching` the keys that a pattern with * stands for.
    """

    def __init__(
        self,
        entry: Callable[[str], dict[str, Any]],
        matching: Callable[[str], list[str]] = lambda _: [],
    ) -> None:
        self.entry = entry
        self.matching = matching
        self.sides: dict[str, Value | str] = {}
        self.keys: dict[str, Value | str] = {}
        self.ratios: list[str] = []

    def report(self) -> str:
        """What each side is, then each key that is not a side itself."""
        told = {**self.sides, **{k: v for k, v in self.keys.items() if k not in self.sides}}
        numbers = [value for value in told.values() if isinstance(value, Value)]
        rough = [value.shown() for value in numbers]
        exact = {value.magnitude for value in numbers}
        digits = 6 if len(set(rough)) >= len(exact) else 12
        parts = [f"{k} = {v.shown(digits) if isinstance(v, Value) else v}" for k, v in told.items()]
        return ", ".join([*parts, *self.ratios])

    def truth(self, node: Node) -> bool:
        """Whether a condition holds; every part is looked at, so that all of it is checked."""
        if isinstance(node, Junction):
            return (all if node.word == "and" else any)([self.truth(each) for each in node.parts])
        if isinstance(node, Not):
            return not self.truth(node.part)
        if isinstance(node, Is):
            return self._is(node)
        if isinstance(node, Comparison):
            return self._compare(node)
        if isinstance(node, Key):
            value = self._note(node)
            if isinstance(value, bool):
                return value
        raise InputError(f"`{node.text}` is no condition; compare it with something")

    def _note(self, key: Key) -> Any:
        if "*" in key.text:
            raise InputError(
                f"{key.text}: a key with * stands for many, alone in min(...) or max(...); a "
                "product is written with a space on either side of *"
            )
        entry = self.entry(key.text)
        value = entry["value"]
        is_word = isinstance(value, (bool, str))
        self.keys[key.text] = _word(value) if is_word else Value.of(value, entry["unit"])
        return value

    def _is(self, node: Is) -> bool:
        value = self._note(node.key)
        if not isinstance(value, (bool, str)):
            raise InputError(f"{node.key.text} is a number; compare it by < <= > >= or =")
        if isinstance(node.other, Key):
            other = self._note(node.other)
            if not isinstance(other, (bool, str)):
                raise InputError(f"{node.other.text} is a number, and {node.key.text} a word")
        else:
            other = node.other.text
        return (_word(value) == _word(other)) != node.negated

    def _compare(self, node: Comparison) -> bool:
        values = [self._value(side) for side in node.sides]
        for side, value in zip(node.sides, values, strict=True):
            if not isinstance(side, Number):
                self.sides[side.text] = value
        holds = True
        for at, sign in enumerate(node.signs):
            left, right = values[at], values[at + 1]
            self._agree("compare", node.sides[at], left, node.sides[at + 1], right)
            if node.within:
                return self._near(node, left, right)
            holds = holds and _COMPARE[sign](left.magnitude, right.magnitude)
        return holds

    def _near(self, node: Comparison, left: Value, right: Value) -> bool:
        """Whether two values differ by no more than a part of the right one, or an amount."""
        within = node.within or Number("", Fraction(0), "")
        tolerance = Value.of(within.magnitude, within.unit)
        apart = abs(left.magnitude - right.magnitude)
        if right.magnitude:
            share = float(100 * (left.magnitude - right.magnitude) / abs(right.magnitude))
            side = "above" if share >= 0 else "below"
            self.ratios.append(f"{abs(share):.3g} % {side} the right side")
        if within.unit == "%":
            return apart <= tolerance.magnitude * abs(right.magnitude)
        self._agree("take", within, tolerance, node.sides[0], left)
        return apart <= tolerance.magnitude

    def _agree(self, verb: str, one: Node, left: Value, other: Node, right: Value) -> None:
        """Refuse values of different dimensions, and a plain number beside a value in %."""
        what = f"cannot {verb} `{one.text}` ({left.unit or 'a plain number'}) with `{other.text}` "
        what += f"({right.unit or 'a plain number'})"
        if left.dimension != right.dimension:
            raise UnitError(f"{what}: their dimensions differ")
        for typed, value in ((left, right), (right, left)):
            if typed.typed and not typed.unit and value.unit == "%" and typed.magnitude:
                said, share = (f"{float(n * typed.magnitude):.12g} %" for n in (1, 100))
                raise UnitError(f"{what}: write {said} or {share}, as it is meant")

    def _value(self, node: Node) -> Value:
        """The number that a side is."""
        if isinstance(node, Number):
            return Value.of(node.magnitude, node.unit, typed=True)
        if isinstance(node, Key):
            value = self._note(node)
            if isinstance(value, (bool, str)):
                word = _word(value)
                raise InputError(f"{node.text} is {word!r}, no number; write {node.text} is {word}")
            return Value.of(value, self.entry(node.text)["unit"])
        if isinstance(node, Arithmetic):
            return self._arithmetic(node)
        if isinstance(node, Call):
            return self._call(node)
        raise InputError(f"`{node.text}` is a condition, and a value was expected")

    def _call(self, node: Call) -> Value:
        if node.function == "abs":
            one = self._value(node.arguments[0])
            return Value(abs(one.magnitude), one.dimension, one.unit, one.typed)
        known = set(self.keys)
        parts = [each for argument in node.arguments for each in self._each(argument)]
        values = [self._value(part) for part in parts]
        for part, value in zip(parts[1:], values[1:], strict=True):
            self._agree("compare", parts[0], values[0], part, value)
        best = (min if node.function == "min" else max)(values, key=lambda each: each.magnitude)
        if len(parts) > len(node.arguments):  # of the many only the best is told
            for part, value in zip(parts, values, strict=True):
                if value != best and part.text not in known:
                    self.keys.pop(part.text, None)
        return best

    def _each(self, argument: Node) -> list[Node]:
        """The keys that an argument stands for: itself, or those that match its *."""
        if not isinstance(argument, Key) or "*" not in argument.text:
            return [argument]
        found = self.matching(argument.text)
        if not found:
            raise InputError(f"no key matches {argument.text}")
        return [Key(key) for key in found]

    def _arithmetic(self, node: Arithmetic) -> Value:
        left, right = self._value(node.left), self._value(node.right)
        if node.operator in "+-":
            self._agree("join", node.left, left, node.right, right)
        if node.operator == "/" and not right.magnitude:
            raise InputError(f"`{node.right.text}` is zero, and `{node.text}` divides by it")
        return computed(node.operator, left, right)


def _word(value: bool | str) -> str:
    return value if isinstance(value, str) else str(value).lower()
