"""What the cells of a chapter use of the project beside artifacts: files, folders and modules.

A kernel notes it while the cells run: each file that they open, found or not, each folder that they
list, each pattern that they search for, the modules they import, and files that are named in
commands they start. What the package does for a cell, as `read` or `save_table`, is not noted:
artifacts and products are known. What is read past Python's own `open`, and whether a file is only
asked for, cannot be seen.
"""

from __future__ import annotations

import glob
import json
import os
import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from mlsysim import paths
from mlsysim.canonical import digest
from mlsysim.errors import MlsysimError
from mlsysim.runtime import loaded

__all__ = ["EVENT", "Used", "changed", "noted", "now", "watch"]

# What the package tells that a result rests on, with the path of a file.
EVENT = "mlsysim.uses"

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_TRANSPARENT = {loaded.__file__, __file__}

# By kind, each thing with what it was: files and folders by their path, patterns as they stand.
Used = dict[str, dict[str, str]]


def watch(log: Path) -> None:
    """Write to `log` what this process, and what is forked from it, uses from here on."""
    log.touch()
    sys.addaudithook(_Notes(log).hear)  # nothing can take it away again


class _Notes:
    """Hears of what a process does, and writes a line of JSON for each thing it uses."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.here = threading.local()  # what one thread does here must hide nothing of another
        self.done: set[tuple[str, str]] = set()
        self.ways: dict[str, Any] = {
            "open": self.opened,
            "os.rename": self.renamed,
            "os.listdir": self.listed,
            "os.scandir": self.listed,
            "glob.glob/2": self.searched,
            "pathlib.Path.glob": lambda path, pattern: self.searched_below(path, pattern),
            "pathlib.Path.rglob": lambda path, pattern: self.searched_below(path, f"**/{pattern}"),
            "sqlite3.connect": self.connected,
            "import": self.imported,
            "os.system": lambda command: self.started(None, command),
            "os.exec": self.started,
            "os.posix_spawn": self.started,
            "subprocess.Popen": self.started,
            EVENT: lambda path: self.write("files", path, _digest_of(path)),
        }

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """What Python calls before it does anything of note."""
        way = self.ways.get(event)
        if way is None or getattr(self.here, "busy", False):
            return
        self.here.busy = True  # to look at a file is not what the cell does
        try:
            way(*arguments)
        finally:
            self.here.busy = False

    def write(self, kind: str, path: str, what: Any = "") -> None:
        """The same for a path, if it lies in the project."""
        name = _inside(path)
        if name is not None:
            self.tell(kind, name, what)

    def tell(self, kind: str, name: str, what: Any) -> None:
        """A line for the first time that something is used in this way."""
        if (kind, name) not in self.done:
            self.done.add((kind, name))
            with self.log.open("a", encoding="ascii") as file:  # a fork may have closed all files
                file.write(json.dumps([kind, name, what]) + "\n")

    def read(self, path: Any) -> None:
        """A file is about to be read. Caches of modules, which check their source, are none."""
        name = _name(path)
        if _inside(name) is not None and not name.endswith(".pyc") and _asked_by_cell():
            self.write("files", name, _digest_of(name))

    def opened(self, path: Any, _mode: object, flags: int) -> None:
        """A file is opened, by whomever."""
        name = _name(path)
        if flags & _WRITES:
            self.write("wrote", name)
        elif _is_package(name) and name.endswith(".py"):
            self.tell("code", name, _digest_of(name))
        else:
            self.read(path)

    def connected(self, path: Any) -> None:
        """A database is opened, to read or to write: `noted` sees which."""
        if (name := _name(path)) and _asked_by_cell():
            self.write("databases", name, _digest_of(name))

    def renamed(self, old: Any, new: Any, *_others: object) -> None:
        """The package writes a file under another name first."""
        self.write("wrote", _name(old))
        self.write("wrote", _name(new))

    def listed(self, folder: Any = None) -> None:
        """A folder is listed, but for a search or to find a module."""
        name = _name(folder or ".")
        if _inside(name) is not None and not _is_search() and _asked_by_cell():
            self.write("folders", name, _listing(name))

    def searched(self, pattern: Any, _deep: object, folder: Any, _descriptor: object) -> None:
        """Files are searched for by a pattern."""
        if _asked_by_cell():
            whole = _name(os.path.join(folder or ".", pattern))  # noqa: PTH118
            self.write("patterns", whole, _matches(whole))

    def searched_below(self, folder: Any, pattern: Any) -> None:
        """The same by pathlib."""
        self.searched(pattern, True, folder, None)

    def imported(self, module: str, *_others: object) -> None:
        """Where a module of the project would be found, before those of libraries."""
        if not _asked_by_cell(directly=True):
            return
        name = module.partition(".")[0]
        for folder in sys.path:
            for file in (f"{name}.py", f"{name}/__init__.py"):
                self.read(os.path.join(folder or ".", file))  # noqa: PTH118

    def started(self, program: Any, arguments: Any, folder: Any = None, *_others: object) -> None:
        """A command is started: files that it names. What else it reads is not seen."""
        given = [arguments] if isinstance(arguments, (str, bytes)) else [*(arguments or ())]
        here = folder if isinstance(folder, (str, bytes, os.PathLike)) else "."
        for text in map(os.fsdecode, filter(None, (program, *given))):
            for word in (text, *_words(text)):
                file = os.path.join(os.fsdecode(here), word)  # noqa: PTH118
                if os.path.isfile(file):  # noqa: PTH113
                    self.read(file)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _name(path: Any) -> str:
    """A path as a text; empty for the number of a file that is open."""
    named = isinstance(path, (str, bytes, os.PathLike))
    return os.path.abspath(os.fsdecode(path)) if named else ""  # noqa: PTH100


def _inside(path: str) -> str | None:
    """A path below the root as messages print it; None for one of a library or elsewhere."""
    root = f"{paths.root()}{os.sep}"
    if not f"{path}{os.sep}".startswith(root) or loaded.is_library(path):
        return None
    inside = path[len(root) :] or "."
    return None if inside.startswith(".git/") else inside


def _frames() -> Iterator[tuple[Any, str]]:
    """Who calls, from inside, with the names of their modules."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename not in _TRANSPARENT:
            yield frame.f_code, str(frame.f_globals.get("__name__", ""))
        frame = frame.f_back


