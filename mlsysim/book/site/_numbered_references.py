"""References by number, `{numref}`, to figures and tables of chapters that are read but once.

Sphinx reads the whole tree of a chapter from its file again for every such reference.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment

__all__ = ["register"]


class _Remembered:
    """An environment whose trees are only looked at, so that one of each chapter will do."""

    def __init__(self, env: BuildEnvironment) -> None:
        self._env = env
        self._trees: dict[str, nodes.document] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def get_doctree(self, docname: str) -> nodes.document:
        """The tree of a page as it was read."""
        if docname not in self._trees:
            self._trees[docname] = self._env.get_doctree(docname)
        return self._trees[docname]


class BookDomain(StandardDomain):
    """Sphinx's domain of labels; references are resolved when no page is read any more."""

    _remembered: Any = None

    def resolve_xref(self, env: Any, *args: Any) -> Any:
        """As Sphinx does."""
        if self._remembered is None:
            self._remembered = _Remembered(env)
        return super().resolve_xref(self._remembered, *args)


def register(app: Sphinx) -> None:
    """Let Sphinx use it in place of its own."""
    app.add_domain(BookDomain, override=True)
