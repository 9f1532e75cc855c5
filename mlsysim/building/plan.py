"""What a build has to do: the scenarios, chapters and pages whose content is not what it should be.

Freshness is judged by content, so the rule of what is fresh gets no input, and no time stamp can
touch it. The Snakefile asks for a plan when it is parsed.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from mlsysim import files, naming, paths
from mlsysim.artifacts import staleness
from mlsysim.artifacts.code import one_look, remember
from mlsysim.book.source import cells
from mlsysim.building.records import chapter_reasons, executed, page, page_is_stale, reads
from mlsysim.calibration import agreement
from mlsysim.canonical import loads
from mlsysim.declarations import documents
from mlsysim.errors import InputError
from mlsysim.runtime import interpreter, turns

__all__ = ["Plan", "plan"]

_MOST = 64  # scenarios that one process solves


@dataclass(frozen=True)
class Plan:
    """What there is and what is stale: scenarios by process, chapters, the page.

    If there is any `first`, it is the first group, and the others wait for it. A stale chapter has
    the list of stale scenarios that it waits for, a fresh one none.
    """

    scenarios: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    groups: list[list[str]] = field(default_factory=list)
    chapters: dict[str, list[str] | None] = field(default_factory=dict)
    page: bool = False
    path: str = ""

    @property
    def stale_chapters(self) -> list[str]:
        """Chapters that are executed (again)."""
        return [chapter for chapter, waits in self.chapters.items() if waits is not None]

    @property
    def executions(self) -> list[tuple[list[str], list[str]]]:
        """The stale chapters that one process executes, and the stale scenarios it waits for.

        Chapters that wait for none are apart, so that no slip in a scenario holds them up.
        """
        ready = [chapter for chapter, waits in self.chapters.items() if waits == []]
        waiting = {chapter: waits for chapter, waits in self.chapters.items() if waits}
        made = [(ready, list[str]())] if ready else []
        if waiting:
            made.append(
                (list(waiting), sorted({name for each in waiting.values() for name in each}))
            )
        return made

    @property
    def fresh_chapters(self) -> list[str]:
        """Chapters that are executed as they stand."""
        return [chapter for chapter, waits in self.chapters.items() if waits is None]

    @property
    def fresh(self) -> list[str]:
        """Scenarios whose artifact is what it should be."""
        stale = {name for group in self.groups for name in group}
        return [name for name in self.scenarios if name not in stale]


@one_look()
def plan(cores: int, *, main: bool) -> Plan:
    """The work of this build. `main` is false in a process that Snakemake starts for a job of it.

    A main process waits until no other build, nor a job that one left behind, is at work in this
    checkout; the kernel ends the wait with the process that caused it.
    """
    path = paths.build() / "plan.json"
    if not main:
        try:
            return Plan(**loads(files.read(path)))
        except (TypeError, ValueError):
            raise InputError(f"{paths.shown(path)} is damaged; start the build again") from None
    interpreter.need_docstrings()
    turns.wait_for_other_builds()
    if wrong := naming.misnamed():
        place, why = next(iter(wrong.items()))
        raise InputError(f"{place}: {why}; rename it")
    known = documents.Known()
    scenarios = staleness.stale(known)
    first = agreement.first(known, scenarios)
    scenarios = list(dict.fromkeys([*first, *scenarios]))
    if staleness.housekeeping() and not scenarios:
        scenarios = documents.names("Scenarios")[:1]  # any solve puts the rest right
    chapters: dict[str, list[str] | None] = {}
    for chapter in cells.chapters():
        waits = [name for name in reads(chapter) if name in scenarios]
        chapters[chapter] = waits if waits or chapter_reasons(chapter) else None
    # Some take a hundred times as long as others, so there are more groups than cores.
    rest = [name for name in scenarios if name not in first]
    count = max(-(-len(rest) // _MOST), min(len(rest) // 2, 2 * max(1, cores)), 1)
    made = Plan(
        scenarios=documents.names("Scenarios"),
        first=first,
        groups=[first] * bool(first) + [rest[i::count] for i in range(count) if rest],
        chapters=chapters,
        page=bool(scenarios) or chapters != dict.fromkeys(chapters) or page_is_stale(),
        path=path.relative_to(paths.root()).as_posix(),
    )
    files.write(path, json.dumps(asdict(made)) + "\n")
    remember()
    cells.remember()
    _look_older_than_the_plan(made)
    return made


def _look_older_than_the_plan(made: Plan) -> None:
    """Give stale files an old time stamp, so that Snakemake sees what their content says."""
    stale = [paths.artifact(name) for group in made.groups for name in group]
    stale += [executed(chapter) for chapter in made.stale_chapters]
    stale += [page()] if made.page else []
    for path in stale:
        with suppress(OSError):  # what cannot be touched, its own rule will tell
            os.utime(path, (1, 1))
