"""What the book uses: keys quoted alike, artifacts read, products shown, references cited."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from mlsysim import files, paths
from mlsysim.artifacts.reading import Artifact
from mlsysim.book.pages.page_sources import Page
from mlsysim.book.source import cells
from mlsysim.book.source.contents import lists
from mlsysim.book.source.findings import Finding
from mlsysim.book.source.myst import Block, Directive, parsed
from mlsysim.declarations import bibliography, documents

__all__ = ["contents", "products", "references", "roundings", "scenarios_of", "unread"]

_NOTE = re.compile(r"(?:Read|Not read): \w")
# A cell without these leaves its output on the page.
_REMOVED = {"remove-output", "remove_output", "remove-cell", "remove_cell"}
# Directives that show their content as it stands, and so no figure or table that it names.
_LITERAL = {"code", "code-block", "code-cell", "parsed-literal", "sourcecode"}


def scenarios_of(page: Page) -> set[str]:
    """The scenarios that a page reads, quotes, claims something about, or gives a short name."""
    found = set(page.front_matter.aliases.values())
    found |= {value.key.partition(".")[0] for _, value, _ in page.numbers()}
    found |= {name for _, claim in page.claims for name in claim.scenarios}
    if page.name in cells.chapters():
        found |= set(cells.uses(page.name, page.text).reads)
    return found


def roundings(book: list[Page], artifacts: dict[str, Artifact]) -> Iterator[Finding]:
    """Keys that a chapter prints otherwise than every chapter before it that prints them.

    Within one chapter "7.72 s" and "7,721 ms" may both have their reason; from chapter to chapter a
    reader takes them for two numbers. Saved tables do not count: the numbers of a column share
    their digits, and neither bind the text nor are bound by it.
    """
    printed: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for page in book:
        new: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
        for role, value in page.quotes:
            scenario, _, key = value.key.partition(".")
            full = artifacts[scenario].resolve(key)
            if full in artifacts[scenario].outputs or "." not in full:
                full = f"{scenario}.{full}"
            before = printed.get(full, {})
            if before and value.text not in before:
                text, where = next(iter(before.items()))
                yield Finding(
                    "rounding",
                    f"chapters/{page.name}.md",
                    role.line,
                    f'{value.key} is printed as "{value.text}", and as "{text}" in '
                    f"chapters/{where[0]}.md; write {{quote}}`{role_key(role.spec)}{where[1]}`, or "
                    "accept the difference",
                )
            asked = value.spec.removeprefix(value.key)
            new[full].setdefault(value.text, (page.name, asked))
        for full, forms in new.items():
            for text, where in forms.items():
                printed[full].setdefault(text, where)


def role_key(spec: str) -> str:
    """The key of a quote as it is written."""
    return spec.split()[0]


def products(book: list[Page]) -> Iterator[Finding]:
    """Tables and figures that a chapter saves and no page shows."""
    shown = "\n".join(_laid_out(page.text) for page in book)
    for page in book:
        if page.name not in cells.chapters():
            continue
        uses = cells.uses(page.name, page.text)
        for kind, made in (("tables", uses.tables), ("figures", uses.figures)):
            for name, line in made.items():
                if f"results/{kind}/{name}." in shown or _is_output(page.text, line):
                    continue
                how = (
                    f"{{figure}} ../results/figures/{name}.svg"
                    if kind == "figures"
                    else f"{{include}} ../results/tables/{name}.md"
                )
                yield Finding(
                    "unshown",
                    f"chapters/{page.name}.md",
                    line,
                    f"{kind[:-1]} {name} is saved and never shown; show it by {how}",
                )


def _laid_out(text: str) -> str:
    """The source of a page without comments and code, which name files and show none."""
    lines = text.split("\n")
    for block, _ in parsed(text).walk():
        if (
            block.kind in ("comment", "code", "indented")
            or (isinstance(block, Directive) and block.name in _LITERAL)
            or (block.kind == "html" and block.content.lstrip().startswith("<!--"))
        ):
            lines[block.line - 1 : block.last] = [""] * (block.last - block.line + 1)
    return "\n".join(lines)


def _is_output(text: str, line: int) -> bool:
    """Whether the cell around a line leaves its output on the page."""
    around = [cell for cell in cells.code_cells(text) if cell.fence <= line]
    return not around[-1].tags & _REMOVED


def contents(book: list[Page]) -> Iterator[Finding]:
    """Chapters that no table of contents lists."""
    for page in book:
        listed = any(lists(each.text, page.name) for each in book)
        if page.name in cells.chapters() and not listed:
            yield Finding(
                "contents",
                f"chapters/{page.name}.md",
                0,
                f"in no table of contents; write the line {page.name} into the {{toctree}} of "
                "chapters/index.md",
            )


def references(book: list[Page]) -> Iterator[Finding]:
    """Entries of the bibliography that nothing cites, or that do not say what of them was read."""
    if not paths.bibliography().is_file():
        return
    texts = [text for page in book for text in parsed(page.text).texts]
    used = {key for text in texts for key in _cited(text)}
    folders = [documents.folder(name) for name in ("Scenarios", "Hardware", "Models", "Fleets")]
    sources = "\n".join(
        files.text(path)
        for folder in folders
        for path in sorted(folder.glob("*"))
        if path.suffix in (".toml", ".csv")
    )
    words = set(re.findall(r"[\w:.+-]*\w", sources))
    known = bibliography.works()
    for key, line in bibliography.lines().items():
        place = ("chapters/references.bib", line)
        if key not in used and key not in words:
            told = f"{key} is cited by no page, scenario or registry entry; cite it, or remove it"
            yield Finding("uncited", *place, told)
        if not _NOTE.match(known[key].fields.get("note", "")):
            told = f"{key} does not say what was read; begin its note with 'Read: ' or 'Not read: '"
            yield Finding("note", *place, told)


def _cited(text: Block) -> Iterator[str]:
    """The keys that a text of a page cites."""
    for span in text.spans:
        if span.kind == "role" and span.name.partition(":")[0] == "cite":
            keys = span.content.split("<")[-1].strip(" >")
            yield from (key.strip() for key in keys.split(","))


def unread(book: list[Page], artifacts: dict[str, Artifact]) -> Iterator[Finding]:
    """As information: artifacts that no chapter reads, and outputs that nobody quotes."""
    read = {name for page in book for name in scenarios_of(page)}
    said = {value.key for page in book for _, value, _ in page.numbers()}
    keys = {
        (scenario, artifacts[scenario].resolve(key))
        for scenario, _, key in (each.partition(".") for each in said)
    }
    for name, artifact in artifacts.items():
        file = f"results/scenarios/{name}.json"
        if name not in read:
            yield Finding("unread", file, 0, "no chapter reads it", information=True)
            continue
        for key in artifact.outputs:
            if (name, key) not in keys:
                yield Finding("unquoted", file, 0, f"nobody quotes {key}", information=True)
