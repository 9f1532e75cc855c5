"""Kinds of chart that chapters share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlsysim.book.products.figures import PALETTE
from mlsysim.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["stacked_bars", "timeline", "waterfall"]

_HEIGHT = 0.7  # of a bar, where rows are 1 apart
_JOIN: Any = {"color": "#888888", "linewidth": 0.6, "zorder": 0.5}


def waterfall(
    axes: Axes,
    labels: Sequence[str],
    values: Sequence[float],
    *,
    kinds: Sequence[str],
    texts: Sequence[str],
) -> None:
    """Draw parts of a whole as bars, each from where the one above it ends.

    `kinds` groups the parts by colour, in the order of the legend; `texts` are printed beside the
    bars. Raises InputError for more kinds than the palette has.
    """
    order = list(dict.fromkeys(kinds))
    if len(order) > len(PALETTE):
        raise InputError(f"{len(order)} kinds of parts: expected at most {len(PALETTE)}")
    looks: dict[str, Any] = {
        kind: {"color": color, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
        for kind, (color, hatch) in zip(order, PALETTE, strict=False)
    }
    end = 0.0
    for row, (value, kind, text) in enumerate(zip(values, kinds, texts, strict=True)):
        if row:
            axes.plot([end, end], [row - 1 - _HEIGHT / 2, row + _HEIGHT / 2], **_JOIN)
        axes.barh(row, value, left=end, height=_HEIGHT, **looks[kind])
        end += value
        axes.annotate(text, (end, row), xytext=(4, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlim(0, end * 1.15)  # room for the last text
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    handles = [axes.barh(0, 0, label=kind, **look) for kind, look in looks.items()]
    axes.legend(handles=handles, loc="lower left")


def stacked_bars(
    axes: Axes,
    parts: Mapping[str, Sequence[float]],
    *,
    looks: Sequence[tuple[str, str]] = PALETTE,
) -> list[float]:
    """Draw a bar at each of 0, 1, 2, ..., stacked of the parts; returns the heights of the bars.

    `parts` are the heights of each part by the name that the legend gives it, from below; `looks`
    are their colours and hatches. Raises InputError for more parts than looks.
    """
    if len(parts) > len(looks):
        raise InputError(f"{len(parts)} parts of a bar: expected at most {len(looks)}")
    tops: list[float] = []
    for (name, heights), (color, hatch) in zip(parts.items(), looks, strict=False):
        below = tops or [0.0] * len(heights)
        axes.bar(
            range(len(heights)),
            heights,
            bottom=below,
            width=_HEIGHT,
            label=name,
            color=color,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
        )
        tops = [base + height for base, height in zip(below, heights, strict=True)]
    axes.grid(visible=False, axis="x")
    return tops


def timeline(axes: Axes, passes: Iterable[tuple[int, float, float, str, tuple[str, str]]]) -> None:
    """Draw passes as boxes in a row for each stage, the first stage on top.

    A pass is its stage, counted from 1, its start and its end, a text, and the colours of the box
    and of the text.
    """
    most = 0
    for stage, start, end, text, (color, ink) in passes:
        axes.barh(
            stage,
            end - start,
            left=start,
            height=0.9,
            color=color,
            edgecolor="white",
            linewidth=0.4,
        )
        axes.annotate(
            text, ((start + end) / 2, stage), ha="center", va="center", fontsize=7, color=ink
        )
        most = max(most, stage)
    axes.set_yticks(range(1, most + 1))
    axes.set_ylim(most + 0.6, 0.4)
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)
