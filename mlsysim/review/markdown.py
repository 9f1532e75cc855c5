"""A report as Markdown, short enough for what forges show of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from mlsysim.errors import printable
from mlsysim.review.report import Report, Section

__all__ = ["COMMENT", "markdown"]

# Characters of a comment on a large forge are 65,536; a run's summary may have sixteen times that.
COMMENT = 65_000

_SPECIAL = re.compile(r"([\\`*_\[\]<>|$~])")
_KEPT = 3  # rows that an open section keeps however little room there is


def markdown(found: Report, *, most: int = COMMENT) -> str:
    """The report in at most `most` characters: what is folded is cut first, and it says so.

    >>> empty = Report("A", "B", "nothing moved", (), (), ())
    >>> print(markdown(empty))
    ### A → B: nothing moved
    <BLANKLINE>
    """
    sections = list(found.sections)
    text = _text(found, sections)
    for first in (False, True):  # what may be skipped goes first, the last of it at the start
        for number in reversed(range(len(sections))):
            section = sections[number]
            keep = _KEPT if first else 0
            while len(text) > most and section.first == first and len(section.rows) > keep:
                left = max(keep, len(section.rows) // 2)
                left = left if left < len(section.rows) else keep
                gone = len(section.rows) - left
                section = replace(section, rows=section.rows[:left], folded=section.folded + gone)
                sections[number] = section
                text = _text(found, sections)
    return text if len(text) <= most else text[: most - 40] + "\n\n(cut; run `mlsysim diff`)\n"


def _text(found: Report, sections: Iterable[Section]) -> str:
    lines = [f"### {_plain(found.before)} → {_plain(found.after)}: {found.verdict}", ""]
    lines += [f"- {_plain(line)}" for line in found.summary]
    if found.warnings:
        lines += ["", "> [!WARNING]", *(f"> - {_plain(each)}" for each in found.warnings)]
    for section in sections:
        lines += ["", *_section(section)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(section: Section) -> list[str]:
    count = len(section.rows) + section.folded
    title = f"{section.title} ({count:,})"
    body = _table(section.heads, section.rows) if section.rows else []
    if section.folded:
        what = "more" if section.rows else "rows"
        body += ["", f"{section.folded:,} {what}: `mlsysim diff --all` lists them."]
    if section.first:
        return [f"#### {title}", "", *body]
    return [f"<details><summary>{title}</summary>", "", *body, "", "</details>"]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(map(_plain, heads))} |",
        f"|{' --- |' * len(heads)}",
        *(f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows),
    ]


def _cell(text: str) -> str:
    indent = len(text) - len(text.lstrip())
    return "&nbsp;" * indent + _plain(text.strip())


def _plain(text: str) -> str:
    """A text of which a forge makes no markup."""
    return (
        _SPECIAL.sub(r"\\\1", printable(" ".join(text.split())))
        .replace("->", "→")
        .replace(r"-\>", "→")
    )
