"""The options at the head of a directive, told from its content and read as MyST does."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from textwrap import dedent

__all__ = ["Option", "options", "parted"]


@dataclass(frozen=True)
class Option:
    """An option of a directive, and the line on which its value begins."""

    line: int
    key: str
    value: str


def parted(lines: list[str]) -> tuple[int, str, list[str]]:
    """The number of lines of options, these as YAML, and the other lines: as MyST parts them."""
    if lines and lines[0].startswith("---"):
        for number, line in enumerate(lines[1:], 1):
            if line.startswith("---"):
                settings = dedent("\n".join(lines[1:number]))
                behind = line.lstrip("-").removeprefix(" ")
                if behind:
                    return number, settings, [behind, *lines[number + 1 :]]
                return number + 1, settings, lines[number + 1 :]
        return len(lines), dedent("\n".join(lines[1:])), []
    count = 0
    while count < len(lines) and re.match(r"\s*:(?!::)", lines[count]):
        count += 1
    return count, "\n".join(line.lstrip()[1:] for line in lines[:count]), lines[count:]


def options(settings: str, first: int) -> tuple[Option, ...]:
    r"""The options that YAML from the line `first` on gives; none if MyST refuses it.

    >>> options("name: fig-a\nalt: 'It takes: 7 s'  # about", 4)[1]
    Option(line=5, key='alt', value='It takes: 7 s')
    """
    from myst_parser.parsers.options import TokenizeError, options_to_tokens

    with suppress(TokenizeError):
        return tuple(
            Option(first + (value or key).start.line, key.value, value.value if value else "")
            for key, value in options_to_tokens(settings)[0]
        )
    return ()
