"""Builds take turns: locks that the kernel frees with the process that holds them."""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from mlsysim import paths

# Set by the Snakefile for the jobs that it starts, and what it is for those that a cluster runs.
BUILD = "MLSYSIM_BUILD"
ELSEWHERE = "elsewhere"

# The build locks that this process holds.
_HELD: dict[Path, int] = {}
_SILENT = 2.0  # seconds of waiting before it is said for whom

# What file systems answer that know no locks, as those of some clusters.
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}

__all__ = [
    "BUILD",
    "ELSEWHERE",
    "alone",
    "at_work",
    "elsewhere",
    "job",
    "quiet_since",
    "wait_for_other_builds",
]


def elsewhere() -> bool:
    """Whether this is a job that a cluster runs for a build: it locks no files and awaits nobody.

    Locks cost much on a file system of several machines, where they work at all, and the cluster
    ends jobs, not the kernel of the machine that the build runs on.
    """
    return os.environ.get(BUILD) == ELSEWHERE


def quiet_since() -> int:
    """When the last build of this folder began, in ns; 0 if one, or a job of one, is at work.

    Nothing is waited for. If `wait_for_other_builds` gives the same later, no build came between.
    """
    for lock in (_lock("jobs"), _lock("build")):
        held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _taken(held, fcntl.LOCK_EX):
                return 0
        finally:
            os.close(held)
    return _lock("build").stat().st_mtime_ns


def wait_for_other_builds() -> int:
    """Hold the build lock until this process ends, and see the last job of a killed build out.

    Jobs run on for a moment when the build that started them is killed; what they write is right
    for what they read, but it must not land on top of what a later build makes. What a wait is for
    is said after two seconds. Gives when the last build before this one began, as `quiet_since`.
    """
    lock = _lock("build")
    if lock in _HELD:
        return lock.stat().st_mtime_ns
    # Never closed: held for the life of the process.
    _HELD[lock], before = _held(lock, fcntl.LOCK_EX, "another build in this folder")
    os.close(_held(_lock("jobs"), fcntl.LOCK_EX, "what an ended build left at work")[0])
    return before


def _leave_to_parent() -> None:
    """A fork does not hold up builds once its parent is gone: it lets go of the build lock.

    The lock on jobs it keeps, so that a build that starts now lets it end.
    """
    while _HELD:
        os.close(_HELD.popitem()[1])


os.register_at_fork(after_in_child=_leave_to_parent)


@contextmanager
def job() -> Iterator[None]:
    """Mark this process as at work on results, so that a build that starts now waits for it.

    A command that a person typed waits for a build that is under way; a job of that build does not.
    """
    if BUILD not in os.environ:
        wait_for_other_builds()
    with at_work():
        yield


@contextmanager
def at_work() -> Iterator[None]:
    """Keep a build that starts now waiting until this process and its forks are gone."""
    if elsewhere():
        yield
        return
    held, _ = _held(_lock("jobs"), fcntl.LOCK_SH, "a build that begins")
    try:
        yield
    finally:
        os.close(held)


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Have other processes of this machine wait that come to a block of this name."""
    if elsewhere():
        yield
        return
    held, _ = _held(_lock(name), fcntl.LOCK_EX, "another command")
    try:
        yield
    finally:
        os.close(held)


def _held(lock: Path, kind: int, other: str) -> tuple[int, int]:
    """A descriptor that holds the lock, in which it says who holds it; when somebody last did."""
    held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    said_at = time.monotonic() + _SILENT
    while not _taken(held, kind):
        if time.monotonic() >= said_at:
            print(f"waiting for {other}{_holders(lock)}", file=sys.stderr, flush=True)
            fcntl.flock(held, kind)
            break
        time.sleep(0.02)
    before = lock.stat().st_mtime_ns
    with suppress(OSError):  # a full disk
        if kind == fcntl.LOCK_EX:
            os.ftruncate(held, 0)
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        os.write(held, f"{os.getpid()} {now} {_command()}\n".encode())
    return held, before


def _taken(held: int, kind: int) -> bool:
    """Whether the lock is this process's now; without anybody's leave where there are no locks."""
    try:
        fcntl.flock(held, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        _tell_that_there_are_no_locks()
    return True


@cache
def _tell_that_there_are_no_locks() -> None:
    told = "this file system has no locks: see that one build runs at a time"
    print(told, file=sys.stderr, flush=True)


def _command() -> str:
    """What was typed, as far as a line may tell."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":  # python -m
        program = program.parent
    return shlex.join([program.name, *sys.argv[1:]])[:100]


def _holders(lock: Path) -> str:
    """Who wrote into the lock and is still there: command, process and since when."""
    told = []
    for line in lock.read_text(encoding="utf-8", errors="replace").splitlines():
        process, day, hour, command = (line.split(" ", 3) + [""] * 4)[:4]
        if process.isdecimal() and int(process) != os.getpid() and _is_there(int(process)):
            told.append(f"{command} (process {process}, since {day} {hour})")
    return ": " + "; ".join(dict.fromkeys(told)) if told else " to end"


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _lock(name: str) -> Path:
    path = paths.build() / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
