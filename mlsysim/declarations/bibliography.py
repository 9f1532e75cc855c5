"""The bibliography, chapters/references.bib: the works that values and chapters cite, by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsysim import files, paths

if TYPE_CHECKING:
    from pybtex.database import Entry

__all__ = ["works"]


def works() -> dict[str, Entry]:
    """Every entry by its key. Raises InputError for what is no such file, with the line."""
    from pybtex.database import parse_string
    from pybtex.exceptions import PybtexError

    path = paths.bibliography()
    try:
        return dict(parse_string(files.text(path), "bibtex").entries)
    except (PybtexError, RecursionError) as error:
        raise files.unusable(path, f"not usable BibTeX: {error}") from None
