"""Code cells whose code or output the page shows, because their tags were lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mlsysim.book.pages.page_sources import Page
from mlsysim.book.source import cells
from mlsysim.book.source.findings import Finding

__all__ = ["shown"]

_CELL = {"hide-cell", "remove-cell", "remove_cell"}
_CODE = {"hide-input", "remove-input", "remove_input"} | _CELL
_OUTPUT = {"hide-output", "remove-output", "remove_output"} | _CELL


def shown(book: Iterable[Page]) -> Iterator[Finding]:
    """The cells of chapters that do not hide their code, or do not drop their output."""
    chapters = cells.chapters()
    for page in book:
        for cell in cells.code_cells(page.text) if page.name in chapters else ():
            parts = (("code", _CODE), ("output", _OUTPUT))
            lost = [what for what, hidden in parts if not cell.tags & hidden]
            if lost:
                yield Finding(
                    "shown",
                    f"chapters/{page.name}.md",
                    cell.fence,
                    f"the page shows the {' and the '.join(lost)} of this cell; write under this "
                    "line `:tags: [hide-input, remove-output]`, or accept it",
                )
