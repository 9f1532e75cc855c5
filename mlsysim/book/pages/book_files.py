"""The files that the book's page is made of: what Sphinx and this code read, and no litter."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from mlsysim import files, paths
from mlsysim.artifacts import default_formats
from mlsysim.book.products.product_files import on_disk
from mlsysim.book.source import cells
from mlsysim.canonical import digest
from mlsysim.declarations import documents

__all__ = ["is_page", "known", "note_read", "read"]


def is_page(path: Path) -> bool:
    """Whether a file in chapters/ is a page, as the patterns of chapters/conf.py have it."""
    inside = path.relative_to(paths.chapters()).parts
    hidden = any(part.startswith(".") for part in inside)
    return path.suffix == ".md" and not hidden and path.is_file()


def known() -> list[Path]:
    """The files that a page is made of, whatever it says."""
    chapters, names = paths.chapters(), documents.names("Scenarios")
    static = [path for path in (chapters / "_static").rglob("*") if _is_static(path)]
    return sorted(
        {
            *filter(is_page, chapters.rglob("*.md")),
            *static,
            *(chapters / "conf.py", paths.bibliography(), default_formats.path()),
            *(paths.scenarios() / f"{name}.toml" for name in names),
            *(path for name in names for path in (paths.artifact(name), paths.table(name))),
            *(path for chapter in cells.chapters() for path in on_disk(chapter)),
            *(paths.build() / "executed" / f"{name}.ipynb" for name in cells.chapters()),
            *(paths.PACKAGE / "engine" / "scenario_definitions").glob("*.py"),
            *(paths.PACKAGE / "book" / "site" / "templates").glob("*.html"),
        }
    )


def _is_static(path: Path) -> bool:
    """Whether Sphinx copies a file of _static, by the patterns of chapters/conf.py."""
    hidden = any(part.startswith(".") for part in path.relative_to(paths.chapters()).parts)
    return path.is_file() and not hidden and not path.name.endswith("~")


def note_read(found: Iterable[Path]) -> None:
    """Keep which files the pages themselves name: pictures, inclusions, downloads."""
    root = paths.root()
    inside = {path.resolve() for path in found}
    listed = sorted(str(path.relative_to(root)) for path in inside if path.is_relative_to(root))
    files.write(_noted(), json.dumps(listed) + "\n")


def read() -> dict[str, str]:
    """The files that the pages named when they were last built, with the digest of each now."""
    try:
        listed = json.loads(files.read(_noted()))
    except ValueError:
        return {}
    return {name: digest(files.read(paths.root() / name)) for name in listed}


def _noted() -> Path:
    return paths.build() / "book.reads.json"
