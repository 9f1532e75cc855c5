"""Whether a condition can be false at all: it is tried with other values than the artifacts hold.

`a.x / a.x = 1` and `a.x < 1 s or a.x >= 1 s` hold whatever the values are, so a claim that rests on
one tests nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any
from zlib import crc32

from mlsysim import units
from mlsysim.book.claims._conditions import Comparison, Is, Node, Not, Number
from mlsysim.book.claims._evaluation import Evaluation
from mlsysim.errors import MlsysimError

__all__ = ["holds_always"]

_ROUNDS = 48
_FACTORS = (*map(Fraction, (10**9, -(10**9), 10**6, -3, 1)), Fraction(1, 10**9), Fraction(1, 2))


def holds_always(
    condition: Node,
    entries: Mapping[str, tuple[str, dict[str, Any]]],
    matching: Callable[[str], list[str]],
) -> bool:
    """Whether a condition holds with every set of values that is tried.

    `entries` gives each key the name of what it stands for, which two keys may share, with its
    value and unit. Values that cannot be computed with tell nothing. A condition that denies an
    equality is not tried, because other values hardly ever meet one.
    """
    parts = list(_parts(condition))
    if any(_denies_equality(part) for part in parts):
        return False
    words = [part.other.text for part in parts if isinstance(part, Is)]
    typed = [part for part in parts if isinstance(part, Number)]
    for number in range(_ROUNDS):

        def other(key: str, number: int = number) -> dict[str, Any]:
            name, entry = entries[key]
            return _other(entry, crc32(f"{number} {name}".encode()), words, typed, name)

        try:
            if not Evaluation(other, matching).truth(condition):
                return False
        except (MlsysimError, ZeroDivisionError):
            continue
    return True


def _other(
    entry: dict[str, Any], pick: int, words: list[str], typed: list[Number], name: str
) -> dict[str, Any]:
    """Another value for a key, as an entry of an artifact."""
    value, unit = entry["value"], entry.get("unit", "")
    if isinstance(value, bool):
        return {"value": bool(pick % 2), "unit": unit}
    if isinstance(value, str):
        found = [f"not {value}", *words, name]
        return {"value": found[pick % len(found)], "unit": unit}
    exact = Fraction(repr(value)) or Fraction(1)
    choices = [(exact * factor, unit) for factor in _FACTORS]
    dimension = units.dimension(unit)
    choices += [
        (each.magnitude, each.unit) for each in typed if units.dimension(each.unit) == dimension
    ]
    magnitude, in_unit = choices[pick % len(choices)]
    return {"value": magnitude, "unit": in_unit}


def _denies_equality(node: Node) -> bool:
    return isinstance(node, Not) and any(
        isinstance(part, Comparison) and "=" in part.signs for part in _parts(node)
    )


def _parts(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    yield node
    for value in vars(node).values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Node):
                yield from _parts(part)
