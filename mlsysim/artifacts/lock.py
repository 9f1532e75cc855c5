"""results/artifacts.lock: which ingredients made which artifact, one line per scenario.

    code 5f0c... schema=1 pint=77ae... mlsysim.units=9ab1... ...
    scenario DenseLLMPretrainingStep inputs=77aa... code=5f0c... artifact=c0de...

A `code` line says what a code digest stands for, so that a stale artifact can name the module that
changed. Lines are a set: their order and merges that keep both sides do no harm, a line that is
not understood certifies nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mlsysim import files, paths
from mlsysim.artifacts.canonical import digest
from mlsysim.artifacts.code import closure_of_kind, libraries
from mlsysim.artifacts.schema import VERSION
from mlsysim.documents import Document, document, names
from mlsysim.errors import MlsysimError

__all__ = ["Ingredients", "Lock", "certify", "ingredients", "read_lock", "repeated", "strays"]


@dataclass(frozen=True)
class Ingredients:
    """What an artifact is made from: a digest of its resolved inputs, and the parts of its code."""

    inputs: str
    parts: tuple[tuple[str, str], ...]

    @property
    def code(self) -> str:
        """One digest of all parts."""
        return digest([list(part) for part in self.parts])

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

    def lines(self, name: str, artifact: str) -> tuple[str, str]:
        """The lines that certify that these made the artifact with that digest."""
        parts = " ".join(f"{part}={value}" for part, value in self.parts)
        return (
            f"code {self.code} {parts}",
            f"scenario {name} inputs={self.inputs} code={self.code} artifact={artifact}",
        )


@dataclass(frozen=True)
class Lock:
    """For each scenario its certified (inputs, code, artifact), and what code digests mean."""

    scenarios: dict[str, set[tuple[str, str, str]]] = field(default_factory=dict)
    code: dict[str, dict[str, str]] = field(default_factory=dict)

    def certifies(self, name: str, made_from: Ingredients, artifact: str) -> bool:
        """Whether some line says that these ingredients made this artifact."""
        return (made_from.inputs, made_from.code, artifact) in self.scenarios.get(name, ())


def ingredients(document: Document, same_kind: Ingredients | None = None) -> Ingredients:
    """The ingredients of a scenario as they are now; its code is that of others of its kind."""
    parts = same_kind.parts if same_kind else _code_parts(document.kind)
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
    try:
        lines = paths.lock().read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, UnicodeDecodeError):
        return lock
    for line in lines:
        word, *rest = line.split() or [""]
        fields = dict(part.split("=", 1) for part in rest[1:] if "=" in part)
        if word == "code" and rest:
            lock.code[rest[0]] = fields
        elif word == "scenario" and set(fields) == {"inputs", "code", "artifact"}:
            line_of = lock.scenarios.setdefault(rest[0], set())
            line_of.add((fields["inputs"], fields["code"], fields["artifact"]))
    return lock


def strays() -> list[str]:
    """Scenarios that the lock certifies although they are gone."""
    known = set(names("Scenarios"))
    return sorted(name for name in read_lock().scenarios if name not in known)


def repeated() -> list[str]:
    """Scenarios that several lines certify, as a merge of two branches leaves them."""
    return sorted(name for name, lines in read_lock().scenarios.items() if len(lines) > 1)


def certify(made: dict[str, tuple[Ingredients, str]]) -> None:
    """Write which ingredients made these artifacts; drop the lines of scenarios that are gone."""
    with files.exclusive(paths.build() / "lock.mutex"):
        lines: dict[tuple[str, ...], str] = {}
        known = set(names("Scenarios"))
        for name, entries in read_lock().scenarios.items():
            if name in known and name not in made:
                for entry in _still_true(name, entries):
                    inputs, code, artifact = entry
                    lines[name, *entry] = (
                        f"scenario {name} inputs={inputs} code={code} artifact={artifact}"
                    )
        codes = _code_lines()
        for name, (made_from, artifact) in made.items():
            code_line, line = made_from.lines(name, artifact)
            codes[made_from.code] = code_line
            lines[name,] = line
        used = {line.split("code=")[1].split()[0] for line in lines.values()}
        kept = sorted(codes[code] for code in used if code in codes)
        files.write(paths.lock(), "".join(f"{line}\n" for line in (*kept, *sorted(lines.values()))))


def _still_true(name: str, entries: set[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """Of several lines the one that certifies what is there; all of them if none does."""
    if len(entries) < 2:
        return entries
    try:
        made_from = ingredients(document(f"Scenarios.{name}"))
        artifact = digest(paths.artifact(name).read_bytes())
    except (MlsysimError, FileNotFoundError):
        return entries
    return entries & {(made_from.inputs, made_from.code, artifact)} or entries


def _code_lines() -> dict[str, str]:
    return {
        code: " ".join(("code", code, *(f"{part}={value}" for part, value in parts.items())))
        for code, parts in read_lock().code.items()
    }
