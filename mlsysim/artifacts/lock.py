"""results/artifacts.lock on disk: what certifies results, read, written and looked through."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from mlsysim import files, paths
from mlsysim.artifacts.code import one_look
from mlsysim.artifacts.ingredients import code
from mlsysim.artifacts.lock_lines import SCHEMA, Certificate, Lock, parsed
from mlsysim.artifacts.schema_versions import other_schema
from mlsysim.canonical import digest
from mlsysim.errors import MlsysimError
from mlsysim.runtime import turns

__all__ = ["Certificate", "Lock", "certify", "faults", "gather", "read_lock"]

_SECONDS = 60  # after which a file that one node wrote is seen from every other


def read_lock() -> Lock:
    """The lock as it is on disk, with what jobs of a cluster certified; empty if there is none."""
    return _with_certified(_certified())


def _with_certified(found: Iterable[Path]) -> Lock:
    # Read before the lock, so that none is missed which is taken into it meanwhile.
    others = [parsed(files.read(path)) for path in found]
    lock = parsed(files.read(paths.lock()))
    for other in others:
        lock.take(other)
    return lock


def _certified() -> list[Path]:
    """What jobs of a cluster certified and `gather` did not take into the lock yet, in order."""
    found = []
    for path in _folder().glob("*.lock"):
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found)]


def _folder() -> Path:
    return paths.build() / "certified"


def faults() -> list[str]:
    """What the lock holds beside what a build writes, as a merge or an edit by hand leaves it."""
    data, lock = files.read(paths.lock()), _with_certified([])
    if other := _other_schema(data, lock):
        return [f"is {other}"]
    found = [f"certifies {name}, which is gone" for _, name in lock.gone()]
    if both := lock.merged():
        named = ", ".join(name for _, name in both[:3]) + (", ..." if len(both) > 3 else "")
        found.append(f"merged from two branches, with the lines of both for {named}")
    if _certified():
        found.append("lacks what jobs of a cluster certified; run: snakemake all")
    if not found and data != lock.text().encode():
        found.append("is not as a build writes it: a line is damaged, doubled or out of its place")
    return found


def _other_schema(data: bytes, lock: Lock) -> str:
    """What to tell of a lock of another schema; the first named none, and had lines of code."""
    said = [int(each) for each in lock.schemas if each.isdecimal()]
    said += [1] * data.startswith(b"code ")
    return other_schema(max(said, default=SCHEMA), SCHEMA)


def certify(made: Iterable[Certificate]) -> None:
    """Write what certifies these; drop what certifies scenarios and chapters that are gone.

    A job of a cluster writes into a file of its own, whose lines are in force at once, and `gather`
    takes it into the lock.
    """
    new = Lock()
    for each in made:
        new.put(each)
    if not turns.elsewhere():
        _take(new)
    elif new.made:
        text = new.text()
        files.write(_folder() / f"{digest(text)[:16]}.lock", text)


def gather(whole: Callable[[], bool]) -> None:
    """Take into the lock what jobs of a cluster certified, which is all of it if `whole` says so.

    It is for the one job that runs when others have ended. What those wrote on other nodes may need
    a moment to be seen on this one; MlsysimError is raised if it never is.
    """
    late = time.monotonic() + _SECONDS
    while not (seen := whole()) and time.monotonic() < late:
        time.sleep(1)
    _take(Lock())
    if not seen:
        raise MlsysimError(
            f"what jobs certified did not all come to this node within {_SECONDS} s, or something "
            "was edited meanwhile; build again"
        )


@one_look()
def _take(new: Lock) -> None:
    with turns.alone("certify"):
        certified = _certified()
        lock = _with_certified(certified)
        lock.take(new)
        lock.forget_what_is_gone()
        lock.code.clear()
        lock.code.update({key: {each} for key, each in code(word for word, _ in lock.made).items()})
        files.write(paths.lock(), lock.text())
        for path in certified:
            path.unlink(missing_ok=True)
