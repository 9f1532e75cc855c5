"""Kernels for chapters: forked from one process that has imported what they need.

A kernel that is started from nothing spends most of a chapter's time on imports. A fork has them
already, and is a process of its own all the same: no chapter sees what another one does.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from mlsysim.library_hooks import jupyter_kernels
from mlsysim.runtime import used, workers

__all__ = ["each", "kernel"]

_FORK = multiprocessing.get_context("fork")


def each(
    work: Callable[[str], Any], names: list[str], at_once: int, lifeline: Any
) -> Iterator[tuple[str, Any]]:
    """Do `work` for each name in a fork of its own, `at_once` at a time.

    Yields each name with what the work returned, or with the exception that ended it, as they end.
    When the file `lifeline` ends, because who holds its other end is gone, so does this process
    with all forks. The process must have no thread but its own.
    """
    todo = list(reversed(names))
    running: dict[Any, tuple[str, Any]] = {}
    while todo or running:
        while todo and len(running) < max(1, at_once):
            name = todo.pop()
            here, there = _FORK.Pipe(duplex=False)
            process = _FORK.Process(target=_tell, args=(there, work, name, os.getpid()))
            process.start()
            there.close()
            running[here] = name, process
        ended = wait([*running, lifeline])
        if lifeline in ended:
            os._exit(1)
        for connection in ended:
            name, process = running.pop(connection)
            yield name, _heard(connection, name)
            process.join()


def _tell(there: Connection, work: Callable[[str], Any], name: str, parent: int) -> None:
    """The life of a fork that does `work`."""
    workers.killed_with_parent(parent)
    try:
        there.send(work(name))
    except Exception as error:  # noqa: BLE001  handed to the parent process
        error.__cause__ = None
        error.add_note(traceback.format_exc())
        there.send(error)


def _heard(here: Any, name: str) -> Any:
    try:
        return here.recv()
    except EOFError:
        return ChildProcessError(f"the process that executed {name} was killed")


@contextmanager
def kernel(settings: Path, folder: Path) -> Iterator[Any]:
    """A kernel at work in `folder`, forked from this process, as its manager; killed at the end.

    `settings` is an empty folder for its sockets and its settings, which are nobody's. This
    process, itself a fork, ends with the one that forked it from here on.
    """
    from jupyter_client.connect import write_connection_file
    from jupyter_client.manager import AsyncKernelManager

    file, key = settings / "kernel.json", secrets.token_hex(16).encode()
    # No open port: its sockets lie beside the connection file.
    try:
        write_connection_file(str(file), transport="ipc", ip=str(settings / "socket"), key=key)
    except OSError as error:
        error.filename = str(file)  # Python names no file on a full disk
        raise
    process = _FORK.Process(target=_run, args=(file, folder))
    process.start()
    workers.end_with_parent()
    try:
        manager = AsyncKernelManager(connection_file=str(file), transport="ipc")
        manager.load_connection_file()
        manager.provisioner = jupyter_kernels.provisioner(process)
        yield manager
    finally:
        # With what the cells started: it would go on, and hold the ends of our pipes open.
        if process.pid:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.join()


def _run(connection_file: Path, folder: Path) -> None:
    """The life of a kernel."""
    os.setsid()  # an interrupt at the terminal is its client's to handle
    workers.end_with_parent()
    os.environ["IPYTHONDIR"] = str(connection_file.parent)
    os.chdir(folder)
    sys.path.insert(0, "")  # a cell may import what lies beside the chapters
    used.watch(connection_file.with_name("used"))
    jupyter_kernels.run_kernel(str(connection_file))
