"""The code cells of a page; what a build read of its pages is kept for the next, which parses none.

A parse of all chapters and the import of its parser take as long as half of a build with nothing to
do, and every build looks at the cells.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mlsysim import files, paths
from mlsysim.book.source import myst
from mlsysim.canonical import digest, loads

__all__ = ["Cell", "code_cells", "remember"]


@dataclass(frozen=True)
class Cell:
    """A code cell: its source without options, and the line of the chapter on which that starts.

    `fence` is the line on which the cell opens, `settings` what its options say, as YAML. One that
    the end of the page closes is not `closed`.
    """

    source: str
    line: int
    fence: int = field(default=0, compare=False, repr=False)
    settings: str = field(default="", compare=False, repr=False)
    closed: bool = field(default=True, compare=False, repr=False)

    @property
    def tags(self) -> set[str]:
        """Its tags; none if its options are no YAML, which the build refuses."""
        import yaml

        try:
            said = yaml.safe_load(self.settings)
        except yaml.YAMLError:
            return set()
        tags = said.get("tags") if isinstance(said, dict) else None
        return set(map(str, tags)) if isinstance(tags, list) else {str(tags)}


def code_cells(text: str) -> list[Cell]:
    r"""The code cells of a MyST notebook, in order: those that its page shows.

    What stands in an HTML comment, or inside another directive, is none.

    >>> code_cells("Text.\n\n```{code-cell}\n:tags: [hide-input]\n\nx = 1\n```\n")
    [Cell(source='x = 1', line=6)]
    """
    key = digest(_own() + text)
    found = _USED[key] = _USED.get(key) or _kept(_memory()).get(key) or _read(text)
    try:
        return [Cell(*each) for each in found]
    except TypeError:  # somebody edited what was kept
        return [Cell(*each) for each in _read(text)]


def remember() -> None:
    """Keep the cells that this process asked for."""
    files.write(_memory(), json.dumps(_USED, sort_keys=True) + "\n")


_USED: dict[str, Any] = {}


def _read(text: str) -> list[tuple[str, int, int, str, bool]]:
    made = []
    for cell in myst.parsed(text).cells:
        first, _, rest = cell.content.partition("\n")
        blank = bool(rest) and not first.strip()  # one such line parts off the options
        source = rest if blank else cell.content
        made.append((source.rstrip(), cell.first + blank, cell.line, cell.settings, cell.closed))
    return made


@cache
def _own() -> str:
    """What is kept holds for these readers alone: this module, that of pages, and the libraries."""
    ours = (Path(__file__), Path(myst.__file__), paths.requirements())
    return digest(b"\0".join(map(files.read, ours)))


def _memory() -> Path:
    return paths.build() / "cells.json"


@cache
def _kept(path: Path) -> dict[str, Any]:
    try:
        kept = loads(files.read(path))
    except ValueError:
        return {}
    return kept if isinstance(kept, dict) else {}
