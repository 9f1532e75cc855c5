"""How a figure moved, told by the data that it plots."""

from __future__ import annotations

from mlsysim.review.changes import FigureChange
from mlsysim.review.pairs import aligned
from mlsysim.review.places import Place
from mlsysim.review.snapshots import Snapshot

__all__ = ["figure_change"]


def figure_change(before: Snapshot, after: Snapshot, name: str, place: Place) -> FigureChange:
    """What became of a figure that both snapshots have and draw from other data, or otherwise."""
    old, new = before.plotted(name), after.plotted(name)
    if old == new:
        return FigureChange(name, place, style_only=True)
    columns = _come_and_gone(old[0] if old else [], new[0] if new else [])
    pairs, rows = _rows(old[1:], new[1:])
    largest = FigureChange(name, place, rows=rows, columns=columns)
    for column in new[0] if new and old else ():
        if column not in old[0]:
            continue
        was, now = old[0].index(column), new[0].index(column)
        numbers = [(_number(a, was), _number(b, now), a, b) for a, b in pairs]
        seen = [each for pair in numbers for each in pair[:2] if each is not None]
        span = max(seen, default=0.0) - min(seen, default=0.0) or max(map(abs, seen), default=1.0)
        for one, other, a, b in numbers:
            if one is None or other is None or one == other:
                continue
            share = abs(other - one) / span if span else 0.0
            if share > largest.largest:
                largest = FigureChange(
                    name, place, share, column, b[0], a[was], b[now], rows, columns
                )
    return largest


def _rows(
    old: list[list[str]], new: list[list[str]]
) -> tuple[list[tuple[list[str], list[str]]], tuple[str, ...]]:
    """Rows that are one, by what stands in them that is no number; and those that came or went."""
    if len(old) == len(new):
        return list(zip(old, new, strict=True)), ()
    heads = [[tuple(each[:1]) for each in rows] for rows in (old, new)]
    pairs, changed = [], []
    for first, second in aligned(*heads):
        if first is not None and second is not None:
            pairs.append((old[first], new[second]))
        elif second is not None:
            changed.append(f"+{' '.join(new[second][:1])}")
        elif first is not None:
            changed.append(f"-{' '.join(old[first][:1])}")
    return pairs, tuple(changed)


def _come_and_gone(old: list[str], new: list[str]) -> tuple[str, ...]:
    come = [f"+{each}" for each in new if each not in old]
    return (*come, *(f"-{each}" for each in old if each not in new))


def _number(row: list[str], column: int) -> float | None:
    try:
        return float(row[column].split()[0])
    except (IndexError, ValueError):
        return None
