"""How Sphinx finds and reads the generated pages, and how the index of numbers finds its places."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from pybtex.backends import plaintext
from pybtex.plugin import register_plugin
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.project import Project
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxRole

from mlsysim.artifacts.canonical import digest
from mlsysim.book import reference

__all__ = ["PLACES", "Place", "is_generated", "parse", "setup"]

# Where the transform of quotes leaves, in the metadata of a page, the place of each of them, in the
# order of the page's source.
PLACES = "printed_at"


class Place(NamedTuple):
    """Where a page prints a key: the text, an anchor, and the names of the section around it."""

    key: str
    text: str
    anchor: str
    sections: list[str]


# Fields are how a generated page lists facts; chapters are read without them.
_EXTENSIONS = {"fieldlist"}


class BookProject(Project):
    """The files in chapters/, and for a book of HTML the pages that are generated.

    Sphinx knows one folder of sources. A generated page seems to lie in it, under its own name, and
    is read from where it was written.
    """

    generated = False

    def discover(
        self, exclude_paths: Iterable[str] = (), include_paths: Iterable[str] = ("**",)
    ) -> set[str]:
        """The names of all pages; generated ones are written before they are named."""
        super().discover(exclude_paths, include_paths)
        for name, path in reference.write().items() if self.generated else ():
            seeming = Path(name).with_suffix(path.suffix)
            self.docnames.add(name)
            self._docname_to_path[name] = seeming
            self._path_to_docname[seeming] = name
        return self.docnames

    def doc2path(self, docname: str, absolute: bool) -> Any:
        """The file of a page; relative to chapters/ if not `absolute`."""
        if absolute and is_generated(docname):
            return type(self.srcdir)(reference.source(docname))
        return super().doc2path(docname, absolute)


def take_over(app: Sphinx) -> None:
    """Let this build look for generated pages too, if the book lists them and does not print."""
    project = BookProject(app.srcdir, app.config.source_suffix)
    project.restore(app.project)
    project.generated = app.builder.format == "html" and reference.is_listed()
    app.project = app.env.project = project
    if not project.generated:
        # Links are no print. What index.md lists of these pages is a pattern, which may be empty.
        app.config.suppress_warnings.append("toc.empty_glob")


def is_generated(docname: str) -> bool:
    """Whether a page is generated, and not a file of chapters/."""
    return docname.startswith(f"{reference.FOLDER}/")


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
        for node in list(self.document.findall(printed_at)):
            page = node["page"]
            _, _, anchor, sections = self.env.metadata[page][PLACES][node["number"] - 1]
            made = nodes.reference("", self._section(page, sections), internal=True)
            made["reftitle"] = self.env.titles[page].astext()
            made["refuri"] = self._relative(page) + (f"#{anchor}" if anchor else "")
            node.replace_self(made)

    def _section(self, page: str, sections: list[str]) -> str:
        """The number of a section, or the title of a page without numbers."""
        numbers = self.env.toc_secnumbers.get(page, {})
        found = [numbers[f"#{each}"] for each in sections if f"#{each}" in numbers]
        if not found and "" in numbers:
            found = [numbers[""]]
        return ".".join(map(str, found[0])) if found else self.env.titles[page].astext()

    def _relative(self, page: str) -> str:
        return str(self.app.builder.get_relative_uri(self.env.docname, page))


def renumbered(_app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Pages to write again because of what others say: their numbers, titles, places, citations.

    Sphinx itself writes a page when its own numbers change.
    """
    cite: Any = env.get_domain("cite")
    index = f"{reference.FOLDER}/numbers"
    numbering = (
        sorted(env.toc_secnumbers.items()),
        sorted(env.toc_fignumbers.items()),
        sorted((name, title.astext()) for name, title in env.titles.items()),
    )
    places = sorted((name, meta[PLACES]) for name, meta in env.metadata.items() if PLACES in meta)
    concerned = {
        "numbering": (numbering, env.found_docs),
        "places": (places, {index} & env.found_docs),
        "citations": (
            [citation.key for citation in cite.citations],
            {bibliography.docname for bibliography in cite.bibliographies},
        ),
    }
    now = {what: digest(repr(said)) for what, (said, _) in concerned.items()}
    then: dict[str, str] = getattr(env, "mlsysim_said", {})
    vars(env)["mlsysim_said"] = now
    changed = [names for what, (_, names) in concerned.items() if now[what] != then.get(what)]
    return sorted(set().union(*changed))


def setup(app: Sphinx) -> None:
    """Register this with Sphinx."""
    # The extension of the bibliography looks this up among all installed packages, for every
    # citation on a page; what is registered is found at once.
    register_plugin("pybtex.backends", "plaintext", plaintext.Backend, force=True)
    app.add_node(printed_at)
    app.add_role("printed_at", PrintedAtRole())
    app.add_post_transform(ResolvePlaces)
    app.connect("builder-inited", take_over)
    app.connect("env-get-updated", renumbered, priority=900)  # after Sphinx has numbered
