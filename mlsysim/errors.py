"""What went wrong and what to type instead: the errors a user can cause and mend."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = [
    "InputError",
    "LayoutError",
    "MlsysimError",
    "UnitError",
    "UnknownName",
    "division",
    "ends",
    "for_terminal",
    "nearest",
    "printable",
    "shortened",
]

# Characters of one thing that was found, and of a line: what is longer is cut, wherever it is told.
_FOUND, _LINE = 200, 2_000
# What a terminal obeys, or shows as nothing: control characters, marks of direction and width.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_THING = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|\[[^][]*\]|\S+""")


class MlsysimError(Exception):
    """A mistake in what a person typed; the message names the thing, the place, the choices.

    `placed` is true once the message starts with the file in which the mistake is. Whatever is
    found in a file or typed can be in a message: of long things it tells the ends, and what a
    terminal would obey as escapes. Lines stay lines, for some messages list several mistakes.
    """

    placed = False

    def __init__(self, message: str = "") -> None:
        if len(message) > _FOUND or not message.isprintable():
            message = "\n".join(shortened(printable(line)) for line in message.split("\n"))
        super().__init__(message)


class InputError(MlsysimError, ValueError):
    """A document or an argument does not hold what its declaration asks for."""


class UnitError(MlsysimError, ValueError):
    """A text is no quantity of the vocabulary of units, or has the wrong dimension."""


class LayoutError(MlsysimError, ValueError):
    """A parallel layout that cannot exist; the message shows the arithmetic."""


class UnknownName(MlsysimError, AttributeError):
    """A name that nothing carries; the message lists the nearest names."""


def printable(line: str) -> str:
    r"""A line of text as a terminal may have it: what it would obey, or not show, is escaped.

    The escapes are those of JSON, so JSON stays what it was.

    >>> print(printable("red \x1b[31m, two\nlines"))
    red \u001b[31m, two\u000alines
    """
    if line.isprintable():
        return line
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def shortened(line: str) -> str:
    """A line without the middle of what is too long: of the line, and of each thing in it.

    A thing is what stands in quotes, backticks or brackets, or holds no blank.

    >>> len(shortened("batch = " + "9" * 10_000 + ": expected a whole number"))
    199
    """
    if len(line) <= _FOUND:
        return line
    return ends(_THING.sub(lambda found: ends(found[0], _FOUND), line), _LINE)


def ends(text: str, most: int) -> str:
    """A text of at most `most` characters, or its ends."""
    if len(text) <= most:
        return text
    end = most // 5
    return f"{text[: 3 * end]} [...] {text[-end:]}"


def for_terminal(lines: Iterable[str]) -> str:
    """Lines as a terminal may have them: of any text that they hold, nothing obeyed or endless."""
    return "\n".join(ends(printable(line), _LINE) for line in lines)


def division(whole: float, part: float) -> str:
    """The arithmetic of a count that does not divide another.

    >>> division(96, 5)
    '96 / 5 = 19.2'
    """
    return f"{whole:.12g} / {part:.12g} = {whole / part:.12g}"


def nearest(name: str, known: Iterable[str], *, count: int = 5) -> str:
    """The end of an error message: the names most like `name`, or some that exist.

    >>> nearest("H10", ["A100", "H100", "H200"])
    "did you mean 'H100'?"
    >>> nearest("zzz", ["A100", "H100"])
    'known: A100, H100'
    >>> nearest("zzz", [])
    'there are none yet'
    """
    from difflib import get_close_matches

    names = sorted(known)
    lowered: dict[str, str] = {}
    for each in names:
        lowered.setdefault(each.lower(), each)
    close = [lowered[m] for m in get_close_matches(name.lower(), lowered, n=3, cutoff=0.6)]
    if close:
        return "did you mean " + " or ".join(repr(m) for m in close) + "?"
    if not names:
        return "there are none yet"
    shown = ", ".join(names[:count])
    return f"known: {shown}" + (f" and {len(names) - count} more" if len(names) > count else "")
