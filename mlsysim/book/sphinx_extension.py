"""What Sphinx must know of this book: the quote role, outputs of executed chapters, downloads."""

from __future__ import annotations

import re
from collections import Counter
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_nb.sphinx_ import Parser
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxRole
from sphinx.util.osutil import relative_uri

from mlsysim import files, paths
from mlsysim.artifacts.canonical import digest
from mlsysim.book import downloads, latex, notebooks, sphinx_reference
from mlsysim.book.cells import chapters, place
from mlsysim.book.execution import executed
from mlsysim.book.pages import Page
from mlsysim.book.quotes import Printed
from mlsysim.book.scanner import MARK, ROLE
from mlsysim.errors import MlsysimError

__all__ = ["read_page", "setup"]

_LINKS = (nodes.reference, addnodes.pending_xref, addnodes.download_reference)

# MyST-NB hands its readers a text without a name; the parser leaves the name here.
_PAGE: ContextVar[str] = ContextVar("page")

# An anchor on a page, and the names of the section that it is in.
Place = tuple[str, list[str]]


class PageParser(Parser):  # type: ignore[misc]
    """MyST-NB's parser, which lets `read_page` know which page it reads."""

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Add the page's nodes to `document`."""
        if sphinx_reference.is_generated(document.settings.env.docname):
            sphinx_reference.parse(inputstring, document)
            return
        token = _PAGE.set(document.settings.env.docname)
        try:
            super().parse(inputstring, document)
        finally:
            _PAGE.reset(token)


def read_page(_text: str) -> Any:
    """A page as the notebook that MyST-NB lays out: its cells, with the outputs they had."""
    return notebooks.with_outputs(Page(_PAGE.get()))


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
        if sphinx_reference.is_generated(self.env.docname):
            return
        page = Page(self.env.docname)
        expected = page.quotes
        self.values = {found.spec: value for found, value in expected}
        self.places: dict[tuple[str, bool], list[Place]] = {}
        self.anchors = 0
        seen: Counter[str] = Counter()
        for node in list(self.document.findall(quote)):
            seen[node["spec"]] += 1
            self._resolve(node)
        for node in list(self.document.findall(_holds_text)):
            seen.update(self._fill(node))
        for found, _ in expected:
            seen[found.spec] -= 1
            if seen[found.spec] < 0:
                raise MlsysimError(
                    f"{place(page.name, found.line)}: quote `{found.spec}` is lost on the page: "
                    "what stands around it drops it, or shows it as it is"
                )
        extra = [spec for spec, count in seen.items() if count > 0]
        if extra:
            raise MlsysimError(
                f"chapters/{page.name}.md: quote `{extra[0]}` is on the page, but not in its "
                "source; an included file cannot hold quotes"
            )
        self.env.metadata[page.name][sphinx_reference.PLACES] = [
            self.places[found.spec, found.where in ("math", "alt")].pop(0) for found, _ in expected
        ]
        for scenario in {value.key.partition(".")[0] for value in self.values.values()}:
            self.env.note_dependency(str(paths.artifact(scenario)))
        if page.name in chapters():
            self.env.note_dependency(str(executed(page.name)))
            self.document.children[-1].append(downloads.box(page.name))

    def _value(self, spec: str, line: int) -> Printed:
        return self.values.get(spec) or Page(self.env.docname).resolve(spec, line)

    def _resolve(self, node: quote) -> None:
        """A link to the artifact, or plain text in a heading or in another link."""
        value = self._value(node["spec"], node.line or 1)
        text = nodes.Text(value.text)
        outer = node.parent
        while outer is not None and not isinstance(outer, (nodes.title, *_LINKS)):
            outer = outer.parent
        heading = isinstance(outer, nodes.title) and isinstance(outer.parent, nodes.section)
        if heading or isinstance(outer, _LINKS):
            self._note(node, node["spec"])
            node.replace_self(text)
            return
        self.anchors += 1
        node["ids"] = [f"q-{self.anchors}"]
        self._note(node, node["spec"], node["ids"][0])
        node.children = []
        node += text
        node["artifact"] = value.key.partition(".")[0]
        node["title"] = f"{value.key} = {value.value!r} {value.unit}".rstrip()

    def _note(
        self, node: nodes.Element, spec: str, anchor: str = "", *, inert: bool = False
    ) -> None:
        """Remember where a quote stands: its anchor, or that of its section, and its section."""
        outer = node
        while outer is not None and not isinstance(outer, nodes.section):
            outer = outer.parent
        sections = list(outer["ids"]) if outer is not None else []
        place = (anchor or (sections[0] if sections else ""), sections)
        self.places.setdefault((spec, inert), []).append(place)

    def _fill(self, node: nodes.Element) -> list[str]:
        """Plain text for the quotes in alternative text and in formulas; their specs."""
        specs: list[str] = []
        math = isinstance(node, (nodes.math, nodes.math_block))

        def text(role: re.Match[str]) -> str:
            spec = " ".join(role["spec"].split())
            specs.append(spec)
            self._note(node, spec, next(iter(node["ids"]), ""), inert=True)
            value = self._value(spec, node.line or 1)
            return latex.in_math(value.text) if math else value.text

        if math:
            filled = ROLE.sub(text, node.astext())
            node.children = []
            node += nodes.Text(filled)
        else:
            node["alt"] = ROLE.sub(text, node["alt"])
        return specs


def _holds_text(node: nodes.Node) -> bool:
    """Whether a formula or an alternative text holds a quote."""
    if isinstance(node, nodes.image):
        return MARK in node.get("alt", "")
    return isinstance(node, (nodes.math, nodes.math_block)) and MARK in node.astext()


def visit_html(self: Any, node: quote) -> None:
    """Open the link to the artifact, with the exact value as its title."""
    here = self.builder.get_target_uri(self.builder.current_docname)
    target = relative_uri(here, f"artifacts/{node['artifact']}.json")
    self.body.append(self.starttag(node, "a", "", CLASS="quote", href=target, title=node["title"]))


def depart_html(self: Any, _node: quote) -> None:
    """Close the link."""
    self.body.append("</a>")


def leave_text(_self: Any, _node: quote) -> None:
    """Elsewhere than on a web page a quote is its text."""


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


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of this with Sphinx."""
    app.add_source_parser(PageParser, override=True)
    app.add_role("quote", QuoteRole())
    app.add_transform(ResolveQuotes)
    other = (leave_text, leave_text)
    app.add_node(
        quote, html=(visit_html, depart_html), latex=other, text=other, man=other, texinfo=other
    )
    sphinx_reference.setup(app)
    app.connect("env-get-outdated", outdated)
    app.connect("env-updated", remember)
    app.connect("html-page-context", offer_notebook)
    app.connect("build-finished", downloads.remove_left_behind)
    app.connect("build-finished", downloads.copy)
    # Pages that another version of this code has read are read again.
    code = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return {"version": "1", "env_version": int(digest(code), 16), "parallel_read_safe": True}
