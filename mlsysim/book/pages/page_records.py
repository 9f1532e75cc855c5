"""results/quotes.json and results/claims.json: what each page quotes and claims, page by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlsysim import files, paths
from mlsysim.artifacts.schema_versions import other_schema
from mlsysim.canonical import dumps, loads
from mlsysim.errors import InputError

__all__ = ["SCHEMA", "read_pages", "text"]

SCHEMA = 2


def text(pages: Mapping[str, Sequence[Mapping[str, str]]]) -> str:
    """The record as its file holds it; a page without entries is left out."""
    found = {name: entries for name, entries in sorted(pages.items()) if entries}
    return dumps({"schema": SCHEMA, "pages": found})


def read_pages(path: Path) -> dict[str, list[dict[str, str]]]:
    """The entries of each page; none if there is no such file.

    Raises InputError for a file that is damaged or of another schema.
    """
    data = files.read(path)
    if not data and not path.exists():
        return {}
    try:
        content: Any = loads(data)
    except ValueError:
        content = None
    place = paths.shown(path)
    # The first schema named none, and had the pages at its top.
    said = content.get("schema", 1) if isinstance(content, dict) else None
    if other := other_schema(said, SCHEMA):
        raise InputError(f"{place} is {other}")
    if said != SCHEMA or not isinstance(content.get("pages"), dict):
        raise InputError(f"{place} is damaged; run: snakemake all")
    pages: dict[str, list[dict[str, str]]] = content["pages"]
    return pages
