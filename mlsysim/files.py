"""Files are written whole or not at all, only when their bytes change, and read with their bounds.

What cannot be read is told by the file's name, in one line.
"""

from __future__ import annotations

import fcntl
import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlsysim import bounds, paths
from mlsysim.errors import InputError

__all__ = ["exclusive", "read", "text", "toml", "write"]

# A text in TOML, to its end or that of the line; and what can stand between two keys.
_QUOTED = re.compile(r"""\"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?""")
_BETWEEN = re.compile(r"[\n,={}\[\]]")


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
    finally:
        partial.unlink(missing_ok=True)
    return True


def read(path: Path) -> bytes:
    """The bytes of a file; none if it is not there. Raises InputError if it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InputError(f"{paths.shown(path)}: cannot be read: {error.strerror}") from None


def text(path: Path, *, most: int = bounds.WRITTEN, mark: bool = False) -> str:
    """The text of a file that people write, with one kind of line end.

    Raises InputError that names it if it is missing, longer than `most` bytes, or no UTF-8; with
    `mark` a byte-order mark stays.
    """
    shown = paths.shown(path)
    try:
        with path.open("rb") as opened:
            data = opened.read(most + 1)
    except OSError as error:
        raise InputError(f"{shown}: cannot be read: {error.strerror}") from None
    if len(data) > most:
        raise InputError(f"{shown}: longer than {most:,} bytes, which no such file needs")
    try:
        found = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{shown}:{line}: not UTF-8 text: byte {error.start:,}") from None
    if found.startswith("\ufeff") and not mark:
        raise InputError(f"{shown}:1: begins with a byte-order mark; save it without")
    return found.replace("\r\n", "\n").replace("\r", "\n")


def toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file. Raises InputError that names the file, and the line if it can."""
    shown, found = paths.shown(path), text(path, most=bounds.TOML)
    for piece in _BETWEEN.split(_QUOTED.sub("", found)):
        if piece.count(".") > bounds.NESTING:
            raise InputError(f"{shown}: a key of more than {bounds.NESTING} tables in each other")
    try:
        return tomllib.loads(found)
    except RecursionError:
        raise InputError(f"{shown}: nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{shown}: not valid TOML: {error}") from None
    except ValueError as error:  # such as a whole number of thousands of digits
        raise InputError(f"{shown}: not usable TOML: {error}") from None


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file `path` while the block runs; the kernel frees a killed process's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
