"""A report in a terminal: as wide as it is, in colours where it has them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from mlsysim.errors import printable
from mlsysim.review.report import Report, Section

__all__ = ["lines"]

_BOLD, _RED, _GREEN, _YELLOW, _DIM, _END = (f"\033[{n}m" for n in (1, 31, 32, 33, 2, 0))
_NARROWEST = 40
_GAP = 2


def lines(found: Report, *, width: int = 80, colour: bool = False) -> Iterator[str]:
    """The report as lines of a terminal."""
    paint = _Paint(colour=colour)
    width = max(width, _NARROWEST)
    yield paint.bold(f"{found.before} -> {found.after}: {found.verdict}")
    yield from (f"  {line}" for line in found.summary)
    for warning in found.warnings:
        told = textwrap.wrap(printable(warning), width, initial_indent="! ", subsequent_indent="  ")
        yield from map(paint.warning, told)
    for section in found.sections:
        yield ""
        yield from _section(section, width, paint)


class _Paint:
    """Colours, or none."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    def _in(self, code: str, text: str) -> str:
        return f"{code}{text}{_END}" if self._colour and text else text

    def bold(self, text: str) -> str:
        return self._in(_BOLD, text)

    def warning(self, text: str) -> str:
        return self._in(_YELLOW, text)

    def dim(self, text: str) -> str:
        return self._in(_DIM, text)

    def moved(self, text: str) -> str:
        """A text `old -> new`, the old in red, the new in green."""
        old, arrow, new = text.partition(" -> ")
        return f"{self._in(_RED, old)}{arrow}{self._in(_GREEN, new)}" if arrow else text


def _section(section: Section, width: int, paint: _Paint) -> Iterator[str]:
    yield paint.bold(section.title)
    rows = [[printable(cell) for cell in row] for row in section.rows]
    if rows:
        yield from _table(rows, width, paint)
    if section.folded:
        more = "more" if rows else "of them"
        yield paint.dim(f"  {section.folded:,} {more}; --all shows them")


def _table(rows: Sequence[Sequence[str]], width: int, paint: _Paint) -> Iterator[str]:
    """Rows in columns; where they do not fit, each with its first two cells in one line."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    gap = " " * _GAP
    if sum(widths) + _GAP * len(widths) <= width:
        for row in rows:
            padded = [cell.ljust(size) for cell, size in zip(row, widths, strict=True)]
            yield gap + gap.join(paint.moved(cell) for cell in padded).rstrip()
        return
    for name, *cells in rows:
        indent = " " * (len(name) - len(name.lstrip()) + _GAP)
        head = f"{indent}{name.strip()}"
        if name and len(head) + _GAP + len(cells[0]) <= width:
            yield f"{head}{gap}{paint.moved(cells.pop(0))}"
        elif name:
            yield from textwrap.wrap(head, width, subsequent_indent=indent + gap)
        for cell in filter(None, cells):
            for line in textwrap.wrap(
                cell,
                width,
                initial_indent=indent + gap,
                subsequent_indent=indent + gap * 2,
                break_on_hyphens=False,
            ):
                yield paint.moved(line)
