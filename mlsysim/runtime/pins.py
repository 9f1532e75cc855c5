"""The libraries that requirements.lock pins, for all that compare or certify their versions."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from mlsysim import files, paths
from mlsysim.errors import InputError

__all__ = ["Pin", "pins", "plain"]

_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^]]*])?==(?P<version>[^\s;]+)\s*(?:;\s*(?P<marker>.+))?"
)


class Pin(NamedTuple):
    """A line of requirements.lock: a library, its version, and for which interpreters this is."""

    name: str
    version: str
    marker: str
    line: str


def pins() -> tuple[Pin, ...]:
    """What is pinned, in the order of the file; a library may have a line for each interpreter.

    Without a requirements.lock nothing is. Raises InputError for a line that is no pin.
    """
    path = paths.requirements()
    return _read(files.text(path), paths.shown(path)) if path.is_file() else ()


@lru_cache(maxsize=1)  # a build asks for each kind of scenario
def _read(text: str, file: str) -> tuple[Pin, ...]:
    found = []
    for number, written in enumerate(text.splitlines(), start=1):
        if line := " ".join(written.partition("#")[0].split()):
            pin = _PIN.fullmatch(line)
            if not pin:
                raise InputError(f"{file}:{number}: expected NAME==VERSION, found {line!r}")
            found.append(Pin(pin["name"], pin["version"], pin["marker"] or "", line))
    return tuple(found)


def plain(name: str) -> str:
    """The name of a library as package indexes compare it.

    >>> plain("Ruamel_Yaml.clib")
    'ruamel-yaml-clib'
    """
    return re.sub(r"[-_.]+", "-", name).lower()
