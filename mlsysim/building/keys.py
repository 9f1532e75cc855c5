"""What chapters and the records of quotes and claims are made from: each part with its digest."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from mlsysim import bounds, files, paths
from mlsysim.artifacts import default_formats
from mlsysim.artifacts.code import closure
from mlsysim.artifacts.ingredients import CHAPTERS, RECORDS, Ingredients, pinned
from mlsysim.artifacts.lock_lines import has_room, uses_line
from mlsysim.book.products.product_files import on_disk
from mlsysim.book.source import cells
from mlsysim.canonical import digest
from mlsysim.declarations.documents import names
from mlsysim.errors import InputError, MlsysimError
from mlsysim.runtime import used

__all__ = ["chapter_key", "digest_of", "made_from", "reads", "record_ingredients", "versioned"]

# What lies there is of this machine, and in no clone.
_NOT_VERSIONED = ("build/", ".venv/", ".snakemake/")


def digest_of(path: Path) -> str:
    """The digest of a file's content, or that it is missing."""
    data = files.read(path)
    return digest(data) if data or path.is_file() else "missing"


def reads(chapter: str) -> list[str]:
    """Scenarios that a chapter reads; none if its cells are not Python, which executing reports."""
    with suppress(MlsysimError, SyntaxError):
        return sorted(set(cells.uses(chapter, cells.source(chapter)).reads))
    return []


def chapter_key(chapter: str) -> dict[str, str]:
    """Digests of what executing a chapter depends on: code cells, artifacts read, code run.

    What else its cells use is known once they have run.
    """
    if len(chapter) > bounds.NAME:
        raise InputError(f"chapters/{chapter}.md: its name has more than {bounds.NAME} characters")
    sources = [cell.source for cell in cells.code_cells(cells.source(chapter))]
    read = [paths.artifact(name) for name in reads(chapter)]
    return {
        "code cells": digest(sources),
        **{paths.shown(path): digest_of(path) for path in read},
        **_code(*CHAPTERS),
    }


def _code(*starts: str) -> dict[str, str]:
    """Digests of the modules that run, and of the pinned versions of all tools."""
    modules = {name: each.digest for name, each in closure(*starts).items()}
    return modules | {"requirements.lock": pinned()}


def made_from(key: dict[str, str], uses: used.Used) -> Ingredients:
    """The ingredients of a chapter: its key, and what its cells used."""
    found = {
        f"{path}/" if kind == "folders" else path: what
        for kind in ("files", "folders", "patterns")
        for path, what in uses.get(kind, {}).items()
    }
    return Ingredients(tuple(sorted({**key, **found}.items())))


def versioned(chapter: str, uses: used.Used) -> used.Used:
    """What cells used that a clone has too, and that the lock has room to name.

    The records in build/ know the rest.
    """
    return {
        kind: {
            path: what
            for path, what in each.items()
            if not path.startswith(_NOT_VERSIONED) and has_room(uses_line(chapter, kind, path))
        }
        for kind, each in uses.items()
    }


def record_ingredients() -> Ingredients:
    """What results/quotes.json and results/claims.json are made from, beside the text of pages.

    They hold what they take of the text, word for word, so that a word of prose moves nothing here.
    """
    tables = [path for each in cells.chapters() for path in on_disk(each)]
    artifacts = {name: digest_of(paths.artifact(name)) for name in names("Scenarios")}
    quotes = {paths.shown(path): digest_of(path) for path in tables if path.name.endswith(_CELLS)}
    parts = {
        "artifacts": digest(artifacts),
        "tables": digest(quotes),
        paths.shown(default_formats.path()): digest_of(default_formats.path()),
        **_code(*RECORDS),
    }
    return Ingredients(tuple(sorted(parts.items())))


_CELLS = ".quotes.json"
