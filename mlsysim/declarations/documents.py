"""Scenario and registry files as plain data: TOML read, bases merged, references followed."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlsysim import bounds, files, paths
from mlsysim.declarations import follows
from mlsysim.errors import InputError, UnknownName, nearest
from mlsysim.naming import exists as exists
from mlsysim.naming import folder as folder
from mlsysim.naming import meant, no_name, place_of
from mlsysim.naming import names as names

_REFERENCE = re.compile(r"(Scenarios|Hardware|Models|Fleets)\.(\w+)")
_ASSUMPTION = "assumption:"
_HEADERS = ("kind", "title", "base", "formerly")


@dataclass(frozen=True, kw_only=True)
class Document:
    """One file: its kind and title, and a leaf ``{"value": ..., "source": ...}`` for each field.

    `reference` is its full name (``"Hardware.H100_SXM"``), `place` the file as messages name it. A
    field may also be a table of leaves (``rates.bf16``). `linked` holds the documents that the
    values refer to, by full name, `tables` the text of CSV files beside it that they name; `places`
    the file of each field, which is the base's where the field is inherited; `depth` how many files
    follow from one another, itself among them.
    """

    reference: str
    place: str
    kind: str
    title: str
    fields: dict[str, Any]
    linked: dict[str, Document] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    depth: int = 1

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


class Known(dict[str, Document]):
    """Documents that are read in one go, by full name; each file is parsed once."""

    def __init__(self) -> None:
        super().__init__()
        self._contents: dict[Path, dict[str, Any]] = {}

    def content(self, path: Path) -> dict[str, Any]:
        """What a file holds, to take apart. Raises InputError for one that is no TOML."""
        if path not in self._contents:
            self._contents[path] = files.toml(path)
        return dict(self._contents[path])


def document(reference: str, known: Known | None = None) -> Document:
    """The document that a full name (``"Models.GPT3_175B"``) stands for, with all it refers to.

    Many that are read in one go share what they refer to: `known`, filled here, holds those read
    before.

    Raises UnknownName for a name that no file carries, InputError for a file that is no such
    document.
    """
    return _document(reference, (), Known() if known is None else known)


def _document(reference: str, trail: tuple[str, ...], known: Known) -> Document:
    if reference not in known:
        made = _read_document(reference, trail, known)
        if made.depth > bounds.CHAIN:
            raise _too_deep((*trail, reference))
        known[reference] = made
    return known[reference]


def _too_deep(trail: tuple[str, ...]) -> InputError:
    """The refusal of a chain of bases and references, by the file that begins it."""
    return InputError(
        f"{place_of(trail[0])}: more than {bounds.CHAIN} files follow from one another by base or "
        "reference, this one first"
    )


def _file(reference: str, trail: tuple[str, ...]) -> Path:
    """The file of a full name that the last of `trail` gives. Raises MlsysimError for none."""
    if reference in trail:
        circle = (*trail[trail.index(reference) :], reference)
        raise InputError(
            f"{place_of(trail[-1])}: these refer to each other in a circle: {' -> '.join(circle)}"
        )
    if len(trail) >= bounds.CHAIN:
        raise _too_deep(trail)
    collection, _, name = reference.partition(".")
    path = folder(collection) / f"{name}.toml"
    if not os.path.lexists(path):
        said = f"{place_of(trail[-1])} refers to {reference}: " if trail else ""
        raise UnknownName(f"{said}{name!r} is not in {collection}; {meant(collection, name)}")
    if why := no_name(name):
        raise InputError(f"{paths.shown(path)}: {name!r} is no name: {why}")
    return path


def _read_document(reference: str, trail: tuple[str, ...], known: Known) -> Document:
    path = _file(reference, trail)
    place, collection = paths.shown(path), reference.partition(".")[0]
    raw = known.content(path)
    trail = (*trail, reference)
    headers = {key: raw.pop(key) for key in _HEADERS if key in raw}
    for key, value in headers.items():
        if not isinstance(value, str) or not value.strip():
            raise InputError(f"{place}: {key} = {value!r}: expected a text")
        _check_length(value, f"{place}: {key}")
    if old := headers.get("formerly"):
        taken = f"{place_of(f'{collection}.{old}')} exists" if exists(collection, old) else ""
        if why := no_name(old) or taken:
            raise InputError(f"{place}: formerly = {old!r}: expected the name that it had; {why}")
    fields, linked, places, kind, depth = {}, {}, {}, headers.get("kind"), 0
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
        kind, fields, linked, places, depth = (
            base.kind,
            dict(base.fields),
            dict(base.linked),
            dict(base.places),
            base.depth,
        )
    for key, value in (("kind", kind), ("title", headers.get("title"))):
        if value is None:
            also = ', or base = "Scenarios.NAME" to vary another' if key == "kind" else ""
            raise InputError(f"{place}: {key} is missing{also}")
    for key, table in raw.items():
        if not key.isprintable():  # no field can be meant, and messages name it bare
            raise InputError(f"{place}: {key!r}: unknown key")
        fields[key] = _leaves(key, table, place)
        places[key] = place
    linked = {
        name: linked.get(name) or _document(name, trail, known)
        for key in fields
        for name in _references(fields[key])
    }
    tables = {
        name: _table(path, name, f"{place}: {key}")
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
        depth=1 + max([depth, *(each.depth for each in linked.values())]),
    )


def _check_length(value: Any, place: str) -> None:
    if isinstance(value, str) and len(value) > bounds.TEXT:
        raise InputError(f"{place}: {len(value):,} characters; expected at most {bounds.TEXT:,}")


def _leaves(key: str, table: Any, place: str, *, part_of: bool = False) -> dict[str, Any]:
    """A leaf, or a table of leaves, with the keys value and source, and what the value follows."""
    if not isinstance(table, dict):
        raise InputError(
            f"{place}: {key} = {table!r}: expected a table [{key}] with value and source "
            "(a key of chapters/references.bib with the place in it, or 'assumption: reason')"
        )
    if table and not part_of and all(isinstance(part, dict) for part in table.values()):
        return {
            name: _leaves(f"{key}.{name}", part, place, part_of=True)
            for name, part in table.items()
        }
    for part in table:
        if part not in ("value", "source", *follows.KEYS):
            raise InputError(
                f"{place}: {key}.{part}: unknown key; expected value and source, and "
                f"{', '.join(follows.KEYS)} of a value that follows another"
            )
    for part in ("value", "source"):
        if part not in table:
            raise InputError(f"{place}: {key}: {part} is missing")
        _check_length(table[part], f"{place}: {key}.{part}")
    given = table["value"]
    if isinstance(given, list) and len(given) > bounds.COMBINATIONS:
        most = f"expected at most {bounds.COMBINATIONS:,}"
        raise InputError(f"{place}: {key}.value: a list of {len(given):,} values; {most}")
    for each in given if isinstance(given, list) else [given]:
        _check_length(each, f"{place}: {key}.value")
        huge = type(each) is int and abs(each) >= 2**63
        if huge or type(each) not in (str, int, float, bool):
            raise InputError(
                f"{place}: {key}.value = {given!r}: expected a number of 64 bits, a text, "
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
    try:
        found = path.stat()
    except OSError:  # reading it tells what is wrong
        return _citations(path, 0, 0) if os.path.lexists(path) else frozenset()
    return _citations(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=4)
def _citations(path: Path, _mtime: int, _size: int) -> frozenset[str]:
    return frozenset(re.findall(r"^@\w+\s*\{\s*([^,\s]+)\s*,", files.text(path), re.MULTILINE))


def _references(leaf: dict[str, Any]) -> list[str]:
    """The full names that a leaf, or a table of leaves, refers to."""
    return [value for value in _strings(leaf) if _REFERENCE.fullmatch(value)]


def _strings(leaf: dict[str, Any]) -> list[str]:
    """The texts among the values of a leaf, or of a table of leaves."""
    if "value" not in leaf:
        return [text for part in leaf.values() for text in _strings(part)]
    return [leaf["value"]] if isinstance(leaf["value"], str) else []


def _table(path: Path, name: str, place: str) -> str:
    """The text of a CSV file, with one kind of line end."""
    beside = path.parent / name
    if "/" in name or not os.path.lexists(beside):
        raise InputError(f"{place}: there is no file {name!r} beside the scenario")
    return files.text(beside)
