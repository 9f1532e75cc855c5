"""Files are written whole or not at all, only when their bytes change, and read with their bounds.

What cannot be read is told by the file's name, in one line.
"""

from __future__ import annotations

import os
import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

from mlsysim import bounds, paths
from mlsysim.errors import InputError

__all__ = ["left_behind", "read", "text", "toml", "unusable", "unwritten", "write"]

# A text or a comment in TOML, to its end or that of the line; and what can stand between two keys.
_QUOTED = re.compile(r"""\"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?|#.*""")
_BETWEEN = re.compile(r"[\n,={}\[\]]")
_PARTIAL = re.compile(r"(?P<file>\..+)\.(?P<process>\d+)\.partial")


def write(path: Path, content: str | bytes) -> bool:
    """Replace the file by `content` (text as UTF-8) in one step; False if it held that already.

    A reader, or a run that is killed, sees the old bytes or the new ones, never a part. Raises
    InputError if it cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.read_bytes() == data:
            return False
    except OSError:
        pass
    partial = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        raise unusable(path, f"cannot be written: {error.strerror}") from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return True


def left_behind(path: Path) -> bool:
    """Whether a file is a part that `write` left, in a process of this machine that is gone.

    What a process is writing now is not left behind.
    """
    found = _PARTIAL.fullmatch(path.name)
    if not found or not found["file"].endswith(f".{os.uname().nodename}"):
        return False
    try:
        os.kill(int(found["process"]), 0)
    except (OverflowError, ProcessLookupError):
        return True
    except PermissionError:  # of another person, and at work
        return False
    return False


def unwritten(error: OSError) -> str:
    """What the system refused, in a line: the file, where it is known, and the reason."""
    file = paths.shown(Path(os.fsdecode(error.filename))) if error.filename else ""
    return f"{file}: {error.strerror}" if file else f"{error.strerror or error}"


def read(path: Path) -> bytes:
    """The bytes of a file; none if it is not there. Raises InputError if it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise unusable(path, f"cannot be read: {error.strerror}") from None


def unusable(path: Path, why: str) -> InputError:
    """The error that says what is wrong with a file, whoever asked for it."""
    error = InputError(f"{paths.shown(path)}: {why}")
    error.placed = True
    return error


def text(path: Path, *, most: int = bounds.WRITTEN, mark: bool = False) -> str:
    """The text of a file that people write, with one kind of line end.

    Raises InputError that names it if it is missing, longer than `most` bytes, or no UTF-8; with
    `mark` a byte-order mark stays.
    """
    try:
        with open(path, "rb", opener=_never_waiting) as opened:
            data = opened.read(most + 1)
    except OSError as error:
        raise unusable(path, f"cannot be read: {error.strerror}") from None
    if len(data) > most:
        raise unusable(path, f"longer than {most:,} bytes, which no such file needs")
    try:
        found = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise unusable(path, f"not UTF-8 text: line {line}, byte {error.start:,}") from None
    if found.startswith("\ufeff") and not mark:
        raise unusable(path, "begins with a byte-order mark; save it without")
    return found.replace("\r\n", "\n").replace("\r", "\n")


def _never_waiting(path: str, flags: int) -> int:
    """A pipe in place of a file is empty, where opening it would wait for somebody to write."""
    return os.open(path, flags | os.O_NONBLOCK)


def toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file. Raises InputError that names the file, and the line if it can."""
    found = text(path, most=bounds.TOML)
    for piece in _BETWEEN.split(_QUOTED.sub("", found)):
        if piece.count(".") > bounds.NESTING:
            raise unusable(path, f"a key of more than {bounds.NESTING} tables in each other")
    try:
        return tomllib.loads(found)
    except RecursionError:
        raise unusable(path, "nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise unusable(path, f"not valid TOML: {error}") from None
    except ValueError as error:  # such as a whole number of thousands of digits
        raise unusable(path, f"not usable TOML: {error}") from None
