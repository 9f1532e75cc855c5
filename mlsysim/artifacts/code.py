"""Which code makes an artifact, as digests that comments and layout cannot move.

The modules are the static closure of imports from the one that defines the scenario's class. Each
is digested as its syntax tree, written by our own walk because the standard dump differs between
Python versions. Texts that an artifact prints count too: docstrings of classes and outputs, and
comments that start with ASSUME.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mlsysim import files, paths
from mlsysim.canonical import digest, loads
from mlsysim.errors import InputError, MlsysimError, nearest
from mlsysim.runtime import loaded

__all__ = [
    "Module",
    "check_imported",
    "check_unedited",
    "closure",
    "closure_of_kind",
    "definitions",
    "libraries",
    "module",
    "one_look",
    "remember",
]

_SILENT = ("ctx", "kind", "type_comment")
_PRINTED = ("property", "cached_property", "output")
_PACKAGE = paths.PACKAGE.name
# An artifact is made by the module of its kind, and by these.
_MAKERS = (f"{_PACKAGE}.artifacts.making", f"{_PACKAGE}.registry.loading")


# What `one_look` has found: each module by its name, none for a name inside a module.
_LOOKED: ContextVar[dict[str, Module | None] | None] = ContextVar("_LOOKED", default=None)


@dataclass(frozen=True)
class Module:
    """One source file: its digest, what it imports, and the assumptions it states."""

    digest: str
    imports: tuple[str, ...]
    libraries: tuple[str, ...]
    assumptions: tuple[str, ...]


def closure(*starts: str) -> dict[str, Module]:
    """The modules of this package that the starting ones import, directly or not, sorted."""
    todo, seen = list(starts), {}
    looked = _LOOKED.get()
    known = {} if looked is None else looked
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        if name not in known:
            path = _file(name)
            known[name] = module(path) if path else None
        found = known[name]
        if found is None:
            continue
        seen[name] = found
        todo += [
            name.rsplit(".", depth)[0] for depth in range(1, name.count(".") + 1)
        ]  # parents run too
        todo += found.imports
    return dict(sorted(seen.items()))


@contextmanager
def one_look() -> Iterator[None]:
    """While this lasts each module is what it was when it was first asked for.

    A build asks for the modules of every scenario class, which are mostly the same.
    """
    token = _LOOKED.set({})
    try:
        yield
    finally:
        _LOOKED.reset(token)


def closure_of_kind(kind: str) -> dict[str, Module]:
    """The modules that can move a digit or a text in the artifacts of a scenario class."""
    kinds = _kinds()
    if kind not in kinds:
        raise InputError(f"kind {kind!r} is no scenario class; {nearest(kind, kinds)}")
    return closure(kinds[kind], *_MAKERS)


def definitions(*others: str) -> dict[str, str]:
    """The digests of the modules that say what a scenario file holds, and of some others."""
    homes = (
        *_kinds().values(),
        f"{_PACKAGE}.declarations.fields",
        f"{_PACKAGE}.declarations.outputs",
        *others,
    )
    return {name: module(path).digest for name in sorted({*homes}) if (path := _file(name))}


def libraries(modules: dict[str, Module]) -> dict[str, str]:
    """The version of each third-party library that the modules import, from requirements.lock."""
    pins = _pins()
    names = sorted({name for each in modules.values() for name in each.libraries})
    return {name: pins.get(name, "not pinned") for name in names}


def module(path: Path) -> Module:
    """The module in a file; a text file of its name beside it (vocabulary.txt) is part of it."""
    return _module(path, path.read_bytes(), files.read(path.with_suffix(".txt")))


def _module(path: Path, source: bytes, data: bytes) -> Module:
    key = digest(b"\0".join((_OWN, path.as_posix().encode(), source, data)))
    known = _remembered()
    if key not in known:
        known[key] = [*_parsed(path, source, data)]
    own, ours, theirs, assumptions = known[key]
    return Module(own, tuple(ours), tuple(theirs), tuple(assumptions))


def check_unedited(digests: Iterable[tuple[str, str]]) -> None:
    """See that modules are what their digests say: now, and as this process imported them.

    A digest may be cut. Raises MlsysimError that names the files of those that are not, so that
    nothing is certified that other code has made.
    """
    edited = set()
    for name, known in {*digests}:
        path, imported = _file(name), sys.modules.get(name)
        if path is None or not _is_now(path, known):
            edited.add(paths.shown(path) if path else name)
        elif imported is not None:
            ran = os.path.realpath(imported.__file__ or "")
            if ran not in loaded.SOURCES:
                raise MlsysimError(
                    f"{name} was imported by a process that does not note what it imports, so "
                    "nothing is certified; use the command mlsysim, or call "
                    "mlsysim.runtime.loaded.watch()"
                )
            if not _module(path, *loaded.SOURCES[ran]).digest.startswith(known):
                edited.add(paths.shown(path))
    _refuse(edited)


def check_imported() -> None:
    """See that all that this process imported of the package is as it was when it was imported.

    Raises MlsysimError that names the files that are not.
    """
    ran = {
        Path(file): source
        for file, source in loaded.SOURCES.items()
        if Path(file).is_relative_to(paths.PACKAGE)
    }
    edited = [
        path for path, source in ran.items() if not _is_now(path, _module(path, *source).digest)
    ]
    _refuse(map(paths.shown, edited))


def _is_now(path: Path, known: str) -> bool:
    """Whether a file holds what a digest, which may be cut, stands for."""
    try:
        return module(path).digest.startswith(known)
    except (OSError, SyntaxError, ValueError):  # gone, or saved half-way
        return False


def _refuse(edited: Iterable[str]) -> None:
    if names := ", ".join(sorted({*edited})):
        raise MlsysimError(
            f"{names}: edited while this ran, so it is not known which code made what; nothing is "
            "certified: run it again"
        )


# What is remembered holds for this version of this module alone.
_OWN = Path(__file__).read_bytes()


@cache
def _remembered() -> dict[str, list[Any]]:
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
    text = json.dumps(_remembered(), sort_keys=True)
    if len(text) < _MOST:
        files.write(_memory(), text)
    else:
        files.write(_memory(), "{}")  # years of edits: begin anew


_MOST = 4_000_000


def _parsed(
    path: Path, source: bytes, data: bytes
) -> tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Digest, imports of ours and of others, and assumptions of a source file."""
    tree = ast.parse(source)
    assumptions = tuple(_assumptions(source.decode()))
    content = "\n".join((_text(tree), *assumptions, *_data_lines(data)))
    ours, theirs = _imports(tree, path)
    return digest(content), ours, theirs, assumptions


