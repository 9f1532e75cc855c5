"""What every kind of declared field has: its unit, range and choices, and how it is described."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from mlsysim.declarations.documents import Document
from mlsysim.errors import InputError

__all__ = ["ENDS", "Kind", "Link"]

# How a document's link to another becomes the object that it stands for.
Link = Callable[[Document], Any]

# The ends of a range: what `declared` calls them, words, a test, and their names in a JSON Schema.
ENDS: tuple[tuple[str, str, Callable[[Any, Any], bool], str], ...] = (
    ("above", "more than", operator.gt, "exclusiveMinimum"),
    ("at_least", "at least", operator.ge, "minimum"),
    ("at_most", "at most", operator.le, "maximum"),
)


class Kind:
    """A kind of declared field; `name` is the word of its annotation.

    A kind with `parts` is a table in a file, each of whose entries has its own source. One that is
    `counted` is a list, whose length multiplies the work. One that `takes_any_unit` of a dimension
    keeps the unit that it is given. What comes after `check_range` describes a kind to editors and
    on pages.
    """

    parts: ClassVar[bool] = False
    counted: ClassVar[bool] = False
    takes_any_unit: ClassVar[bool] = False

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        self.name = name
        self.unit: str = given["unit"]
        self.choices: tuple[Any, ...] = given["choices"]
        self.range = {end: given[end] for end, *_ in ENDS}

    def checked(self, value: Any, place: str) -> Any:
        """The value as the declared type. Raises InputError or UnitError with what was expected."""
        raise NotImplementedError(self.name)

    def from_file(self, value: Any, key: str, document: Document, _link: Link) -> Any:
        """What a file's value stands for, before it is checked: itself, unless it is a reference.

        Raises InputError.
        """
        if isinstance(value, str) and value in document.linked:
            raise InputError(f"{key} = {value!r}: expected {self.name}, found a reference")
        return value

    def parts_from_file(self, parts: Mapping[str, Any], document: Document, link: Link) -> Any:
        """What the entries of a table stand for."""
        return {
            name: link(document.linked[each])
            if isinstance(each, str) and each in document.linked
            else each
            for name, each in parts.items()
        }

    def check_range(self, value: float, place: str, unit: str = "") -> None:
        """Refuse a number out of the range, which is meant in the field's unit."""
        if not math.isfinite(value):
            raise InputError(f"{place} = {value}: expected a finite number")
        for end, words, holds, _ in ENDS:
            limit = self.range[end]
            if limit is not None and not holds(value, limit):
                raise InputError(f"{place} = {value:g}{unit}: expected {words} {limit:g}{unit}")

    @property
    def type_in_words(self) -> str:
        """What the annotation means, for a page about a class."""
        return ""

    @property
    def example_in_words(self) -> str:
        """What a file gives for one."""
        raise NotImplementedError(self.name)

    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of what a file gives for one."""
        raise NotImplementedError(self.name)

    def ends_in_words(self) -> list[str]:
        """The ends of the range."""
        return [
            f"{words} {self.range[end]:,g}"
            for end, words, *_ in ENDS
            if self.range[end] is not None
        ]
