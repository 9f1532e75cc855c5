"""A value that is not what it follows, and how messages tell of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mlsysim.calibration.following import Follower, reached
from mlsysim.calibration.rewriting import line_of
from mlsysim.documents import Document
from mlsysim.follows import told

__all__ = ["Finding", "message", "resting"]


@dataclass(frozen=True)
class Finding:
    """A value that is not what it follows: `due` is what it should be.

    Where that cannot be known, `wrong` says why.
    """

    follower: Follower
    due: Any = None
    wrong: str = ""

    @property
    def file(self) -> str:
        """The file in which it stands, as messages name it."""
        return self.follower.place[0]

    @property
    def line(self) -> int:
        """The line of the value there."""
        return line_of(self.follower)

    @property
    def told(self) -> str:
        """What is wrong with it."""
        if self.wrong:
            return f"{self.follower.key}: {self.wrong}"
        given = self.follower.leaf["value"]
        return f"{self.follower.key} = {given} follows {told(self.follower.leaf)}: {self.due}"

    @property
    def advice(self) -> str:
        """The same, and what mends it."""
        return self.told + ("" if self.wrong else "; run: mlsysim calibrate")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.told}"


def message(found: list[Finding]) -> str:
    """All findings as one error, with what mends them."""
    differ = sum(not each.wrong for each in found)
    lines = [f"    {each}" for each in found]
    many = len(found) > 1
    head = f"{len(found)} values are not what they" if many else "1 value is not what it"
    head += " follow" if many else " follows"
    if differ:
        head += "; run: mlsysim calibrate"
    return "\n".join([head, *lines])


def resting(told: Document, found: Iterable[Finding]) -> list[Finding]:
    """The findings that a document rests on."""
    places = set(reached(told))
    return [each for each in found if each.follower.place in places]
