"""What this process has imported of the project: the source of each module, as it was run.

Python takes a cached module for good if time stamp and size of its source are as they were, and no
one can ask it later which source it ran. A command certifies by content, so it calls `watch` before
anything else is imported: from then on a module of ours comes from its source, or from a cache that
checks the source (`make` writes those), and its source is kept for the comparison at the end.
Nothing here imports anything of the package, and nothing outside the project is touched.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import Any

__all__ = ["SOURCES", "is_library", "is_ours", "watch"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120  every start pays for imports
_NAME = __name__.partition(".")[0]
_FOLDERS = {_PACKAGE}
_LIBRARIES = {os.path.dirname(os.path.realpath(os.__file__))}  # noqa: PTH120
if sys.prefix != sys.base_prefix:
    _LIBRARIES.add(os.path.realpath(sys.prefix))  # .venv lies in the project


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return b""


# The source of each module of ours that was imported, by its file without symbolic links, and the
# text file of its name beside it (units/vocabulary.txt), which is part of it.
SOURCES: dict[str, tuple[bytes, bytes]] = {os.path.realpath(__file__): (_read(__file__), b"")}


def watch(*folders: str) -> None:
    """Keep the source of what is imported from here on, of the package and of other folders."""
    _FOLDERS.update(os.path.realpath(folder) for folder in folders)
    if _Finder in sys.meta_path:
        return
    sys.meta_path.insert(sys.meta_path.index(PathFinder), _Finder)
    # What is there already are packages of names that are loaded when they are asked for.
    for name, module in tuple(sys.modules.items()):
        if name.partition(".")[0] == _NAME and hasattr(module, "__path__"):
            above = sys.modules.get(name.rpartition(".")[0])
            spec = _Finder.find_spec(name, above.__path__ if above else None)
            if spec and spec.loader:
                spec.loader.exec_module(module)


def is_ours(file: str | None) -> bool:
    """Whether a file is of the package or of a folder that is watched, and not of a library."""
    if not file or not file.startswith(os.sep):  # <frozen importlib._bootstrap>
        return False
    file = os.path.realpath(file)
    if _is_in(file, {_PACKAGE}):
        return True
    return _is_in(file, _FOLDERS) and not is_library(file)


def is_library(file: str) -> bool:
    """Whether a file lies where libraries are installed."""
    return _is_in(file, _LIBRARIES)


def _is_in(file: str, folders: set[str]) -> bool:
    return any(file.startswith(folder + os.sep) for folder in folders)


class _Loader(SourceFileLoader):
    """Runs a module from its source, or from a cache that checks the source; writes no cache."""

    def path_stats(self, path: str) -> Any:
        """A time stamp that no cache bears."""
        return {**super().path_stats(path), "mtime": -1}

    def get_data(self, path: str) -> bytes:
        """The bytes of a file; those of the module are kept."""
        data = super().get_data(path)
        if path == self.path:
            beside = _read(path.removesuffix(".py") + ".txt")
            SOURCES.setdefault(os.path.realpath(path), (data, beside))
        return data

    def get_code(self, fullname: str) -> Any:
        """The code of the module."""
        code = super().get_code(fullname)
        if os.path.realpath(self.path) not in SOURCES:  # a cache that claims to need no check
            code = self.source_to_code(self.get_data(self.path), self.path)
        return code

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Write no cache."""


class _Finder:
    """Finds what Python finds by itself, and gives what is ours to the loader above."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Where a module is, and what loads it."""
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.origin and type(spec.loader) is SourceFileLoader and is_ours(spec.origin):
            spec.loader = _Loader(name, spec.origin)
        return spec

    @staticmethod
    def invalidate_caches() -> None:
        """Forget which files folders hold."""
        PathFinder.invalidate_caches()
