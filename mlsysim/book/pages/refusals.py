"""All that a build refuses of pages, told at once and before any of them is laid out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from mlsysim.book.pages.page_sources import Page
from mlsysim.book.pages.pointers import dangling, labels
from mlsysim.book.source import cells
from mlsysim.errors import MlsysimError

__all__ = ["refused", "wrong_on"]

# How quotes.unfit begins, up to the end of the line.
_UNFIT = re.compile(r"\w+ is infeasible: .*")
_LINE = re.compile(r":(\d+): ")


def refused(book: Iterable[Page]) -> list[str]:
    """A message for all that is wrong with the pages of a book, page by page and line by line."""
    book = list(book)
    known = {label for page in book for label in labels(page.text)}
    wrong = []
    for page in book:
        told = _messages([page.front_matter.check_notebook] if _is_chapter(page) else [])
        told += [*wrong_on(page), *dangling(page.name, page.text, known)]
        wrong += sorted(dict.fromkeys(told), key=_line)
    return wrong


def wrong_on(page: Page) -> list[str]:
    """A message for all that is wrong with the quotes, claims and cells of a page.

    Many quotes of one scenario that does not fit are one matter, told at the first.
    """
    return _messages(
        [
            *([page.check_reads, lambda: _check_cells(page)] if _is_chapter(page) else []),
            page.check_dollars,
            lambda: page.quotes,
            lambda: page.equations,
            lambda: page.table_numbers,
            lambda: page.claims,
        ]
    )


def _is_chapter(page: Page) -> bool:
    return page.name in cells.chapters()


def _check_cells(page: Page) -> None:
    for cell in cells.code_cells(page.text):
        cells.check_options(page.name, cell)


def _messages(looks: Iterable[Callable[[], object]]) -> list[str]:
    """What these calls raise, each matter once."""
    wrong: dict[str, str] = {}
    for look in looks:
        try:
            look()
        except MlsysimError as error:
            for line in str(error).split("\n"):
                unfit = _UNFIT.search(line)
                if not any(line.endswith(told) for told in wrong.values()):  # met on another way
                    wrong.setdefault(unfit[0] if unfit else line, line)
    return [*wrong.values()]


def _line(message: str) -> int:
    found = _LINE.search(message)
    return int(found[1]) if found else 0
