"""A value that is not what it follows, and how messages tell of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mlsysim.calibration._rewriting import line_of
from mlsysim.calibration.following import Follower, reached
from mlsysim.declarations.documents import Document
from mlsysim.declarations.follows import told

__all__ = ["Finding", "message", "resting"]

_MOST = 100  # findings that a message lists


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
        return f"{self.follower.key} = {given}, but {told(self.follower.leaf)} gives {self.due}"

    @property
    def advice(self) -> str:
        """The same, and what mends it."""
        return self.told + ("" if self.wrong else "; run: mlsysim calibrate")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.told}"


def message(found: list[Finding]) -> str:
    """All findings as one error, with what mends them."""
    lines = [f"    {each}" for each in found[:_MOST]]
    if len(found) > _MOST:
        lines.append(f"    and {len(found) - _MOST} more")
    if all(each.wrong for each in found):
        head = f"values that cannot be compared with what they follow: {len(found)}"
    else:
        head = f"values that differ from what they follow: {len(found)}; run: mlsysim calibrate"
    return "\n".join([head, *lines])


def resting(told: Document, found: Iterable[Finding]) -> list[Finding]:
    """The findings that a document rests on."""
    places = set(reached(told))
    return [each for each in found if each.follower.place in places]
