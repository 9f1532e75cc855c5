"""The libraries that are installed, beside those that requirements.lock pins.

What is made is certified with the versions of the lock, so it must be made with these.
`python -m mlsysim.runtime.environment` prints what differs, for the Makefile.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

from mlsysim.errors import MlsysimError
from mlsysim.runtime.pins import Pin, pins, plain

__all__ = ["check", "differences"]

_INSTALLED = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)\.dist-info")


def check(names: Iterable[str] | None = None) -> None:
    """See that pinned libraries, all or those of these names, are installed as they are pinned.

    Raises MlsysimError that names those that are not. Without a requirements.lock nothing is
    pinned.
    """
    if found := differences(names):
        raise MlsysimError(
            f"{_cut(found)}; results are certified with the pinned ones, so nothing is made with "
            "others: run make"
        )


def differences(names: Iterable[str] | None = None) -> list[str]:
    """What is installed otherwise than requirements.lock pins it, all or of these libraries.

    Of named ones, which code imports by itself, one that is not there cannot have run.
    Installed is what the names of the metadata folders on Python's path say: to read them is a
    hundred times as quick as to read what is in them.
    """
    asked = None if names is None else {plain(name) for name in names}
    pinned: dict[str, list[Pin]] = {}
    for pin in pins():
        pinned.setdefault(pin.name, []).append(pin)
    installed, wrong = _installed(), []
    for name, lines in pinned.items():
        if asked is not None and plain(name) not in asked:
            continue
        has = installed.get(plain(name))
        if has in [pin.version for pin in lines] or (asked is not None and not has):
            continue
        if meant := [pin.version for pin in lines if _applies(pin.marker)]:
            is_there = f"{name} {has} is installed" if has else f"{name} is not installed"
            wrong.append(f"{is_there}, requirements.lock pins {' or '.join(meant)}")
    return wrong


def _cut(found: list[str]) -> str:
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return "; ".join(found[:3]) + more


def _installed() -> dict[str, str]:
    """The version of each library on Python's path; of several the first, which is imported."""
    found: dict[str, str] = {}
    for folder in sys.path:
        for name in sorted(_names_in(folder or ".")):
            if told := _INSTALLED.fullmatch(name):
                found.setdefault(plain(told["name"]), told["version"])
    return found


def _names_in(folder: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        yield from (entry.name for entry in entries)


def _applies(marker: str) -> bool:
    """Whether a line is for this interpreter on this machine."""
    if not marker:
        return True
    from packaging.markers import Marker  # few lines have one

    return Marker(marker).evaluate()


if __name__ == "__main__":
    told = differences()
    print("\n".join(told), end="\n" if told else "")
    sys.exit(bool(told))
