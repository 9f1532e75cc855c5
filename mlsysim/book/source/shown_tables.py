"""The saved tables that a page shows, found on the tokens MyST makes the page of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mlsysim.book.source.scanner import VERBATIM, after_options, parser

__all__ = ["Shown", "shown"]

_FOLDER = "results/tables/"
_INCLUDED = re.compile(
    rf"\{{include\}}\s*(?:\S*/)?{_FOLDER}(?P<name>[0-9]{{2}}_[a-z0-9_]+/\w+)\.md"
)
_DIRECTIVE = re.compile(r"\{(?P<name>[\w:.-]+)\}")


@dataclass(frozen=True)
class Shown:
    """A table that a page includes, ``"01_x/ledger"``, and the line on which it does."""

    line: int
    table: str


def shown(text: str) -> list[Shown]:
    """The tables that a page includes whole, in the order of its source.

    An include with options may cut a table, or show it as it stands; its cells stay plain.
    """
    return list(_shown(text, 0))


def _shown(text: str, before: int) -> Iterator[Shown]:
    """The tables of Markdown that begins after so many lines of the page."""
    if _FOLDER not in text:
        return
    for token in parser().parse(text):
        if token.type not in ("fence", "colon_fence"):
            continue
        line, info = before + token.map[0] + 1, token.info.strip()
        included, directive = _INCLUDED.fullmatch(info), _DIRECTIVE.match(info)
        if included and not token.content.strip():
            yield Shown(line, included["name"])
        elif directive and directive["name"] not in VERBATIM:
            body = token.content.split("\n")
            first = after_options(body)
            yield from _shown("\n".join(body[first:]), line + first)
