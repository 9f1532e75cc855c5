"""results/artifacts.lock: which ingredients made which artifact, one line per scenario.

    code 5f0c... schema=1 pint=77ae... mlsysim.units=9ab1... ...
    scenario DenseLLMPretrainingStep inputs=77aa... code=5f0c... artifact=c0de...

A `code` line says what a code digest stands for, so that a stale artifact can name the module that
changed. Lines are a set: their order and merges that keep both sides do no harm, a line that is
not understood certifies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from mlsysim import files, paths
from mlsysim.artifacts.artifact_schema import VERSION
from mlsysim.artifacts.code import closure_of_kind, libraries
from mlsysim.canonical import digest
from mlsysim.declarations.documents import Document, document
from mlsysim.errors import InputError, MlsysimError
from mlsysim.naming import stems

__all__ = ["Ingredients", "Lock", "certify", "faults", "ingredients", "read_lock"]

Entries: TypeAlias = set[tuple[str, str, str]]


@dataclass(frozen=True)
class Ingredients:
    """What an artifact is made from: a digest of its resolved inputs, and the parts of its code."""

    inputs: str
    parts: tuple[tuple[str, str], ...]

    @property
    def code(self) -> str:
        """One digest of all parts."""
        return _code_digest(self.parts)

    @property
    def modules(self) -> list[tuple[str, str]]:
        """The parts that are modules of this package."""
        package = paths.PACKAGE.name
        return [part for part in self.parts if part[0].partition(".")[0] == package]

    @property
    def libraries(self) -> list[str]:
        """The parts that are libraries of others."""
        ours = {"schema", *(name for name, _ in self.modules)}
        return [name for name, _ in self.parts if name not in ours]


def _code_digest(parts: Iterable[tuple[str, str]]) -> str:
    return digest([list(part) for part in parts])


@dataclass(frozen=True)
class Lock:
    """For each scenario its certified (inputs, code, artifact), and what code digests mean."""

    scenarios: dict[str, Entries] = field(default_factory=dict)
    code: dict[str, dict[str, str]] = field(default_factory=dict)

    def certifies(self, name: str, made_from: Ingredients, artifact: str) -> bool:
        """Whether some line says that these ingredients made this artifact."""
        return (made_from.inputs, made_from.code, artifact) in self.scenarios.get(name, ())


def ingredients(document: Document, same_kind: Ingredients | None = None) -> Ingredients:
    """The ingredients of a scenario as they are now; its code is that of others of its kind."""
    try:
        parts = same_kind.parts if same_kind else _code_parts(document.kind)
    except InputError as error:
        raise InputError(f"{document.place}: {error}") from None
    return Ingredients(inputs=digest(document.content()), parts=parts)


def _code_parts(kind: str) -> tuple[tuple[str, str], ...]:
    modules = closure_of_kind(kind)
    parts = {"schema": str(VERSION)}
    parts |= {name: digest(pinned)[:12] for name, pinned in libraries(modules).items()}
    parts |= {name: each.digest[:12] for name, each in modules.items()}
    return tuple(parts.items())


def read_lock() -> Lock:
    """The lock as it is on disk; empty if there is none."""
    lock = Lock()
    for line in files.read(paths.lock()).decode(errors="replace").splitlines():
        word, *rest = line.split() or [""]
        fields = dict(part.split("=", 1) for part in rest[1:] if "=" in part)
        if word == "code" and rest and rest[0] == _code_digest(fields.items()):
            lock.code[rest[0]] = fields
        elif word == "scenario" and set(fields) == {"inputs", "code", "artifact"}:
            line_of = lock.scenarios.setdefault(rest[0], set())
            line_of.add((fields["inputs"], fields["code"], fields["artifact"]))
    return lock


def faults() -> list[str]:
    """What the lock holds beside what a build writes, as a merge or an edit by hand leaves it."""
    lock, known = read_lock(), set(stems("Scenarios"))
    found = [f"certifies {name}, which is gone" for name in sorted({*lock.scenarios} - known)]
    found += [
        f"certifies {name} more than once"
        for name, entries in sorted(lock.scenarios.items())
        if len(entries) > 1
    ]
    if not found and (
        files.read(paths.lock()) != _text(lock).encode()
        or any(not _is_explained(entries, lock) for entries in lock.scenarios.values())
    ):
        found.append("is not as a build writes it: a line is damaged, doubled or out of its place")
    return found


def certify(made: dict[str, tuple[Ingredients, str]]) -> None:
    """Write which ingredients made these artifacts; drop the lines of scenarios that are gone."""
    with files.exclusive(paths.build() / "lock.mutex"):
        lock, known = read_lock(), set(stems("Scenarios"))
        for name, entries in [*lock.scenarios.items()]:
            if name not in known or name in made:
                del lock.scenarios[name]
            elif len(entries) > 1 or not _is_explained(entries, lock):
                for made_from, artifact in _still_true(name, entries):
                    _add(lock, name, made_from, artifact)
        for name, (made_from, artifact) in made.items():
            _add(lock, name, made_from, artifact)
        files.write(paths.lock(), _text(lock))


def _add(lock: Lock, name: str, made_from: Ingredients, artifact: str) -> None:
    lock.scenarios[name] = {(made_from.inputs, made_from.code, artifact)}
    lock.code[made_from.code] = dict(made_from.parts)


def _is_explained(entries: Entries, lock: Lock) -> bool:
    """Whether the lock says what the code digests of these entries stand for."""
    return all(code in lock.code for _, code, _ in entries)


def _still_true(name: str, entries: Entries) -> Iterator[tuple[Ingredients, str]]:
    """What certifies the artifact that is there, if one of these entries does."""
    with suppress(MlsysimError, FileNotFoundError):
        made_from = ingredients(document(f"Scenarios.{name}"))
        artifact = digest(files.read(paths.artifact(name)))
        if (made_from.inputs, made_from.code, artifact) in entries:
            yield made_from, artifact


def _text(lock: Lock) -> str:
    """The lock as a build writes it: the code that scenarios were made with, then the scenarios."""
    scenarios = [
        f"scenario {name} inputs={inputs} code={code} artifact={artifact}"
        for name, entries in lock.scenarios.items()
        for inputs, code, artifact in entries
    ]
    used = {code for entries in lock.scenarios.values() for _, code, _ in entries}
    codes = [
        " ".join(("code", code, *(f"{part}={value}" for part, value in lock.code[code].items())))
        for code in used & {*lock.code}
    ]
    return "".join(f"{line}\n" for line in (*sorted(codes), *sorted(scenarios)))
