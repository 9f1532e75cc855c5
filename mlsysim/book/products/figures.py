"""Figures in the book's one style, made once: SVG with its plotted data, and PDF for print."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsysim import files
from mlsysim.book.products.product_files import (
    cell_value,
    column_values,
    figure_files,
    header,
    print_file,
    print_record,
)
from mlsysim.canonical import csv_text, digest
from mlsysim.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PALETTE", "SavedFigure", "new_figure", "save_figure"]

# Dark blue, yellow, red, black: told apart by colour-blind readers, and by their lightness in grey
# print; the hatch of an area, the dashes of a line tell them apart a third time
# (tests/book/test_figures.py).
PALETTE = (("#004488", ""), ("#DDAA33", "////"), ("#BB5566", "\\\\\\\\"), ("#000000", "...."))
_DASHES = ("-", "--", ":", "-.")
_INK = "#222222"

_STYLE: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": _INK,
    "axes.grid": True,
    "axes.labelcolor": _INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
    "font.size": 9,
    "grid.color": "#d0d0d0",
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "mlsysim",
    "text.color": _INK,
    "xtick.color": _INK,
    "xtick.labelsize": 9,
    "ytick.color": _INK,
    "ytick.labelsize": 9,
}


@dataclass(frozen=True)
class SavedFigure:
    """A figure that was saved; a notebook shows it."""

    name: str
    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<figure {self.name}>"


def _apply_style() -> None:
    """The book's style alone, whatever the settings of the person who draws."""
    import matplotlib as mpl
    from cycler import cycler

    colors = [color for color, _ in PALETTE]
    mpl.rcdefaults()
    mpl.rcParams.update(_STYLE)
    # Lines that are drawn without a color take these in turn, with dashes for grey print.
    mpl.rcParams["axes.prop_cycle"] = cycler(color=colors) + cycler(linestyle=_DASHES)


def new_figure(*, width: float = 5.5, height: float = 3.0) -> tuple[Figure, Axes]:
    """A figure of `width` by `height` inches, as it is printed, and its axes, in the book's style.

    5.5 inches is the width of the text. The style stays set, since what is drawn later asks for it.
    """
    from matplotlib.figure import Figure

    _apply_style()
    figure = Figure(figsize=(width, height))
    return figure, figure.add_subplot()


def save_figure(name: str, figure: Figure, *, data: pd.DataFrame) -> SavedFigure:
    """Write results/figures/NAME.svg and .csv, and build/figures/NAME.pdf.

    NAME is ``"01_reference_step/ledger"``; `data` holds the plotted values, one row a mark. The
    bytes depend on the drawing alone: no date, no version. Raises InputError for data that is no
    number or text.
    """
    places, content = figure_files(name), _data(name, data)
    svg = _drawn(figure, "svg", {"Date": None, "Creator": None})
    # Trailing blanks that matplotlib writes would be stripped by editors and hooks.
    text = "".join(line.rstrip() + "\n" for line in svg.decode().splitlines())
    files.write(places["csv"], content)
    _print(name, figure, text)
    files.write(places["svg"], text)
    return SavedFigure(name, text)


def _print(name: str, figure: Figure, svg: str) -> None:
    """Draw the figure for print, if the one there was not drawn with this SVG by this code.

    Most of the time of a drawing goes into the fonts of the PDF, and most edits move few figures.
    """
    pdf, record = print_file(name), print_record(name)
    drawn_from = digest("\0".join((svg, *_drawn_by())))
    if files.read(record).decode() == f"{drawn_from} {digest(files.read(pdf))}\n":
        return
    content = _drawn(figure, "pdf", {"CreationDate": None, "Creator": None, "Producer": None})
    files.write(pdf, content)
    files.write(record, f"{drawn_from} {digest(content)}\n")


@cache
def _drawn_by() -> tuple[str, ...]:
    """What makes a PDF beside the figure: this module, and the libraries that write it."""
    from importlib.metadata import version

    own = Path(__file__).read_text(encoding="utf-8")
    return own, version("matplotlib"), version("fonttools")


def _drawn(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    import matplotlib as mpl

    out = io.BytesIO()
    with mpl.rc_context():
        _apply_style()
        figure.savefig(out, format=kind, metadata=metadata)
    return out.getvalue()


def _data(name: str, data: pd.DataFrame) -> str:
    names = header(data, name)
    columns = zip(*(column_values(data, column) for column in names), strict=True)
    rows = [
        [
            _plotted(cell_value(value, place), place)
            for column, value in zip(names, row, strict=True)
            for place in [f"{name}: data column {column!r}, row {number}"]
        ]
        for number, row in enumerate(columns, start=1)
    ]
    return csv_text(names, rows)


def _plotted(value: Any, place: str) -> Any:
    if not isinstance(value, (str, int, float)):
        raise InputError(f"{place}: {type(value).__name__}: expected a number or a text")
    return value
