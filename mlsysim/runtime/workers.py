"""Forked workers end with the process that forked them, however it ends."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mlsysim.library_hooks.python_processes import first_in_each_fork

__all__ = ["bound_to_this_process", "end_with_parent", "killed_with_parent"]

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def killed_with_parent(parent: int) -> None:
    """Let Linux kill this process in the moment that its `parent`, a process id, ends.

    Elsewhere this does nothing. Whoever calls it had the id from the parent, which may be gone.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def end_with_parent() -> None:
    """End this process, a fork of `multiprocessing`, soon after the one that forked it.

    A thread watches a pipe whose other end the parent holds, which serves on every system. A
    process that leads a group takes the group with it.
    """
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent:
            parent.join()
            if os.getpgrp() == os.getpid():
                os.killpg(0, signal.SIGKILL)
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def bound_to_this_process() -> Iterator[None]:
    """Every process that `multiprocessing` forks in the block ends with this one.

    It is for forks of a library, which would wait for ever to be heard by a parent that is gone.
    """
    process = os.getpid()

    def bind() -> None:
        killed_with_parent(process)
        end_with_parent()

    with first_in_each_fork(bind):
        yield
