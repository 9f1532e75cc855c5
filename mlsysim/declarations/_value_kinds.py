"""The kinds of declared field that hold values: numbers, texts, quantities, and lists of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from mlsysim import units
from mlsysim.declarations import lists, patterns
from mlsysim.declarations._kind import ENDS, Kind, Link
from mlsysim.declarations.documents import Document
from mlsysim.errors import InputError, UnitError
from mlsysim.scalars import plain

__all__ = ["KINDS", "Rates"]


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


class _Plain(Kind):
    """A number, a text, true or false."""

    python_type: ClassVar[type]

    @property
    def expected(self) -> str:
        """The type in words."""
        raise NotImplementedError(self.name)

    def checked(self, value: Any, place: str) -> Any:
        """The value, if it is of the type and among the choices."""
        value = self.converted(plain(value), place)
        if type(value) is not self.python_type:
            raise InputError(f"{place} = {value!r}: expected {self.expected}")
        self.check_more(value, place)
        if self.choices and value not in self.choices:
            choices = ", ".join(map(str, self.choices))
            raise InputError(f"{place} = {value!r}: expected one of {choices}")
        return value

    def converted(self, value: Any, _place: str) -> Any:
        """A value that stands for one of this type."""
        return value

    def check_more(self, value: Any, place: str) -> None:
        """Refuse what the type alone does not show."""

    @property
    def type_in_words(self) -> str:
        return self.expected

    @property
    def example_in_words(self) -> str:
        return self.expected


class _Number(_Plain):
    """A number, or a text of number and unit that is converted to the field's."""

    def converted(self, value: Any, place: str) -> Any:
        if not isinstance(value, str):
            return value
        try:
            given = units.quantity(value)
            return given.to(units.unit(self.unit) if self.unit else "").magnitude
        except (UnitError, units.DimensionalityError):
            also = f", or a text such as '1 {self.unit}'" if self.unit else ""
            raise InputError(f"{place} = {value!r}: expected {self.expected}{also}") from None

    def check_more(self, value: Any, place: str) -> None:
        self.check_range(value, place)

    @property
    def example_in_words(self) -> str:
        return self.expected + (f" in {self.unit}" if self.unit else "")

    def json_schema(self) -> dict[str, Any]:
        number: dict[str, Any] = {"type": "integer" if self.python_type is int else "number"}
        number |= {word: self.range[end] for end, *_, word in ENDS if self.range[end] is not None}
        return {"anyOf": [number, _quantity_schema(self, self.unit or "%")]}


class _WholeNumber(_Number):
    """`int`."""

    python_type = int

    @property
    def expected(self) -> str:
        return "a whole number"

    def converted(self, value: Any, place: str) -> Any:
        found = super().converted(value, place)
        was_text = found is not value
        return int(found) if was_text and float(found).is_integer() else found


class _Float(_Number):
    """`float`; a whole number is one as well."""

    python_type = float

    @property
    def expected(self) -> str:
        return "a number"

    def converted(self, value: Any, place: str) -> Any:
        found = super().converted(value, place)
        return float(found) if type(found) is int and abs(found) < 2**63 else found


class _Truth(_Plain):
    """`bool`."""

    python_type = bool

    @property
    def expected(self) -> str:
        return "true or false"

    def json_schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


class _Text(_Plain):
    """`str`, perhaps one of some choices."""

    python_type = str

    @property
    def expected(self) -> str:
        return "a text"

    def json_schema(self) -> dict[str, Any]:
        return {"enum": list(self.choices)} if self.choices else {"type": "string"}


class _Quantity(Kind):
    """`Quantity`: a number with a unit of the field's dimension."""

    takes_any_unit = True

    @property
    def type_in_words(self) -> str:
        return "a quantity"

    def checked(self, value: Any, place: str) -> Any:
        if isinstance(value, str):
            try:
                value = units.quantity(value)
            except UnitError as error:
                raise UnitError(f"{place}: {error}") from None
        if not isinstance(value, units.Quantity):
            raise InputError(f'{place} = {value!r}: expected a quantity, such as "1 {self.unit}"')
        try:
            value = units.plain_quantity(value)
        except UnitError as error:
            raise UnitError(f"{place} = {error}") from None
        if value.dimensionality != units.dimension(self.unit):
            raise UnitError(
                f"{place} = {units.shown(value)}: wrong dimension; expected a unit like {self.unit}"
            )
        try:
            in_unit = value.to(units.unit(self.unit)).magnitude
        except UnitError as error:
            raise UnitError(f"{place} = {units.shown(value)}: {error}") from None
        self.check_range(in_unit, place, " " + self.unit)
        return value

    @property
    def example_in_words(self) -> str:
        return f'a text of number and unit, such as "1 {self.unit}"'

    def ends_in_words(self) -> list[str]:
        return [f"{each} {self.unit}" for each in super().ends_in_words()]

    def json_schema(self) -> dict[str, Any]:
        return _quantity_schema(self, self.unit)


def _quantity_schema(kind: Kind, unit: str) -> dict[str, Any]:
    low = [kind.range[end] for end in ("above", "at_least") if kind.range[end] is not None]
    positive = bool(low) and min(low) >= 0
    return {"type": "string", "pattern": patterns.quantity(unit, positive=positive)}


class _RatesKind(Kind):
    """`Rates`: a quantity for each precision."""

    parts = True
    takes_any_unit = True

    @property
    def type_in_words(self) -> str:
        return "a quantity for each precision"

    def checked(self, value: Any, place: str) -> Any:
        if not isinstance(value, Mapping) or not value:
            raise InputError(f"{place} = {value!r}: expected at least one precision with its rate")
        one = _Quantity("Quantity", {"unit": self.unit, "choices": (), **self.range})
        return Rates({key: one.checked(each, f"{place}.{key}") for key, each in value.items()})


class _Counts(Kind):
    """`Counts`: whole numbers that rise."""

    counted = True

    @property
    def type_in_words(self) -> str:
        return "a list of rising whole numbers"

    @property
    def example_in_words(self) -> str:
        return "a list of rising whole numbers, such as [1, 2, 4]"

    def checked(self, value: Any, place: str) -> Any:
        return lists.counts(place, value, least=self.range["at_least"])

    def from_file(self, value: Any, _key: str, _document: Document, _link: Link) -> Any:
        return value

    def json_schema(self) -> dict[str, Any]:
        return _list_schema({"type": "integer", "minimum": self.range["at_least"] or 0})


class _Values(Kind):
    """`Values`: values of another input."""

    counted = True

    @property
    def type_in_words(self) -> str:
        return "a list of values"

    @property
    def example_in_words(self) -> str:
        return 'a list of values as their input takes them, such as ["25 Gb/s", "50 Gb/s"]'

    def checked(self, value: Any, place: str) -> Any:
        return lists.values(place, value)

    def from_file(self, value: Any, _key: str, _document: Document, _link: Link) -> Any:
        return value

    def json_schema(self) -> dict[str, Any]:
        return _list_schema({"type": ["string", "number", "boolean"]})


def _list_schema(part: dict[str, Any]) -> dict[str, Any]:
    """A list of different values, of which there is one at least."""
    return {"type": "array", "items": part, "minItems": 1, "uniqueItems": True}


# By the word of the annotation.
KINDS: dict[str, type[Kind]] = {
    "int": _WholeNumber,
    "float": _Float,
    "bool": _Truth,
    "str": _Text,
    "Quantity": _Quantity,
    "Rates": _RatesKind,
    "Counts": _Counts,
    "Values": _Values,
}
