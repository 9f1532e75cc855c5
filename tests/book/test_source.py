"""One reader of pages: what it takes for cells, options and texts is what MyST lays out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from myst_nb.core.read import MystMetadataParsingError, read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig
from nbformat.validator import NotebookValidationError
from pybtex.database import parse_string

from mlsysim.book.check.checking import check
from mlsysim.book.pages.visible import seen
from mlsysim.book.source import cells, contents
from mlsysim.book.source.findings import accepts_on_page
from mlsysim.book.source.myst import EXTENSIONS
from mlsysim.book.source.product_uses import products
from mlsysim.book.source.scanner import scan
from mlsysim.declarations import bibliography

CELL = "```{code-cell} ipython3"
# What opens, closes and hides blocks, and what stands in them.
LINES = (
    *(CELL, "```{code-cell}python", "``` {code-cell}", "~~~{code-cell}", ":::{code-cell}"),
    *("```", "~~~", "````", ":::", "::::", ":::{note}", "````{note}", ":::note", "```{math}"),
    *("   ```{code-cell}", "   ```", "    ```{code-cell}", "  ```{code-cell}", "\t```{code-cell}"),
    *("> ```{code-cell}", "- ```{code-cell}", "- item", "1. one", "> quote", "", "", "text"),
    *(
        "<!--",
        "-->",
        "<!-- a -->",
        "<pre>",
        "</pre>",
        "<div>",
        "$$",
        "+++",
        "---",
        "\\begin{align}",
    ),
    *("x = 1", "   y = 2", ":tags: [hide-input]", "  :key: v", ":key: v", "# a heading", "| a |"),
)
pages = st.lists(st.sampled_from(LINES), min_size=1, max_size=12).map("\n".join)


@given(page=pages)
def test_the_cells_are_those_of_the_notebook_that_is_laid_out(page: str) -> None:
    config = MdParserConfig(enable_extensions=set(EXTENSIONS))
    try:
        notebook = read_myst_markdown_notebook(page, config=config)
    except (MystMetadataParsingError, NotebookValidationError, TypeError):
        return  # options that no notebook has
    laid_out = [cell.source.rstrip() for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.source for cell in cells.code_cells(page)] == laid_out


@given(page=pages)
def test_a_cell_has_the_line_on_which_its_source_begins(page: str) -> None:
    lines = page.split("\n")
    for cell in cells.code_cells(page):
        first, _, _ = cell.source.partition("\n")
        assert first.strip() in lines[cell.line - 1] if first else not cell.source.strip()
        assert "{code-cell}" in lines[cell.fence - 1]


def test_what_a_build_keeps_of_cells_is_what_they_are(root: Path) -> None:
    page = f"{CELL}\n:tags: [hide-input]\n\nx = 1\n```\n"
    before = cells.code_cells(page)
    cells.remember()
    assert (root / "build/cells.json").is_file()
    (after,) = cells.code_cells(page)
    assert [after] == before
    assert (after.line, after.fence, after.tags) == (4, 1, {"hide-input"})


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        (":::note\nA {quote}`step.time`.\n:::\n", "text"),  # colons without a name: a box
        (":::{figure} a.svg\n  :alt: A {quote}`step.time`.\n:::\n", "alt"),  # an indented option
        ("::::{note}\n:::{tip}\nA {quote}`step.time`.\n:::\n::::\n", "text"),  # no option
    ],
)
def test_a_quote_is_found_wherever_the_page_prints_it(page: str, shown: str) -> None:
    assert [(role.spec, role.where) for role in scan("index", page)] == [("step.time", shown)]


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("---\nalt: 7 s\n---\n", []),
        ("see `a\n` and\n[it](u '7 s')", [(1, "see a \n and\nit"), (3, "7 s")]),
        ("see {ref}`a\n` and\n[it](u '7 s')", [(1, "see \0\n and\nit"), (3, "7 s")]),
        (":::{figure} a.svg\n---\nalt: 7 s\n---\n:::\n", [(3, "7 s")]),
        (":::{figure} a.svg\n:alt: '7 s' # not 8 s\n:::\n", [(2, "7 s")]),
        (":::box\n<b>7</b>\n:::\n", [(2, "7")]),
    ],
)
def test_a_text_is_seen_with_its_line(page: str, texts: list[tuple[int, str]]) -> None:
    assert [(each.line, each.text) for each in seen(page) if each.text.strip()] == texts


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        ("% accept: a\n7 s\n", [(1, 2, 2)]),
        ("# accept: a heading\n7 s\n", []),
        ("```\n% accept: shown as code\n7 s\n```\n", []),
        ("<!--\n% accept: hidden\n-->\n", []),
        (f"{CELL}\n# accept: a\nx = 7\n```\n", [(2, 3, 4)]),
        ("~~~{note}\n% accept: a\n:::{tip}\n7 s\n\n8 s\n:::\n9 s\n~~~\n", [(2, 3, 7)]),
    ],
)
def test_an_accept_is_a_comment(page: str, lines: list[tuple[int, int, int]]) -> None:
    assert [(each.line, each.first, each.last) for each in accepts_on_page(page)] == lines


FIGURE = "../results/figures/01_x/a.svg"


@pytest.mark.parametrize(
    ("page", "label"),
    [
        (f":::{{figure}} {FIGURE}\n:name: fig-a\n:::\n", "fig-a"),
        (f"~~~{{figure}} {FIGURE}\n:name: fig-a\n~~~\n", "fig-a"),
        (f":::{{figure}} {FIGURE}\n---\nname: fig-a\n---\n:::\n", "fig-a"),
        (f"::::{{note}}\n:name: other\n\n:::{{figure}} {FIGURE}\n:::\n::::\n", ""),
        (f"```text\n:::{{figure}} {FIGURE}\n:name: fig-a\n:::\n```\n", ""),
    ],
)
def test_a_figure_has_the_name_under_which_the_page_shows_it(page: str, label: str) -> None:
    code = f'{CELL}\nfrom mlsysim.book import save_figure\nsave_figure("01_x/a", 1)\n```\n\n'
    assert [product.label for product in products("01_x", code + page)] == [label]


def test_only_what_a_page_cites_is_cited(solved: Path) -> None:
    page = (
        "# A\n\nSee {cite}`a2020`, {cite:t}`b2021, c2022`.\n\n% {cite}`d2023`\n\n`{cite}e2024`\n\n"
        ":::{note}\nFrom {cite}`f2025`.\n:::\n\n```{code}\n{cite}`g2026`\n```\n"
    )
    (solved / "chapters/index.md").write_text(page, encoding="utf-8")
    keys = ("a2020", "b2021", "c2022", "d2023", "e2024", "f2025", "g2026")
    works = "".join(f"@misc{{{key},\n  note = {{Read: all}}\n}}\n" for key in keys)
    with (solved / "chapters/references.bib").open("a", encoding="utf-8") as file:
        file.write(works)
    told = "\n".join(each.message for each in check()[0] if each.rule == "uncited")
    assert [key for key in keys if key not in told] == ["a2020", "b2021", "c2022", "f2025"]


@pytest.mark.parametrize(
    ("tree", "entry"),
    [
        ("```{toctree}\n:hidden:\n\n01_a\n03_b\n```\n", "01_a\n02_new\n03_b"),
        (":::{toctree}\n03_b\n:::\n", "02_new\n03_b"),
        ("~~~{toctree}\n---\nhidden:\n---\nintro\n01_a\nend\n~~~\n", "intro\n01_a\n02_new\nend"),
        (":::{only} html\n```{toctree}\n01_a\n```\n:::\n", "01_a\n02_new"),
    ],
)
def test_a_new_chapter_is_listed_where_chapters_are(tree: str, entry: str) -> None:
    made = contents.with_chapter(f"# Book\n\n{tree}", "02_new")
    assert entry in made
    assert contents.lists(made, "02_new")
    assert made.replace("02_new\n", "") == f"# Book\n\n{tree}"


def test_a_table_of_contents_lists_by_pattern_and_under_other_titles() -> None:
    tree = "```{toctree}\n:glob:\n\nreference/index*\nThe end <99_end>\nlast.md\n```\n"
    for name in ("reference/index", "99_end", "last"):
        assert contents.lists(tree, name)
    assert not contents.lists("```text\n{toctree}\n99_end\n```\n", "99_end")


PARTS = (
    *("@book{one,\n title = {A},\n}\n", "  @misc { two, note = {see @x{y, }} }\n", "text\n"),
    *(
        "@comment{ignored}\n",
        "@comment{\n@misc{three, year = 1}\n}\n",
        '@string{s = "x {@misc{q,}}"}\n',
    ),
    *('@misc(four, title = "a {b} {@c{d,}}")\n', '@preamble{"\\def{@misc{r,}}"}\n'),
)


@given(order=st.lists(st.sampled_from(PARTS), unique=True))
def test_the_keys_of_the_bibliography_are_those_of_its_entries(order: list[str]) -> None:
    text = "".join(order)
    known = dict(parse_string(text, "bibtex").entries)
    found = bibliography.begins(text)
    assert list(found) == list(known)
    lines = text.split("\n")
    assert all(key in lines[line - 1] for key, line in found.items())
