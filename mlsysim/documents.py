"""Scenario and registry files as plain data: TOML read, bases merged, references followed."""

from __future__ import annotations

import os
import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlsysim import follows, paths
from mlsysim.errors import InputError, UnknownName, nearest

_REFERENCE = re.compile(r"(Scenarios|Hardware|Models|Fleets)\.(\w+)")
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_ASSUMPTION = "assumption:"
_HEADERS = ("kind", "title", "base")


@dataclass(frozen=True, kw_only=True)
class Document:
    """One file: its kind and title, and a leaf ``{"value": ..., "source": ...}`` for each field.

    `reference` is its full name (``"Hardware.H100_SXM"``), `place` the file as messages name it. A
    field may also be a table of leaves (``rates.bf16``). `linked` holds the documents that the
    values refer to, by full name, `tables` the text of CSV files beside it that they name; `places`
    the file of each field, which is the base's where the field is inherited.
    """

    reference: str
    place: str
    kind: str
    title: str
    fields: dict[str, Any]
    linked: dict[str, Document] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file stem, which is the name everywhere."""
        return self.reference.partition(".")[2]

    def content(self) -> dict[str, Any]:
        """All that can move a result: the values, their sources and what they refer to."""
        return {
            "reference": self.reference,
            "kind": self.kind,
            "title": self.title,
            "fields": self.fields,
            "tables": self.tables,
            "linked": {name: linked.content() for name, linked in self.linked.items()},
        }


def folder(collection: str) -> Path:
    """The folder of a collection: ``Scenarios``, ``Hardware``, ``Models`` or ``Fleets``."""
    if collection == "Scenarios":
        return paths.scenarios()
    return paths.PACKAGE / "registry" / "data" / collection.lower()


def names(collection: str) -> list[str]:
    """The names in a collection, sorted.

    >>> "DenseLLMPretrainingStep" in names("Scenarios")
    True
    """
    with suppress(FileNotFoundError), os.scandir(folder(collection)) as files:
        found = [each.name.removesuffix(".toml") for each in files if _is_declaration(each)]
        return sorted(name for name in found if _NAME.fullmatch(name))
    return []


def exists(collection: str, name: str) -> bool:
    """Whether a collection has this name.

    >>> exists("Models", "GPT3_175B"), exists("Models", "../Models/GPT3_175B")
    (True, False)
    """
    return bool(_NAME.fullmatch(name)) and (folder(collection) / f"{name}.toml").is_file()


def _is_declaration(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".toml") and entry.is_file()


def misnamed() -> list[str]:
    """Scenario files whose stem can be no name, as paths relative to the root."""
    found = paths.scenarios().glob("[!.]*.toml")
    return sorted(paths.shown(path) for path in found if not _NAME.fullmatch(path.stem))


def document(reference: str, known: dict[str, Document] | None = None) -> Document:
    """The document that a full name (``"Models.GPT3_175B"``) stands for, with all it refers to.

    Many that are read in one go share what they refer to: `known`, filled here, holds those read
    before.

    Raises UnknownName for a name that no file carries, InputError for a file that is no such
    document.
    """
    return _document(reference, (), {} if known is None else known)


def _document(reference: str, trail: tuple[str, ...], known: dict[str, Document]) -> Document:
    if reference not in known:
        known[reference] = _read_document(reference, trail, known)
    return known[reference]


def _read_document(reference: str, trail: tuple[str, ...], known: dict[str, Document]) -> Document:
    if reference in trail:
        raise InputError(
            "these refer to each other in a circle: " + " -> ".join((*trail, reference))
        )
    collection, _, name = reference.partition(".")
    path = folder(collection) / f"{name}.toml"
    if path.is_file() and not _NAME.fullmatch(name):
        raise InputError(f"{paths.shown(path)}: a name is letters, digits and _, as in Python")
    if not path.is_file():
        said = f"{_place(trail[-1])} refers to {reference}: " if trail else ""
        raise UnknownName(
            f"{said}{name!r} is not in {collection}; {nearest(name, names(collection))}"
        )
    place = paths.shown(path)
    raw = _read(path, place)
    trail = (*trail, reference)
    headers = {key: raw.pop(key) for key in _HEADERS if key in raw}
    for key, value in headers.items():
        if not isinstance(value, str) or not value.strip():
            raise InputError(f"{place}: {key} = {value!r}: expected a text")
    fields, linked, places, kind = {}, {}, {}, headers.get("kind")
    if "base" in headers:
        base_reference = headers["base"]
        if not re.fullmatch(r"Scenarios\.\w+", base_reference) or collection != "Scenarios":
            raise InputError(
                f'{place}: base = {base_reference!r}: expected a scenario, "Scenarios.NAME"'
            )
        base = _document(base_reference, trail, known)
        if kind not in (None, base.kind):
            raise InputError(
                f"{place}: kind = {kind!r}, but its base {base_reference} is a {base.kind}"
            )
        kind, fields, linked, places = (
            base.kind,
            dict(base.fields),
            dict(base.linked),
            dict(base.places),
        )
    for key, value in (("kind", kind), ("title", headers.get("title"))):
        if value is None:
            also = ', or base = "Scenarios.NAME" to vary another' if key == "kind" else ""
            raise InputError(f"{place}: {key} is missing{also}")
    for key, table in raw.items():
        fields[key] = _leaves(key, table, place)
        places[key] = place
    linked = {
        name: linked.get(name) or _document(name, trail, known)
        for key in fields
        for name in _references(fields[key])
    }
    tables = {
        name: _table(path.parent / name, f"{place}: {key}")
        for key in fields
        for name in _strings(fields[key])
        if name.endswith(".csv")
    }
    return Document(
        reference=reference,
        place=place,
        kind=str(kind),
        title=headers["title"],
        fields=fields,
        linked=linked,
        tables=tables,
        places=places,
    )


def _place(reference: str) -> str:
    """The file of a full name, as messages print it."""
    collection, _, name = reference.partition(".")
    return paths.shown(folder(collection) / f"{name}.toml")


def _read(path: Path, place: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{place}: not valid TOML: {error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{place}: not UTF-8 text: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not usable TOML: {error}") from None
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror}") from None


def _leaves(key: str, table: Any, place: str) -> dict[str, Any]:
    """A leaf, or a table of leaves, with the keys value and source, and what the value follows."""
    if not isinstance(table, dict):
        raise InputError(
            f"{place}: {key} = {table!r}: expected a table [{key}] with value and source "
            "(a key of chapters/references.bib with the place in it, or 'assumption: reason')"
        )
    if table and all(isinstance(part, dict) for part in table.values()):
        return {name: _leaves(f"{key}.{name}", part, place) for name, part in table.items()}
    for part in table:
        if part not in ("value", "source", *follows.KEYS):
            raise InputError(
                f"{place}: {key}.{part}: unknown key; expected value and source, and "
                f"{', '.join(follows.KEYS)} of a value that follows another"
            )
    for part in ("value", "source"):
        if part not in table:
            raise InputError(f"{place}: {key}: {part} is missing")
    given = table["value"]
    for each in given if isinstance(given, list) else [given]:
        huge = type(each) is int and abs(each) >= 2**63
        if huge or type(each) not in (str, int, float, bool):
            raise InputError(
                f"{place}: {key}.value = {str(given)[:40]}: expected a number of 64 bits, a text, "
                "true or false, or a list of these"
            )
    source = _source(key, table["source"], place)
    return {"value": given, "source": source, **follows.stated(table, key, place, exists)}


def _source(key: str, source: Any, place: str) -> str:
    """A citation whose keys exist, or an assumption with its reason."""
    expected = (
        "expected 'KEY, place in it' with KEY in chapters/references.bib, or 'assumption: reason'"
    )
    if not isinstance(source, str) or not source.strip():
        raise InputError(f"{place}: {key}.source = {source!r}: {expected}")
    if source.startswith(_ASSUMPTION) or source.strip() == "assumption":
        if not source.removeprefix("assumption").lstrip(":").strip():
            raise InputError(f"{place}: {key}.source: the assumption gives no reason; {expected}")
        return source
    known = citations()
    if _REFERENCE.match(source):
        raise InputError(
            f"{place}: {key}.source = {source[:80]!r}: say which value it is by follows = "
            "'Scenarios.NAME.OUTPUT', and here why it is that one; a build compares the two"
        )
    for part in source.split(";"):
        cited, _, locator = (each.strip() for each in part.partition(","))
        if cited in known and not locator:
            raise InputError(f"{place}: {key}.source cites {cited!r} without a place; {expected}")
        if cited not in known:
            raise InputError(
                f"{place}: {key}.source cites {cited!r}, which is not in chapters/references.bib; "
                f"{nearest(cited, known)} ({expected})"
            )
    return source


def cited_keys(source: str) -> list[str]:
    """The bibliography keys of a source text; none for an assumption.

    >>> cited_keys("brown2020, Table 2.1; kaplan2020, Section 5")
    ['brown2020', 'kaplan2020']
    """
    if source.startswith(_ASSUMPTION):
        return []
    return [part.split(",")[0].strip() for part in source.split(";") if part.strip()]


def citations() -> frozenset[str]:
    """The keys of the bibliography."""
    path = paths.bibliography()
    if not path.is_file():
        return frozenset()
    found = path.stat()
    return _citations(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=4)
def _citations(path: Path, _mtime: int, _size: int) -> frozenset[str]:
    keys = re.findall(r"^@\w+\s*\{\s*([^,\s]+)\s*,", path.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset(keys)


def _references(leaf: dict[str, Any]) -> list[str]:
    """The full names that a leaf, or a table of leaves, refers to."""
    return [value for value in _strings(leaf) if _REFERENCE.fullmatch(value)]


def _strings(leaf: dict[str, Any]) -> list[str]:
    """The texts among the values of a leaf, or of a table of leaves."""
    if "value" not in leaf:
        return [text for part in leaf.values() for text in _strings(part)]
    return [leaf["value"]] if isinstance(leaf["value"], str) else []


def _table(path: Path, place: str) -> str:
    """The text of a CSV file, with one kind of line end."""
    if not path.is_file():
        raise InputError(f"{place}: there is no file {path.name!r} beside the scenario")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{paths.shown(path)}: not UTF-8 text: {error}") from None
