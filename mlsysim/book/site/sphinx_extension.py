"""What Sphinx must know of this book: its pages, their quotes and cards, and the downloads."""

from __future__ import annotations

import shutil
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_nb.sphinx_ import Parser
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from mlsysim import files, library_hooks
from mlsysim.book.pages import book_files, page_sources
from mlsysim.book.site import (
    _card_files,
    _claim_role,
    _downloads,
    _line_breaks,
    _notebooks,
    _quote_nodes,
    _quoted_cells,
    _sphinx_reference,
    _table_html,
    printed_book,
)
from mlsysim.book.source.cells import chapters
from mlsysim.canonical import digest
from mlsysim.library_hooks.myst_nb_pages import write_style_sheet
from mlsysim.library_hooks.pybtex_plugins import find_plain_text_at_once
from mlsysim.library_hooks.sphinx_pages import tidy_search

__all__ = ["read_page", "setup"]

# MyST-NB hands its readers a text without a name; the parser leaves the name here.
_PAGE: ContextVar[str] = ContextVar("page")


class PageParser(Parser):  # type: ignore[misc]
    """MyST-NB's parser, which lets `read_page` know which page it reads."""

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Add the page's nodes to `document`."""
        if _sphinx_reference.is_generated(document.settings.env.docname):
            _sphinx_reference.parse(inputstring, document)
            return
        token = _PAGE.set(document.settings.env.docname)
        try:
            super().parse(inputstring, document)
        finally:
            _PAGE.reset(token)


def read_page(_text: str) -> Any:
    """A page as the notebook that MyST-NB lays out: its cells, with the outputs they had."""
    return _notebooks.with_outputs(page_sources.page(_PAGE.get()))


def offer_notebook(
    _app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: Any
) -> None:
    """Let the theme's download button offer the notebook of a chapter."""
    if pagename in chapters():
        context["ipynb_source"] = f"{pagename}.ipynb"


def contents(app: Sphinx, docname: str) -> str:
    """A digest of all that a page is read from: its source and every file it depends on."""
    env = app.env
    depends = sorted(env.dependencies.get(docname, ()))
    read_from = [Path(env.doc2path(docname)), *(Path(app.srcdir) / each for each in depends)]
    return digest(b"".join(files.read(each) for each in read_from))


def outdated(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Pages whose content is not what was read, whatever the time stamps that Sphinx goes by."""
    then: dict[str, str] = getattr(env, "mlsysim_contents", {})
    known = env.found_docs - added - changed - removed
    return [name for name in known if then.get(name) != contents(app, name)]


def remember(app: Sphinx, env: BuildEnvironment) -> None:
    """Keep what each page was read from, for the next build."""
    vars(env)["mlsysim_contents"] = {name: contents(app, name) for name in env.found_docs}
    if app.builder.format == "html":
        named = {each for found in env.dependencies.values() for each in found}
        book_files.note_read(
            Path(app.srcdir) / each for each in (*named, *env.images, *env.dlfiles)
        )


def lay_out_styles(app: Sphinx) -> None:
    """Put MyST-NB's style sheet there first: Sphinx names its digest in pages only if it exists.

    Static files are copied anew, so that none stays whose source is gone.
    """
    if app.builder.format == "html":
        static, before = _static(app)
        shutil.rmtree(before, ignore_errors=True)
        if static.is_dir():
            static.rename(before)
        static.mkdir(parents=True)
        write_style_sheet(app)


def settle_styles(app: Sphinx, exception: Exception | None) -> None:
    """Forget the static files of the book before; a build that failed leaves them to its pages."""
    if app.builder.format == "html":
        static, before = _static(app)
        if exception and before.is_dir():
            shutil.rmtree(static, ignore_errors=True)
            before.rename(static)
        shutil.rmtree(before, ignore_errors=True)


def _static(app: Sphinx) -> tuple[Path, Path]:
    """Where static files lie, and where those of the book before wait for the end of a build."""
    out = Path(app.outdir)
    return out / "_static", out.with_name(f"{out.name}.static")


def mend_search(app: Sphinx) -> list[Any]:
    """Let the search of a book that was built again be that of a first build."""
    if indexer := getattr(app.builder, "indexer", None):
        tidy_search(indexer)
    return []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of this with Sphinx."""
    app.add_source_parser(PageParser, override=True)
    _quote_nodes.register(app)
    _quoted_cells.register(app)
    _claim_role.register(app)
    _line_breaks.register(app)
    printed_book.register(app)
    _sphinx_reference.register(app)
    _table_html.register(app)
    find_plain_text_at_once()
    app.connect("env-get-outdated", outdated)
    app.connect("env-updated", remember)
    app.connect("builder-inited", lay_out_styles)
    app.connect("html-page-context", offer_notebook)
    app.connect("html-collect-pages", mend_search)
    app.connect("build-finished", settle_styles)
    app.connect("build-finished", _downloads.remove_left_behind)
    app.connect("build-finished", _downloads.copy)
    app.connect("build-finished", _card_files.write)
    # Pages that another version of this code has read are read again.
    folders = (Path(__file__).parents[1], Path(library_hooks.__file__).parent)
    files_of_code = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    code = b"".join(path.read_bytes() for path in files_of_code)
    return {"version": "1", "env_version": int(digest(code), 16), "parallel_read_safe": True}
