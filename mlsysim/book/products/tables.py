"""Tables: made once from a data frame, kept as CSV with exact values, Markdown and LaTeX.

Beside them stands which cells are quotes, so that the page can show these as it shows any quote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlsysim import files, units
from mlsysim.artifacts.numbers import format_number
from mlsysim.artifacts.quotes import Printed
from mlsysim.book.products import latex, table_quotes
from mlsysim.book.products.markdown import code, escaped, in_cell
from mlsysim.book.products.product_files import (
    cell_value,
    column_values,
    header,
    table_files,
)
from mlsysim.book.products.table_quotes import TableQuote
from mlsysim.canonical import csv_text
from mlsysim.errors import InputError, MlsysimError, UnitError, nearest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Code", "SavedTable", "save_table"]

_HEADED = re.compile(r"\((?:in )?(?P<unit>[^()]+)\)\s*$")
_DASHES = ("–", "—")


@dataclass(frozen=True)
class Code:
    """A cell that is a name of the code, set in its typeface."""

    text: str


@dataclass(frozen=True)
class SavedTable:
    """A table that was saved; a notebook shows it."""

    name: str
    markdown: str

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __repr__(self) -> str:
        return f"<table {self.name}>"


@dataclass(frozen=True)
class _Cell:
    """A cell in each of the three forms; a printed value is exactly its value and its unit.

    `spec` is what a quote says, and empty for other cells.
    """

    exact: tuple[Any, ...]
    markdown: str
    latex: str
    is_number: bool
    spec: str = ""


def save_table(
    name: str, frame: pd.DataFrame, *, columns: Mapping[str, str] | None = None
) -> SavedTable:
    """Write results/tables/NAME.csv, .md, .tex and .quotes.json; NAME is ``"01_x/ledger"``.

    Cells are texts, `Code`, truth values, whole numbers, floats, or values of an artifact as
    ``artifact.quote("step_time in ms as ,.0f")`` gives them. `columns` maps a column to the format
    of its numbers, such as ``".1%"``; whole numbers have one already, floats must be given theirs.
    Raises InputError that names the column and the row.
    """
    formats = columns or {}
    names = header(frame, name)
    for column in formats:
        if column not in names:
            raise InputError(
                f"{name}: columns: {column!r} is not in the table; {nearest(column, names)}"
            )
    table = {
        column: [
            _cell(cell_value(value, place), formats.get(column, ""), place)
            for number, value in enumerate(column_values(frame, column), start=1)
            for place in [f"{name}: column {column!r}, row {number}"]
        ]
        for column in names
    }
    for column in names:
        _check_unit(column, list(frame[column]), name)
    contents = {
        "csv": _csv(table),
        "md": _markdown(table),
        "tex": _latex(table),
        "quotes.json": table_quotes.content(_quotes(table)),
    }
    for end, path in table_files(name).items():
        files.write(path, contents[end])
    return SavedTable(name, contents["md"])


def _check_unit(column: str, values: list[Any], name: str) -> None:
    """Refuse a unit in a column's heading that its printed values do not have."""
    headed = _HEADED.search(column)
    if not headed:
        return
    try:
        unit = units.unit_text(units.unit(headed["unit"]))
    except UnitError:
        return  # another remark in parentheses
    for number, value in enumerate(values, start=1):
        if isinstance(value, Printed) and value.printed_unit != unit:
            raise InputError(
                f"{name}: column {column!r}, row {number}: prints {value.text!r} under a heading "
                f"in {unit}; leave the unit out of the heading, or write `in {unit}`"
            )


def _cell(value: Any, format: str, place: str) -> _Cell:  # noqa: A002  what the field calls it
    if isinstance(value, Printed):
        is_number = not isinstance(value.value, (bool, str))
        exact = (_word(value.value), value.unit)
        return _Cell(exact, escaped(value.text), latex.in_text(value.text), is_number, value.spec)
    if isinstance(value, Code):
        return _Cell(
            (value.text,),
            in_cell(code(value.text)),
            rf"\texttt{{{latex.in_text(value.text)}}}",
            False,
        )
    if isinstance(value, (bool, str)):
        text = _word(value)
        if "\n" in text:
            raise InputError(f"{place}: {text!r} has more than one line")
        return _Cell((text,), escaped(text), latex.in_text(text), False)
    if not isinstance(value, (int, float)):
        raise InputError(
            f"{place}: {type(value).__name__}: expected a text, a number, or artifact.quote(...)"
        )
    if isinstance(value, float) and not format:
        raise InputError(
            f"{place}: {value!r} needs a format; give the column one, as in "
            "save_table(..., columns={COLUMN: '.2f'})"
        )
    try:
        text = format_number(value, format)
    except MlsysimError as error:
        raise type(error)(f"{place}: {error}") from None
    return _Cell((value,), escaped(text), latex.in_text(text), True)


def _word(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _csv(table: dict[str, list[_Cell]]) -> str:
    """Exact values; a column with printed values is followed by one of their units."""
    names, parts = [], []
    for name, cells in table.items():
        width = max(len(cell.exact) for cell in cells)
        names += [name, f"{name} unit"][:width]
        parts.append([(*cell.exact, "")[:width] for cell in cells])
    return csv_text(names, ([v for part in row for v in part] for row in zip(*parts, strict=True)))


def _right(cells: list[_Cell]) -> bool:
    """Whether a column is of numbers; a dash stands for one that there is not."""
    dashes = sum(cell.exact[0] in _DASHES for cell in cells)
    return dashes < len(cells) and sum(cell.is_number for cell in cells) + dashes == len(cells)


def _markdown(table: dict[str, list[_Cell]]) -> str:
    """A pipe table, without padding, so that one longer cell changes one line."""
    rows = [
        [escaped(name) for name in table],
        ["--:" if _right(cells) else ":--" for cells in table.values()],
        *([cell.markdown for cell in row] for row in zip(*table.values(), strict=True)),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _quotes(table: dict[str, list[_Cell]]) -> list[TableQuote]:
    """The cells that are quotes, row by row."""
    return [
        TableQuote(number, column, cell.spec)
        for number, row in enumerate(zip(*table.values(), strict=True), start=1)
        for column, cell in enumerate(row, start=1)
        if cell.spec
    ]


def _latex(table: dict[str, list[_Cell]]) -> str:
    """A tabular of booktabs."""
    align = "".join("r" if _right(cells) else "l" for cells in table.values())
    head = " & ".join(latex.in_text(name) for name in table)
    body = [" & ".join(cell.latex for cell in row) for row in zip(*table.values(), strict=True)]
    lines = [
        rf"\begin{{tabular}}{{{align}}}",
        r"\toprule",
        rf"{head} \\",
        r"\midrule",
        *(rf"{row} \\" for row in body),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"
