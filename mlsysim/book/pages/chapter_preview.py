"""The text of a chapter as a notebook shows it while one writes: every quote printed."""

from __future__ import annotations

from dataclasses import dataclass

from mlsysim import files
from mlsysim.artifacts.previews import notices
from mlsysim.book.pages.page_sources import Page
from mlsysim.book.products.product_files import table_files
from mlsysim.book.source import cells
from mlsysim.book.source.myst import parsed
from mlsysim.errors import UnknownName, nearest

__all__ = ["Preview", "preview"]


@dataclass(frozen=True, repr=False)
class Preview:
    """The text of a chapter with what it prints, and what is stale in it; a notebook shows it."""

    text: str
    stale: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join((*self.stale, self.text))

    def _repr_markdown_(self) -> str:
        return "\n\n".join((*(f"**{each}**" for each in self.stale), self.text))


def preview(chapter: str) -> Preview:
    """The chapter as it is saved, without its cells, and with what quotes and claims print.

    Saved tables stand where the page includes them. What is stale among the artifacts that it
    quotes is said first. Raises UnknownName for no chapter, and one MlsysimError that lists every
    quote that cannot be printed and every claim that is false, each with its line.
    """
    known = cells.chapters()
    if chapter not in known:
        raise UnknownName(f"{chapter!r} is no chapter; {nearest(chapter, known)}")
    page = Page(chapter)
    source = parsed(page.text)
    tables = {each.line: each.table for each in page.tables}
    cuts = [(1, source.front_matter.count("\n") + 3, "")] if source.front_matter else []
    for each, _ in source.directives:
        if each.is_cell:
            cuts.append((each.line, each.last, ""))
        elif table := tables.get(each.line):
            cuts.append((each.line, each.last, _saved(table)))
    lines = page.plain().split("\n")
    for first, last, instead in sorted(cuts, reverse=True):
        lines[first - 1 : last] = instead.splitlines()
    quoted = dict.fromkeys(value.key.partition(".")[0] for _, value, _ in page.numbers())
    stale = tuple(told for name in quoted for told in notices(name))
    return Preview("\n".join(lines).strip() + "\n", stale)


def _saved(table: str) -> str:
    """A table as its cell saved it."""
    text = files.read(table_files(table)["md"]).decode()
    return text or f"*{table} is not saved yet: run its cell.*"
