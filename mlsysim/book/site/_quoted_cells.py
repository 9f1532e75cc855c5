"""Quotes in the tables of a page: the cells that hold one become quotes as in running text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from mlsysim import paths
from mlsysim.book.pages import page_sources
from mlsysim.book.pages.page_sources import TableNumber
from mlsysim.book.products.product_files import table_files
from mlsysim.book.reference.generated_pages import is_generated
from mlsysim.book.site._quote_nodes import quote
from mlsysim.book.source.cells import place
from mlsysim.errors import MlsysimError

__all__ = ["register"]


class QuoteCells(SphinxTransform):
    """Put a quote where a cell of a saved table is one; ResolveQuotes then treats it as any."""

    default_priority = 390

    def apply(self, **_options: Any) -> None:
        """Fill the tables of one page.

        Raises MlsysimError with ``chapters/x.md:LINE`` for a cell that prints something else.
        """
        if is_generated(self.env.docname):
            return
        page = page_sources.page(self.env.docname)
        waiting: dict[Path, list[list[TableNumber]]] = {}
        for shown in page.tables:
            told = table_files(shown.table)
            if told["quotes.json"].is_file():
                self.env.note_dependency(str(told["quotes.json"]))
            numbers = [each for each in page.table_numbers if each.line == shown.line]
            waiting.setdefault(told["md"].resolve(), []).append(numbers)
        for table in self.document.findall(nodes.table):
            include = waiting.get(Path(str(table.source)).resolve())
            for number in include.pop(0) if include else ():
                _fill(table, number, page.name)


def _fill(table: nodes.table, number: TableNumber, page: str) -> None:
    """Put one quote into its cell."""
    cell, text = number.cell, number.value.text
    rows = [row for body in table.findall(nodes.tbody) for row in body.findall(nodes.row)]
    # An edited table may have fewer rows or columns.
    found = [
        entry
        for row in rows[cell.row - 1 : cell.row]
        for entry in row.children[cell.column - 1 : cell.column]
    ]
    printed = "".join(entry.astext() for entry in found)
    if printed != text:
        name = paths.shown(table_files(number.table)["md"])
        raise MlsysimError(
            f"{place(page, number.line)}: {name}, row {cell.row}, column {cell.column}: prints "
            f"{printed!r}, and `{cell.spec}` is {text!r}; run: mlsysim execute "
            f"{number.table.partition('/')[0]}"
        )
    paragraph = found[0][0]
    made = quote("", cell.spec.split()[0], spec=cell.spec)
    made.line = number.line
    paragraph.clear()
    paragraph += made


def register(app: Sphinx) -> None:
    """Register the transform with Sphinx."""
    app.add_transform(QuoteCells)
