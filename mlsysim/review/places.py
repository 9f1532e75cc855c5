"""Where a page prints something: line, section, and the sentence with its numbers in place."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mlsysim.book.source.myst import Block, parsed
from mlsysim.book.source.scanner import Role, scan
from mlsysim.book.source.shown_tables import shown
from mlsysim.errors import MlsysimError

__all__ = ["Place", "Source"]

# The end of a sentence: a full stop, perhaps a bracket, and a capital, a digit or a role after it.
_ENDS = re.compile(r"[.!?][)\]*_\"”]*\s+(?=[A-Z0-9{$`\[*(“\"])")
_PHRASE = re.compile(r"(?P<phrase>.*) if ", re.DOTALL)
# What a line of a directive says before its text.
_MARKUP = re.compile(r":{3,}\{[\w:.-]+\} *|:alt: *|[#>]+ +")


@dataclass(frozen=True)
class Place:
    """A place of a page: its line, the heading above it, and the sentence that stands there.

    `kind` is "text", "heading", "math", "alt", "caption", "table" or "figure"; only what stands in
    a text has a sentence.
    """

    page: str
    line: int
    section: str
    kind: str
    sentence: str = ""
    product: str = ""  # the table or figure, and of a table the heads of row and column

    @property
    def is_prominent(self) -> bool:
        """Whether a reader who leafs through sees it."""
        return self.kind in ("heading", "caption")

    def cell(self, table: str, rows: Sequence[Sequence[str]], row: int, column: int) -> Place:
        """The place of a cell of a table that is shown here, by the heads of its row and column."""
        head = rows[row][0] if row < len(rows) and rows[row] else ""
        name = rows[0][column] if rows and column < len(rows[0]) else ""
        told = ", ".join(each for each in (table, head if column else "", name) if each)
        return replace(self, product=told)

    def of_figure(self, figure: str) -> Place:
        """The place of what is drawn in a figure that is shown here."""
        return replace(self, product=figure)

    def __str__(self) -> str:
        return f"chapters/{self.page}.md:{self.line}" if self.line else f"chapters/{self.page}.md"


class Source:
    """The source of a page of a revision, and what it prints, in the order of its record."""

    def __init__(self, page: str, text: str, quoted: Sequence[str]) -> None:
        """`quoted` is what the quotes in its text print, those in tables left out."""
        self.page = page
        self.text = text
        self._lines = text.split("\n")
        try:
            self.roles = scan(page, text)
            blocks = list(parsed(text).walk())
        except MlsysimError:  # a page of before, which this code would refuse
            self.roles, blocks = [], []
        quotes = [role for role in self.roles if role.name == "quote"]
        self._printed = dict(zip(quotes, quoted, strict=False))
        self.quotes = quotes if len(quotes) == len(quoted) else []
        self.claims = [role for role in self.roles if role.name == "claim"]
        self._blocks = [block for block, _ in blocks if block.kind in ("text", "cell", "heading")]
        self._sections = [
            (block.line, self._heading(block)) for block, _ in blocks if block.kind == "heading"
        ]
        self._captions = {
            line
            for block, around in blocks
            if around and around[-1].name in ("figure", "table") and block.kind == "text"
            for line in range(block.line, block.last + 1)
        }

    def quote(self, number: int) -> Place:
        """The place of the quote of that number; without a line if this code cannot read it."""
        if number >= len(self.quotes):
            return Place(self.page, 0, "", "text")
        return self._of(self.quotes[number])

    def claim(self, number: int) -> Place:
        """The place of the claim of that number."""
        if number >= len(self.claims):
            return Place(self.page, 0, "", "text")
        return self._of(self.claims[number])

    def table(self, name: str) -> Place:
        """Where a saved table is shown."""
        lines = [each.line for each in shown(self.text) if each.table == name]
        line = lines[0] if lines else self._line_of(f"results/tables/{name}.")
        return Place(self.page, line, self._section(line), "table")

    def figure(self, name: str) -> Place:
        """Where a saved figure is shown."""
        line = self._line_of(f"results/figures/{name}.")
        return Place(self.page, line, self._section(line), "figure")

    def _line_of(self, text: str) -> int:
        return next((n for n, line in enumerate(self._lines, 1) if text in line), 0)

    def _of(self, role: Role) -> Place:
        kind = role.where
        if kind == "text" and role.line in self._captions:
            kind = "caption"
        return Place(self.page, role.line, self._section(role.line), kind, self._sentence(role))

    def _section(self, line: int) -> str:
        at = bisect_right([first for first, _ in self._sections], line)
        return self._sections[at - 1][1] if at else ""

    def _heading(self, block: Block) -> str:
        return _MARKUP.sub("", " ".join(self._filled(block.line, block.last).split()), count=1)

    def _sentence(self, role: Role) -> str:
        """The sentence around a role, every quote in it as what it prints."""
        block = next((b for b in self._blocks if b.line <= role.line <= b.last), None)
        first, last = (block.line, block.last) if block else (role.line, role.line)
        if block and block.row:  # a cell of a table of the source: its row
            return " ".join(self._filled(block.row, block.row).split())
        before = self._filled(first, last, until=role)
        whole = self._filled(first, last)
        start = max((each.end() for each in _ENDS.finditer(before)), default=0)
        after = _ENDS.search(whole, len(before))
        sentence = " ".join(whole[start : after.end() if after else len(whole)].split())
        return _MARKUP.sub("", sentence, count=1) if _MARKUP.match(sentence) else sentence

    def _filled(self, first: int, last: int, until: Role | None = None) -> str:
        """The lines from `first` to `last`, or to the role `until`, with what roles print."""
        return "".join(self._pieces(first, last, until))

    def _pieces(self, first: int, last: int, until: Role | None) -> Iterator[str]:
        for number in range(first, last + 1):
            line, at = self._lines[number - 1], 0
            for role in (each for each in self.roles if each.line == number):
                yield line[at : role.column]
                if role == until:
                    return
                at = role.column + len(role.raw)
                yield self._printed.get(role, "") if role.name == "quote" else _phrase(role.spec)
            yield line[at:] + "\n"


def _phrase(spec: str) -> str:
    found = _PHRASE.match(spec)
    return found["phrase"] if found else spec
