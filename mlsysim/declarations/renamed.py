"""Outputs that have another name since this edition: who asks for the old one is told the new one.

Apart from the outputs themselves, because this looks at what is loaded, and no artifact may.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from mlsysim.declarations.outputs import Output
from mlsysim.errors import nearest

__all__ = ["meant"]


def meant(key: str, known: Iterable[str], count: int = 5) -> str:
    """What may be meant by a key that is none: its new name, or the nearest of those known.

    New names are those that the classes declare which are loaded.
    """
    parts, known = key.split("."), list(known)
    for number, part in enumerate(parts):
        for new in sorted(_renamed(part)):
            now = ".".join((*parts[:number], new, *parts[number + 1 :]))
            if now in known:
                return f"it was renamed; write {now!r}"
    return nearest(key, known, count=count)


def _renamed(old: str) -> set[str]:
    """What outputs of the classes that are loaded are called, whose name this was."""
    classes = (each for module in [*sys.modules.values()] for each in [*vars(module).values()])
    members = (vars(each).values() for each in classes if isinstance(each, type))
    return {
        member.name
        for each in members
        for member in each
        if isinstance(member, Output) and member.formerly == old
    }
