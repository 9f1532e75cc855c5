"""What was made from what: the keys and records of executed chapters and of the page.

The commands that make things record here what they made them from; content alone says whether
it still holds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from mlsysim import files, paths
from mlsysim.artifacts.code import closure, one_look
from mlsysim.artifacts.ingredients import pinned
from mlsysim.artifacts.lock import Lock, certify, gather, read_lock
from mlsysim.book.source import cells
from mlsysim.building import certificates
from mlsysim.building.keys import chapter_key, digest_of, reads
from mlsysim.canonical import digest, loads
from mlsysim.declarations import drafts
from mlsysim.errors import MlsysimError
from mlsysim.runtime import environment, turns, used

__all__ = [
    "chapter_key",
    "chapter_reasons",
    "execute",
    "executed",
    "page",
    "page_is_stale",
    "page_is_torn",
    "page_key",
    "reads",
    "record_chapter",
    "record_page",
    "used_files",
]


def executed(chapter: str) -> Path:
    """The chapter as a notebook with its outputs."""
    return paths.build() / "executed" / f"{chapter}.ipynb"


def page() -> Path:
    """The first page of the book."""
    return paths.build() / "book" / "index.html"


def _record(chapter: str) -> Path:
    return paths.build() / "executed" / f"{chapter}.json"


def _printed(chapter: str) -> dict[str, str]:
    """The digest of every figure of a chapter for print, by path."""
    made = sorted((paths.build() / "figures" / chapter).glob("*.pdf"))
    return {path.relative_to(paths.root()).as_posix(): digest_of(path) for path in made}


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
        from mlsysim.book.execution.chapter_execution import execute_all

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
        "notebook": digest_of(executed(chapter)),
        "printed": _printed(chapter),
    }
    files.write(_record(chapter), json.dumps(content, indent=1) + "\n")
    certify([certificates.of_chapter(chapter, key, uses)])


def used_files() -> list[Path]:
    """The files that cells of chapters and pages used when they were last made, wherever."""
    from mlsysim.book.pages import book_files

    records = [_read_record(_record(chapter)) for chapter in cells.chapters()]
    named = {path for record in records for path in record.get("used", {}).get("files", {})}
    return [paths.root() / path for path in sorted(named | set(book_files.read()))]


def chapter_reasons(chapter: str, lock: Lock | None = None) -> list[str]:
    """Why a chapter must be executed (again); empty if it is fresh."""
    lock = lock or read_lock()
    record = _read_record(_record(chapter))
    if not record:
        made = certificates.product_reasons(chapter, lock) if _certified(chapter, lock) else []
        return ["not executed yet", *made]
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
    if record.get("notebook") != digest_of(executed(chapter)):
        reasons.append(f"{paths.shown(executed(chapter))} missing or edited")
    then, now = record.get("printed", {}), _printed(chapter)
    reasons += [
        f"{path} {'edited by hand' if path in now else 'missing'}"
        for path in sorted(then)
        if then[path] != now.get(path)
    ]
    made = certificates.product_reasons(chapter, lock)
    return reasons + [each for each in made if not (edited and each.startswith("changed: "))]


def _certified(chapter: str, lock: Lock) -> bool:
    return bool(lock.lines("chapter", chapter))


def _read_record(path: Path) -> dict[str, Any]:
    """A record, or nothing if it is missing or not one."""
    with suppress(MlsysimError, ValueError):
        record = loads(files.read(path))
        if isinstance(record, dict) and {"key"} <= set(record):
            return record
    return {}


def page_key() -> str:
    """A digest of all that the page shows, whatever it names, and of the code that lays it out.

    The records of quotes and claims are left out: building the page writes and certifies them.
    """
    from mlsysim.book.pages import book_files
    from mlsysim.engine.scenario_types import HOMES

    definitions = "mlsysim.engine.scenario_definitions"
    modules = closure(
        "mlsysim.book.site.html_book",
        "mlsysim.book.site.sphinx_extension",
        *(f"{definitions}.{home}" for home in sorted(set(HOMES.values()))),
    )
    return digest(
        {
            "files": {paths.shown(path): digest_of(path) for path in book_files.known()},
            "code": [[name, each.digest] for name, each in modules.items()],
            "requirements": pinned(),
            "drafts": drafts.drafts(),
        }
    )


def record_page(key: str) -> None:
    """Note that the page was built from what `key` stands for, taken before, and what it made."""
    from mlsysim.book.pages import book_files

    content = {"key": key, "read": book_files.read(), "made": _made()}
    files.write(paths.build() / "page.json", json.dumps(content) + "\n")
    certify(certificates.of_records())
    if turns.elsewhere():
        gather(lambda: not certificates.edited())


def page_is_stale() -> bool:
    """Whether the page shows anything else than what the project holds, or lost a file."""
    from mlsysim.book.pages import book_files

    record = _read_record(paths.build() / "page.json")
    return (
        record.get("key") != page_key()
        or record.get("read") != book_files.read()
        or record.get("made") != _made()
        or bool(certificates.record_reasons(read_lock()))
    )


def page_is_torn() -> bool:
    """Whether a file of the page is gone or another than was built; Sphinx might not see that."""
    record = _read_record(paths.build() / "page.json")
    then, now = (
        {path: size for path, size in made.items() if path.startswith("book/")}
        for made in (record.get("made", {}), _made())
    )
    return bool(record) and then != now


def _made() -> dict[str, int]:
    """The size of every file of the built book, and of the notebooks and figures beside it."""
    found = dict[str, int]()
    for folder in ("book", "notebooks", "figures"):
        for place, folders, names in os.walk(paths.build() / folder):
            folders[:] = [each for each in folders if each != ".doctrees"]
            within = os.path.relpath(place, paths.build())
            for name in names:  # a Path for each would take longer than to ask for its size
                if os.path.isfile(file := f"{place}/{name}"):  # noqa: PTH113
                    found[f"{within}/{name}"] = os.path.getsize(file)  # noqa: PTH202
    return found
