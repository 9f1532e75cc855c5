"""Code cells whose code or output the page shows, because their tags were lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mlsysim.book.pages.page_sources import Page
from mlsysim.book.source import cells
from mlsysim.book.source.findings import Finding

__all__ = ["shown"]

_CODE = {"hide-input", "remove-input", "hide-cell", "remove-cell"}
_OUTPUT = {"hide-output", "remove-output", "hide-cell", "remove-cell"}


def shown(book: Iterable[Page]) -> Iterator[Finding]:
    """The cells of chapters that do not hide their code, or do not drop their output."""
    chapters = cells.chapters()
    for page in book:
        for cell in cells.code_cells(page.text) if page.name in chapters else ():
            tags = set(re.findall(r"[\w-]+", cell.options))
            lost = [
                what for what, hidden in (("code", _CODE), ("output", _OUTPUT)) if not tags & hidden
            ]
            if lost:
                yield Finding(
                    "shown",
                    f"chapters/{page.name}.md",
                    cell.fence,
                    f"the page shows the {' and the '.join(lost)} of this cell; write under this "
                    "line `:tags: [hide-input, remove-output]`, or accept it",
                )
