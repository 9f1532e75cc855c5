"""One source file as a module: what it imports, what it assumes, and its digest.

What was found is kept for later processes, because parsing all takes a while.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mlsysim import files, paths
from mlsysim.artifacts import _syntax
from mlsysim.canonical import digest, loads

__all__ = [
    "OWN",
    "PACKAGE",
    "Module",
    "file_of",
    "module",
    "module_from",
    "parts_of",
    "read",
    "remember",
    "remembered",
]

PACKAGE = paths.PACKAGE.name

# What is remembered holds for this version of these modules alone.
_READERS = (*sorted(Path(__file__).parent.glob("_*.py")), Path(__file__).with_name("code.py"))
OWN = digest(b"".join(each.read_bytes() for each in _READERS))


@dataclass(frozen=True)
class Module:
    """One source file: its digest, what it imports, the assumptions it states, and its data file.

    An assumption is its topic, a colon, and what is assumed. `data` is a digest, empty if there is
    no such file.
    """

    digest: str
    imports: tuple[str, ...]
    libraries: tuple[str, ...]
    assumptions: tuple[str, ...]
    data: str


def module(path: Path) -> Module:
    """The module in a file; a text file of its name beside it (vocabulary.txt) is part of it."""
    return module_from(path, *read(path))


def read(path: Path) -> tuple[bytes, bytes]:
    """The source of a module, and the text file beside it."""
    return path.read_bytes(), files.read(path.with_suffix(".txt"))


def module_from(path: Path, source: bytes, data: bytes) -> Module:
    """The same of what `read` gave."""
    key = digest(b"\0".join((OWN.encode(), path.as_posix().encode(), source, data)))
    known = remembered()
    if key not in known:
        known[key] = [*_parsed(path, source, data)]
    own, ours, theirs, assumptions, beside = known[key]
    return Module(own, tuple(ours), tuple(theirs), tuple(assumptions), beside)


@cache
def remembered() -> dict[str, list[Any]]:
    """What earlier processes found in sources, by their content: parsing all takes a while."""
    try:
        known = loads(files.read(_memory()))
    except ValueError:
        return {}
    return known if isinstance(known, dict) else {}


def _memory() -> Path:
    return paths.build() / "code.json"


def remember() -> None:
    """Keep what was found for later processes."""
    text = json.dumps(remembered(), sort_keys=True)
    if len(text) < _MOST:
        files.write(_memory(), text)
    else:
        files.write(_memory(), "{}")  # years of edits: begin anew


_MOST = 4_000_000


def _parsed(
    path: Path, source: bytes, data: bytes
) -> tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...], str]:
    """Digest, imports of ours and of others, assumptions, and the data file of a source file."""
    tree = ast.parse(source)
    assumptions = tuple(_syntax.assumptions(source.decode()))
    for each in assumptions:
        if not _TOPIC.match(each):
            raise files.unusable(
                path, f"'# ASSUME {each[:60]}' names no topic, as '# ASSUME memory: ...' does"
            )
    beside = _syntax.data_lines(data)
    ours, theirs = _imports(tree, path)
    content = "\n".join((_syntax.text(tree), *assumptions, *beside))
    return digest(content), ours, theirs, assumptions, digest(beside) if beside else ""


# What an assumption begins with: a word or two, as a reader would look them up.
_TOPIC = re.compile(r"\w[\w -]*: ")


def _imports(tree: ast.AST, path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a file imports anywhere in it: names in this package, and third-party libraries."""
    ours, theirs = set(), set()
    for node in _syntax.run(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join((*parts_of(path)[: -node.level], *filter(None, (base,))))
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            top = name.partition(".")[0]
            if top == PACKAGE:
                ours.add(name)
            elif top not in sys.stdlib_module_names:
                theirs.add(top)
    return tuple(sorted(ours)), tuple(sorted(theirs))


def parts_of(path: Path) -> tuple[str, ...]:
    """The dotted name of the module in a file, by its parts; a package ends in ``__init__``."""
    return path.relative_to(paths.PACKAGE.parent).with_suffix("").parts


def file_of(name: str) -> Path | None:
    """The file of a module of this package; None for a name inside a module."""
    base = f"{paths.PACKAGE.parent}/{name.replace('.', '/')}"
    for path in (f"{base}.py", f"{base}/__init__.py"):
        if os.path.isfile(path):  # noqa: PTH113  many are asked for, and most are no files
            return Path(path)
    return None
