"""Lines of a web page: a comma stays with the number or the formula before it."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from mlsysim.book.site._quote_nodes import quote

__all__ = ["register"]

_BEFORE = re.compile(r"[(\[]+\Z")
_AFTER = re.compile(r"\A[,.;:!?)\]]+")


class KeepPunctuation(SphinxPostTransform):
    """Put a number or a formula and the marks that touch it in one piece that does not break.

    Browsers treat a button and a typeset formula as boxes, and may break the line on either side.
    """

    default_priority = 900
    formats = ("html",)

    def run(self, **_options: Any) -> None:
        """Join the marks to each box of one page."""
        for box in list(self.document.findall(_is_box)):
            parent, at = box.parent, box.parent.index(box)
            before = _touching(parent[at - 1], _BEFORE) if at else ""
            after = _touching(parent[at + 1], _AFTER) if at + 1 < len(parent) else ""
            if not before and not after:
                continue
            if before:
                parent[at - 1] = nodes.Text(parent[at - 1].astext().removesuffix(before))
            if after:
                parent[at + 1] = nodes.Text(parent[at + 1].astext().removeprefix(after))
            kept = nodes.inline(classes=["kept-together"])
            parent[at] = kept
            kept += [nodes.Text(before), box, nodes.Text(after)]


def _is_box(node: nodes.Node) -> bool:
    return isinstance(node, (quote, nodes.math))


def _touching(node: nodes.Node, marks: re.Pattern[str]) -> str:
    """The marks of a text that touch the box beside it."""
    found = marks.search(node.astext()) if isinstance(node, nodes.Text) else None
    return found[0] if found else ""


def register(app: Sphinx) -> None:
    """Register the transform with Sphinx."""
    app.add_post_transform(KeepPunctuation)
