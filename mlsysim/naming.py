"""What scenarios and registry entries may be called, and which there are: one file stem each."""

from __future__ import annotations

import keyword
import os
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mlsysim import bounds, files, paths
from mlsysim.errors import InputError, MlsysimError, UnknownName, nearest

__all__ = [
    "alike",
    "exists",
    "folder",
    "meant",
    "misnamed",
    "names",
    "no_name",
    "place_of",
    "renamed",
    "stems",
    "unknown",
]

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
# What another thing is called already, or what nobody has named yet.
_RESERVED = ("Scenarios", "Hardware", "Models", "Fleets", "TODO")


def folder(collection: str) -> Path:
    """The folder of a collection: ``Scenarios``, ``Hardware``, ``Models`` or ``Fleets``."""
    if collection == "Scenarios":
        return paths.scenarios()
    return paths.PACKAGE / "registry" / "data" / collection.lower()


def place_of(reference: str) -> str:
    """The file of a full name, as messages print it."""
    collection, _, name = reference.partition(".")
    return paths.shown(folder(collection) / f"{name}.toml")


def no_name(name: str) -> str:
    """Why nothing can be called `name`; empty if something can.

    >>> no_name("WideReplica"), no_name("class"), no_name("todo")
    ('', 'it is a word of Python', 'TODO means something else here')
    """
    if not _NAME.fullmatch(name):
        return "expected letters, digits and _, a letter first, such as WideReplica"
    if len(name) > bounds.NAME:
        return f"it is longer than {bounds.NAME} characters"
    if keyword.iskeyword(name):
        return "it is a word of Python"
    taken = [each for each in _RESERVED if each.lower() == name.lower()]
    return f"{taken[0]} means something else here" if taken else ""


def names(collection: str) -> list[str]:
    """The names in a collection, sorted; what cannot be a name is left to `misnamed`.

    >>> "DenseLLMPretrainingStep" in names("Scenarios")
    True
    """
    found = stems(collection)
    shared = _shared(found)
    return sorted(stem for stem in found if stem.lower() not in shared and not no_name(stem))


def misnamed(collection: str = "Scenarios") -> dict[str, str]:
    """Files whose stem names nothing, as paths relative to the root, each with the reason.

    Names that differ in case alone are none: a file system, or a reader, may take them for one.
    """
    listed = sorted(stems(collection))
    shared = _shared(listed)
    found = {}
    for stem in listed:
        place = place_of(f"{collection}.{stem}")
        if why := no_name(stem):
            found[place] = f"{stem!r} is no name: {why}"
        elif stem.lower() in shared:
            others = [each for each in listed if each.lower() == stem.lower() and each != stem]
            found[place] = f"differs from {others[0]}.toml in case alone"
    return found


def unknown(collection: str, name: str) -> MlsysimError:
    """What to tell of a name that `names` does not list."""
    place = place_of(f"{collection}.{name}")
    if why := misnamed(collection).get(place):
        return InputError(f"{place}: {why}; rename it")
    what = "is no scenario" if collection == "Scenarios" else f"is not in {collection}"
    return UnknownName(f"{name!r} {what}; {meant(collection, name)}")


def meant(collection: str, name: str, known: Iterable[str] | None = None) -> str:
    """What may be meant by a name that nothing carries: its new name, or the nearest of `known`."""
    if new := renamed(collection, name):
        return f"it was renamed; write {new!r}"
    return nearest(name, names(collection) if known is None else known)


def renamed(collection: str, name: str) -> str:
    """What is called otherwise since this edition, by `formerly` in its file; empty if nothing."""
    for stem in names(collection):
        with suppress(MlsysimError, FileNotFoundError):
            if files.toml(folder(collection) / f"{stem}.toml").get("formerly") == name:
                return stem
    return ""


def alike(collection: str, name: str) -> str:
    """The name of a file that differs from this one in case at most; empty if there is none."""
    return next((stem for stem in stems(collection) if stem.lower() == name.lower()), "")


def stems(collection: str) -> list[str]:
    """The stems of a collection's files, whatever they are called, and can be read or not."""
    with suppress(FileNotFoundError):
        found = os.listdir(folder(collection))  # noqa: PTH208  asked for hundreds of times
        return [e.removesuffix(".toml") for e in found if e.endswith(".toml") and e[0] != "."]
    return []


def _shared(stems: list[str]) -> set[str]:
    """The names that several files share but for the case of letters."""
    return {name for name, count in Counter(map(str.lower, stems)).items() if count > 1}


def exists(collection: str, name: str) -> bool:
    """Whether a collection has a file of this name.

    >>> exists("Models", "GPT3_175B"), exists("Models", "../Models/GPT3_175B")
    (True, False)
    """
    return not no_name(name) and os.path.lexists(folder(collection) / f"{name}.toml")
