"""What `mlsysim check` finds, and how a finding is accepted in place with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mlsysim.book.source.myst import Directive, parsed

__all__ = ["Accept", "Finding", "accepts", "accepts_on_page"]

_ACCEPT = re.compile(r"^(?P<before>[^%#]*)[%#]\s*accept\b:?\s*(?P<reason>.*?)\s*$")


@dataclass(frozen=True)
class Finding:
    """Something for the author to look at: a rule, a place, what is wrong, and what to write.

    `line` is 0 where the whole file is meant. Information does not fail the check.
    """

    rule: str
    file: str
    line: int
    message: str
    information: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.message}"


@dataclass(frozen=True)
class Accept:
    """A comment that accepts what is found in the lines from `first` to `last`."""

    line: int
    reason: str
    first: int
    last: int

    def covers(self, line: int) -> bool:
        """Whether it accepts what is found on a line."""
        return self.first <= line <= self.last


def accepts(text: str) -> list[Accept]:
    r"""Every line `% accept: REASON` or `# accept: REASON` of a file that is no page.

    It stands above what it accepts, the lines up to the next empty one; behind something it accepts
    its own line.

    >>> accepts("# accept: its own clock\n# It took 7.72 s.\n\nx = 1\n")
    [Accept(line=1, reason='its own clock', first=2, last=2)]
    """
    lines = text.split("\n")
    return [each for line in range(1, len(lines) + 1) for each in _accept(lines, line)]


def accepts_on_page(text: str) -> list[Accept]:
    r"""Every comment `% accept: REASON` of a page, in a code cell `# accept: REASON`.

    One that stands above a directive accepts the whole of it.

    >>> accepts_on_page("% accept: its own clock\nIt took 7.72 s.\nYes.\n\nNo.\n")
    [Accept(line=1, reason='its own clock', first=2, last=3)]
    """
    lines = text.split("\n")
    ends: dict[int, int] = {}
    comments: list[int] = []
    for block, _ in parsed(text).walk():
        if isinstance(block, Directive):
            ends[block.line] = block.last
        if block.kind == "comment" or (isinstance(block, Directive) and block.name == "code-cell"):
            comments += range(block.line, block.last + 1)
    return [
        replace(each, last=ends.get(each.first, each.last))
        for line in comments
        for each in _accept(lines, line)
    ]


def _accept(lines: list[str], line: int) -> Iterator[Accept]:
    text = lines[line - 1]
    found = _ACCEPT.match(text)
    if not found:
        return
    if not found["before"].strip():
        yield Accept(line, found["reason"], line + 1, _end(lines, line))
    elif "#" in text and not text.lstrip().startswith("%"):
        yield Accept(line, found["reason"], line, line)


def _end(lines: list[str], at: int) -> int:
    """The last line, from 1, of those from the index `at` up to the next empty one."""
    while at < len(lines) and lines[at].strip():
        at += 1
    return at
