"""Every {quote} and {claim} of a page with its line, found on the tokens MyST makes the page of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from mlsysim.book.source.cells import place
from mlsysim.errors import InputError

__all__ = [
    "CLAIM",
    "CLAIM_MARK",
    "EXTENSIONS",
    "MARK",
    "ROLE",
    "VERBATIM",
    "Role",
    "after_options",
    "parser",
    "scan",
]

# What conf.py enables; the scanner must read pages as Sphinx does.
EXTENSIONS = ("amsmath", "colon_fence", "dollarmath")


def _role(name: str) -> re.Pattern[str]:
    return re.compile(rf"\{{{name}\}}(?P<ticks>`+)(?!`)(?P<spec>.*?[^`])(?P=ticks)(?!`)")


MARK, CLAIM_MARK = "{quote}", "{claim}"
ROLE, CLAIM = _role("quote"), _role("claim")

_MARK = re.compile(r"\{(quote|claim)\}")
_DIRECTIVE = re.compile(r"\{([\w:.-]+)\}(.*)")
_OPTION = re.compile(r":([\w-]+):")
_BACKTICKED = re.compile(r"`{3,}\s*(\{[\w:.-]+\})")
# Directives that show their content as it stands.
_SHOWN = {
    *("code", "code-block", "code-cell", "literalinclude", "parsed-literal", "raw-cell"),
    "sourcecode",
}
# Directives whose content is no Markdown, or is dropped from a form of the book.
_DROPPED = {
    *("bibliography", "eval-rst", "footer", "header", "ifconfig", "include", "index", "mermaid"),
    *("meta", "only", "raw", "toctree"),
}
# Directives whose content holds no directive that the page shows.
VERBATIM = _SHOWN | _DROPPED | {"math"}
_HOW = {
    "quote": "write {quote}`NAME.KEY in UNIT as FORMAT`, whole on one line and without |",
    "claim": "write {claim}`PHRASE if CONDITION`, whole on one line and without |",
}
_REFUSED = {
    "unread": "no complete %s",
    "image": "![...] loses a %s in its alternative text; use {figure} with :alt:",
    "html": "HTML cannot hold a %s",
    "nested": "a %s cannot stand inside another role",
    "lost": "the page would lose this %s: a link's title, a cell beyond the columns of the table's "
    "header, the front matter, or a footnote that nothing refers to cannot hold one",
    "formula": "a formula cannot hold a %s; write it in the text",
    "indented": "an indented block would show this %s as it stands; indent less, or show it in ```",
}


@dataclass(frozen=True)
class Role:
    """A role as it stands in the source: line from 1, column from 0, and what it says.

    `name` is "quote" or "claim". `where` is "text", "heading", "math" or "alt"; only in text is it
    more than plain characters.
    """

    line: int
    column: int
    raw: str
    spec: str
    where: str
    name: str = "quote"


@dataclass(frozen=True)
class _Mark:
    """An occurrence of a mark; `where` is as for Role, or "literal" if it is only shown."""

    line: int
    where: str


def scan(page: str, text: str) -> list[Role]:
    """The quotes and claims of a page in the order of its source.

    Raises InputError with ``chapters/x.md:LINE`` for one that MyST would drop or show as it stands:
    unfinished, cut by a table, in HTML, in the title of a directive fenced by backticks, in an
    option that is not alt, or in a place that is no text at all. Each occurrence of a mark is
    accounted for, so none can be lost in a place that nobody thought of.
    """
    lines = text.split("\n")
    seen = dict.fromkeys(range(1, len(lines) + 1), 0)
    roles = []
    for mark in _Walk(page).blocks(text, 0):
        source = lines[mark.line - 1]
        found = _MARK.search(source, seen[mark.line])
        if not found:
            raise InputError(f"{place(page, mark.line)}: {_refused('unread', 'quote')}")
        seen[mark.line] = found.end()
        if mark.where == "literal":
            continue
        name = found[1]
        role = (ROLE if name == "quote" else CLAIM).match(source, found.start())
        if not role:
            raise InputError(f"{place(page, mark.line)}: {_refused('unread', name)}")
        spec = " ".join(role["spec"].split())
        if name == "claim" and mark.where == "math":
            raise InputError(f"{place(page, mark.line)}: {_refused('formula', name)}")
        roles.append(Role(mark.line, found.start(), role[0], spec, mark.where, name))
    for number, line in enumerate(lines, start=1):
        if missed := _MARK.search(line, seen[number]):
            raise InputError(f"{place(page, number)}: {_refused('lost', missed[1])}")
    return roles


def _refused(why: str, name: str) -> str:
    return f"{_REFUSED[why] % name}; {_HOW[name]}"


@cache
def parser() -> Any:
    """The parser of MyST, with what the book enables."""
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
        if not _MARK.search(text):
            return
        lines, where = text.split("\n"), "text"
        for token in parser().parse(text):
            if token.type == "heading_open":
                where = "heading"
            elif token.type == "heading_close":
                where = "text"
            elif token.type == "tr_open":
                self._check_row(lines[token.map[0]], before + token.map[0] + 1)
            elif token.type == "inline":
                yield from self._inline(token, before + token.map[0] + 1, where)
            elif token.type in ("fence", "colon_fence"):
                yield from self._fence(token, lines, before)
            elif token.type in ("code_block", "myst_line_comment"):
                yield from self._literal(token, lines, before)
            elif token.type in ("math_block", "math_block_label", "amsmath"):
                start, end = token.map
                yield from _marks(lines[start:end], before + start + 1, "math")
            elif token.type == "html_block" and (mark := _MARK.search(token.content)):
                number = token.content.count("\n", 0, mark.start())
                line = before + token.map[0] + 1 + number
                raise self._refuse(line, _refused("html", mark[1]))

    def _check_row(self, row: str, line: int) -> None:
        """Refuse a row of a pipe table in which the end of a cell cuts a role."""
        for cell in re.split(r"(?<!\\)\|", row):
            cut = re.search(r"(?<!`)\{(quote|claim)\}", CLAIM.sub("", ROLE.sub("", cell)))
            if cut:
                raise self._refuse(line, f"the table's | cuts a {cut[1]}; {_HOW[cut[1]]}")

    def _inline(self, token: Any, line: int, where: str) -> Iterator[_Mark]:
        """The marks in a paragraph, heading, cell or title that starts on `line`."""
        marks = list(_MARK.finditer(token.content))
        kinds = list(_kinds(token.children or [], where))
        if len(kinds) != len(marks):
            raise self._refuse(line, _refused("lost", marks[0][1]))
        for mark, kind in zip(marks, kinds, strict=True):
            number = token.content.count("\n", 0, mark.start())
            if kind in _REFUSED:
                raise self._refuse(line + number, _refused(kind, mark[1]))
            directive = _BACKTICKED.match(token.content.split("\n")[number])
            if directive:
                raise self._refuse(
                    line + number,
                    f"backticks around a directive cannot hold a {mark[1]} in its title; "
                    f"write :::{directive[1]} and :::",
                )
            yield _Mark(line + number, kind)

    def _literal(self, token: Any, lines: list[str], before: int) -> Iterator[_Mark]:
        """The marks in a block that is shown as it stands, or not at all because it says so."""
        start, end = token.map
        held = _MARK.search(token.content)
        if held and token.type == "code_block":  # more likely a slip than code
            line = before + start + 1 + token.content.count("\n", 0, held.start())
            raise self._refuse(line, _refused("indented", held[1]))
        yield from _marks(lines[start:end], before + start + 1, "literal")

    def _fence(self, token: Any, lines: list[str], before: int) -> Iterator[_Mark]:
        """The marks in a directive: its title, its options and its body."""
        line = before + token.map[0] + 1
        directive = _DIRECTIVE.match(token.info.strip())
        if not directive or directive[1] in _SHOWN:
            yield from self._literal(token, lines, before)
            return
        name, title = directive.groups()
        if name in _DROPPED:
            for mark in self._literal(token, lines, before):
                found = _MARK.search(lines[mark.line - before - 1])
                why = f"{{{name}}} cannot hold a {found[1] if found else 'quote'}"
                raise self._refuse(mark.line, f"{why}: not every form of the book would show it")
            return
        if name != "math":
            for inline in parser().parseInline(title.strip()):
                yield from self._inline(inline, line, "text")
        body = token.content.split("\n")
        first = after_options(body)
        for number, text in enumerate(body[:first], line + 1):
            option = _OPTION.match(text)
            held = _MARK.search(text)
            if held and (not option or option[1] != "alt"):
                why = f"of a directive's options only :alt: can hold a {held[1]}"
                raise self._refuse(number, why)
            yield from _marks([text], number, "alt")
        if name == "math":
            yield from _marks(body[first:], line + 1 + first, "math")
        else:
            yield from self.blocks("\n".join(body[first:]), line + first)


def after_options(body: list[str]) -> int:
    """How many lines of a directive's content are options, between --- or of `:key: value`."""
    if body[0].strip() == "---":
        ends = [number for number, line in enumerate(body) if number and line.strip() == "---"]
        return ends[0] + 1 if ends else len(body)
    return next((n for n, line in enumerate(body) if not _OPTION.match(line)), len(body))


def _kinds(children: list[Any], where: str) -> Iterator[str]:
    """What each mark in an inline text is, in order."""
    for child in children:
        count = len(_MARK.findall(child.content))
        name = child.meta.get("name") if child.type == "myst_role" else ""
        if name in ("quote", "claim"):
            yield from [where] + ["nested"] * count
        elif name:
            shown = {"math": "math", "code": "literal", "literal": "literal"}
            yield from [shown.get(name, "nested")] * count
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
        yield from [_Mark(number, where)] * len(_MARK.findall(line))
