"""Files are written whole or not at all, and only when their bytes change."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlsysim import paths

__all__ = ["exclusive", "read", "unwritten", "write"]


def write(path: Path, content: str | bytes) -> bool:
    """Replace the file by `content` (text as UTF-8) in one step; False if it held that already.

    A reader, or a run that is killed, sees the old bytes or the new ones, never a part.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.read_bytes() == data:
            return False
    except OSError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        # Python names no file on a full disk.
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        partial.unlink(missing_ok=True)
    return True


def unwritten(error: OSError) -> str:
    """What the system refused, in a line: the file, where it is known, and the reason."""
    file = paths.shown(Path(os.fsdecode(error.filename))) if error.filename else ""
    return f"{file}: {error.strerror}" if file else f"{error.strerror or error}"


def read(path: Path) -> bytes:
    """The bytes of a file; none if it is not there."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file `path` while the block runs; the kernel frees a killed process's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
