"""Declared fields: how a class says what it needs, and how a document becomes an object of it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, TypeVar, dataclass_transform

from mlsysim import bounds
from mlsysim.declarations.documents import Document
from mlsysim.declarations.kinds import Rates, kind_of
from mlsysim.errors import InputError, MlsysimError, nearest

__all__ = ["Declared", "Rates", "declared", "from_document", "record"]

D = TypeVar("D", bound="Declared")


def declared(
    *,
    unit: str = "",
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    choices: tuple[Any, ...] = (),
    description: str,
) -> Any:
    """A required field: its unit (that of a Quantity fixes the dimension), range and meaning.

    The range of a quantity is meant in `unit`.
    """
    return dataclasses.field(
        metadata={
            "unit": unit,
            "above": above,
            "at_least": at_least,
            "at_most": at_most,
            "choices": choices,
            "description": description,
        }
    )


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(declared,))
def record(cls: type[D]) -> type[D]:
    """The decorator of every declared class: a frozen dataclass with keyword-only fields."""
    return dataclasses.dataclass(frozen=True, kw_only=True)(cls)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Declared:
    """A frozen object with declared fields, checked when it is made.

    `name` is the stem of the file it was loaded from, empty for an object made in Python.
    """

    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            place = f"{type(self).__name__}.{field.name}"
            checked = kind_of(field).checked(getattr(self, field.name), place)
            object.__setattr__(self, field.name, checked)
        self._check_lists()
        try:
            self.check()
        except OverflowError as error:
            raise InputError(f"a value is too large to compute with: {error}") from None

    def _check_lists(self) -> None:
        """Refuse lists whose combinations are too many to solve and print."""
        listed = [each.name for each in dataclasses.fields(self) if kind_of(each).counted]
        count = math.prod(len(getattr(self, name)) for name in listed)
        if count > bounds.COMBINATIONS:
            raise InputError(
                f"{' and '.join(listed)} make {count:,} combinations; expected at most "
                f"{bounds.COMBINATIONS:,}"
            )

    def check(self) -> None:
        """Refuse what no single field shows to be wrong. Raises MlsysimError."""

    def check_entry(self) -> None:
        """Refuse what a file may not say, though an object made in Python may."""


def from_document(cls: type[D], document: Document, link: Any) -> D:
    """The object of `cls` that a document declares; `link` makes the objects it refers to.

    Raises InputError or UnitError that name the file, the field, what was found and what was
    expected.
    """
    known = {field.name: field for field in dataclasses.fields(cls)}
    for key in document.fields:
        if key not in known:
            place = document.places.get(key, document.place)
            raise InputError(
                f"{place}: {key}: unknown key for a {cls.__name__}; {nearest(key, known, count=20)}"
            )
    values = {}
    for key, field in known.items():
        if key not in document.fields:
            raise InputError(
                f"{document.place}: {key} is missing: a {cls.__name__} declares it as {field.type} "
                f"({field.metadata['description']})"
            )
        place = document.places.get(key, document.place)
        try:
            value = _value(field, document.fields[key], document, link)
            values[key] = kind_of(field).checked(value, key)
        except MlsysimError as error:
            raise _placed(error, place) from None
    try:
        made = cls(**values)
        made.check_entry()
    except MlsysimError as error:
        raise _placed(error, document.place) from None
    made.__dict__["name"] = document.name
    return made


def _placed(error: MlsysimError, place: str) -> MlsysimError:
    """The error with its place in front, unless it comes from a file that this one refers to."""
    if error.placed:
        return error
    told = type(error)(f"{place}: {error}")
    told.placed = True
    return told


def _value(
    field: dataclasses.Field[Any], leaf: dict[str, Any], document: Document, link: Any
) -> Any:
    """What a file gives for a field, with the objects in place of references."""
    kind = kind_of(field)
    if "value" in leaf:
        return kind.from_file(leaf["value"], field.name, document, link)
    if not kind.parts:
        raise InputError(f"{field.name}: expected one value and one source, found a table of them")
    parts = {name: part["value"] for name, part in leaf.items()}
    return kind.parts_from_file(parts, document, link)
