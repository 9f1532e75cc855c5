"""A comparison as one page that needs no other file: the report, and figures before and after."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass

from mlsysim.review.changes import FigureChange
from mlsysim.review.comparison import Comparison
from mlsysim.review.pairs import aligned
from mlsysim.review.report import largest, report
from mlsysim.review.snapshots import Snapshot
from mlsysim.templates import template

__all__ = ["page"]


@dataclass(frozen=True)
class _Figure:
    """A figure of both sides: its drawings as addresses, what moved, and rows of data that did."""

    name: str
    place: str
    told: str
    before: str
    after: str
    heads: list[str]
    rows: list[tuple[str, list[str]]]


def page(found: Comparison) -> str:
    """The page as HTML; nothing is folded away, what may be skipped is closed."""
    figures = [_figure(found, each) for each in found.figures]
    made = template("review/templates/review.html")
    return made.render(report=report(found, whole=True), figures=figures)


def _figure(found: Comparison, change: FigureChange) -> _Figure:
    old, new = found.before.plotted(change.name), found.after.plotted(change.name)
    return _Figure(
        change.name,
        str(change.place),
        largest(change),
        _address(found.before, change.name),
        _address(found.after, change.name),
        new[0] if new else [],
        list(_rows(old[1:], new[1:])),
    )


def _address(snapshot: Snapshot, figure: str) -> str:
    """The drawing of a figure, whole, as an address; empty if there is none."""
    data = snapshot.tree.read(f"results/figures/{figure}.svg")
    return f"data:image/svg+xml;base64,{base64.b64encode(data).decode()}" if data else ""


def _rows(old: list[list[str]], new: list[list[str]]) -> Iterator[tuple[str, list[str]]]:
    """Rows of data that differ: gone ("-") and new ("+"), in the order of the new ones."""
    for first, second in aligned([*map(tuple, old)], [*map(tuple, new)]):
        if second is None and first is not None:
            yield "-", old[first]
        elif first is None and second is not None:
            yield "+", new[second]