def _text(node: object) -> str:
    """A syntax tree as text: nodes and fields that are not empty, without silent docstrings."""
    if isinstance(node, ast.AST):
        fields = dict(ast.iter_fields(node))
        body = fields.get("body")
        if isinstance(body, list) and _is_docstring(body) and not _prints_docstring(node):
            fields["body"] = body[1:]
        if isinstance(node, ast.JoinedStr):  # of f"{x:{y}}" Python 3.12 tells an empty text more
            fields["values"] = [each for each in node.values if not _is_empty(each)]
        inner = "".join(
            f" {name}:{_text(value)}"
            for name, value in fields.items()
            if name not in _SILENT and value is not None and value != []
        )
        return f"({type(node).__name__}{inner})"
    if isinstance(node, list):
        return "[" + "".join(map(_text, node)) + "]"
    return ascii(node)


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == ""


def _is_docstring(body: list[ast.stmt]) -> bool:
    first = body[0] if body else None
    return (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )


def _prints_docstring(node: ast.AST) -> bool:
    """Classes and outputs: their docstrings are what a reader sees of an artifact."""
    if isinstance(node, ast.ClassDef):
        return True
    decorators = getattr(node, "decorator_list", [])
    called = [d.func if isinstance(d, ast.Call) else d for d in decorators]
    return any(isinstance(d, ast.Name) and d.id in _PRINTED for d in called)


def _assumptions(source: str) -> list[str]:
    """Comments that start with ASSUME, each with the comment lines under it, as one line."""
    found: list[str] = []
    open_ = False
    for line in source.splitlines():
        tagged = re.search(r"#\s*ASSUME (.*)", line)
        comment = re.fullmatch(r"\s*#\s?(.*)", line)
        if tagged:
            found.append(tagged[1].strip())
        elif comment and open_:
            found[-1] += " " + comment[1].strip()
        open_ = bool(comment and (tagged or open_))
    return found


def _data_lines(data: bytes) -> list[str]:
    """The lines of a data file beside a module, without comments and layout."""
    lines = (" ".join(line.partition("#")[0].split()) for line in data.decode().splitlines())
    return [line for line in lines if line]


def _imports(tree: ast.AST, path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a file imports anywhere in it: names in this package, and third-party libraries."""
    ours, theirs = set(), set()
    for node in _run(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join((*_dotted(path)[: -node.level], *filter(None, (base,))))
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            top = name.partition(".")[0]
            if top == _PACKAGE:
                ours.add(name)
            elif top not in sys.stdlib_module_names:
                theirs.add(top)
    return tuple(sorted(ours)), tuple(sorted(theirs))


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node of a tree but those that only a type checker sees."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            todo += node.orelse
            continue
        yield node
        todo += ast.iter_child_nodes(node)


def _dotted(path: Path) -> tuple[str, ...]:
    return path.relative_to(paths.PACKAGE.parent).with_suffix("").parts


def _file(name: str) -> Path | None:
    """The file of a module of this package; None for a name inside a module."""
    base = f"{paths.PACKAGE.parent}/{name.replace('.', '/')}"
    for path in (f"{base}.py", f"{base}/__init__.py"):
        if os.path.isfile(path):  # noqa: PTH113  many are asked for, and most are no files
            return Path(path)
    return None


def _kinds() -> dict[str, str]:
    """The module of each scenario class, from the table HOMES of scenario_types."""
    path = _file(f"{_PACKAGE}.engine.scenario_types")
    homes = next(
        node.value
        for node in ast.parse(path.read_bytes() if path else b"HOMES = {}").body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "HOMES"
    )
    return {
        name: f"{_PACKAGE}.engine.scenario_definitions.{home}"
        for name, home in ast.literal_eval(homes).items()
    }


def _pins() -> dict[str, str]:
    """Every line of requirements.lock, by library; several lines of one library are joined."""
    path = paths.requirements()
    pins: dict[str, list[str]] = {}
    for line in files.text(path).splitlines() if path.is_file() else ():
        found = re.match(r"([A-Za-z0-9._-]+)==", line)
        if found:
            pins.setdefault(found[1].lower().replace("-", "_"), []).append(" ".join(line.split()))
    return {name: " | ".join(lines) for name, lines in pins.items()}
