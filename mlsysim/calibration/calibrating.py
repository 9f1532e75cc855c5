"""`mlsysim calibrate`: values that follow others become what they follow, in their files."""

from __future__ import annotations

import dataclasses
from typing import Any

from mlsysim import files
from mlsysim.calibration import _trying
from mlsysim.calibration._rewriting import path_of, rewritten
from mlsysim.calibration.differences import Finding
from mlsysim.calibration.following import Following
from mlsysim.calibration.settling import findings
from mlsysim.engine.scenario_types import KINDS
from mlsysim.errors import MlsysimError
from mlsysim.registry.loading import load

__all__ = ["Calibrated", "calibrate"]


@dataclasses.dataclass(frozen=True)
class Calibrated:
    """A value that was rewritten, or with `wrong` the reason why it was not."""

    file: str
    line: int
    key: str
    old: Any
    new: Any = None
    wrong: str = ""


def calibrate() -> list[Calibrated]:
    """Give every value that follows another what it follows, each after those that it rests on.

    A value that its field cannot have is not written, and told. Raises MlsysimError if a file
    cannot be read, for what follows it is not known then; nothing is written.
    """
    following = Following()
    if following.unreadable:
        raise MlsysimError("\n".join(following.unreadable))
    found = _possible(findings(following))
    done = []
    for each in found:
        old, line = each.follower.leaf["value"], each.line
        if not each.wrong:
            files.write(path_of(each.follower), rewritten(each.follower, each.due)[1])
        done.append(Calibrated(each.file, line, each.follower.key, old, each.due, each.wrong))
    return done


def _whole(finding: Finding) -> Any:
    """What is due, as a whole number where the field takes no other."""
    due, follower = finding.due, finding.follower
    whole = isinstance(due, float) and due.is_integer()
    return int(due) if whole and _trying.is_count(follower.document, follower.key) else due


def _possible(found: list[Finding]) -> list[Finding]:
    """The findings, where what is due cannot stand in its file with the reason."""
    found = [dataclasses.replace(each, due=_whole(each)) for each in found]
    due = {each.follower.place: each.due for each in found if not each.wrong}
    checked = []
    for each in found:
        try:
            if not each.wrong:
                load(_trying.patched(each.follower.document, due), KINDS)
        except MlsysimError as error:
            each = dataclasses.replace(each, wrong=f"what it follows gives {each.due}: {error}")
        checked.append(each)
    return checked
