"""Lists as inputs: counts that rise, such as depths of a pipeline, and values of another input."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

from mlsysim import bounds
from mlsysim.errors import InputError
from mlsysim.scalars import plain

__all__ = ["Counts", "Values", "as_written", "counts", "values"]

# The types of declared fields that hold a list.
Counts: TypeAlias = tuple[int, ...]
Values: TypeAlias = tuple[Any, ...]


def counts(place: str, given: Any, *, least: float | None) -> Counts:
    """The counts of a list: whole numbers of at least `least`, each larger than the one before.

    Raises InputError that names the place and the part.

    >>> counts("depths", [1, 2, 4], least=1)
    (1, 2, 4)
    """
    least = least or 0
    expected = f"expected a list of whole numbers of at least {least:g}, such as [1, 2, 4]"
    given = _parts(place, given, expected)
    for each in given:
        if type(each) is not int or not least <= each < 1 << 40:
            raise InputError(f"{place}: {each!r}: {expected}")
    for before, after in itertools.pairwise(given):
        if after <= before:
            raise InputError(f"{place}: {after} after {before}: expected them to rise")
    return tuple(given)


def values(place: str, given: Any) -> Values:
    """The values of a list: numbers, texts, true or false, none of them twice.

    Raises InputError that names the place and the part.

    >>> values("rates", ["25 Gb/s", "50 Gb/s"])
    ('25 Gb/s', '50 Gb/s')
    """
    expected = 'expected a list of values, such as ["25 Gb/s", "50 Gb/s"]'
    given = _parts(place, given, expected)
    seen = set()
    for word in map(as_written, given):
        if not word.strip() or word in seen:
            raise InputError(
                f"{place}: {word!r} stands there twice" if word.strip() else f"{place}: {expected}"
            )
        seen.add(word)
    return tuple(given)


def _parts(place: str, given: Any, expected: str) -> Sequence[Any]:
    if not isinstance(given, (list, tuple)):
        raise InputError(f"{place} = {given!r}: {expected}")
    if len(given) > bounds.COMBINATIONS:
        raise InputError(
            f"{place}: a list of {len(given):,} values; expected at most {bounds.COMBINATIONS:,}"
        )
    numbers = [plain(each) for each in given]
    for each in numbers:
        if not isinstance(each, (str, int, float)):
            raise InputError(f"{place}: {each!r}: {expected}")
    if not given:
        raise InputError(f"{place} has no values: {expected}")
    return numbers


def as_written(given: Any) -> str:
    """A value as a scenario file has it, and a list with commas between.

    >>> as_written([1, 2, 4]), as_written(True), as_written("400 Gb/s")
    ('1, 2, 4', 'true', '400 Gb/s')
    """
    if isinstance(given, (list, tuple)):
        return ", ".join(map(as_written, given))
    return str(given).lower() if isinstance(given, bool) else str(given)
