"""Which code makes an artifact, as digests that comments and layout cannot move.

Of the modules that a scenario's class and the writing of its artifact import, those definitions
count that can move a digit or a text of it. Texts that an artifact prints count too: docstrings of
classes and outputs, and comments that start with ASSUME.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from mlsysim import paths
from mlsysim.artifacts._homes import kinds as kinds_with_homes
from mlsysim.artifacts._modules import (
    OWN,
    PACKAGE,
    Module,
    file_of,
    module,
    module_from,
    parts_of,
    read,
    remember,
    remembered,
)
from mlsysim.artifacts._names import Paths
from mlsysim.artifacts._reach import reach
from mlsysim.artifacts._sources import Source, parse
from mlsysim.canonical import digest
from mlsysim.errors import InputError, MlsysimError, nearest
from mlsysim.runtime import loaded
from mlsysim.runtime.pins import pins, plain

__all__ = [
    "Module",
    "assumptions",
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

# An artifact is made by the class of its kind, and by these.
_MAKERS = (
    (f"{PACKAGE}.artifacts.making", "artifact_texts"),
    (f"{PACKAGE}.engine.scenarios", "scenario"),
)
# What is behind these is an ingredient by itself: the class of the kind, and the assumptions.
_DOORS = ((f"{PACKAGE}.engine.scenario_types", "HOMES"), (__name__, ""))


class _Look:
    """Modules as they were when they were first asked for; none for a name inside a module."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[Path, bytes, bytes] | None] = {}
        self._modules: dict[str, Module | None] = {}
        self.paths = Paths(self._definitions, _DOORS)

    def _file(self, name: str) -> tuple[Path, bytes, bytes] | None:
        if name not in self._read:
            path = file_of(name)
            self._read[name] = (path, *read(path)) if path else None
        return self._read[name]

    def module(self, name: str) -> Module | None:
        """What a module imports, with its digest."""
        if name not in self._modules:
            found = self._file(name)
            self._modules[name] = module_from(*found) if found else None
        return self._modules[name]

    def _definitions(self, name: str) -> Source | None:
        found = self._file(name)
        return _parsed(found[1], parts_of(found[0])[:-1]) if found else None


_parsed = lru_cache(maxsize=512)(parse)

_LOOKED: ContextVar[_Look | None] = ContextVar("_LOOKED", default=None)


def _look() -> _Look:
    return _LOOKED.get() or _Look()


def closure(*starts: str) -> dict[str, Module]:
    """The modules of this package that the starting ones import, directly or not, sorted."""
    return _closure(_look(), starts)


def _closure(look: _Look, starts: Iterable[str], doors: Iterable[str] = ()) -> dict[str, Module]:
    """The same, but for modules that are neither taken nor followed."""
    todo, seen = list(starts), dict[str, Module]()
    while todo:
        name = todo.pop()
        if name in seen or name in doors:
            continue
        found = look.module(name)
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
    token = _LOOKED.set(_Look())
    try:
        yield
    finally:
        _LOOKED.reset(token)


def closure_of_kind(kind: str) -> dict[str, Module]:
    """The modules that can move a digit or a text in the artifacts of a scenario class.

    The digest of each is over what counts of it, which may be more for another kind.
    """
    kinds = kinds_with_homes()
    if kind not in kinds:
        raise InputError(f"kind {kind!r} is no scenario class; {nearest(kind, kinds)}")
    look, roots = _look(), ((kinds[kind], kind), *_MAKERS)
    run = _run(look, kinds[kind])
    key = digest([OWN, *([name, each.digest] for name, each in run.items())])
    known = remembered()
    if known.get(kind, [""])[0] != key:
        others = [each for each in kinds if each != kind]
        made = reach(look.paths, roots, run, silent=others)
        known[kind] = [
            key,
            {name: [each.digest, *sorted(each.libraries)] for name, each in made.items()},
        ]
    reached = known[kind][1]
    found = {}
    for name, each in run.items():
        counts, *uses = reached.get(name, [""])
        if counts or each.assumptions:
            own = digest([counts, each.assumptions, each.data])
            _KINDS_OF.setdefault(name, {})[own] = kind
            found[name] = replace(each, digest=own, libraries=tuple(uses))
    return found


def assumptions(kind: str) -> list[tuple[str, str, str]]:
    """What the modules behind a scenario class take for granted: module, topic and text."""
    found = []
    for name, each in _run(_look(), kinds_with_homes()[kind]).items():
        parts = (assumption.partition(": ") for assumption in each.assumptions)
        found += [(name, topic, text) for topic, _, text in parts]
    return found


def _run(look: _Look, home: str) -> dict[str, Module]:
    """The modules that run to make an artifact of a class of this module."""
    starts = (home, *(name for name, _ in _MAKERS))
    return _closure(look, starts, [module for module, name in _DOORS if not name])


# The kind for which a digest of a module was given.
_KINDS_OF: dict[str, dict[str, str]] = {}


def definitions(*others: str) -> dict[str, str]:
    """The digests of the modules that say what a scenario file holds, and of some others."""
    homes = (
        *kinds_with_homes().values(),
        f"{PACKAGE}.declarations.fields",
        f"{PACKAGE}.declarations.outputs",
        *others,
    )
    return {name: module(path).digest for name in sorted({*homes}) if (path := file_of(name))}


def libraries(modules: dict[str, Module]) -> dict[str, str]:
    """What requirements.lock says of each third-party library that the modules import."""
    names = sorted({name for each in modules.values() for name in each.libraries})
    lines: dict[str, list[str]] = {plain(name): [] for name in names}
    for pin in pins():
        if plain(pin.name) in lines:
            lines[plain(pin.name)].append(pin.line)
    return {name: " | ".join(lines[plain(name)]) or "not pinned" for name in names}


def check_unedited(digests: Iterable[tuple[str, str]]) -> None:
    """See that modules are what their digests say: now, and as this process imported them.

    A digest may be cut. Raises MlsysimError that names the files of those that are not, so that
    nothing is certified that other code has made.
    """
    edited, now = set(), cache(_digests_now)
    for name, known in {*digests}:
        path, imported = file_of(name), sys.modules.get(name)
        if path is None or not _is_still(name, path, known, now):
            edited.add(paths.shown(path) if path else name)
        elif imported is not None:
            ran = os.path.realpath(imported.__file__ or "")
            if ran not in loaded.SOURCES:
                raise MlsysimError(
                    f"{name} was imported by a process that does not note what it imports, so "
                    "nothing is certified; use the command mlsysim, or call "
                    "mlsysim.runtime.loaded.watch()"
                )
            if not _is_now(path, module_from(path, *loaded.SOURCES[ran]).digest):
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
        path for path, source in ran.items() if not _is_now(path, module_from(path, *source).digest)
    ]
    _refuse(map(paths.shown, edited))


def _is_still(name: str, path: Path, known: str, now: Callable[[str], Mapping[str, str]]) -> bool:
    """Whether a module has this digest, for the kind for which it was given, or as a whole."""
    for full, kind in _KINDS_OF.get(name, {}).items():
        if full.startswith(known):
            return now(kind).get(name) == full
    return _is_now(path, known)


def _digests_now(kind: str) -> dict[str, str]:
    with suppress(OSError, SyntaxError, ValueError):  # gone, or saved half-way
        return {name: each.digest for name, each in closure_of_kind(kind).items()}
    return {}


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
