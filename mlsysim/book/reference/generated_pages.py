"""The generated pages of the book, written into build/reference for Sphinx to read.

Their names are reference/index, reference/numbers, reference/scenarios, reference/scenarios/NAME,
reference/classes and reference/classes/KIND.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from mlsysim import files, paths
from mlsysim.artifacts.ingredients import Ingredients, ingredients
from mlsysim.artifacts.reading import Artifact, read
from mlsysim.book.check.scenario_texts import purpose, text
from mlsysim.book.pages.page_records import read_pages
from mlsysim.book.pages.page_sources import page
from mlsysim.book.products.markdown import value
from mlsysim.book.reference._class_pages import class_page
from mlsysim.book.reference._entry_pages import entry_pages
from mlsysim.book.reference._numbers_index import Record, numbers_page
from mlsysim.book.reference._scenario_pages import Told, scenario_page
from mlsysim.book.source import cells
from mlsysim.book.source.product_uses import Product
from mlsysim.canonical import digest
from mlsysim.declarations import drafts
from mlsysim.declarations.documents import Document, Known, document, names
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_types import HOMES, KINDS

__all__ = [
    "FOLDER",
    "is_generated",
    "is_listed",
    "origin",
    "pages",
    "quoted",
    "records",
    "source",
    "write",
]

FOLDER = "reference"


def is_listed() -> bool:
    """Whether chapters/index.md lists the generated pages; a book that does not has none."""
    text = files.read(paths.chapters() / "index.md").decode(errors="replace")
    return re.search(rf"^{FOLDER}/index", text, re.MULTILINE) is not None


def is_generated(name: str) -> bool:
    """Whether a page is generated, and not a file of chapters/."""
    return name.startswith(f"{FOLDER}/")


def source(name: str) -> Path:
    """The file of a generated page."""
    return paths.build() / f"{name}.md"


def origin(name: str) -> str:
    """The file that an author edits to change a generated page; the page's own if there is none."""
    _, _, rest = name.partition("/")
    kind, _, stem = rest.partition("/")
    if kind == "scenarios" and stem:
        return f"scenarios/{stem}.toml"
    if kind == "classes" and stem in HOMES:
        return f"mlsysim/engine/scenario_definitions/{HOMES[stem]}.py"
    return paths.shown(source(name))


def write() -> dict[str, Path]:
    """Write every page that changed, remove those that are gone; the file of each page by name."""
    made = pages()
    kept = {name: source(name) for name in made}
    for path in sorted((paths.build() / FOLDER).rglob("*.md")):
        if path not in kept.values():
            path.unlink()
    for name, path in kept.items():
        files.write(path, made[name])
    return kept


def pages() -> dict[str, str]:
    """The text of every generated page by its name."""
    artifacts = {name: read(name) for name in names("Scenarios")}
    known = Known()
    documents = {name: document(f"Scenarios.{name}", known) for name in artifacts}
    derivations = {name: _derivation(name) for name in artifacts}
    of_kind: dict[str, Ingredients] = {}
    quoted, unfinished = records(artifacts), drafts.drafts()
    reads, shown = _chapters()
    made = {**entry_pages(artifacts), f"{FOLDER}/numbers": numbers_page(quoted)}
    for name, artifact in artifacts.items():
        printed: dict[str, int] = {}
        for record in quoted:
            if record.key.partition(".")[0] == name:
                printed[record.page] = printed.get(record.page, 0) + 1
        made_from = ingredients(documents[name], of_kind.get(artifact.kind))
        of_kind.setdefault(artifact.kind, made_from)
        told = Told(
            purpose=purpose(name),
            drafts=tuple(drafts.under(documents[name], unfinished)),
            **derivations[name],
            ingredients=dict(made_from.parts),
            digests=_digests(made_from, artifact),
            printed=printed,
            products={
                chapter: [product for product in shown[chapter] if name in product.scenarios]
                for chapter, read_there in reads.items()
                if name in read_there
            },
            used_by=tuple(
                other
                for other, its in documents.items()
                if f"Scenarios.{name}" in {derivations[other]["base"], *_referred(its)}
            ),
        )
        made[f"{FOLDER}/scenarios/{name}"] = scenario_page(artifact.content, told)
    for kind, cls in KINDS.items():
        named = [artifact for artifact in artifacts.values() if artifact.kind == kind]
        made[f"{FOLDER}/classes/{kind}"] = class_page(cast("type[Scenario]", cls), named)
    return made


def records(artifacts: Mapping[str, Artifact]) -> list[Record]:
    """Every record of results/quotes.json, with the exact value of its key."""
    content = read_pages(paths.quotes())
    order = [*cells.chapters(), *sorted(set(content) - set(cells.chapters()))]
    made = []
    for place in order:
        for number, quote in enumerate(content.get(place, []), start=1):
            name, _, key = quote["key"].partition(".")
            artifact = artifacts[name]
            full = artifact.resolve(key)
            whole = full if _is_of_the_registry(full) else f"{name}.{full}"
            made.append(
                Record(
                    page=place,
                    number=number,
                    key=quote["key"],
                    spec=quote["spec"],
                    printed=quote["printed"],
                    full=whole.removeprefix("Scenarios."),
                    exact=value(artifact.entry(full)),
                )
            )
    return made


def quoted(page: str) -> list[tuple[str, str]]:
    """The key and the printed text of each quote of a page, in the order of its source."""
    content = read_pages(paths.quotes())
    return [(each["key"], each["printed"]) for each in content.get(page, [])]


def _is_of_the_registry(full: str) -> bool:
    return full.startswith(("Hardware.", "Models.", "Fleets.", "Scenarios."))


def _chapters() -> tuple[dict[str, set[str]], dict[str, list[Product]]]:
    """What each chapter reads, and what it makes of it."""
    reads, shown = {}, {}
    for chapter in cells.chapters():
        told = page(chapter)
        reads[chapter] = set(cells.uses(chapter, told.text).reads)
        shown[chapter] = told.products
    return reads, shown


def _derivation(name: str) -> dict[str, Any]:
    """The base that a scenario's file names, and the fields that the file gives itself."""
    import tomllib

    raw = tomllib.loads(text(name))
    base = raw.get("base", "")
    own = [key for key, value in raw.items() if isinstance(value, dict)] if base else []
    return {"base": base, "own": tuple(own)}


def _digests(made: Ingredients, artifact: Artifact) -> dict[str, str]:
    """The digests of what an artifact was made from, of itself and of its table."""
    digests = {
        "inputs, with their sources": made.inputs,
        "code and libraries": digest(made.code),
        "artifact": digest(files.read(paths.artifact(artifact.name))),
    }
    if "table" in artifact.content:
        digests["table"] = artifact.content["table"]["digest"]
    return digests


def _referred(told: Document) -> Iterator[str]:
    """The full names that the fields of a scenario refer to themselves."""
    todo: list[Any] = list(told.fields.values())
    while todo:
        leaf = todo.pop()
        if isinstance(leaf.get("value"), str):
            yield leaf["value"]
        elif "value" not in leaf:
            todo += leaf.values()
