"""What `mlsysim check` finds, and how a finding is accepted in place with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Accept", "Finding", "accepts"]

_ACCEPT = re.compile(r"^(?P<before>[^%#]*)[%#]\s*accept\b:?\s*(?P<reason>.*?)\s*$")
_OPENS = re.compile(r"\s*(?P<fence>:{3,}|`{3,}|~{3,})\{")


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
    r"""Every comment `% accept: REASON`, in a code cell `# accept: REASON`.

    It stands above what it accepts, the lines up to the next empty one, or the whole directive
    that opens there; behind code it accepts its own line.

    >>> accepts("% accept: its own clock\nIt took 7.72 s.\nYes.\n\nNo.\n")
    [Accept(line=1, reason='its own clock', first=2, last=3)]
    """
    lines = text.split("\n")
    return list(_accepts(lines))


def _accepts(lines: list[str]) -> Iterator[Accept]:
    for number, line in enumerate(lines, start=1):
        found = _ACCEPT.match(line)
        if not found:
            continue
        if found["before"].strip():
            if "#" in line and not line.lstrip().startswith("%"):
                yield Accept(number, found["reason"], number, number)
            continue
        yield Accept(number, found["reason"], number + 1, _end(lines, number))


def _end(lines: list[str], first: int) -> int:
    """The last line, from 1, of the block that begins at the index `first`."""
    opened = _OPENS.match(lines[first]) if first < len(lines) else None
    at = first
    if opened:
        closing = re.compile(rf"\s*{opened['fence'][0]}{{{len(opened['fence'])},}}\s*")
        at += 1
        while at < len(lines) and not closing.fullmatch(lines[at]):
            at += 1
        return at + 1
    while at < len(lines) and lines[at].strip():
        at += 1
    return at