def _asked_by_cell(*, directly: bool = False) -> bool:
    """Whether a cell does this, or a module of the project for it, and not the package.

    `directly` asks whether no library stands between them either.
    """
    for code, module in _frames():
        if module == "__main__" or _is_ours(code.co_filename):
            return not _is_package(code.co_filename)
        if directly and not _finds_modules(module):
            return False
    return not directly  # a thread that a cell has started


def _is_search() -> bool:
    """Whether a folder is listed to find a module, or for a pattern, which was noted itself."""
    for code, module in _frames():
        if _finds_modules(module) or module.startswith("glob"):
            return True
        if module.partition(".")[0] != "pathlib":
            return False
        if code.co_name in ("glob", "rglob"):
            return True
    return False


def _finds_modules(module: str) -> bool:
    return module.startswith(("importlib", "_frozen_importlib"))


@cache
def _is_package(file: str) -> bool:
    return file.startswith(f"{paths.PACKAGE}{os.sep}")


@cache
def _is_ours(file: str) -> bool:
    return loaded.is_ours(file)


def _digest_of(path: str) -> str:
    try:
        return digest(Path(path).read_bytes())
    except (OSError, ValueError):
        return "missing"


def _listing(folder: str) -> list[str]:
    """What lies in a folder, as paths below the root."""
    with suppress(OSError):
        return sorted(filter(None, (_inside(f"{folder}/{each}") for each in os.listdir(folder))))  # noqa: PTH208
    return []


def _matches(pattern: str) -> list[str]:
    """What matches a pattern, as paths below the root. A name begins with a dot if its does."""
    found = glob.glob(pattern, recursive=True)  # noqa: PTH207
    return sorted(filter(None, map(_inside, found)))


def noted(log: Path) -> Used:
    """What a kernel used, with what it was then; what the chapter wrote itself is none.

    Raises MlsysimError if a module of the package is not what the kernel imported.
    """
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for kind, path, what in lines:
        if kind == "code" and what != _digest_of(path):
            raise MlsysimError(f"{paths.shown(Path(path))}: edited while it ran; run it again")
    wrote = {path for kind, path, _ in lines if kind == "wrote"}
    found: Used = {"files": {}, "folders": {}, "patterns": {}, "wrote": dict.fromkeys(wrote, "")}
    for kind, path, what in lines:
        written = kind == "databases" and what != _digest_of(f"{paths.root()}/{path}")
        if kind in ("files", "databases") and path not in wrote and not written:
            found["files"].setdefault(path, what)
        elif kind in ("folders", "patterns"):
            found[kind].setdefault(path, _told(what, found["wrote"]))
    if not found["folders"] and not found["patterns"]:
        found["wrote"] = {}
    return found


def _told(listed: list[str], wrote: dict[str, str]) -> str:
    return digest([each for each in listed if each not in wrote])


def now(used: Used) -> Used:
    """The same things as they are now."""
    root, wrote = paths.root(), used.get("wrote", {})
    return {
        "files": {path: _digest_of(f"{root}/{path}") for path in used["files"]},
        "folders": {path: _told(_listing(f"{root}/{path}"), wrote) for path in used["folders"]},
        "patterns": {path: _told(_matches(f"{root}/{path}"), wrote) for path in used["patterns"]},
    }


def changed(used: Used) -> list[str]:
    """Which of these things are no longer what they were, as messages name them."""
    return [
        f"{path}/" if kind == "folders" else path
        for kind, found in now(used).items()
        for path, what in found.items()
        if used[kind][path] != what
    ]
