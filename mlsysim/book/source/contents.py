"""The tables of contents of a page: what they list, and one more entry in them."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from mlsysim.book.source.myst import Directive, parsed

__all__ = ["lists", "with_chapter"]

_CHAPTER = re.compile(r"[0-9]{2}_\w+")


def lists(text: str, name: str) -> bool:
    """Whether a table of contents of this page lists the page of that name."""
    return any(
        fnmatchcase(name, each) if any(key.key == "glob" for key in tree.options) else name == each
        for tree in _trees(text)
        for each in _entries(tree)
    )


def with_chapter(text: str, name: str) -> str:
    """The text with this chapter in the table of contents that lists chapters, in its order.

    It is the same text if none does.
    """
    for tree in _trees(text):
        found = [
            (number, line.strip())
            for number, line in enumerate(tree.content.split("\n"), tree.first)
            if _CHAPTER.fullmatch(line.strip())
        ]
        if found:
            before = [number for number, entry in found if entry < name]
            lines = text.split("\n")
            lines.insert(before[-1] if before else found[0][0] - 1, name)
            return "\n".join(lines)
    return text


def _trees(text: str) -> list[Directive]:
    return [each for each, _ in parsed(text).directives if each.name == "toctree"]


def _entries(tree: Directive) -> list[str]:
    """The pages that it lists, whatever they are called there."""
    return [
        line.split("<")[-1].strip(" >").removesuffix(".md") for line in tree.content.split("\n")
    ]
