"""Where a chapter's tables and figures live, and their data as CSV."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsysim import bounds, paths
from mlsysim.errors import InputError
from mlsysim.scalars import plain

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "cell_value",
    "column_values",
    "figure_files",
    "header",
    "on_disk",
    "print_file",
    "print_record",
    "product_files",
    "table_files",
]

_ENDS = {"tables": (".csv", ".md", ".tex", ".json"), "figures": (".svg", ".csv")}
_NAME = re.compile(r"[0-9]{2}_[a-z0-9_]+/[a-z0-9_]+")


def on_disk(chapter: str) -> list[Path]:
    """The versioned files in the folders of a chapter that look like products; litter is none."""
    return [
        path
        for kind, ends in _ENDS.items()
        for path in sorted((paths.results() / kind / chapter).glob("[!.]*"))
        if path.suffix in ends and path.is_file()
    ]


def table_files(name: str) -> dict[str, Path]:
    """The files of the table `name`, ``"01_reference_step/ledger"``, by ending.

    They are csv, md, tex, and quotes.json, which says which of its cells are quotes.
    """
    return {end: _path("tables", name, end) for end in ("csv", "md", "tex", "quotes.json")}


def figure_files(name: str) -> dict[str, Path]:
    """The versioned files of the figure `name` by ending: svg, and its plotted data as csv."""
    return {end: _path("figures", name, end) for end in ("svg", "csv")}


def product_files(tables: Iterable[str], figures: Iterable[str]) -> list[Path]:
    """The versioned files of tables and figures, by their names."""
    found = [path for name in tables for path in table_files(name).values()]
    return found + [path for name in figures for path in figure_files(name).values()]


def print_file(name: str) -> Path:
    """The figure `name` for the press, which is not versioned."""
    return paths.build() / "figures" / f"{_checked(name)}.pdf"


def print_record(name: str) -> Path:
    """What the figure for the press was drawn from."""
    return print_file(name).with_suffix(".drawn")


def _path(kind: str, name: str, end: str) -> Path:
    return paths.results() / kind / f"{_checked(name)}.{end}"


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name) or len(name) > bounds.PRODUCT:
        raise InputError(
            f'{name!r} names no product; write "CHAPTER/NAME", such as "01_reference_step/ledger", '
            f"of at most {bounds.PRODUCT} characters"
        )
    return name


def header(frame: pd.DataFrame, product: str) -> list[str]:
    """The names of the columns. Raises InputError for one that is empty, repeated or no text."""
    names: list[Any] = list(frame.columns)
    for column in names:
        if not isinstance(column, str) or not column.strip():
            raise InputError(f"{product}: column {column!r}: a column is headed by a text")
        if names.count(column) > 1:
            raise InputError(f"{product}: two columns are headed {column!r}")
    if not names or not len(frame):
        raise InputError(f"{product}: there is nothing in it; a product has rows and columns")
    return names


def column_values(frame: pd.DataFrame, column: str) -> list[Any]:
    """The cells of a column in their own precision; pandas would hand them out as doubles."""
    return list(frame[column].to_numpy())


def cell_value(value: Any, place: str) -> Any:
    """A cell as a plain value. Raises InputError for one that is missing or not finite."""
    value = plain(value)
    missing = value is None or type(value).__name__ in ("NAType", "NaTType")
    if missing or value != value:  # pandas writes a missing text as NaN
        raise InputError(f"{place}: a value is missing; for an empty cell write an empty text")
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{place}: {value} is no number to publish")
    return value
