"""Sphinx: pages that lie elsewhere, the search of a book that was built again, errors of forks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import SphinxParallelError
from sphinx.project import Project

from mlsysim.library_hooks import need

__all__ = ["add_pages_from_elsewhere", "raised_in_fork", "tidy_search"]


class _WithPagesFromElsewhere(Project):
    """The files in the folder of sources, and pages that seem to lie in it."""

    def __init__(self, project: Project, written: Callable[[], Mapping[str, Path]]) -> None:
        super().__init__(project.srcdir, project.source_suffix)
        self.restore(project)
        self._written = written
        self._elsewhere: Mapping[str, Path] = {}

    def discover(
        self, exclude_paths: Iterable[str] = (), include_paths: Iterable[str] = ("**",)
    ) -> set[str]:
        """The names of all pages; those from elsewhere are written before they are named."""
        super().discover(exclude_paths, include_paths)
        self._elsewhere = self._written()
        self.docnames.update(self._elsewhere)
        return self.docnames

    def doc2path(self, docname: str, absolute: bool) -> Any:
        """The file of a page; relative to the folder of sources if not `absolute`."""
        if absolute and docname in self._elsewhere:
            return type(self.srcdir)(self._elsewhere[docname])
        return super().doc2path(docname, absolute)


def add_pages_from_elsewhere(app: Sphinx, written: Callable[[], Mapping[str, Path]]) -> None:
    """Let a build have pages beside those of its folder: `written` gives the file of each by name.

    It is pickled with what Sphinx knows of a book, so it is a function of a module.

    Written for Sphinx 9.0.4, which asks `app.project` and `app.env.project` where a page is, and
    takes one that it did not find for a file of the first kind of source. Buys one book of chapters
    and generated pages, without copies of the chapters, whose errors would name the copies.
    """
    need("sphinx", "9.0.4", app, "project")
    need("sphinx", "9.0.4", app.env, "project")
    app.project = app.env.project = _WithPagesFromElsewhere(app.project, written)


def tidy_search(indexer: Any) -> None:
    """Let the search of a book that was built again be that of a first build.

    Written for Sphinx 9.0.4, which forgets the entries of the index on pages that it does not write
    again, and keeps words that no page has any longer. Buys that two builds of one book have the
    same bytes; the search finds the words of the entries as objects.
    """
    mappings = ("_mapping", "_title_mapping")
    need("sphinx", "9.0.4", indexer, "_index_entries", *mappings)
    indexer._index_entries.clear()
    for words in (getattr(indexer, name) for name in mappings):
        for gone in [word for word, pages_with_it in words.items() if not pages_with_it]:
            del words[gone]


def raised_in_fork(error: SphinxParallelError) -> tuple[str, str, str]:
    """The module, the name and the message of an exception that a fork of Sphinx raised.

    Written for Sphinx 9.0.4, whose error holds them as one text. Buys that a mistake on a page
    ends a build with its own kind and place, however many processes lay pages out.
    """
    name, _, message = error.message.partition(": ")
    module, _, kind = name.rpartition(".")
    return module, kind, message
