"""The saved tables that a page shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mlsysim.book.source.myst import Block, Directive, parsed
from mlsysim.book.source.scanner import VERBATIM

__all__ = ["Shown", "shown"]

_FILE = re.compile(r"(?:\S*/)?results/tables/(?P<name>[0-9]{2}_[a-z0-9_]+/\w+)\.md")


@dataclass(frozen=True)
class Shown:
    """A table that a page includes, ``"01_x/ledger"``, and the line on which it does."""

    line: int
    table: str


def shown(text: str) -> list[Shown]:
    """The tables that a page includes whole, in the order of its source.

    An include with options may cut a table, or show it as it stands; its cells stay plain.
    """
    return list(_shown(parsed(text).blocks))


def _shown(blocks: Iterable[Block]) -> Iterator[Shown]:
    for block in blocks:
        if not isinstance(block, Directive):
            continue
        included = _FILE.fullmatch(block.title) if block.name == "include" else None
        if included and not block.head and not block.content.strip():
            yield Shown(block.line, included["name"])
        elif block.name not in VERBATIM:
            yield from _shown(block.blocks)
