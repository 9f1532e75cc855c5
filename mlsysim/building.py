"""What a build has to do: the scenarios, chapters and pages whose content is not what it should be.

Freshness is judged by content, so what is fresh needs no rule and no time stamp can touch it. The
Snakefile asks for a plan when it is parsed; the commands that make things record here what they
made them from.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mlsysim import documents, files, paths, turns
from mlsysim.artifacts import staleness
from mlsysim.artifacts.canonical import digest
from mlsysim.artifacts.code import closure, libraries
from mlsysim.book import cells
from mlsysim.errors import MlsysimError

__all__ = [
    "Plan",
    "chapter_reasons",
    "executed",
    "page_is_stale",
    "plan",
    "record_chapter",
    "record_page",
    "status",
]

_MOST = 64  # scenarios that one process solves


@dataclass(frozen=True)
class Plan:
    """Stale scenarios by process, stale chapters with the scenarios they wait for, the page."""

    groups: list[list[str]] = field(default_factory=list)
    chapters: dict[str, list[str]] = field(default_factory=dict)
    page: bool = False
    path: str = ""


def plan(cores: int, *, main: bool) -> Plan:
    """The work of this build. `main` is false in a process that Snakemake starts for a job of it.

    A main process waits until no other build, nor a job that one left behind, is at work in this
    checkout; the kernel ends the wait with the process that caused it.
    """
    path = paths.build() / "plan.json"
    if not main:
        return Plan(**json.loads(path.read_text(encoding="utf-8")))
    turns.wait_for_other_builds()
    scenarios = staleness.stale()
    if staleness.schema_is_stale() and not scenarios:
        scenarios = documents.names("Scenarios")[:1]  # any solve writes the schema
    chapters = {}
    for chapter in cells.chapters():
        waits = [name for name in _reads(chapter) if name in scenarios]
        if waits or chapter_reasons(chapter):
            chapters[chapter] = waits
    size = max(1, min(_MOST, -(-len(scenarios) // max(1, cores))))
    made = Plan(
        groups=[scenarios[i : i + size] for i in range(0, len(scenarios), size)],
        chapters=chapters,
        page=bool(scenarios or chapters) or page_is_stale(),
        path=path.relative_to(paths.root()).as_posix(),
    )
    files.write(path, json.dumps(asdict(made)) + "\n")
    _look_older_than_the_plan(made)
    return made


def _look_older_than_the_plan(made: Plan) -> None:
    """Give stale files an old time stamp, so that Snakemake sees what their content says."""
    stale = [paths.artifact(name) for group in made.groups for name in group]
    stale += [executed(chapter) for chapter in made.chapters]
    stale += [page()]
    for path in stale:
        with suppress(FileNotFoundError):
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
    return (paths.chapters() / f"{chapter}.md").read_text(encoding="utf-8")


def _reads(chapter: str) -> list[str]:
    """Scenarios that a chapter reads; none if its cells are not Python, which executing reports."""
    with suppress(MlsysimError, SyntaxError):
        return sorted(set(cells.uses(chapter, _source(chapter)).reads))
    return []


def _book_code() -> list[list[str]]:
    """Digests of the modules that chapters run, and of the libraries they draw with."""
    modules = closure(
        "mlsysim.book",
        "mlsysim.book.charts",
        "mlsysim.book.tables",
        "mlsysim.book.figures",
        "mlsysim.book.execution",
    )
    parts = {**libraries(modules), **{name: each.digest for name, each in modules.items()}}
    return [list(part) for part in parts.items()]


def _digest_of(path: Path) -> str:
    try:
        return digest(path.read_bytes())
    except FileNotFoundError:
        return "missing"


def _chapter_key(chapter: str) -> str:
    """A digest of what executing a chapter depends on: code cells, artifacts read, code run."""
    return digest(
        {
            "cells": [cell.source for cell in cells.code_cells(_source(chapter))],
            "artifacts": {name: _digest_of(paths.artifact(name)) for name in _reads(chapter)},
            "code": _book_code(),
        }
    )


def _products(chapter: str) -> dict[str, str]:
    """The digest of every table and figure file of a chapter, by path."""
    return {
        path.relative_to(paths.root()).as_posix(): _digest_of(path)
        for kind in ("tables", "figures")
        for path in sorted((paths.results() / kind / chapter).glob("*"))
    }


def record_chapter(chapter: str) -> None:
    """Note what the chapter was executed from and what it made, as it is on disk now."""
    content = {
        "key": _chapter_key(chapter),
        "notebook": _digest_of(executed(chapter)),
        "products": _products(chapter),
    }
    files.write(_record(chapter), json.dumps(content, indent=1) + "\n")


def chapter_reasons(chapter: str) -> list[str]:
    """Why a chapter must be executed (again); empty if it is fresh."""
    record = _read_record(_record(chapter))
    if not record:
        return ["not executed yet"]
    reasons = []
    if record["key"] != _chapter_key(chapter):
        reasons.append("code cells, artifacts read or book code changed")
    if record["notebook"] != _digest_of(executed(chapter)):
        reasons.append(f"{paths.shown(executed(chapter))} missing or edited")
    then, now = record["products"], _products(chapter)
    return reasons + [
        f"{path} {_damage(then.get(path), now.get(path))}"
        for path in sorted({*then, *now})
        if then.get(path) != now.get(path)
    ]


def _damage(then: str | None, now: str | None) -> str:
    if now is None:
        return "missing"
    return "edited by hand" if then else "made by no cell"


def status() -> list[dict[str, Any]]:
    """Everything that is not what it should be, each with its reasons."""
    found: list[dict[str, Any]] = [
        {"what": f"results/scenarios/{verdict.name}.json", "reasons": list(verdict.reasons)}
        for verdict in staleness.verdicts()
        if not verdict.fresh
    ]
    stale = {Path(each["what"]).stem for each in found}
    if staleness.schema_is_stale():
        found.append(
            {"what": "results/artifact.schema.json", "reasons": ["not the schema of this code"]}
        )
    found += [
        {"what": path, "reasons": ["no scenario makes it; remove it"]}
        for path in staleness.orphans()
    ]
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


def _read_record(path: Path) -> dict[str, Any]:
    """A record, or nothing if it is missing or not one."""
    with suppress(FileNotFoundError, ValueError):
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict) and {"key"} <= set(record):
            return record
    return {}


def _page_key() -> str:
    """A digest of all that the page shows and of the code that lays it out."""
    shown = [
        path
        for folder in (paths.chapters(), paths.results(), paths.build() / "executed")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith((".", "_build")) for part in path.parts[-2:])
    ]
    modules = closure("mlsysim.book.page", "mlsysim.book.sphinx_extension")
    return digest(
        {
            "files": {paths.shown(path): _digest_of(path) for path in shown},
            "code": [[name, each.digest] for name, each in modules.items()],
            "libraries": libraries(modules),
        }
    )


def record_page() -> None:
    """Note what the page was built from, as it is on disk now."""
    files.write(paths.build() / "page.json", json.dumps({"key": _page_key()}) + "\n")


def page_is_stale() -> bool:
    """Whether the page shows anything else than what the project holds."""
    return (
        not page().is_file() or _read_record(paths.build() / "page.json").get("key") != _page_key()
    )
