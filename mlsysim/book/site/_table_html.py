"""The tables of the generated pages, which go from Markdown to HTML without a node for each cell.

They are most of what those pages hold. Only the roles in their cells, each once, become nodes:
Sphinx resolves them as everywhere, and the writer puts them in their places.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

from docutils import nodes
from docutils.statemachine import StringList
from markdown_it import MarkdownIt
from mdit_py_plugins.myst_role import myst_role_plugin
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

__all__ = ["register"]

# A place for the role of that number; all text is escaped, so that none can hold a tag.
_PLACE = re.compile(r"<role-(\d+)>")
_ALIGNED = re.compile(r'<(t[hd]) style="text-align:(left|right)">')


class reference_table(nodes.General, nodes.Element):  # type: ignore[misc]
    """A table: its HTML with a place for each role, then a paragraph for each role."""


class ReferenceTable(SphinxDirective):
    """``:::{reference-table} CLASSES``: a pipe table, whose cells hold Markdown and roles."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> Sequence[nodes.Node]:
        """The node of the table."""
        roles: dict[str, int] = {}
        shown = _markdown().render("\n".join(self.content), {"roles": roles})
        shown = _ALIGNED.sub(r'<\1 class="text-\2">', shown)
        shown = shown.replace("<table>", f'<table class="table reference {self.arguments[0]}">')
        made = reference_table("", nodes.raw("", shown, format="html"))
        # One paragraph for each, in one go.
        text = StringList("\n\n".join(roles).split("\n"), self.state_machine.get_source())
        self.state.nested_parse(text, self.content_offset, made)
        return [made]


@cache
def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    parser.use(myst_role_plugin)
    parser.add_render_rule("myst_role", _leave_place)
    return parser


def _leave_place(_self: Any, tokens: Any, at: int, _options: Any, env: Any) -> str:
    """A place for a role; the same text has the same number."""
    token, roles = tokens[at], env["roles"]
    text = f"{{{token.meta['name']}}}`{token.content}`"
    return f"<role-{roles.setdefault(text, len(roles))}>"


def write_table(writer: HTML5Translator, node: reference_table) -> None:
    """Write the table, with each role as Sphinx has resolved it."""
    template, *paragraphs = node.children
    written = []
    outer = writer.body
    for paragraph in paragraphs:
        writer.body = []
        for child in paragraph.children:
            child.walkabout(writer)
        written.append("".join(writer.body))
    writer.body = outer
    shown = _PLACE.sub(lambda place: written[int(place[1])], template.astext())
    writer.body.append(f'<div class="pst-scrollable-table-container">{shown}</div>\n')
    raise nodes.SkipNode


def register(app: Sphinx) -> None:
    """Register the directive with Sphinx, for pages of HTML."""
    app.add_node(reference_table, html=(write_table, None))
    app.add_directive("reference-table", ReferenceTable)
