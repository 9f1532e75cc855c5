"""The parts of a text, such as roles, formulas and links, each with the line on which it begins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Span", "spans"]

_KINDS = {
    "code_inline": "code",
    "footnote_ref": "footnote",
    "hardbreak": "break",
    "html_inline": "html",
    "link_close": "link end",
    "link_open": "link",
    "myst_role": "role",
    "softbreak": "break",
}


@dataclass(frozen=True)
class Span:
    """A part of a text, and the line on which it begins.

    `kind` is text, break, code, math, role, link, link end, image, html, footnote, or what else
    the parser says. `name` is that of a role, `target` where a link or an image leads, `title` what
    it says there. `breaks` are the ends of lines inside of its source.
    """

    kind: str
    line: int
    content: str = ""
    name: str = ""
    target: str = ""
    title: str = ""
    breaks: int = 0
    bare: bool = False  # a link that is its own text


def spans(parts: Sequence[Any], source: str, first: int) -> tuple[Span, ...]:
    """The parts of a text that begins on the line `first`, from the tokens of the parser."""
    return tuple(_spans(parts, source, first))


def _spans(parts: Sequence[Any], source: str, first: int) -> Iterator[Span]:
    at = 0
    for part in parts:
        kind = _KINDS.get(part.type, part.type)
        line = first + source.count("\n", 0, at)
        if kind == "break":
            at = source.find("\n", at) + 1
            yield Span(kind, line, "\n")
            continue
        start, end = _place(part.content, source, at)
        if kind in ("code", "role"):  # the end of a line may stand before the last sign
            end = max(end, source.find("`", end)) if end > at else end
        yield Span(
            "math" if kind.startswith("math_inline") else kind,
            line,
            part.content,
            name=str(part.meta.get("name", "")) if kind == "role" else "",
            target=str(part.attrs.get("src" if kind == "image" else "href", "")),
            title=str(part.attrs.get("title", "")),
            breaks=source.count("\n", start, end),
            bare=part.markup == "autolink",
        )
        at = end


def _place(content: str, source: str, at: int) -> tuple[int, int]:
    """Where a part of a text begins and ends in its source; it begins on the line of `at`.

    A break inside of code or of a role is a blank there, and a line in the source. What is written
    otherwise, as a sign with a backslash, is nowhere.
    """
    if not content:
        return at, at
    ends = source.find("\n", at)
    line = ends if ends >= 0 else len(source)
    start = source.find(content, at)
    if 0 <= start <= line:
        return start, start + len(content)
    words = re.compile(r"\s+".join(map(re.escape, content.split())) or "$.")
    found = words.search(source, at)
    return found.span() if found and found.start() <= line else (at, at)
