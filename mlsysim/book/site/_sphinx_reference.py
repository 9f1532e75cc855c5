"""How Sphinx finds and reads the generated pages, and how the index of numbers finds its places."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxRole

from mlsysim import files, paths
from mlsysim.book.reference import generated_pages
from mlsysim.book.reference.generated_pages import is_generated
from mlsysim.book.site import _downloads
from mlsysim.book.site._quote_nodes import PLACES
from mlsysim.book.source.cells import chapters
from mlsysim.canonical import digest
from mlsysim.declarations import drafts
from mlsysim.library_hooks.sphinx_pages import add_pages_from_elsewhere

__all__ = ["is_generated", "parse", "register"]

# Where a page's metadata holds the names of the section that each anchor of a quote is in.
SECTIONS = "mlsysim_sections"

# Fields are how a generated page lists facts; chapters are read without them.
_EXTENSIONS = {"fieldlist"}


def take_over(app: Sphinx) -> None:
    """Let this build have the generated pages too, if the book lists them and does not print."""
    if app.builder.format == "html" and generated_pages.is_listed():
        add_pages_from_elsewhere(app, generated_pages.write)
    else:
        # Links are no print. What index.md lists of these pages is a pattern, which may be empty.
        app.config.suppress_warnings.append("toc.empty_glob")


def parse(text: str, document: nodes.document) -> None:
    """Read a generated page: plain MyST, in which a link is the path that it says."""
    from myst_parser.mdit_to_docutils.sphinx_ import SphinxRenderer
    from myst_parser.parsers.mdit import create_md_parser

    config = document.settings.env.myst_config
    extensions = {*config.enable_extensions, *_EXTENSIONS}
    parser = create_md_parser(
        config.copy(all_links_external=True, enable_extensions=extensions), SphinxRenderer
    )
    parser.options["document"] = document
    document.settings.smart_quotes = False  # signs of sources and commands stay what they are
    parser.render(text)


class printed_at(nodes.Inline, nodes.TextElement):  # type: ignore[misc]
    """A link to a quote, which is known once all pages are read."""


class PrintedAtRole(SphinxRole):
    """``{printed_at}`PAGE NUMBER```: the place of a quote, counted from 1 on its page."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The node that ResolvePlaces turns into a link."""
        page, number = self.text.split()
        return [printed_at("", page, page=page, number=int(number))], []


class ResolvePlaces(SphinxPostTransform):
    """Links from the index of numbers into the chapters, by the number of the section."""

    default_priority = 5

    def run(self, **_options: Any) -> None:
        """Turn each `printed_at` into a link."""
        listed = list(self.document.findall(printed_at))
        anchors = {page: self._anchors(page) for page in {node["page"] for node in listed}}
        for node in listed:
            page = node["page"]
            anchor = anchors[page][node["number"] - 1]
            made = nodes.reference("", self._section(page, anchor), internal=True)
            made["reftitle"] = self.env.titles[page].astext()
            made["refuri"] = self._relative(page) + (f"#{anchor}" if anchor else "")
            node.replace_self(made)

    def _anchors(self, page: str) -> list[str]:
        """The anchor of each quote of a page, in the order of its source.

        The page has them in its own order, in which footnotes come last; quotes of one key that
        print one text keep theirs.
        """
        places: dict[tuple[str, str], list[str]] = {}
        for key, text, anchor in self.env.metadata[page][PLACES]:
            places.setdefault((key, text), []).append(anchor)
        return [places[each].pop(0) for each in generated_pages.quoted(page)]

    def _section(self, page: str, anchor: str) -> str:
        """The number of a section, or the title of a page without numbers."""
        numbers = self.env.toc_secnumbers.get(page, {})
        names = self.env.metadata[page][SECTIONS].get(anchor, ())
        found = [numbers[f"#{each}"] for each in names if f"#{each}" in numbers]
        if not found and "" in numbers:
            found = [numbers[""]]
        if found:
            return ".".join(map(str, found[0]))
        return "first page" if page == self.config.root_doc else self.env.titles[page].astext()

    def _relative(self, page: str) -> str:
        return str(self.app.builder.get_relative_uri(self.env.docname, page))


def finish(app: Sphinx, document: nodes.document) -> None:
    """Note the section of each quote on a page, and end a chapter with its downloads.

    Pages of single scenarios and classes are in no table of contents: those that list them are.
    """
    page = app.env.current_document.docname
    if is_generated(page) and page.count("/") > 1:
        app.env.metadata[page]["orphan"] = True
    anchors = {anchor for _, _, anchor in app.env.metadata[page].get(PLACES, ())}
    sections = {}
    for node in document.findall(nodes.Element):
        for anchor in anchors.intersection(node.get("ids", ())):
            outer = node
            while outer is not None and not isinstance(outer, nodes.section):
                outer = outer.parent
            sections[anchor] = list(outer["ids"]) if outer is not None else []
    if anchors:
        app.env.metadata[page][SECTIONS] = sections
    if app.builder.format == "html" and (box := _draft(page)) is not None:
        next(document.findall(nodes.section)).insert(1, box)
    if app.builder.format == "html" and page in chapters():
        document.children[-1].append(_downloads.box(page))


def _draft(page: str) -> nodes.Node | None:
    """The box at the top of a page of chapters/ that is a draft."""
    file = f"chapters/{page}.md"
    lines = [str(mark.line) for mark in drafts.marks() if mark.file == file]
    if not lines:
        return None
    said = f"TODO stands in {file}, line {', '.join(lines)}. Nothing of this is published."
    box = nodes.admonition("", nodes.title("", "Draft"), classes=["warning", "draft"])
    box += nodes.paragraph("", said)
    return box


def renumbered(_app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Pages to write again because of what others say: their numbers, titles, places, sources.

    Sphinx itself writes a page when its own numbers change.
    """
    cite: Any = env.get_domain("cite")
    index = f"{generated_pages.FOLDER}/numbers"
    numbering = (
        sorted(env.toc_secnumbers.items()),
        sorted(env.toc_fignumbers.items()),
        sorted((name, title.astext()) for name, title in env.titles.items()),
    )
    places = sorted(
        (name, meta[PLACES], sorted(meta[SECTIONS].items()))
        for name, meta in env.metadata.items()
        if SECTIONS in meta
    )
    concerned = {
        "numbering": (numbering, env.found_docs),
        "places": (places, {index} & env.found_docs),
        "citations": (
            [citation.key for citation in cite.citations],
            {bibliography.docname for bibliography in cite.bibliographies},
        ),
        # A citation shows authors and year, and the whole source where the pointer rests on it.
        "sources": (
            digest(files.read(paths.bibliography())),
            {citation.docname for citation in cite.citation_refs} & env.found_docs,
        ),
    }
    now = {what: digest(repr(said)) for what, (said, _) in concerned.items()}
    then: dict[str, str] = getattr(env, "mlsysim_said", {})
    vars(env)["mlsysim_said"] = now
    changed = [names for what, (_, names) in concerned.items() if now[what] != then.get(what)]
    return sorted(set().union(*changed))


def register(app: Sphinx) -> None:
    """Register this with Sphinx."""
    app.add_node(printed_at)
    app.add_role("printed_at", PrintedAtRole())
    app.add_post_transform(ResolvePlaces)
    app.connect("builder-inited", take_over)
    app.connect("doctree-read", finish)
    app.connect("env-get-updated", renumbered, priority=900)  # after Sphinx has numbered
