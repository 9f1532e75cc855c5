"""The roles and directives that Sphinx and its extensions know, and pages that use others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from docutils.parsers.rst import directives, languages, roles
from docutils.utils import new_document
from sphinx.application import Sphinx
from sphinx.util.docutils import sphinx_domains

from mlsysim.book.pages.page_sources import Page
from mlsysim.book.pages.pointers import vocabulary
from mlsysim.book.source.cells import place
from mlsysim.errors import nearest

__all__ = ["unknown"]

# Names that MyST-Parser takes for itself, before docutils is asked.
_OF_MYST = {"eval-rst", "figure-md", "myst"}


def unknown(app: Sphinx, book: Iterable[Page]) -> list[str]:
    """A message for each role and directive of a page that nothing knows, with the nearest."""
    used = [(page, *each) for page in book for each in vocabulary(page.text)]
    with sphinx_domains(app.env):
        strange = {(kind, name) for _, _, kind, name in used if not _is_known(kind, name)}
    known = {
        kind: sorted({name for _, _, of, name in used if (of, name) not in strange and of == kind})
        for kind in ("role", "directive")
    }
    return [
        f"{place(page.name, line)}: {{{name}}}: no {kind} of this name; "
        f"{nearest(name, {*known[kind], *_names(app, kind)})}"
        for page, line, kind, name in used
        if (kind, name) in strange
    ]


def _is_known(kind: str, name: str) -> bool:
    if name in _OF_MYST:
        return True
    english: Any = languages.get_language("en", None)
    document = new_document("")
    document.reporter.report_level = 5
    if kind == "directive":
        found, _ = directives.directive(name, english, document)
    else:
        found, _ = roles.role(name, english, 0, document.reporter)
    return found is not None


def _names(app: Sphinx, kind: str) -> Iterator[str]:
    """Names that somebody who mistyped one may have meant."""
    yield from getattr(languages.get_language("en", None), f"{kind}s")
    for domain in app.env.domains.sorted():
        prefix = "" if domain.name == "std" else f"{domain.name}:"
        yield from (f"{prefix}{name}" for name in getattr(domain, f"{kind}s"))
