"""Declared fields: how a class says what it needs, and how a document becomes an object of it."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeVar, dataclass_transform

from mlsysim import bounds, units
from mlsysim.declarations import lists
from mlsysim.declarations.documents import Document
from mlsysim.errors import InputError, MlsysimError, UnitError, nearest
from mlsysim.scalars import plain

__all__ = ["Declared", "Rates", "build", "declared", "record"]

D = TypeVar("D", bound="Declared")

# The types a field may have, by the name in its annotation.
_PLAIN: dict[str, tuple[type, str]] = {
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "bool": (bool, "true or false"),
    "str": (str, "a text"),
}


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


class Rates(Mapping[str, units.Quantity]):
    """A quantity for each precision, which cannot be changed."""

    def __init__(self, rates: Mapping[str, units.Quantity]) -> None:
        self._rates = dict(rates)

    def __getitem__(self, precision: str) -> units.Quantity:
        return self._rates[precision]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rates)

    def __len__(self) -> int:
        return len(self._rates)

    def __hash__(self) -> int:
        return hash(frozenset(self._rates.items()))

    def __repr__(self) -> str:
        return repr(self._rates)


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
            checked = _checked(
                field, getattr(self, field.name), f"{type(self).__name__}.{field.name}"
            )
            object.__setattr__(self, field.name, checked)
        self._check_lists()
        try:
            self.check()
        except OverflowError as error:
            raise InputError(f"a value is too large to compute with: {error}") from None

    def _check_lists(self) -> None:
        """Refuse lists whose combinations are too many to solve and print."""
        kinds = ("Counts", "Values")
        listed = [field.name for field in dataclasses.fields(self) if str(field.type) in kinds]
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


def _checked(field: dataclasses.Field[Any], value: Any, place: str) -> Any:
    """The value as the declared type, or InputError with what was found and expected."""
    kind, meta = str(field.type), field.metadata
    if kind in _PLAIN:
        return _plain(kind, value, meta, place)
    if kind == "Quantity":
        return _quantity(value, meta, place)
    if kind == "Rates":
        if not isinstance(value, Mapping) or not value:
            raise InputError(f"{place} = {value!r}: expected at least one precision with its rate")
        return Rates({key: _quantity(each, meta, f"{place}.{key}") for key, each in value.items()})
    if kind == "Counts":
        return lists.counts(place, value, least=meta["at_least"])
    if kind == "Values":
        return lists.values(place, value)
    if kind == "Rows":
        return value
    if kind.endswith("Table"):
        part_kind = kind.removesuffix("Table")
        for part, each in value.items():
            if part_kind not in {base.__name__ for base in type(each).__mro__}:
                raise InputError(f"{place}.{part} = {each!r}: expected a {part_kind}")
        return value
    if kind not in {base.__name__ for base in type(value).__mro__}:
        raise InputError(f"{place} = {_name_of(value)}: expected a {kind}")
    return value


def _name_of(value: Any) -> str:
    """A thing by its type and name, anything else as Python shows it."""
    if isinstance(value, Declared):
        return f"{type(value).__name__} {value.name}".rstrip()
    return repr(value)


def _plain(kind: str, value: Any, meta: Any, place: str) -> Any:
    python_type, expected = _PLAIN[kind]
    value = plain(value)
    if kind in ("int", "float") and isinstance(value, str):
        value = _counted(kind, value, meta, place, expected)
    if kind == "float" and type(value) is int and abs(value) < 2**63:
        value = float(value)
    if type(value) is not python_type:
        raise InputError(f"{place} = {value!r}: expected {expected}")
    if kind in ("int", "float"):
        _check_range(value, meta, place, "")
    if meta["choices"] and value not in meta["choices"]:
        choices = ", ".join(map(str, meta["choices"]))
        raise InputError(f"{place} = {value!r}: expected one of {choices}")
    return value


def _counted(kind: str, text: str, meta: Any, place: str, expected: str) -> Any:
    """The number in a text with the field's unit: ``"3.2 Mtok"``, ``"70 %"``."""
    try:
        given = units.quantity(text)
        number = given.to(units.unit(meta["unit"]) if meta["unit"] else "").magnitude
    except (UnitError, units.DimensionalityError):
        also = f", or a text such as '1 {meta['unit']}'" if meta["unit"] else ""
        raise InputError(f"{place} = {text!r}: expected {expected}{also}") from None
    return int(number) if kind == "int" and float(number).is_integer() else number


def _quantity(value: Any, meta: Any, place: str) -> Any:
    if isinstance(value, str):
        try:
            value = units.quantity(value)
        except UnitError as error:
            raise UnitError(f"{place}: {error}") from None
    if not isinstance(value, units.Quantity):
        raise InputError(f'{place} = {value!r}: expected a quantity, such as "1 {meta["unit"]}"')
    try:
        value = units.plain_quantity(value)
    except UnitError as error:
        raise UnitError(f"{place} = {error}") from None
    if value.dimensionality != units.dimension(meta["unit"]):
        raise UnitError(
            f"{place} = {units.shown(value)}: wrong dimension; expected a unit like {meta['unit']}"
        )
    try:
        in_unit = value.to(units.unit(meta["unit"])).magnitude
    except UnitError as error:
        raise UnitError(f"{place} = {units.shown(value)}: {error}") from None
    _check_range(in_unit, meta, place, " " + meta["unit"])
    return value


def _check_range(value: Any, meta: Any, place: str, unit: str) -> None:
    if not math.isfinite(value):
        raise InputError(f"{place} = {value}: expected a finite number")
    for key, words, holds in (
        ("above", "more than", operator.gt),
        ("at_least", "at least", operator.ge),
        ("at_most", "at most", operator.le),
    ):
        if meta[key] is not None and not holds(value, meta[key]):
            raise InputError(f"{place} = {value:g}{unit}: expected {words} {meta[key]:g}{unit}")


def build(cls: type[D], document: Document, link: Any) -> D:
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
            values[key] = _value(field, document.fields[key], document, link)
            values[key] = _checked(field, values[key], key)
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
    kind = str(field.type)
    if "value" not in leaf:
        if kind != "Rates" and not kind.endswith("Table"):
            raise InputError(
                f"{field.name}: expected one value and one source, found a table of them"
            )
        linked = document.linked
        values = {name: part["value"] for name, part in leaf.items()}
        return {
            name: link(linked[v]) if isinstance(v, str) and v in linked else v
            for name, v in values.items()
        }
    value = leaf["value"]
    if kind == "Rows":
        if not isinstance(value, str) or value not in document.tables:
            raise InputError(f"{field.name} = {value!r}: expected a CSV file beside the scenario")
        import csv  # few scenarios have a table, and every start would pay for it
        import io

        try:
            return tuple(csv.DictReader(io.StringIO(document.tables[value]), strict=True))
        except csv.Error as error:
            raise InputError(f"{field.name} = {value!r}: not usable CSV: {error}") from None
    if kind.endswith("Table"):
        raise InputError(f"{field.name} = {value!r}: expected a table of named references")
    if isinstance(value, str) and value in document.linked:
        if field.type in (*_PLAIN, "Quantity", "Rates"):
            raise InputError(f"{field.name} = {value!r}: expected {field.type}, found a reference")
        return link(document.linked[value])
    return value
