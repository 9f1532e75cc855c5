"""What a build has to do: the scenarios, chapters and pages whose content is not what it should be.

Freshness is judged by content, so the rule of what is fresh gets no input, and no time stamp can
touch it. The Snakefile asks for a plan when it is parsed; the commands that make things record here
what they made them from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mlsysim import documents, drafts, environment, files, interpreter, naming, paths, turns
from mlsysim.artifacts import lock, staleness
from mlsysim.artifacts.canonical import digest, loads
from mlsysim.artifacts.code import closure, one_look, remember
from mlsysim.book import cells, used
from mlsysim.book.products import on_disk
from mlsysim.calibration import agreement
from mlsysim.errors import InputError, MlsysimError

__all__ = [
    "Plan",
    "chapter_key",
    "chapter_reasons",
    "execute",
    "executed",
    "page_is_stale",
    "page_key",
    "plan",
    "record_chapter",
    "record_page",
    "status",
    "used_files",
]

ENVIRONMENT = "the environment"  # how `status` names the libraries that are installed
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
        waits = [name for name in _reads(chapter) if name in scenarios]
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


def executed(chapter: str) -> Path:
    """The chapter as a notebook with its outputs."""
    return paths.build() / "executed" / f"{chapter}.ipynb"


def page() -> Path:
    """The first page of the book."""
    return paths.build() / "book" / "index.html"


def _record(chapter: str) -> Path:
    return paths.build() / "executed" / f"{chapter}.json"


def _source(chapter: str) -> str:
    return cells.source(chapter)


def _reads(chapter: str) -> list[str]:
    """Scenarios that a chapter reads; none if its cells are not Python, which executing reports."""
    with suppress(MlsysimError, SyntaxError):
        return sorted(set(cells.uses(chapter, _source(chapter)).reads))
    return []


def _book_code() -> dict[str, str]:
    """Digests of the modules that chapters run, and of the pinned versions of all tools."""
    modules = closure(
        "mlsysim.book",
        "mlsysim.book.charts",
        "mlsysim.book.tables",
        "mlsysim.book.figures",
        "mlsysim.book.execution",
        "mlsysim.book.host",
    )
    found = {name: each.digest for name, each in modules.items()}
    return found | {"requirements.lock": _pinned()}


def _pinned() -> str:
    """A digest of the pinned libraries, whatever is said about them in comments."""
    path = paths.requirements()
    lines = files.text(path).splitlines() if path.is_file() else []
    return digest([" ".join(each.split()) for line in lines if (each := line.partition("#")[0])])


def _digest_of(path: Path) -> str:
    data = files.read(path)
    return digest(data) if data or path.is_file() else "missing"


def chapter_key(chapter: str) -> dict[str, str]:
    """Digests of what executing a chapter depends on: code cells, artifacts read, code run.

    What else its cells use is known once they have run.
    """
    sources = [cell.source for cell in cells.code_cells(_source(chapter))]
    read = [paths.artifact(name) for name in _reads(chapter)]
    return {
        "code cells": digest(sources),
        **{paths.shown(path): _digest_of(path) for path in read},
        **_book_code(),
    }


def _products(chapter: str) -> dict[str, str]:
    """The digest of every table and figure file of a chapter, by path; figures for print too."""
    made = on_disk(chapter)
    made += sorted((paths.build() / "figures" / chapter).glob("*.pdf"))
    return {path.relative_to(paths.root()).as_posix(): _digest_of(path) for path in made}


def execute(
    chapters: Iterable[str], at_once: int
) -> Iterator[tuple[str, list[tuple[str, str]] | MlsysimError | None]]:
    """Execute the stale of these chapters, `at_once` at a time, and record those that went well.

    Yields each with what became of its products, None if it was fresh, or the error that ended it.
    """
    chapters = list(dict.fromkeys(chapters))
    # Taken before the work: what is saved meanwhile makes a chapter stale again.
    with one_look():
        keys = {each: chapter_key(each) for each in chapters if chapter_reasons(each)}
    yield from ((chapter, None) for chapter in chapters if chapter not in keys)
    if keys:
        from mlsysim.book.execution import execute_all

        environment.check()
        for chapter, ran in execute_all(list(keys), at_once):
            if isinstance(ran, MlsysimError):
                yield chapter, ran
            elif edited := [*_differing(keys[chapter], _key_now(chapter)), *used.changed(ran.used)]:
                told = f"chapters/{chapter}.md: {', '.join(edited)}: edited while it ran"
                yield chapter, MlsysimError(f"{told}; run it again")
            else:
                record_chapter(chapter, keys[chapter], ran.used)
                yield chapter, ran.made


def _key_now(chapter: str) -> dict[str, str]:
    with suppress(MlsysimError):
        return chapter_key(chapter)
    return {}


def _differing(then: dict[str, str], now: dict[str, str]) -> list[str]:
    return sorted(each for each in {*then, *now} if then.get(each) != now.get(each))


def record_chapter(chapter: str, key: dict[str, str], uses: used.Used) -> None:
    """Note what the chapter was executed from, what its cells used beside it, and what it made."""
    content = {
        "key": key,
        "used": uses,
        "notebook": _digest_of(executed(chapter)),
        "products": _products(chapter),
    }
    files.write(_record(chapter), json.dumps(content, indent=1) + "\n")


def used_files() -> list[Path]:
    """The files that cells of chapters and pages used when they were last made, wherever."""
    from mlsysim.book import sources

    records = [_read_record(_record(chapter)) for chapter in cells.chapters()]
    named = {path for record in records for path in record.get("used", {}).get("files", {})}
    return [paths.root() / path for path in sorted(named | set(sources.read()))]


def chapter_reasons(chapter: str) -> list[str]:
    """Why a chapter must be executed (again); empty if it is fresh."""
    record = _read_record(_record(chapter))
    if not record:
        return ["not executed yet"]
    try:
        key = chapter_key(chapter)
    except MlsysimError as error:
        return [str(error)]
    reasons = []
    try:
        edited = [*_differing(record["key"], key), *used.changed(record["used"])]
    except (KeyError, TypeError, AttributeError):
        return ["executed by another version of this code"]
    if edited:
        reasons.append("changed: " + ", ".join(edited))
    if record.get("notebook") != _digest_of(executed(chapter)):
        reasons.append(f"{paths.shown(executed(chapter))} missing or edited")
    then, now = record.get("products", {}), _products(chapter)
    return reasons + [
        f"{path} {_damage(then.get(path), now.get(path))}"
        for path in sorted({*then, *now})
        if then.get(path) != now.get(path)
    ]


def _damage(then: str | None, now: str | None) -> str:
    if now is None:
        return "missing"
    return "edited by hand" if then else "made by no cell"


@one_look()
def status() -> list[dict[str, Any]]:
    """Everything that is not what it should be, each with its reasons."""
    found: list[dict[str, Any]] = []
    if other := environment.differences():
        found.append({"what": ENVIRONMENT, "reasons": other})
    found += [
        {"what": f"results/scenarios/{verdict.name}.json", "reasons": list(verdict.reasons)}
        for verdict in staleness.verdicts()
        if not verdict.fresh
    ]
    stale = {Path(each["what"]).stem for each in found}
    found += [
        {"what": f"{each.file}:{each.line}", "reasons": [each.advice]}
        for each in agreement.differences()
    ]
    found += [
        {"what": path, "reasons": ["not the schema of this code"]}
        for path in staleness.stale_schemas()
    ]
    found += [
        {"what": path, "reasons": ["no scenario makes it; the next build removes it"]}
        for path in staleness.orphans()
    ]
    found += [
        {"what": path, "reasons": [f"{why}; rename it"]} for path, why in naming.misnamed().items()
    ]
    found += [{"what": "results/artifacts.lock", "reasons": [reason]} for reason in lock.faults()]
    for chapter in cells.chapters():
        reasons = [f"reads {name}, which is stale" for name in _reads(chapter) if name in stale]
        reasons += chapter_reasons(chapter)
        if reasons:
            found.append({"what": f"chapters/{chapter}.md", "reasons": reasons})
    if page_is_stale():
        found.append(
            {"what": "build/book", "reasons": ["shows something else than the project holds"]}
        )
    return found


def _some(names: list[str]) -> str:
    """The first of many names, and how many more there are."""
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _read_record(path: Path) -> dict[str, Any]:
    """A record, or nothing if it is missing or not one."""
    with suppress(MlsysimError, ValueError):
        record = loads(files.read(path))
        if isinstance(record, dict) and {"key"} <= set(record):
            return record
    return {}


def page_key() -> str:
    """A digest of all that the page shows, whatever it names, and of the code that lays it out.

    The records of quotes and claims are left out: building the page writes them.
    """
    from mlsysim.book import sources
    from mlsysim.engine.scenario_types import HOMES

    definitions = "mlsysim.engine.scenario_definitions"
    modules = closure(
        "mlsysim.book.page",
        "mlsysim.book.sphinx_extension",
        *(f"{definitions}.{home}" for home in sorted(set(HOMES.values()))),
    )
    return digest(
        {
            "files": {paths.shown(path): _digest_of(path) for path in sources.known()},
            "code": [[name, each.digest] for name, each in modules.items()],
            "requirements": _pinned(),
            "drafts": drafts.drafts(),
        }
    )


def record_page(key: str) -> None:
    """Note that the page was built from what `key` stands for, taken before, and what it made."""
    from mlsysim.book import sources

    content = {"key": key, "read": sources.read(), "made": _made(), "quotes": _records()}
    files.write(paths.build() / "page.json", json.dumps(content) + "\n")


def page_is_stale() -> bool:
    """Whether the page shows anything else than what the project holds, or lost a file."""
    from mlsysim.book import sources

    record = _read_record(paths.build() / "page.json")
    return (
        record.get("key") != page_key()
        or record.get("read") != sources.read()
        or record.get("made") != _made()
        or record.get("quotes") != _records()
    )


def page_is_torn() -> bool:
    """Whether a file of the page is gone or another than was built; Sphinx might not see that."""
    record = _read_record(paths.build() / "page.json")
    then, now = (
        {path: size for path, size in made.items() if path.startswith("book/")}
        for made in (record.get("made", {}), _made())
    )
    return bool(record) and then != now


def _records() -> list[str]:
    """Digests of the records that building the page writes."""
    return [_digest_of(path) for path in (paths.quotes(), paths.claims())]


def _made() -> dict[str, int]:
    """The size of every file of the built book, and of the notebooks and figures beside it."""
    return {
        path.relative_to(paths.build()).as_posix(): path.stat().st_size
        for folder in ("book", "notebooks", "figures")
        for path in sorted((paths.build() / folder).rglob("*"))
        if path.is_file() and ".doctrees" not in path.parts
    }
