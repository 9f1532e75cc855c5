"""How far a claim is from falling."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mlsysim.book.claims._conditions import Comparison, Junction, Node, Not, Number, parse
from mlsysim.book.claims._evaluation import Evaluation
from mlsysim.book.claims._exact_values import Value

__all__ = ["slack"]


def slack(
    condition: str,
    entry: Callable[[str], dict[str, Any]],
    matching: Callable[[str], list[str]] = lambda _: [],
) -> float:
    """How far a condition is from falling, in parts of the larger side; negative if it is false.

    What can only hold or not, such as an equality or a word, is infinitely far from changing. Of
    conditions that are joined it is the part that decides. `entry` and `matching` are those of
    `Evaluation`. Raises MlsysimError for a condition that cannot be tested.

    >>> times = {"a.t": {"value": 3, "unit": "s"}, "b.t": {"value": 4000, "unit": "ms"}}
    >>> slack("a.t < b.t", times.__getitem__)
    0.25
    """
    return _Slack(entry, matching).of(parse(condition))


class _Slack(Evaluation):
    """An evaluation that measures each comparison."""

    def of(self, node: Node) -> float:
        if isinstance(node, Junction):
            parts = [self.of(each) for each in node.parts]
            return min(parts) if node.word == "and" else max(parts)
        if isinstance(node, Not):
            return -self.of(node.part)
        holds = self.truth(node)
        if isinstance(node, Comparison):
            return min(self._between(node, at) for at in range(len(node.signs)))
        return math.inf if holds else -math.inf

    def _between(self, node: Comparison, at: int) -> float:
        left, right = (self._value(side).magnitude for side in node.sides[at : at + 2])
        largest = max(abs(left), abs(right)) or 1
        if node.within:
            return float((_allowed(node.within, right) - abs(left - right)) / largest)
        sign = node.signs[at]
        if sign == "=":
            return math.inf if left == right else -math.inf
        return float((right - left if sign.startswith("<") else left - right) / largest)


def _allowed(within: Number, right: Any) -> Any:
    """What two sides may differ by."""
    tolerance = Value.of(within.magnitude, within.unit).magnitude
    return tolerance * abs(right) if within.unit == "%" else tolerance
