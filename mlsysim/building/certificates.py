"""Whether tables, figures and records are what a build made of what is there: by the lock alone.

Nothing is executed for it, so that a fresh clone, which has no build/, is told what was edited.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress

from mlsysim import files, paths
from mlsysim.artifacts.ingredients import ingredients, short
from mlsysim.artifacts.lock import Certificate, Lock, certify, read_lock
from mlsysim.artifacts.lock_lines import Line, chapter_of
from mlsysim.artifacts.staleness import EDITED, MERGED
from mlsysim.book.pages.page_records import read_pages
from mlsysim.book.products.product_files import on_disk
from mlsysim.book.source import cells
from mlsysim.building.keys import chapter_key, digest_of, made_from, record_ingredients, versioned
from mlsysim.canonical import digest
from mlsysim.declarations.documents import document
from mlsysim.errors import InputError, MlsysimError
from mlsysim.runtime import used

__all__ = ["edited", "of_chapter", "of_records", "product_reasons", "record_reasons", "settle"]

_KINDS = ("files", "folders", "patterns", "wrote")


def of_chapter(chapter: str, key: dict[str, str], uses: used.Used) -> Certificate:
    """What certifies the tables and figures of a chapter, made from a key and what cells used."""
    products, uses = _products(chapter), versioned(chapter, uses)
    listed = [(kind, path) for kind, found in uses.items() for path in found]
    made = made_from(key, uses)
    return Certificate("chapter", chapter, made, digest(products), products, listed)


def _products(chapter: str) -> dict[str, dict[str, str]]:
    """The digest of every table and figure file of a chapter, by product and ending."""
    found: dict[str, dict[str, str]] = {}
    for path in on_disk(chapter):
        name, _, end = path.name.partition(".")
        folder = path.parent.relative_to(paths.results()).as_posix()
        found.setdefault(f"{folder}/{name}", {})[end] = digest_of(path)
    return found


def of_records() -> list[Certificate]:
    """What certifies the records of quotes and claims as they are on disk."""
    made = record_ingredients()
    return [
        Certificate("record", path.name, made, digest(files.read(path)))
        for path in (paths.claims(), paths.quotes())
    ]


def _of_scenario(name: str) -> Certificate:
    made = ingredients(document(f"Scenarios.{name}"))
    return Certificate("scenario", name, made, digest(files.read(paths.artifact(name))))


def _chapter_now(chapter: str, lock: Lock) -> Certificate:
    """What would certify a chapter as it is, if what its cells use is what they used."""
    uses: used.Used = {kind: {} for kind in _KINDS}
    for name, kind, path in lock.uses:
        if name == chapter:
            uses.setdefault(kind, {})[path] = ""
    return of_chapter(chapter, chapter_key(chapter), {**uses, **used.now(uses)})


def product_reasons(chapter: str, lock: Lock) -> list[str]:
    """Why the tables and figures of a chapter are not what its cells make; empty if they are."""
    try:
        now = _chapter_now(chapter, lock)
    except MlsysimError as error:
        return [str(error)]
    lines = lock.lines("chapter", chapter)
    if _certified(lock, now):
        return []
    if not lines:
        return ["not in results/artifacts.lock"]
    return _changed(lock, now) + _damages(now, lock, ("chapter", chapter) in lock.merged())


def _certified(lock: Lock, now: Certificate) -> bool:
    return lock.certifies(now.name, now.made_from, now.made, now.word)


def _changed(lock: Lock, now: Certificate) -> list[str]:
    """The ingredients that are other ones than those of the line that says most."""
    lines = lock.lines(now.word, now.name)
    if now.made_from.digest in {line.ingredients for line in lines}:
        return []
    best = max(lines, key=lambda line: (line.made == short(now.made), line))
    return ["changed: " + (", ".join(best.changed(now.made_from)) or "what it is made from")]


def _damages(now: Certificate, lock: Lock, merged: bool) -> list[str]:
    """The files that are not what a build made, each with what became of it."""
    found = []
    certified = {
        name: {end: {dict(each).get(end, "") for each in lines} for end in _ends(lines)}
        for name, lines in lock.products.items()
        if chapter_of(name) == now.name
    }
    for name in sorted({*certified, *now.products}):
        made, there = certified.get(name, {}), now.products.get(name, {})
        for end in sorted({*made, *there}):
            path = f"results/{name}.{end}"
            if end not in there:
                found.append(f"{path} missing")
            elif end not in made:
                found.append(f"{path} made by no cell")
            elif short(there[end]) not in made[end]:
                found.append(f"{path} {MERGED if merged else EDITED}")
    if not found and merged:
        found.append("tables and figures of two branches, which no build has made together")
    return found


def _ends(lines: Iterable[tuple[tuple[str, str], ...]]) -> set[str]:
    return {end for line in lines for end, _ in line}


def record_reasons(lock: Lock) -> dict[str, list[str]]:
    """Why results/quotes.json and results/claims.json are not what pages make, by their path."""
    found = {}
    for now in of_records():
        lines = lock.lines(now.word, now.name)
        if not lines and not cells.chapters():
            continue
        if not lines:
            found[now.name] = ["not in results/artifacts.lock"]
        elif not _certified(lock, now):
            made = short(now.made) in {line.made for line in lines}
            found[now.name] = _changed(lock, now) + ([] if made else [_damage(now.name, lines)])
    return {f"results/{name}": reasons for name, reasons in found.items()}


def edited() -> dict[str, list[str]]:
    """Tables, figures and records that are not what a build made of what is there, by what is told.

    It is asked without executing anything; a chapter is named by its file. Records are printed
    again in memory.
    """
    lock, found = read_lock(), dict[str, list[str]]()
    for chapter in cells.chapters():
        if reasons := product_reasons(chapter, lock):
            found[f"chapters/{chapter}.md"] = reasons
    return found | (record_reasons(lock) or _printed_otherwise())


def _printed_otherwise() -> dict[str, list[str]]:
    """The records that are not what the pages print now."""
    from mlsysim.book.pages.page_sources import pages, read_once, record_texts

    try:
        with read_once():
            texts = record_texts(pages()) if cells.chapters() else {}
    except MlsysimError as error:
        return {paths.shown(paths.quotes()): str(error).splitlines()}
    return {
        paths.shown(path): ["not what the pages print"]
        for path, text in texts.items()
        if files.read(path) != text.encode()
    }


def _damage(name: str, lines: Collection[Line]) -> str:
    """What became of a record that no line certifies."""
    path = paths.results() / name
    if not path.is_file():
        return "missing"
    if len(lines) > 1:
        return MERGED
    try:
        read_pages(path)
    except InputError as error:
        return str(error).removeprefix(f"{paths.shown(path)} is ")
    return EDITED


def settle() -> None:
    """Of what a merge brought together, keep the lines that are true of what is there."""
    lock, chapters = read_lock(), {*cells.chapters()}
    kept: list[Certificate] = []
    for word, name in lock.merged():
        with suppress(MlsysimError, SyntaxError):
            if word == "scenario":
                kept.append(_of_scenario(name))
            elif word == "chapter" and name in chapters:
                kept.append(_chapter_now(name, lock))
            elif word == "record":
                kept += [each for each in of_records() if each.name == name]
    certify(each for each in kept if _certified(lock, each))
