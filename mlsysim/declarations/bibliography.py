"""The bibliography, chapters/references.bib: the works that values and chapters cite, by key."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from mlsysim import files, paths

if TYPE_CHECKING:
    from pybtex.database import Entry

__all__ = ["begins", "citations", "lines", "works"]

_ENTRY = re.compile(r"@\s*(?!(?:comment|string|preamble)\b)\w+\s*[{(]\s*(?P<key>[^,\s]+)\s*,", re.I)
_MACRO = re.compile(r"@\s*(?:string|preamble)\s*[{(]", re.I)
_SIGN = re.compile(r"[{}()\"]")


def works() -> dict[str, Entry]:
    """Every entry by its key. Raises InputError for what is no such file, with the line."""
    from pybtex.database import parse_string
    from pybtex.exceptions import PybtexError

    path = paths.bibliography()
    try:
        return dict(parse_string(files.text(path), "bibtex").entries)
    except (PybtexError, RecursionError) as error:
        raise files.unusable(path, f"not usable BibTeX: {error}") from None


def citations() -> frozenset[str]:
    """The keys of all entries; none where there is no bibliography."""
    return frozenset(lines())


def lines() -> dict[str, int]:
    """The line on which each entry begins, by its key.

    Every start of a command looks at the keys, and `works` would take as long as a tenth of it; so
    this parts the entries and leaves what is in them to `works`.
    """
    path = paths.bibliography()
    try:
        found = path.stat()
    except OSError:  # reading it tells what is wrong
        return _lines(path, 0, 0) if os.path.lexists(path) else {}
    return _lines(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=4)
def _lines(path: Path, _mtime: int, _size: int) -> dict[str, int]:
    return begins(files.text(path))


def begins(text: str) -> dict[str, int]:
    r"""The line on which each entry of BibTeX begins, by its key.

    >>> begins("% read by nobody\n@misc{a2020,\n  note = {like @misc{b2021, }},\n}")
    {'a2020': 2}
    """
    return {key: text.count("\n", 0, at) + 1 for key, at in _entries(text)}


def _entries(text: str) -> Iterator[tuple[str, int]]:
    """Each key and where its entry begins; what a value or a macro holds is no entry."""
    at = 0
    while (at := text.find("@", at)) >= 0:
        entry = _ENTRY.match(text, at)
        if entry:
            yield entry["key"], at
        begun = entry or _MACRO.match(text, at)
        at = _end(text, begun.end()) if begun else at + 1


def _end(text: str, at: int) -> int:
    """Where the entry ends whose content begins at `at`."""
    depth, quoted = 0, False
    for sign in _SIGN.finditer(text, at):
        if sign[0] == '"':
            quoted ^= not depth
        elif sign[0] == "{":
            depth += 1
        elif depth:
            depth -= sign[0] == "}"
        elif not quoted and sign[0] != "(":
            return sign.end()
    return len(text)
