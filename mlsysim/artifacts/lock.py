"""results/artifacts.lock on disk: what certifies results, read, written and looked through."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mlsysim import files, paths
from mlsysim.artifacts.code import one_look
from mlsysim.artifacts.ingredients import code
from mlsysim.artifacts.lock_lines import SCHEMA, Certificate, Lock, parsed
from mlsysim.artifacts.schema_versions import other_schema

__all__ = ["Certificate", "Lock", "certify", "faults", "read_lock", "take"]


def read_lock(path: Path | None = None) -> Lock:
    """The lock as it is on disk; empty if there is none."""
    return parsed(files.read(path or paths.lock()))


def faults() -> list[str]:
    """What the lock holds beside what a build writes, as a merge or an edit by hand leaves it."""
    data, lock = files.read(paths.lock()), read_lock()
    if other := _other_schema(data, lock):
        return [f"is {other}"]
    found = [f"certifies {name}, which is gone" for _, name in lock.gone()]
    if both := lock.merged():
        named = ", ".join(name for _, name in both[:3]) + (", ..." if len(both) > 3 else "")
        found.append(f"merged from two branches, with the lines of both for {named}")
    if not found and data != lock.text().encode():
        found.append("is not as a build writes it: a line is damaged, doubled or out of its place")
    return found


def _other_schema(data: bytes, lock: Lock) -> str:
    """What to tell of a lock of another schema; the first named none, and had lines of code."""
    said = [int(each) for each in lock.schemas if each.isdecimal()]
    said += [1] * data.startswith(b"code ")
    return other_schema(max(said, default=SCHEMA), SCHEMA)


def certify(made: Iterable[Certificate], into: Path | None = None) -> None:
    """Write what certifies these; drop what certifies scenarios and chapters that are gone.

    Into another file no line of others is taken, and no lock is held: `take` brings several such
    files together, for machines that share nothing but a folder.
    """
    new = Lock()
    for each in made:
        new.put(each)
    if into:
        files.write(into, new.text())
    else:
        _take([new])


def take(found: Iterable[Path]) -> None:
    """Bring what `certify` wrote into these files into the lock."""
    _take(map(read_lock, found))


@one_look()
def _take(others: Iterable[Lock]) -> None:
    with files.exclusive(paths.build() / "lock.mutex"):
        lock = read_lock()
        for other in others:
            lock.take(other)
        lock.forget_what_is_gone()
        lock.code.clear()
        lock.code.update({key: {each} for key, each in code(word for word, _ in lock.made).items()})
        files.write(paths.lock(), lock.text())
