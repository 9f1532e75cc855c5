"""What a reader sees of a page: its texts with their lines.

Captions, alternative texts, titles of links, code spans and blocks, formulas, HTML, phrases of
claims and texts of references are seen. So are `%` comments, which a notebook to take away shows,
but for those that accept a finding. Quotes are not: what they print is no typed number. Nor are
targets, addresses, options and the names of files. Cells of code are looked at by `typed_numbers`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser

from mlsysim.book.claims.chapter_claims import split
from mlsysim.book.source.findings import accepts_on_page
from mlsysim.book.source.myst import Block, Directive, parsed, text_of
from mlsysim.book.source.scanner import CLAIM, ROLE
from mlsysim.book.source.spans import Span
from mlsysim.errors import InputError

__all__ = ["CUT", "MATH", "Seen", "seen"]

CUT = "\0"  # stands for what is seen and no typed text, such as a quote
MATH = "\1"  # stands on either side of a formula

# Options that a page shows.
_SHOWN_OPTIONS = ("alt", "caption", "title")
# Directives whose first line is a file, a language or a label, not a title.
_NO_TITLE = {
    *("code", "code-block", "code-cell", "figure", "image", "include", "literalinclude", "math"),
    *("only", "raw", "sourcecode", "toctree"),
}
# Directives whose content is shown as it stands, and those of which nothing is typed here.
_AS_IT_IS = {
    *("code", "code-block", "eval-rst", "mermaid", "parsed-literal", "raw", "sourcecode"),
    "toctree",
}
_NOTHING = {"bibliography", "code-cell", "include", "literalinclude", "meta"}
# Roles that hold a target, before which a text may stand: ``{ref}`text <target>` ``.
_TARGETS = re.compile(r"(?:any|cite(?::\w+)?|doc|download|eq|numref|ref|term|py:\w+|std:\w+)")


@dataclass(frozen=True)
class Seen:
    """A text, and the line of the page, from 1, on which it begins; line breaks are kept.

    In a pipe table `row` is its line, `about` the heads of its column and row, and `cites` says
    whether it cites a source.
    """

    line: int
    text: str
    row: int = 0
    about: str = ""
    cites: bool = False


def seen(text: str) -> Iterator[Seen]:
    r"""Every text of a page in the order of its source.

    >>> [each.text for each in seen("# A\n\nTakes **7** s, {ref}`see *b* <c>`.\n")]
    ['A', 'Takes 7 s, see *b*.']
    """
    accepted = {accept.line for accept in accepts_on_page(text)}
    yield from _blocks(parsed(text).blocks, accepted)


def _blocks(blocks: Iterable[Block], accepted: Container[int]) -> Iterator[Seen]:
    for block in blocks:
        if isinstance(block, Directive):
            yield from _directive(block, accepted)
        elif block.kind in ("text", "heading", "cell"):
            yield from _inline(block)
        elif block.kind in ("code", "indented"):
            yield Seen(block.first, block.content)
        elif block.kind == "comment":
            lines = enumerate(block.content.split("\n"), block.line)
            yield from (Seen(line, said) for line, said in lines if line not in accepted)
        elif block.kind == "math":
            yield Seen(block.line, _formula(block.content))
        elif block.kind == "html":
            yield from _Html(block.line).seen(block.content)


def _inline(text: Block) -> Iterator[Seen]:
    """A paragraph, heading, cell or title, and the texts behind its links and pictures."""
    parts: list[str] = []
    hidden: list[Seen] = []
    cites, link = False, False
    for span in text.spans:
        if span.kind == "link":
            link = span.bare
            hidden.append(Seen(span.line, span.title))
        elif span.kind == "image":
            hidden.append(Seen(span.line, span.content))
        elif span.kind == "html":
            hidden += _Html(span.line).seen(span.content)
        cites = cites or span.name.startswith("cite")
        shown = CUT if link else _shown(span)
        if span.kind == "link end":
            link = False
        parts.append(shown + "\n" * max(span.breaks - shown.count("\n"), 0))
    yield Seen(text.line, "".join(parts), text.row, text.about, cites)
    yield from (each for each in hidden if each.text)


def _shown(span: Span) -> str:
    """What a part of a paragraph shows."""
    if span.kind == "math":
        return f"{MATH}{_formula(span.content)}{MATH}"
    if span.kind in ("text", "code", "break"):
        return span.content
    if span.kind != "role":
        return CUT if span.kind in ("image", "footnote") else ""
    if span.name == "quote":
        return CUT
    if span.name == "claim":
        with suppress(InputError):
            return split(span.content)[0]
        return CUT
    if span.name == "math":
        return f"{MATH}{_formula(span.content.strip())}{MATH}"
    if span.content.endswith(">") and "<" in span.content:
        return span.content.rpartition("<")[0].rstrip()
    if span.name in ("sub", "sup"):  # no part of the word or number before it
        return CUT + span.content
    return CUT if _TARGETS.fullmatch(span.name) else span.content


def _formula(content: str) -> str:
    return CLAIM.sub(CUT, ROLE.sub(CUT, content))


def _directive(block: Directive, accepted: Container[int]) -> Iterator[Seen]:
    """A directive's title, its options that are shown, and its content."""
    if block.name not in _NO_TITLE:
        yield from _inline(block.titled)
    for option in block.options:
        if option.key in _SHOWN_OPTIONS:
            yield from _inline(text_of(option.value, option.line))
    if block.name == "math":
        yield Seen(block.first, _formula(block.content))
    elif block.name in _AS_IT_IS:
        raw = block.name == "raw"
        shown = block.content if raw else re.sub(r"<[^<>\n]*>", CUT, block.content)
        yield Seen(block.first, shown)
    elif block.name not in _NOTHING:
        yield from _blocks(block.blocks, accepted)


class _Html(HTMLParser):
    """The text between the tags of HTML, and the attributes that a reader sees or hears."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self._first = first
        self._found: list[Seen] = []
        self._silent = False

    def seen(self, html: str) -> list[Seen]:
        self.feed(html)
        self.close()
        return self._found

    def _line(self) -> int:
        return self._first + self.getpos()[0] - 1

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent = tag in ("script", "style")
        for name, value in attrs:
            if name in ("alt", "title", "aria-label") and value:
                self._found.append(Seen(self._line(), value))

    def handle_endtag(self, _tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._found.append(Seen(self._line(), data))
