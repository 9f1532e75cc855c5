"""Every {quote} role of a page with its line, found on the tokens of which MyST makes the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from mlsysim.book.cells import place
from mlsysim.errors import InputError

__all__ = ["EXTENSIONS", "MARK", "ROLE", "Quote", "scan"]

# What conf.py enables; the scanner must read pages as Sphinx does.
EXTENSIONS = ("amsmath", "colon_fence", "dollarmath")

MARK = "{quote}"
ROLE = re.compile(r"\{quote\}(`+)(?!`)(?P<spec>.*?[^`])\1(?!`)")

_DIRECTIVE = re.compile(r"\{([\w:.-]+)\}(.*)")
_OPTION = re.compile(r":([\w-]+):")
_BACKTICKED = re.compile(r"`{3,}\s*(\{[\w:.-]+\})")
# Directives whose content is not read as Markdown.
_LITERAL = {
    *("bibliography", "code", "code-block", "code-cell", "eval-rst", "include", "literalinclude"),
    *("mermaid", "parsed-literal", "raw", "raw-cell", "sourcecode", "toctree"),
}
_HOW = "write {quote}`NAME.KEY in UNIT as FORMAT`, whole on one line and without |"
_REFUSED = {
    "unread": f"no complete quote; {_HOW}",
    "image": "![...] loses a quote in its alternative text; use {figure} with :alt:",
    "html": "HTML cannot hold a quote",
}


@dataclass(frozen=True)
class Quote:
    """A role as it stands in the source: line from 1, column from 0, and what it says.

    `where` is "text", "heading", "math" or "alt"; only in text is it more than plain characters.
    """

    line: int
    column: int
    raw: str
    spec: str
    where: str


@dataclass(frozen=True)
class _Mark:
    """An occurrence of the mark; `where` is as for Quote, or "literal" if it is only shown."""

    line: int
    where: str


def scan(page: str, text: str) -> list[Quote]:
    """The quotes of a page in the order of its source.

    Raises InputError with ``chapters/x.md:LINE`` for one that MyST would drop or show as it stands:
    unfinished, cut by a table, in HTML, in the title of a directive fenced by backticks, or in an
    option that is not alt.
    """
    lines = text.split("\n")
    seen = dict.fromkeys(range(1, len(lines) + 1), 0)
    quotes = []
    for mark in _Walk(page).blocks(text, 0):
        source = lines[mark.line - 1]
        column = source.find(MARK, seen[mark.line])
        seen[mark.line] = column + len(MARK)
        if mark.where == "literal":
            continue
        role = ROLE.match(source, column) if column >= 0 else None
        if not role:
            raise InputError(f"{place(page, mark.line)}: {_REFUSED['unread']}")
        spec = " ".join(role["spec"].split())
        quotes.append(Quote(mark.line, column, role[0], spec, mark.where))
    return quotes


@cache
def _parser() -> Any:
    from markdown_it.renderer import RendererHTML
    from myst_parser.config.main import MdParserConfig
    from myst_parser.parsers.mdit import create_md_parser

    return create_md_parser(MdParserConfig(enable_extensions=set(EXTENSIONS)), RendererHTML)


class _Walk:
    """A walk through a page; each part knows the number of lines before it."""

    def __init__(self, page: str) -> None:
        self.page = page

    def _refuse(self, line: int, why: str) -> InputError:
        return InputError(f"{place(self.page, line)}: {why}")

    def blocks(self, text: str, before: int) -> Iterator[_Mark]:
        """The marks in Markdown text."""
        if MARK not in text:
            return
        lines, where = text.split("\n"), "text"
        for token in _parser().parse(text):
            if token.type == "heading_open":
                where = "heading"
            elif token.type == "heading_close":
                where = "text"
            elif token.type == "tr_open":
                self._check_row(lines[token.map[0]], before + token.map[0] + 1)
            elif token.type == "inline":
                yield from self._inline(token, before + token.map[0] + 1, where)
            elif token.type in ("fence", "colon_fence"):
                yield from self._fence(token, before + token.map[0] + 1)
            elif token.type in ("math_block", "math_block_label", "amsmath"):
                start, end = token.map
                yield from _marks(lines[start:end], before + start + 1, "math")
            elif token.type == "html_block" and MARK in token.content:
                raise self._refuse(before + token.map[0] + 1, _REFUSED["html"])

    def _check_row(self, row: str, line: int) -> None:
        """Refuse a row of a pipe table in which the end of a cell cuts a quote."""
        for cell in re.split(r"(?<!\\)\|", row):
            if re.search(r"(?<!`)\{quote\}", ROLE.sub("", cell)):
                raise self._refuse(line, f"the table's | cuts a quote; {_HOW}")

    def _inline(self, token: Any, line: int, where: str) -> Iterator[_Mark]:
        """The marks in a paragraph, heading, cell or title that starts on `line`."""
        starts = [found.start() for found in re.finditer(re.escape(MARK), token.content)]
        kinds = list(_kinds(token.children or [], where))
        if len(kinds) != len(starts):
            raise self._refuse(line, f"a quote cannot be told from what surrounds it; {_HOW}")
        for start, kind in zip(starts, kinds, strict=True):
            number = token.content.count("\n", 0, start)
            if kind in _REFUSED:
                raise self._refuse(line + number, _REFUSED[kind])
            directive = _BACKTICKED.match(token.content.split("\n")[number])
            if directive:
                raise self._refuse(
                    line + number,
                    "backticks around a directive cannot hold a quote in its title; "
                    f"write :::{directive[1]} and :::",
                )
            yield _Mark(line + number, kind)

    def _fence(self, token: Any, line: int) -> Iterator[_Mark]:
        """The marks in a directive that starts on `line`: its title, its options and its body."""
        directive = _DIRECTIVE.match(token.info.strip())
        if not directive or directive[1] in _LITERAL:
            return
        name, title = directive.groups()
        if name != "math":
            for inline in _parser().parseInline(title.strip()):
                yield from self._inline(inline, line, "text")
        body = token.content.split("\n")
        first = _after_options(body)
        for number, text in enumerate(body[:first], line + 1):
            option = _OPTION.match(text)
            if MARK in text and (not option or option[1] != "alt"):
                raise self._refuse(number, "of a directive's options only :alt: can hold a quote")
            yield from _marks([text], number, "alt")
        if name == "math":
            yield from _marks(body[first:], line + 1 + first, "math")
        else:
            yield from self.blocks("\n".join(body[first:]), line + first)


def _after_options(body: list[str]) -> int:
    """How many lines of a directive's content are options, between --- or of `:key: value`."""
    if body[0].strip() == "---":
        ends = [number for number, line in enumerate(body) if number and line.strip() == "---"]
        return ends[0] + 1 if ends else len(body)
    return next((n for n, line in enumerate(body) if not _OPTION.match(line)), len(body))


def _kinds(children: list[Any], where: str) -> Iterator[str]:
    """What each mark in an inline text is, in order."""
    for child in children:
        count = child.content.count(MARK)
        if child.type == "myst_role" and child.meta["name"] == "quote":
            yield where
        elif child.type == "myst_role":
            yield from ["math" if child.meta["name"] == "math" else "literal"] * count
        elif child.type.startswith("math_inline"):
            yield from ["math"] * count
        elif child.type == "code_inline":
            yield from ["literal"] * count
        elif child.type == "image":
            yield from ["image"] * count
        else:
            yield from ["html" if child.type == "html_inline" else "unread"] * count


def _marks(lines: list[str], first: int, where: str) -> Iterator[_Mark]:
    for number, line in enumerate(lines, first):
        yield from [_Mark(number, where)] * line.count(MARK)
