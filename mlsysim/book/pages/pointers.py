"""What a page points to: files, labels, sources; and what of it is not there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mlsysim import paths
from mlsysim.book.source.cells import place
from mlsysim.book.source.myst import Block, Directive, Source, parsed
from mlsysim.declarations import bibliography
from mlsysim.errors import nearest

__all__ = ["dangling", "labels", "vocabulary"]

# Roles whose target is a label, with what has one.
_LABELLED = {
    "eq": "equation",
    "numref": "numbered figure, table or section",
    "ref": "section, figure or table",
}
# Directives and roles that name a file; a link to a page is told as `doc`.
_OF_FILES = {"doc", "download", "figure", "image", "include", "literalinclude"}
# Pages of Sphinx's own.
_OWN = {"genindex", "modindex", "py-modindex", "search"}
_ASIDE = re.compile(r"\{[^{}]*\}")  # what a citation says before and after its source
_TARGET = re.compile(r".*<(?P<target>[^<>]+)>", re.DOTALL)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#|<", re.IGNORECASE)  # an address, not a file


@dataclass(frozen=True)
class _Pointer:
    """That a line points to a target, by a role, a link or a directive."""

    line: int
    how: str
    target: str


def dangling(page: str, text: str, known: Collection[str]) -> Iterator[str]:
    """What a page points to and nothing is: a message for each, with its place and the nearest.

    `known` are the labels of all pages; the output of a cell gives none.
    """
    for each in _pointers(parsed(text)):
        if each.how in _OF_FILES:
            wrong = _no_file(each.target)
        elif each.how.partition(":")[0] == "cite":
            wrong = _no_source(each.target)
        elif each.target in known or each.target in _OWN:
            wrong = ""
        else:
            what = _LABELLED.get(each.how, "section, figure or table")
            wrong = f"no {what} is called {each.target!r}; {nearest(each.target, known)}"
        if wrong:
            yield f"{place(page, each.line)}: {{{each.how}}}: {wrong}"


def labels(text: str) -> set[str]:
    """The labels that a page gives to its sections, figures, tables and equations."""
    found = set()
    for block, _ in parsed(text).walk():
        if block.kind == "label":
            found.add(_plain(block.content))
        elif isinstance(block, Directive):
            found |= {_plain(block.option(key)) for key in ("name", "label")}
    return found - {""}


def vocabulary(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, kind ("role" or "directive") and name of what a page uses of MyST's vocabulary."""
    source = parsed(text)
    for directive, _ in source.directives:
        if directive.name and not directive.is_cell:
            yield directive.line, "directive", directive.name
    for block in source.texts:
        for span in block.spans:
            if span.kind == "role":
                yield span.line, "role", span.name


def _plain(label: str) -> str:
    """A label as Sphinx compares it."""
    return " ".join(label.lower().split())


def _pointers(source: Source) -> Iterator[_Pointer]:
    for directive, _ in source.directives:
        if directive.name in _OF_FILES:
            yield _Pointer(directive.line, directive.name, directive.title)
    for block in source.texts:
        yield from _in_text(block)


def _in_text(block: Block) -> Iterator[_Pointer]:
    for span in block.spans:
        if span.kind == "role" and span.name in _LABELLED:
            said = _TARGET.fullmatch(span.content)
            yield _Pointer(span.line, span.name, _plain(said["target"] if said else span.content))
        elif span.kind == "role" and span.name.partition(":")[0] == "cite":
            for key in _ASIDE.sub("", span.content).split(","):
                yield _Pointer(span.line, span.name, key.strip())
        elif span.kind == "role" and span.name in ("doc", "download"):
            said = _TARGET.fullmatch(span.content)
            target = said["target"] if said else span.content
            yield _Pointer(span.line, span.name, target + ".md" * (span.name == "doc"))
        elif span.kind == "image":
            yield _Pointer(span.line, "image", span.target)
        elif span.kind == "link" and span.target.startswith("#"):
            yield _Pointer(span.line, "ref", _plain(span.target[1:]))
        elif span.kind == "link" and span.target.partition("#")[0].endswith(".md"):
            yield _Pointer(span.line, "doc", span.target.partition("#")[0])


def _no_file(target: str) -> str:
    """Why a file cannot be shown; empty if it is there, or lies elsewhere."""
    if not target or _ELSEWHERE.match(target):
        return ""
    path = paths.chapters() / target.lstrip("/")
    if path.is_file() or any(path.parent.glob(path.name)):  # Sphinx finds `name.*`
        return ""
    return f"there is no file {target}; {nearest(path.name, _names(path.parent))}"


def _names(folder: Path) -> Iterable[str]:
    """The files of a folder that a page can show."""
    if not folder.is_dir():
        return []
    return [each.name for each in folder.iterdir() if each.suffix in (".md", ".png", ".svg")]


def _no_source(key: str) -> str:
    known = bibliography.citations()
    if not key or key in known:
        return ""
    return f"{paths.shown(paths.bibliography())} has no {key!r}; {nearest(key, known)}"
