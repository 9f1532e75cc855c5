"""Whether the values that follow others are what they follow, computed only if that may have moved.

A build, which asks at every start, compares digests and needs no unit library.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mlsysim import files, paths
from mlsysim.artifacts import staleness
from mlsysim.artifacts.code import closure
from mlsysim.calibration.following import Following
from mlsysim.canonical import digest
from mlsysim.declarations import documents
from mlsysim.declarations.documents import Known
from mlsysim.declarations.follows import told

if TYPE_CHECKING:
    from mlsysim.calibration.differences import Finding

__all__ = ["agree", "differences", "first"]


def first(known: Known, stale: list[str]) -> list[str]:
    """The scenarios that a build solves before all others, in this order; none if all agree.

    They are the stale ones whose outputs are followed, since only then what follows them can be
    compared. If that is known already, and some value differs, it is any one, for solving it says
    so. `known` holds what was read, `stale` the scenarios to solve.
    """
    following = Following(known)
    origins = [name for name in following.origins if name in set(stale)]
    if origins or _agreed(following):
        return origins
    if _computed(following):
        return (stale or documents.names("Scenarios"))[:1]
    agree(following)
    return []


def differences() -> list[Finding]:
    """Every value that is not what it follows.

    What cannot be compared is left to who reads the file that is at fault, if one cannot be read.
    """
    known = Known()
    stale, following = staleness.stale(known), Following(known)
    if _agreed(following) and not {*following.origins} & {*stale}:
        return []
    found = _computed(following)
    return [each for each in found if not (each.wrong and following.unreadable)]


def agree(following: Following) -> None:
    """Note that all these values agree with outputs of artifacts that are fresh."""
    files.write(_record(), _key(following))


def _computed(following: Following) -> list[Finding]:
    from mlsysim.calibration.settling import findings  # few have to pay for it

    return findings(following)


def _agreed(following: Following) -> bool:
    """Whether all is as it was when every value was found to agree."""
    return files.read(_record()) == _key(following).encode()


def _key(following: Following) -> str:
    """A digest of all that the comparison rests on, while no artifact that it reads is stale."""
    rests = []
    for place, follower in sorted(following.followers.items()):
        found = [
            digest(files.read(paths.artifact(target.document.name)))
            if target.leaf is None
            else target.leaf["value"]
            for target in following.targets(follower)
        ]
        rests.append([*place, follower.leaf["value"], told(follower.leaf), found])
    code = closure("mlsysim.calibration.settling")
    return digest([rests, [[name, each.digest] for name, each in code.items()]])


def _record() -> Path:
    return paths.build() / "followed"
