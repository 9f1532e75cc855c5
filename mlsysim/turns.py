"""Builds take turns: locks that the kernel frees with the process that holds them."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlsysim import files, paths

# Set by the Snakefile for the jobs that it starts.
BUILD = "MLSYSIM_BUILD"

# The build locks that this process holds.
_HELD: dict[Path, int] = {}

__all__ = ["BUILD", "at_work", "job", "wait_for_other_builds"]


def wait_for_other_builds() -> None:
    """Hold the build lock until this process ends, and see the last job of a killed build out.

    Jobs run on for a moment when the build that started them is killed; what they write is right
    for what they read, but it must not land on top of what a later build makes.
    """
    lock = _lock("build")
    if lock in _HELD:
        return
    # Never closed: held for the life of the process.
    held = _HELD[lock] = os.open(lock, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("waiting for another build in this folder to end", file=sys.stderr, flush=True)
        fcntl.flock(held, fcntl.LOCK_EX)
    with files.exclusive(_lock("jobs")):
        pass


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
    with _lock("jobs").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        yield


def _lock(name: str) -> Path:
    path = paths.build() / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
