"""Which cells of a saved table are quotes: a file beside its other forms, written and read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from mlsysim import files, paths
from mlsysim.book.products.product_files import table_files
from mlsysim.canonical import loads
from mlsysim.errors import MlsysimError

__all__ = ["TableQuote", "content", "read"]


@dataclass(frozen=True)
class TableQuote:
    """A cell that is a quote: row and column from 1, without the heading, and what it says.

    The key of `spec` starts with the name of the scenario.
    """

    row: int
    column: int
    spec: str


def content(cells: Iterable[TableQuote]) -> str:
    """The file of a table's quotes: one cell a line, so that a change of one changes one."""
    lines = [json.dumps(asdict(cell), ensure_ascii=False) for cell in cells]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def read(table: str) -> list[TableQuote]:
    """The cells of a table that are quotes; none if it was not made by `save_table`.

    Raises MlsysimError for a file that `save_table` has not written like this.
    """
    path = table_files(table)["quotes.json"]
    try:
        return [TableQuote(**cell) for cell in loads(files.read(path) or b"[]")]
    except (TypeError, ValueError):
        raise MlsysimError(
            f"{paths.shown(path)} is not as save_table writes it; "
            f"run: mlsysim execute {table.partition('/')[0]}"
        ) from None
