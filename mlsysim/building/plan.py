"""What a build has to do, by content, and how its Snakefile tells Snakemake so.

Snakemake runs a rule whose input is newer than its output. All true inputs are `ancient`, so they
show the graph and no time stamp counts; what is stale has one more input, `Run.news`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mlsysim import files, naming, paths
from mlsysim.artifacts import staleness
from mlsysim.artifacts.code import one_look, remember
from mlsysim.artifacts.lock import Lock, read_lock
from mlsysim.book.products.product_files import product_files
from mlsysim.book.source import cells
from mlsysim.building.records import chapter_reasons, executed, page, page_is_stale
from mlsysim.calibration import agreement
from mlsysim.canonical import loads
from mlsysim.declarations import documents
from mlsysim.engine.scenario_types import WITH_TABLE
from mlsysim.errors import InputError, MlsysimError
from mlsysim.library_hooks import snakemake_runs
from mlsysim.runtime import interpreter, mistakes, turns

__all__ = ["Chapter", "Plan", "Run", "batches", "plan"]

# A process costs 0.5 s of processor time beside the solving, so beyond a few scenarios they share
# processes. Some take a hundred times as long as others, so there are several; at most eight,
# whatever machine plans and whichever solves, so that a cluster gets few jobs and each is worth it.
_ALONE = 4
_IN_A_BATCH = 16
_BATCHES = 8


@dataclass(frozen=True)
class Chapter:
    """A chapter in the graph: the scenarios it reads, the files it makes, whether it is stale."""

    reads: list[str]
    makes: list[str]
    stale: bool


@dataclass(frozen=True)
class Plan:
    """What there is, what of it is stale, and which stale things one process makes together.

    `first` are the stale scenarios whose outputs other values follow; the batches wait for them.
    """

    scenarios: dict[str, bool]  # whether it is stale
    with_table: list[str]
    first: list[str]
    batches: list[list[str]]
    chapters: dict[str, Chapter]
    chapter_batches: list[list[str]]
    page: bool
    lock: bool

    def made(self, chapters: Iterable[str]) -> list[str]:
        """What executing chapters makes: notebooks with their outputs, tables and figures."""
        return [path for chapter in chapters for path in self.chapters[chapter].makes]

    def read(self, chapters: Iterable[str]) -> list[str]:
        """The scenarios whose artifacts chapters read."""
        return sorted({name for chapter in chapters for name in self.chapters[chapter].reads})

    def files(self) -> list[str]:
        """Every file that is the input of some rule."""
        return [
            *(f"scenarios/{name}.toml" for name in self.scenarios),
            *(f"chapters/{chapter}.md" for chapter in self.chapters),
            *map(_artifact, self.scenarios),
            *self.made(self.chapters),
            paths.shown(paths.lock()),
        ]

    def stale(self) -> Iterator[list[str]]:
        """For each thing that is stale the files that are made together."""
        yield from ([_artifact(name)] for name, stale in self.scenarios.items() if stale)
        yield from (each.makes for each in self.chapters.values() if each.stale)
        if self.page:
            yield [paths.shown(page())]
        if self.lock:
            yield [paths.shown(paths.lock())]


@one_look()
def plan(*, alone: bool = False, spread: bool = False) -> Plan:
    """What this project has, and what of it is stale.

    `alone` makes no batches, `spread` none of chapters, so that several machines can share them.
    """
    interpreter.need_docstrings()
    if wrong := naming.misnamed():
        place, why = next(iter(wrong.items()))
        raise InputError(f"{place}: {why}; rename it")
    known = documents.Known()
    stale = staleness.stale(known)
    first = agreement.first(known, stale)
    stale = list(dict.fromkeys([*first, *stale]))
    due = {*stale}
    scenarios = {name: name in due for name in documents.names("Scenarios")}
    certified = read_lock()
    chapters = {each: _chapter(each, scenarios, certified) for each in cells.chapters()}
    rest = [name for name in stale if name not in first]
    made = Plan(
        scenarios=scenarios,
        with_table=[name for name in scenarios if _has_table(name, known)],
        first=[] if alone else first,
        batches=batches([] if alone else rest, len(scenarios)),
        chapters=chapters,
        chapter_batches=_chapter_batches({} if alone or spread else chapters, due),
        lock=staleness.housekeeping(),
        page=bool(due) or any(each.stale for each in chapters.values()) or page_is_stale(),
    )
    remember()
    cells.remember()
    return made


def _has_table(name: str, known: documents.Known) -> bool:
    told = known.get(f"Scenarios.{name}")
    return told.kind in WITH_TABLE if told else paths.table(name).is_file()


def _chapter(chapter: str, scenarios: Mapping[str, bool], certified: Lock) -> Chapter:
    notebook = paths.shown(executed(chapter))
    try:
        uses = cells.uses(chapter)
    except (MlsysimError, SyntaxError):  # executing it says why
        return Chapter(reads=[], makes=[notebook], stale=True)
    return Chapter(
        reads=[name for name in sorted(uses.reads) if name in scenarios],
        makes=[notebook, *map(paths.shown, product_files(uses.tables, uses.figures))],
        stale=any(scenarios.get(name) for name in uses.reads)
        or bool(chapter_reasons(chapter, certified)),
    )


def batches(stale: Sequence[str], scenarios: int) -> list[list[str]]:
    """Stale scenarios of a book of so many, dealt out to processes; none if there are few.

    How many batches there are depends on the book alone, so that the rules keep their names.

    >>> batches(["A", "B", "C", "D", "E"], 20)
    [['A', 'B', 'C', 'D', 'E'], []]
    """
    count = min(_BATCHES, -(-scenarios // _IN_A_BATCH))
    used = min(count, -(-len(stale) // _IN_A_BATCH)) if len(stale) > _ALONE else 0
    return [[*stale[number::used]] if number < used else [] for number in range(count)]


def _chapter_batches(chapters: dict[str, Chapter], stale: set[str]) -> list[list[str]]:
    """Stale chapters that one process executes, which imports once what they import.

    Those that wait for no scenario are apart, so that no slip in one holds them up.
    """
    ready, waiting = list[str](), list[str]()
    for name, each in chapters.items():
        if each.stale:
            (ready if stale.isdisjoint(each.reads) else waiting).append(name)
    return [batch if len(batch) > 1 else [] for batch in (ready, waiting)]


class Run:
    """A run of Snakemake in this project, which may build or only show the graph.

    The rules are declared from `plan`, made without waiting for anybody. What is to be done is
    settled when Snakemake first asks for an input, for then it is known whether this run builds.
    """

    def __init__(self, workflow: Any, arguments: Sequence[str] = ()) -> None:
        self._workflow = workflow
        self._how = {
            "alone": any(each.startswith(("results/", "build/")) for each in arguments),
            "spread": snakemake_runs.has_nodes(workflow),
        }
        own = str(Path(sys.executable).parent)  # they run what runs this, whatever is installed
        os.environ["PATH"] = os.pathsep.join([own, os.environ.get("PATH", "")])
        if snakemake_runs.is_first_process(workflow):
            self._quiet_since = turns.quiet_since()
            os.environ[turns.BUILD] = "1"  # jobs of this build do not wait for it
            self.plan = mistakes.or_end(lambda: plan(**self._how))
        else:  # a job of another machine, which its build has told what to do
            os.environ[turns.BUILD] = turns.ELSEWHERE
            self.plan = _read(_told())

    def news(self, outputs: Iterable[str]) -> str:
        """A file that is newer than these outputs, if one of them is stale; else none."""
        sign, stale = self._begun
        return "" if stale.isdisjoint(outputs) else sign

    @cached_property
    def _begun(self) -> tuple[str, set[str]]:
        """The file that is new for what is stale, and all that is."""
        if not snakemake_runs.is_first_process(self._workflow):
            return paths.shown(_told()), {path for made in self.plan.stale() for path in made}
        if not snakemake_runs.builds(self._workflow):
            stale = [*self.plan.stale()]
            return _newer_than(stale), {path for made in stale for path in made}
        if turns.wait_for_other_builds() != self._quiet_since:
            # Another build made what this one was about to make; the rules stay as declared.
            stale = [*mistakes.or_end(lambda: plan(**self._how)).stale()]
        else:
            stale = [*self.plan.stale()]
        mistakes.tell_at_end()
        files.write(_told(), json.dumps(asdict(self.plan)) + "\n")
        os.utime(_told())
        for made in stale:
            _look_old(made)
        if stale:
            _look_no_newer_than_now(self.plan.files())
        return paths.shown(_told()), {path for made in stale for path in made}


def _artifact(name: str) -> str:
    return paths.shown(paths.artifact(name))


def _told() -> Path:
    return paths.build() / "plan.json"


def _read(path: Path) -> Plan:
    try:
        told = Plan(**loads(files.read(path)))
        chapters = {name: Chapter(**each) for name, each in told.chapters.items()}  # type: ignore[arg-type]
        return Plan(**{**vars(told), "chapters": chapters})
    except (TypeError, ValueError):
        raise InputError(f"{paths.shown(path)} is damaged; start the build again") from None


def _newer_than(stale: Iterable[Sequence[str]]) -> str:
    """A file of no content that is newer than all of these, whose time stamps stay as they are."""
    sign, moments = paths.build() / "stale", [time.time()]
    for made in stale:
        for path in made:
            with suppress(OSError):
                moments.append((paths.root() / path).stat().st_mtime + 1)
    files.write(sign, "")
    os.utime(sign, (max(moments), max(moments)))
    return paths.shown(sign)


def _look_old(made: Sequence[str]) -> None:
    """Make one of the files that are made together look old; Snakemake goes by the oldest."""
    for path in made:
        with suppress(OSError):  # what cannot be touched, its own rule will tell
            os.utime(paths.root() / path, (1, 1))
            return


def _look_no_newer_than_now(paths_shown: Iterable[str]) -> None:
    """Date files back that are dated in the future: Snakemake fails a job with such an input."""
    now = time.time()
    for path in paths_shown:
        with suppress(OSError):
            if (paths.root() / path).stat().st_mtime > now:
                os.utime(paths.root() / path, (now, now))
