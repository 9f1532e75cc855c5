"""Building the book: quotes, notebooks to take away, and the HTML pages."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path

from mlsysim import files, paths
from mlsysim.book import notebooks
from mlsysim.book.cells import chapters
from mlsysim.book.pages import pages, write_quotes
from mlsysim.errors import MlsysimError

__all__ = ["build"]

_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def build() -> Path:
    """Write results/quotes.json, build/notebooks and build/book; returns the first page.

    Chapters must have been executed. Raises MlsysimError that lists all quotes that are wrong, or
    every warning of Sphinx, each with ``chapters/x.md:LINE``.
    """
    book = pages()
    write_quotes(book)
    for page in book:
        if page.name in chapters():
            notebooks.write_resolved(page)
    out = paths.build() / "book"
    # Sphinx warns only of what it reads anew, so after a build that failed it must read all.
    unfinished = paths.build() / "book.unfinished"
    if unfinished.exists():
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(paths.build() / "doctrees", ignore_errors=True)
    files.write(unfinished, "")
    warnings = _run_sphinx(out)
    if warnings:
        raise MlsysimError("the book has warnings:\n" + warnings)
    unfinished.unlink()
    return out / "index.html"


def _run_sphinx(out: Path) -> str:
    """Build the pages; returns Sphinx's warnings, with places relative to the root."""
    from sphinx.application import Sphinx
    from sphinx.errors import SphinxError
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    source, told = paths.chapters(), io.StringIO()
    try:
        with patch_docutils(source), docutils_namespace():
            app = Sphinx(
                srcdir=source,
                confdir=source,
                outdir=out,
                doctreedir=paths.build() / "doctrees",
                buildername="html",
                status=None,
                warning=told,
                warningiserror=True,
            )
            app.build()
    except SphinxError as error:
        told.write(f"{error}\n")
    warnings = _COLOR.sub("", told.getvalue())
    return warnings.replace(f"{paths.root()}/", "").strip()
