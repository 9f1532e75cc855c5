"""The files of the cards beside the pages: what the book prints of each scenario, one script each.

They are scripts, not JSON, because a page that is opened from a disk may load scripts alone. A page
loads that of a scenario when the first of its cards is asked for.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pybtex.database import Entry
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from mlsysim import files
from mlsysim.artifacts.reading import Artifact, read
from mlsysim.book.pages.page_sources import pages
from mlsysim.book.site._cards import Place, Work, basis, card, identity
from mlsysim.book.site._quote_nodes import PLACES
from mlsysim.canonical import dumps
from mlsysim.declarations import drafts
from mlsysim.declarations.bibliography import works as entries
from mlsysim.declarations.documents import Known, document, names

__all__ = ["write"]


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the cards of every scenario that the book quotes, and remove those of others."""
    if exception or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "cards"
    kept = set()
    for name, content in _scripts(app.env).items():
        path = folder / f"{name}.js"
        files.write(path, content)
        kept.add(path)
    for path in folder.glob("*"):
        if path not in kept:
            path.unlink()


def _scripts(env: BuildEnvironment) -> dict[str, str]:
    """The script of each scenario that some page quotes."""
    printed = list(_printed(env))
    artifacts = {name: read(name) for name in sorted({key.partition(".")[0] for key, _ in printed})}
    places: dict[tuple[object, ...], list[Place]] = {}
    for key, place in printed:
        places.setdefault(_identity(artifacts, key), []).append(place)
    works, unfinished = _works(env), drafts.drafts()
    known = Known()
    made = {}
    for name, artifact in artifacts.items():
        cards = {
            key: card(
                artifact,
                key.removeprefix(f"{name}."),
                places[_identity(artifacts, key)],
                works,
                page=_page(env, name),
                draft=bool(drafts.under(document(f"Scenarios.{name}", known), unfinished)),
            )
            for key in sorted({key for key, _ in printed if key.startswith(f"{name}.")})
        }
        content = dumps({"basis": basis(artifact, works), "cards": cards})
        made[name] = f'addQuoteCards("{name}", {content.rstrip()});\n'
    return made


def _identity(artifacts: dict[str, Artifact], key: str) -> tuple[object, ...]:
    name, _, rest = key.partition(".")
    return identity(artifacts[name], rest)


def _printed(env: BuildEnvironment) -> list[tuple[str, Place]]:
    """Every key that a page prints, with the place, in the order of the book."""
    order = {page.name: number for number, page in enumerate(pages())}
    found = []
    for page in sorted(env.found_docs, key=lambda name: (order.get(name, len(order)), name)):
        title = env.titles[page].astext()
        number = env.toc_secnumbers.get(page, {}).get("")
        if number:
            title = f"{'.'.join(map(str, number))}. {title}"
        for key, text, anchor in env.metadata[page].get(PLACES, ()):
            href = f"{page}.html#{anchor}" if anchor else f"{page}.html"
            found.append((key, Place(title, href, text)))
    return found


def _page(env: BuildEnvironment, scenario: str) -> str:
    """The page of a scenario, empty if the book has none."""
    page = f"reference/scenarios/{scenario}"
    return f"{page}.html" if page in env.found_docs else ""


def _works(env: BuildEnvironment) -> dict[str, Work]:
    """What a source may name: the bibliography, as the book's page of it lists, and scenarios."""
    cited: list[Any] = getattr(env.get_domain("cite"), "citations", [])
    links = {each.key: f"{each.bibliography_key.docname}.html#{each.citation_id}" for each in cited}
    works = {
        key: Work(_label(entry), _plain(entry.fields.get("title", "")), links.get(key, ""))
        for key, entry in entries().items()
    }
    for name in names("Scenarios"):
        href = _page(env, name) or f"artifacts/{name}.json"
        works[f"Scenarios.{name}"] = Work(name, read(name).title, href)
    return works


def _label(entry: Entry) -> str:
    """Authors and year of a work, as the text cites it."""
    people = [" ".join(each.last_names) for each in entry.persons.get("author", ())]
    names = people[0] if people else entry.key
    if len(people) == 2 and people[1] != "others":
        names += f" and {people[1]}"
    elif len(people) > 1:
        names += " et al."
    return f"{_plain(names)} {entry.fields.get('year', '')}".strip()


def _plain(text: str) -> str:
    return re.sub(r"[{}]", "", text)
