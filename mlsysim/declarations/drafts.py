"""Drafts: files in which a TODO, as scaffolds have them, says what is to be filled in.

A build makes them, so that their author sees them, and says so; nothing of them is published.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mlsysim import paths
from mlsysim.declarations.documents import Document, folder, names
from mlsysim.errors import MlsysimError

__all__ = ["Mark", "drafts", "marks", "refuse", "remark", "under"]

_TODO = re.compile(r"\bTODO\b")
# A field that `mlsysim new` offers and nobody took.
_OFFERED = re.compile(r"#\s*source = ")
_COLLECTIONS = ("Scenarios", "Hardware", "Models", "Fleets")


@dataclass(frozen=True)
class Mark:
    """A line with a TODO: its file as messages name it, its number from 1, its text."""

    file: str
    line: int
    text: str


def marks() -> list[Mark]:
    """Every TODO of the chapters, the scenarios and the registry, by file and line."""
    declared = [
        folder(collection) / f"{name}.toml"
        for collection in _COLLECTIONS
        for name in names(collection)
    ]
    return [mark for path in (*_chapters(), *declared) for mark in _in_file(path)]


def drafts() -> list[str]:
    """The files with a TODO, as messages name them."""
    return list(dict.fromkeys(mark.file for mark in marks()))


def under(document: Document, among: Iterable[str]) -> list[str]:
    """Which files of `among` a scenario is told in, or rests on: its own, a base's, the registry's.

    Its own comes first.
    """
    files, todo = {document.place: None}, [document]
    while todo:
        told = todo.pop()
        files |= dict.fromkeys((told.place, *told.places.values()))
        todo += told.linked.values()
    known = set(among)
    return [file for file in files if file in known]


def remark() -> str:
    """What a build says at its end of drafts; empty if there are none."""
    found = drafts()
    if not found:
        return ""
    what = "1 draft" if len(found) == 1 else f"{len(found)} drafts"
    return f"{what}, not to be published: {', '.join(found)}; mlsysim check lists each TODO"


def refuse() -> None:
    """Raise MlsysimError if there is a draft, naming all."""
    if found := drafts():
        raise MlsysimError(
            f"a draft is not published: TODO stands in {', '.join(found)}; mlsysim check lists each"
        )


def _chapters() -> list[Path]:
    return sorted(paths.chapters().glob("[!.]*.md"))


def _in_file(path: Path) -> list[Mark]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # whoever needs the file says so
        return []
    if "TODO" not in text:
        return []
    return [
        Mark(paths.shown(path), number, line.strip())
        for number, line in enumerate(text.splitlines(), start=1)
        if _TODO.search(line) and not (path.suffix == ".toml" and _OFFERED.match(line))
    ]
