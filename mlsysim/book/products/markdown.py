"""Text as MyST Markdown that prints it as it is: escaped once, here, for every generated file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mlsysim.artifacts.numbers import NBSP, amount

__all__ = ["block", "code", "escaped", "in_cell", "link", "prose", "table", "under", "value"]

_SIGNS = "\\`*_{}[]<>#|~^$&"
# What would begin a list, a heading's line, a fence, a rule or a target at the start of a block.
_BEGINS = re.compile(r"(?P<number>\d+)(?P<mark>[.)])|(?P<sign>[-+:=(%])")


def escaped(text: str) -> str:
    r"""`text` so that MyST prints it as it is, in a sentence or in a cell.

    >>> escaped("a_b | 5 $")
    'a\\_b \\| 5 \\$'
    """
    return "".join(f"\\{sign}" if sign in _SIGNS else sign for sign in text)


def code(text: str) -> str:
    """`text` as inline code, whatever backticks it holds.

    >>> code("a < b"), code("`")
    ('`a < b`', '`` ` ``')
    """
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest or text != text.strip() else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def in_cell(markdown: str) -> str:
    r"""Markdown for a cell of a pipe table, where even code must not hold a bare ``|``.

    >>> in_cell(code("|a|"))
    '`\\|a\\|`'
    """
    return re.sub(r"(?<!\\)\|", r"\\|", re.sub("[ \n]+", " ", markdown))


def prose(text: str) -> str:
    r"""A sentence of a docstring: names in backticks stay code, all else is plain.

    >>> prose("a multiple of `batch_divisor`, 5 * x")
    'a multiple of `batch_divisor`, 5 \\* x'
    """
    parts = re.split(r"`+([^`]+)`+", " ".join(text.split()))
    return "".join(code(part) if odd % 2 else escaped(part) for odd, part in enumerate(parts))


def value(entry: Mapping[str, Any]) -> str:
    """A value as the artifact has it, its unit on the same line."""
    text = amount(entry)
    return escaped(text if isinstance(entry["value"], str) else text.replace(" ", NBSP))


def block(markdown: str) -> str:
    r"""Inline Markdown as a paragraph of its own, whose first sign begins nothing else.

    >>> block("1. is no list"), block("- nor is this")
    ('1\\. is no list', '\\- nor is this')
    """
    found = _BEGINS.match(markdown)
    if not found:
        return markdown
    begin = f"{found['number']}\\{found['mark']}" if found["number"] else f"\\{found['sign']}"
    return begin + markdown[found.end() :]


def link(text: str, target: str) -> str:
    """A link to a file or an address, which may hold brackets and blanks."""
    return f"[{text}](<{target}>)"


def under(first: str, second: str) -> str:
    """Two texts in one cell, the second on a line of its own if there is one."""
    return f"{first}<br>{second}" if second else first


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    kind: str = "stacked",
    numbers: Iterable[int] = (),
) -> str:
    """A pipe table of Markdown cells, in the directive of `reference_tables`.

    The `kind` "stacked" lets a phone put the cells of a row below each other; `numbers` are the
    columns, from 0, that are set flush right.
    """
    right = set(numbers)
    lines = [
        [escaped(name) for name in header],
        ["--:" if column in right else ":--" for column in range(len(header))],
        *([in_cell(cell) for cell in row] for row in rows),
    ]
    body = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return f":::{{reference-table}} {kind}\n{body}:::\n"
