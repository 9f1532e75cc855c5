"""Quotes in the document tree of a page: the role, the numbers in their places, the buttons."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxRole

from mlsysim import paths
from mlsysim.artifacts.quotes import Printed
from mlsysim.book.execution.chapter_execution import executed
from mlsysim.book.pages import page_sources
from mlsysim.book.products import latex
from mlsysim.book.reference.generated_pages import is_generated
from mlsysim.book.source.cells import chapters, place
from mlsysim.book.source.scanner import MARK, ROLE
from mlsysim.errors import MlsysimError

__all__ = ["PLACES", "register"]

_LINKS = (nodes.reference, addnodes.pending_xref, addnodes.download_reference)

# Where a page's metadata, which Sphinx keeps from build to build, lists what it prints:
# (key, printed text, anchor) in the order of the page.
PLACES = "mlsysim_quotes"


class quote(nodes.Inline, nodes.TextElement):  # type: ignore[misc]
    """A quoted number. Until it is resolved its text is its key, so no anchor holds a number."""


class QuoteRole(SphinxRole):
    """``{quote}`KEY in UNIT as FORMAT```."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The node that ResolveQuotes turns into a number."""
        spec = " ".join(self.text.split())
        return [quote("", spec.split()[0], spec=spec)], []


class ResolveQuotes(SphinxTransform):
    """Put the numbers where the quotes stand, and see that none of the source's quotes was lost."""

    default_priority = 400

    def apply(self, **_options: Any) -> None:
        """Resolve the quotes of one page. Raises MlsysimError with ``chapters/x.md:LINE``."""
        if is_generated(self.env.docname):
            return  # it holds no roles
        page = page_sources.page(self.env.docname)
        expected = [(found.spec, found.line, "", value) for found, value in page.quotes]
        expected += [(n.cell.spec, n.line, n.table, n.value) for n in page.table_numbers]
        self.values = {spec: value for spec, _, _, value in expected}
        self.places: list[tuple[str, str, str]] = []
        seen: Counter[str] = Counter()
        for node in list(self.document.findall(_holds_quotes)):
            if isinstance(node, quote):
                seen[node["spec"]] += 1
                self._resolve(node)
            else:
                seen.update(self._fill(node))
        for spec, line, table, _ in expected:
            seen[spec] -= 1
            if seen[spec] < 0:
                what = f"the table {table}" if table else "it"
                raise MlsysimError(
                    f"{place(page.name, line)}: quote `{spec}` is lost on the page: "
                    f"what stands around {what} drops it, or shows it as it is"
                )
        extra = [spec for spec, count in seen.items() if count > 0]
        if extra:
            raise MlsysimError(
                f"chapters/{page.name}.md: quote `{extra[0]}` is on the page, but not in its "
                "source; an included file cannot hold quotes"
            )
        for scenario in {value.key.partition(".")[0] for value in self.values.values()}:
            self.env.note_dependency(str(paths.artifact(scenario)))
        if page.name in chapters():
            self.env.note_dependency(str(executed(page.name)))
        self.env.metadata[page.name][PLACES] = self.places

    def _value(self, spec: str, line: int) -> Printed:
        return self.values.get(spec) or page_sources.page(self.env.docname).resolve(spec, line)

    def _resolve(self, node: quote) -> None:
        """A number that opens its card, or plain text in a heading or in another link."""
        value = self._value(node["spec"], node.line or 1)
        text = nodes.Text(value.text)
        outer = node.parent
        while outer is not None and not isinstance(outer, (nodes.title, *_LINKS)):
            outer = outer.parent
        heading = isinstance(outer, nodes.title) and isinstance(outer.parent, nodes.section)
        if heading or isinstance(outer, _LINKS):
            self.places.append((value.key, value.text, _anchor(node)))
            node.replace_self(text)
            return
        anchor = f"quote-{value.key}"
        earlier = sum(
            place == anchor or place.startswith(f"{anchor}:") for *_, place in self.places
        )
        if earlier:
            anchor += f":{earlier + 1}"
        self.places.append((value.key, value.text, anchor))
        node.clear()
        node += text
        node["ids"] = [anchor]
        node["key"] = value.key

    def _fill(self, node: nodes.Element) -> list[str]:
        """Plain text for the quotes in alternative text and in formulas; their specs."""
        specs: list[str] = []
        math = isinstance(node, (nodes.math, nodes.math_block))

        def text(role: re.Match[str]) -> str:
            spec = " ".join(role["spec"].split())
            specs.append(spec)
            value = self._value(spec, node.line or 1)
            self.places.append((value.key, value.text, _anchor(node)))
            return latex.in_formula(value.text, role.string[: role.start()]) if math else value.text

        if math:
            filled = ROLE.sub(text, node.astext())
            node.clear()
            node += nodes.Text(filled)
        else:
            node["alt"] = ROLE.sub(text, node["alt"])
        return specs


def _holds_quotes(node: nodes.Node) -> bool:
    """Whether a node is a quote, or a formula or an alternative text that holds some."""
    if isinstance(node, nodes.image):
        return MARK in node.get("alt", "")
    if isinstance(node, (nodes.math, nodes.math_block)):
        return MARK in node.astext()
    return isinstance(node, quote)


def _anchor(node: nodes.Element) -> str:
    """The nearest place around a node that a link can lead to; none if only the page itself is."""
    around: nodes.Element | None = node
    while around is not None and not around.get("ids"):
        around = around.parent
    return str(around["ids"][0]) if around is not None else ""


def visit_html(self: Any, node: quote) -> None:
    """Open the button that quote-card.js gives a card."""
    data = {"data-key": node["key"]}
    self.body.append(self.starttag(node, "button", "", CLASS="quote", type="button", **data))


def depart_html(self: Any, _node: quote) -> None:
    """Close the button."""
    self.body.append("</button>")


def visit_latex(self: Any, node: quote) -> None:
    """Begin the dotted line; none in what LaTeX moves, such as headings and captions."""
    command = r"\quotedcell" if _in_table(node) else r"\quoted"
    self.body.append(f"{command}{{" if _is_still(node) else "{")


def depart_latex(self: Any, _node: quote) -> None:
    """End the dotted line."""
    self.body.append("}")


def _in_table(node: nodes.Node) -> bool:
    """Whether a node stands in a cell, where lines are drawn pale because there are many."""
    outer = node.parent
    while outer is not None and not isinstance(outer, nodes.entry):
        outer = outer.parent
    return outer is not None


def _is_still(node: nodes.Node) -> bool:
    """Whether a node stands in running text or a table."""
    moved = (nodes.title, nodes.caption, nodes.term, *_LINKS)
    outer = node.parent
    while outer is not None and not isinstance(outer, moved):
        outer = outer.parent
    return outer is None


def leave_text(_self: Any, _node: quote) -> None:
    """Elsewhere than on a web page a quote is its text."""


def register(app: Sphinx) -> None:
    """Register the role and its node with Sphinx."""
    app.add_role("quote", QuoteRole())
    app.add_transform(ResolveQuotes)
    other = (leave_text, leave_text)
    app.add_node(
        quote,
        html=(visit_html, depart_html),
        latex=(visit_latex, depart_latex),
        text=other,
        man=other,
        texinfo=other,
    )
