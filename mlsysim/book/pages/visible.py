"""What a reader sees of a page: its texts with their lines, from the tokens MyST makes of it.

Captions, alternative texts, titles of links, code spans and blocks, formulas, HTML, phrases of
claims and texts of references are seen. So are `%` comments, which a notebook to take away shows,
but for those that accept a finding. Quotes are not: what they print is no typed number. Nor are
targets, addresses, options and the names of files. Cells of code are looked at by `typed_numbers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

from mlsysim.book.claims.chapter_claims import split
from mlsysim.book.source.findings import accepts
from mlsysim.book.source.scanner import CLAIM, ROLE, after_options, parser
from mlsysim.errors import InputError

__all__ = ["CUT", "MATH", "Seen", "seen"]

CUT = "\0"  # stands for what is seen and no typed text, such as a quote
MATH = "\1"  # stands on either side of a formula

_DIRECTIVE = re.compile(r"\{([\w:.+-]+)\}(.*)", re.DOTALL)
_OPTION = re.compile(r":([\w-]+):(.*)")
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
    yield from _blocks(text, 0)


def _blocks(text: str, before: int) -> Iterator[Seen]:
    accepted = {before + accept.line for accept in accepts(text)}
    table = _Table()
    for token in parser().parse(text):
        first = before + token.map[0] + 1 if token.map else 0
        table.note(token.type, first)
        if token.type == "inline":
            yield from _inline(token, first, table.row, table.about(token.content))
        elif token.type in ("fence", "colon_fence"):
            yield from _fence(token, first)
        elif token.type == "code_block":
            yield Seen(first, token.content)
        elif token.type == "myst_line_comment":
            lines = enumerate(token.content.split("\n"), first)
            yield from (Seen(line, said) for line, said in lines if line not in accepted)
        elif token.type in ("math_block", "math_block_label", "amsmath"):
            yield Seen(first, _formula(token.content))
        elif token.type == "html_block":
            yield from _Html(first).seen(token.content)


class _Table:
    """The row of a pipe table that a walk is in, 0 outside, and the heads of its columns."""

    def __init__(self) -> None:
        self.row = 0
        self._heads: list[str] = []
        self._cells: list[str] = []

    def note(self, token: str, line: int) -> None:
        if token == "tr_open":
            self.row, self._cells = line, []
        elif token == "tr_close":
            self.row = 0
        elif token == "thead_close":
            self._heads = self._cells

    def about(self, cell: str) -> str:
        """The heads of the next cell's row and column."""
        if not self.row:
            return ""
        number = len(self._cells)
        self._cells.append(cell)
        return " ".join((*self._cells[:1], *self._heads[number : number + 1]))


def _inline(token: Any, first: int, row: int = 0, about: str = "") -> Iterator[Seen]:
    """A paragraph, heading, cell or title, and the texts behind its links and pictures."""
    parts: list[str] = []
    hidden: list[Seen] = []
    cites, link = False, False
    source, at = token.content, 0
    for child in token.children or []:
        if child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
            at = source.find("\n", at) + 1
            continue
        if child.type == "link_open":
            link = child.markup == "autolink"
            title = str(child.attrs.get("title", ""))
            hidden.append(Seen(first + source.count("\n", 0, at), title))
        elif child.type == "image":
            hidden.append(Seen(first + source.count("\n", 0, at), child.content))
        elif child.type == "html_inline":
            hidden += _Html(first + source.count("\n", 0, at)).seen(child.content)
        name = child.meta.get("name", "") if child.type == "myst_role" else ""
        cites = cites or name.startswith("cite")
        shown = CUT if link else _shown(child, name)
        if child.type == "link_close":
            link = False
        # A break inside of code or of a role is a blank there, and a line in the source.
        found = re.compile(r"\s+".join(map(re.escape, child.content.split()))).search(source, at)
        if found and child.content.strip():
            breaks = found[0].count("\n") - shown.count("\n")
            shown, at = shown + "\n" * max(breaks, 0), found.end()
        parts.append(shown)
    yield Seen(first, "".join(parts), row, about, cites)
    yield from (each for each in hidden if each.text)


def _shown(child: Any, role: str) -> str:
    """What a part of a paragraph shows."""
    if child.type.startswith("math_inline"):
        return f"{MATH}{_formula(child.content)}{MATH}"
    if child.type in ("text", "code_inline"):
        return str(child.content)
    if not role:
        return CUT if child.type in ("image", "footnote_ref") else ""
    if role == "quote":
        return CUT
    if role == "claim":
        with suppress(InputError):
            return split(child.content)[0]
        return CUT
    if role == "math":
        return f"{MATH}{_formula(child.content.strip())}{MATH}"
    if child.content.endswith(">") and "<" in child.content:
        return str(child.content.rpartition("<")[0].rstrip())
    if role in ("sub", "sup"):  # no part of the word or number before it
        return CUT + str(child.content)
    return CUT if _TARGETS.fullmatch(role) else str(child.content)


def _formula(content: str) -> str:
    return CLAIM.sub(CUT, ROLE.sub(CUT, content))


def _fence(token: Any, first: int) -> Iterator[Seen]:
    """A directive's title, its options that are shown, and its body; or a block of code."""
    found = _DIRECTIVE.fullmatch(token.info.strip())
    if not found:
        yield Seen(first + 1, token.content)
        return
    name, title = found.groups()
    if name not in _NO_TITLE:
        for inline in parser().parseInline(title.strip()):
            yield from _inline(inline, first)
    body = token.content.split("\n")
    start = after_options(body)
    for number, line in enumerate(body[:start], first + 1):
        option = _OPTION.match(line)
        if option and option[1] in _SHOWN_OPTIONS:
            for inline in parser().parseInline(option[2].strip()):
                yield from _inline(inline, number)
    content, begins = "\n".join(body[start:]), first + 1 + start
    if name == "math":
        yield Seen(begins, _formula(content))
    elif name in _AS_IT_IS:
        yield Seen(begins, re.sub(r"<[^<>\n]*>", CUT, content) if name != "raw" else content)
    elif name not in _NOTHING:
        yield from _blocks(content, begins - 1)


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
