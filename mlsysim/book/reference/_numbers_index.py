"""The index of numbers: every key that the book prints, with the places that print it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mlsysim.book.products.markdown import code, escaped, table
from mlsysim.book.reference._class_pages import link_to

__all__ = ["Entry", "Record", "entries", "numbers_page"]

_REGISTRY = ("Hardware", "Models", "Fleets")


@dataclass(frozen=True)
class Record:
    """One quote: the `number`-th on its page from 1, its key as quoted, and what it prints.

    `full` is the key without detours: ``Models.GPT3_175B.layers`` for an input of the registry,
    ``NAME.step_time`` for an output. `exact` is the value of the artifact with its unit, as
    Markdown.
    """

    page: str
    number: int
    key: str
    spec: str
    printed: str
    full: str
    exact: str


@dataclass(frozen=True)
class Entry:
    """A key with its exact value, and the records of each text that is printed for it."""

    full: str
    exact: str
    keys: tuple[str, ...]
    texts: Mapping[str, tuple[Record, ...]]


def entries(records: Iterable[Record]) -> list[Entry]:
    """The records by key, in the order in which the book first prints each key."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.full, []).append(record)
    made = []
    for full, same in found.items():
        texts: dict[str, list[Record]] = {}
        for record in same:
            texts.setdefault(record.printed, []).append(record)
        keys = tuple(dict.fromkeys(record.key for record in same))
        made.append(
            Entry(full, same[0].exact, keys, {text: tuple(at) for text, at in texts.items()})
        )
    return made


def numbers_page(records: Iterable[Record]) -> str:
    """The page as MyST. A role `printed_at` stands for the link to each place."""
    listed = entries(records)
    places = sum(len(at) for entry in listed for at in entry.texts.values())
    differing = [entry for entry in listed if len(entry.texts) > 1]
    opening = (
        f"The book prints {len(listed):,} values in {places:,} places. Each is listed under the "
        "scenario or the registry entry that it belongs to, with its exact value, every text that "
        "is printed for it, and every place by the number of its section."
    )
    parts = ["# Numbers in print", opening]
    if differing:
        parts += [
            "## Printed in more than one way",
            f"{len(differing):,} of them appear with different digits or units.",
            _table(differing, whole=True),
        ]
    owners: dict[str, list[Entry]] = {}
    for entry in listed:
        owners.setdefault(_owner(entry.full), []).append(entry)
    for owner, owned in owners.items():
        parts.append(f"## {owner}")
        if "." not in owner:
            parts.append(f"Everything about it: {link_to(owner)}.")
        parts.append(_table(owned, whole=False))
    return "\n\n".join(parts) + "\n"


def _owner(full: str) -> str:
    """A scenario, or an entry of the registry with its collection."""
    first, _, rest = full.partition(".")
    return f"{first}.{rest.partition('.')[0]}" if first in _REGISTRY else first


def _table(listed: Iterable[Entry], *, whole: bool) -> str:
    """A row for each text; the key and the exact value stand in the first row of a key."""
    rows = []
    for entry in listed:
        begins = f"{_owner(entry.full)}."
        name = code(entry.full if whole else entry.full.removeprefix(begins))
        for number, (text, at) in enumerate(entry.texts.items()):
            places = ", ".join(f"{{printed_at}}`{each.page} {each.number}`" for each in at)
            again = len(entry.texts) > 1
            shown = f"**{escaped(text)}**" if again else escaped(text)
            first = [name, entry.exact] if not number else ["", ""]
            rows.append([*first, shown, places])
    return table(["Key", "Exact value", "Printed", "Sections"], rows, kind="stacked places")
