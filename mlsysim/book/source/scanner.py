"""Every {quote} and {claim} of a page with its place, and the refusal of those it would lose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mlsysim.book.source.cells import place
from mlsysim.book.source.myst import Block, Directive, parsed
from mlsysim.book.source.spans import Span
from mlsysim.errors import InputError

__all__ = ["CLAIM", "CLAIM_MARK", "MARK", "ROLE", "VERBATIM", "Role", "scan"]


def _role(name: str) -> re.Pattern[str]:
    return re.compile(rf"\{{{name}\}}(?P<ticks>`+)(?!`)(?P<spec>.*?[^`])(?P=ticks)(?!`)")


MARK, CLAIM_MARK = "{quote}", "{claim}"
ROLE, CLAIM = _role("quote"), _role("claim")

_MARK = re.compile(r"\{(quote|claim)\}")
_ALT = re.compile(r"\s*:alt:")
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
    more than plain characters. `before` is what a formula holds before it.
    """

    line: int
    column: int
    raw: str
    spec: str
    where: str
    name: str = "quote"
    before: str = ""


@dataclass(frozen=True)
class _Mark:
    """An occurrence of a mark; `where` is as for Role, or "literal" if it is only shown."""

    line: int
    where: str
    before: str = ""


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
    for mark in _Walk(page, lines).blocks(parsed(text).blocks):
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
        roles.append(Role(mark.line, found.start(), role[0], spec, mark.where, name, mark.before))
    for number, line in enumerate(lines, start=1):
        if missed := _MARK.search(line, seen[number]):
            raise InputError(f"{place(page, number)}: {_refused('lost', missed[1])}")
    return roles


def _refused(why: str, name: str) -> str:
    return f"{_REFUSED[why] % name}; {_HOW[name]}"


class _Walk:
    """A walk through the blocks of a page, whose lines it knows."""

    def __init__(self, page: str, lines: list[str]) -> None:
        self.page = page
        self.lines = lines

    def _refuse(self, line: int, why: str) -> InputError:
        return InputError(f"{place(self.page, line)}: {why}")

    def blocks(self, blocks: Iterable[Block]) -> Iterator[_Mark]:
        """The marks in Markdown."""
        row = 0
        for block in blocks:
            if block.row not in (row, 0):
                self._check_row(block.row)
            row = block.row
            held = _MARK.search(block.content)
            if isinstance(block, Directive):
                yield from self._directive(block)
            elif not held and block.kind != "math":
                continue
            elif block.kind in ("text", "heading", "cell"):
                yield from self._text(block, "heading" if block.kind == "heading" else "text")
            elif held and block.kind in ("html", "indented"):  # the latter rather a slip than code
                line = block.line + block.content.count("\n", 0, held.start())
                raise self._refuse(line, _refused(block.kind, held[1]))
            elif block.kind == "math":
                yield from self._formula(block)
            else:
                yield from self._marks(block.line, block.last, "literal")

    def _check_row(self, line: int) -> None:
        """Refuse a row of a pipe table in which the end of a cell cuts a role."""
        for cell in re.split(r"(?<!\\)\|", self.lines[line - 1]):
            cut = re.search(r"(?<!`)\{(quote|claim)\}", CLAIM.sub("", ROLE.sub("", cell)))
            if cut:
                raise self._refuse(line, f"the table's | cuts a {cut[1]}; {_HOW[cut[1]]}")

    def _text(self, text: Block, where: str) -> Iterator[_Mark]:
        """The marks in a paragraph, heading, cell or title."""
        marks = list(_MARK.finditer(text.content))
        kinds = [each for span in text.spans for each in _kinds(span, where)]
        if len(kinds) != len(marks):
            raise self._refuse(text.line, _refused("lost", marks[0][1]))
        for mark, (kind, before) in zip(marks, kinds, strict=True):
            number = text.content.count("\n", 0, mark.start())
            if kind in _REFUSED:
                raise self._refuse(text.line + number, _refused(kind, mark[1]))
            directive = _BACKTICKED.match(text.content.split("\n")[number])
            if directive:
                raise self._refuse(
                    text.line + number,
                    f"backticks around a directive cannot hold a {mark[1]} in its title; "
                    f"write :::{directive[1]} and :::",
                )
            yield _Mark(text.line + number, kind, before)

    def _directive(self, block: Directive) -> Iterator[_Mark]:
        """The marks in a directive: its title, its options and its content."""
        if block.name in _SHOWN:
            yield from self._marks(block.line, block.last, "literal")
            return
        if block.name in _DROPPED:
            for mark in self._marks(block.line, block.last, "literal"):
                found = _MARK.search(self.lines[mark.line - 1])
                why = f"{{{block.name}}} cannot hold a {found[1] if found else 'quote'}"
                raise self._refuse(mark.line, f"{why}: not every form of the book would show it")
            return
        if block.name != "math" and _MARK.search(block.title):
            yield from self._text(block.titled, "text")
        for number, option in enumerate(block.head, block.line + 1):
            held = _MARK.search(option)
            if held and not _ALT.match(option):
                why = f"of a directive's options only :alt: can hold a {held[1]}"
                raise self._refuse(number, why)
            yield from self._marks(number, number, "alt")
        if block.name == "math":
            yield from self._formula(block)
        elif _MARK.search(block.content):
            yield from self.blocks(block.blocks)

    def _formula(self, block: Block) -> Iterator[_Mark]:
        """The marks in a formula that stands by itself."""
        held = [before for _, before in _held(block.content, "math")]
        for number, mark in enumerate(self._marks(block.first, block.last, "math")):
            yield replace(mark, before="".join(held[number : number + 1]))  # a label is not in it

    def _marks(self, first: int, last: int, where: str) -> Iterator[_Mark]:
        for number, line in enumerate(self.lines[first - 1 : last], first):
            yield from [_Mark(number, where)] * len(_MARK.findall(line))


def _kinds(span: Span, where: str) -> Iterator[tuple[str, str]]:
    """What each mark in a part of a text is, in order, and what a formula holds before it."""
    if span.kind == "role" and span.name in ("quote", "claim"):
        yield where, ""
        yield from _held(span.content, "nested")
    elif span.kind == "role":
        shown = {"math": "math", "code": "literal", "literal": "literal"}
        yield from _held(span.content, shown.get(span.name, "nested"))
    else:
        shown = {"math": "math", "code": "literal", "image": "image", "html": "html"}
        yield from _held(span.content, shown.get(span.kind, "unread"))


def _held(content: str, where: str) -> Iterator[tuple[str, str]]:
    for mark in _MARK.finditer(content):
        yield where, content[: mark.start()] if where == "math" else ""
