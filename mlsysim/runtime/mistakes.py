"""The mistakes that ended commands of a build, told again at its end as its last words.

Commands run side by side and Snakemake says much about each that fails, so their own words would be
somewhere above.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TypeVar

from mlsysim import files, paths
from mlsysim.errors import MlsysimError, for_terminal
from mlsysim.runtime import turns

__all__ = ["note", "or_end", "tell_at_end"]

_T = TypeVar("_T")


def note(text: str) -> None:
    """Keep what ended this command, if a build started it."""
    if turns.BUILD in os.environ:
        with suppress(MlsysimError):  # a full disk, which the command has told
            files.write(_folder() / f"{os.uname().nodename}.{os.getpid()}.txt", text + "\n")


def tell_at_end() -> None:
    """Forget the mistakes of builds before, and tell those of this one when this process ends."""
    shutil.rmtree(_folder(), ignore_errors=True)
    atexit.register(_tell)


def or_end(work: Callable[[], _T]) -> _T:
    """What `work` gives; a mistake that it meets ends this process with its own words."""
    try:
        return work()
    except MlsysimError as error:
        _end(str(error))


def _end(text: str) -> NoReturn:
    sys.stdout.flush()
    print(for_terminal(f"mlsysim: {text}".split("\n")), file=sys.stderr, flush=True)
    os._exit(1)  # else Snakemake shows where in its Snakefile this was met


def _tell() -> None:
    noted = sorted(_folder().glob("*.txt"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    told = dict.fromkeys(line for path in noted for line in path.read_text("utf-8").splitlines())
    if told:
        sys.stdout.flush()
        print("\n" + for_terminal(told), file=sys.stderr, flush=True)


def _folder() -> Path:
    return paths.build() / "mistakes"
