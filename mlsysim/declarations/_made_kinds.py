"""The kinds of declared field that are made of other files: objects, and rows of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.declarations import patterns
from mlsysim.declarations._kind import Kind, Link
from mlsysim.declarations.documents import Document
from mlsysim.errors import InputError

__all__ = ["Reference", "ReferenceTable", "Rows"]


class Rows(Kind):
    """`Rows`: the lines of a CSV file beside the scenario, by the names of their columns."""

    @property
    def type_in_words(self) -> str:
        return "a CSV file beside the scenario"

    @property
    def example_in_words(self) -> str:
        return "the name of a CSV file beside the scenario"

    def checked(self, value: Any, _place: str) -> Any:
        return value

    def from_file(self, value: Any, key: str, document: Document, _link: Link) -> Any:
        if not isinstance(value, str) or value not in document.tables:
            raise InputError(f"{key} = {value!r}: expected a CSV file beside the scenario")
        import csv  # few scenarios have a table, and every start would pay for it
        import io

        try:
            return tuple(csv.DictReader(io.StringIO(document.tables[value]), strict=True))
        except csv.Error as error:
            raise InputError(f"{key} = {value!r}: not usable CSV: {error}") from None

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^[^/\\]+\.csv$"}


class Reference(Kind):
    """The name of a class: an object of it, which a file gives by its full name."""

    def checked(self, value: Any, place: str) -> Any:
        if not _is_a(value, self.name):
            raise InputError(f"{place} = {_name_of(value)}: expected a {self.name}")
        return value

    def from_file(self, value: Any, _key: str, document: Document, link: Link) -> Any:
        if isinstance(value, str) and value in document.linked:
            return link(document.linked[value])
        return value

    @property
    def example_in_words(self) -> str:
        return f'a reference to a {self.name}, such as "{patterns.collection(self.name)}.NAME"'

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": patterns.reference(self.name)}


class ReferenceTable(Kind):
    """`CLASSTable`: objects of a class, each under a name of its own."""

    parts = True

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        super().__init__(name, given)
        self.part = name.removesuffix("Table")

    def checked(self, value: Any, place: str) -> Any:
        for part, each in value.items():
            if not _is_a(each, self.part):
                raise InputError(f"{place}.{part} = {each!r}: expected a {self.part}")
        return value

    def from_file(self, value: Any, key: str, _document: Document, _link: Link) -> Any:
        raise InputError(f"{key} = {value!r}: expected a table of named references")

    @property
    def example_in_words(self) -> str:
        return f"a table of named references to a {self.part}"

    @property
    def type_in_words(self) -> str:
        return f"a table of named {self.part} entries"

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": patterns.reference(self.part)}


def _is_a(value: Any, name: str) -> bool:
    return name in {base.__name__ for base in type(value).__mro__}


def _name_of(value: Any) -> str:
    """An object of a declared class by its class and name, anything else as Python shows it."""
    if hasattr(value, "check_entry"):
        return f"{type(value).__name__} {value.name}".rstrip()
    return repr(value)
