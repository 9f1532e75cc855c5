"""An entry of a registry, or one of its values, as text: what `mlsysim show Hardware.X` prints."""

from __future__ import annotations

from typing import Any

from mlsysim.artifacts.making import inputs
from mlsysim.artifacts.numbers import amount
from mlsysim.cli import show
from mlsysim.declarations.docstrings import summary_of
from mlsysim.declarations.documents import Document, Known, document, names
from mlsysim.errors import MlsysimError, UnknownName, for_terminal, nearest
from mlsysim.registry.loading import load
from mlsysim.registry.types import KINDS

__all__ = ["COLLECTIONS", "as_data", "as_text", "place_of"]

# The registries, by the name that every key of theirs begins with.
COLLECTIONS = ("Fleets", "Hardware", "Models")
_PREFIXES = tuple(f"{each}." for each in COLLECTIONS)


def as_data(collection: str, key: str = "") -> dict[str, Any]:
    """A collection, an entry with its values, or one value with its source and who uses it.

    `key` is ``ENTRY`` or ``ENTRY.FIELD``; fields of what an entry refers to are followed. Raises
    UnknownName with the nearest names.
    """
    if not key:
        return {
            "collection": collection,
            "entries": {each: document(f"{collection}.{each}").title for each in names(collection)},
        }
    entry, _, field = key.partition(".")
    told = document(f"{collection}.{entry}")
    if field:
        told, field = _followed(told, field)
        found = {"key": f"{told.reference}.{field}", **_values(told)[field]}
    else:
        found = {
            "key": told.reference,
            "kind": told.kind,
            "title": told.title,
            "values": _values(told),
        }
    return {**found, "file": told.place, "used_by": _used_by(told.reference)}


def as_text(collection: str, key: str = "") -> str:
    """The same for people."""
    data = as_data(collection, key)
    if "entries" in data:
        rows = {f"{collection}.{name}": title for name, title in data["entries"].items()}
        first, width = next(iter(rows)), max(map(len, rows))
        lines = [f"    {name:{width}}  {title}" for name, title in rows.items()]
        lines = [collection, *lines, "", f"One entry: mlsysim show {first}"]
        return for_terminal(lines)
    if "values" in data:
        lines = [data["key"], data["title"], ""]
        lines += show.wrapped(f"{data['kind']}: {summary_of(KINDS[data['kind']])}", "")
        lines += ["", "Values"]
        lines += show.table(
            {name: (amount(leaf), show.origin(leaf)) for name, leaf in data["values"].items()}
        )
    else:
        lines = [f"{data['key']} = {amount(data)}"]
        lines += show.wrapped(data["description"], "    ")
        if "follows" in data:
            lines += show.wrapped(data["follows"], "    follows: ")
        lines += show.wrapped(data["source"], "    source: ")
        lines += show.sources_of(data["source"])
    used = ", ".join(data["used_by"]) or "no scenario"
    lines += ["", *show.wrapped(used, "Used by "), "", f"Set in {data['file']}"]
    if "values" in data:
        lines.append(f"One value: mlsysim show {data['key']}.{next(iter(data['values']))}")
    return for_terminal(lines)


def place_of(name: str) -> str:
    """The full name of a registry entry that is called `name`, empty if there is none."""
    found = [each for each in COLLECTIONS if name in names(each)]
    return f"{found[0]}.{name}" if found else ""


def _values(told: Document) -> dict[str, dict[str, Any]]:
    """The values of an entry by key, without those of what it refers to."""
    given = inputs(load(told, {}), told)
    return {key: leaf for key, leaf in given.items() if not key.startswith(_PREFIXES)}


def _followed(told: Document, field: str) -> tuple[Document, str]:
    """The entry that holds a field, and its key there: ``accelerator.rates.bf16`` of a node."""
    values = _values(told)
    if field in values:
        return told, field
    first, _, rest = field.partition(".")
    linked = told.linked.get(values[first]["value"]) if first in values else None
    if linked and rest:
        return _followed(linked, rest)
    raise UnknownName(f"{told.reference} has no {field!r}; {nearest(field, values, count=20)}")


def _used_by(reference: str) -> list[str]:
    """The scenarios that refer to an entry, themselves or by what they refer to."""
    known = Known()
    found = []
    for name in names("Scenarios"):
        try:
            told = document(f"Scenarios.{name}", known)
        except MlsysimError:
            found.append(f"{name} (cannot be read)")
            continue
        if _refers(told, reference):
            found.append(name)
    return found


def _refers(told: Document, reference: str) -> bool:
    return any(
        name == reference or _refers(linked, reference) for name, linked in told.linked.items()
    )
