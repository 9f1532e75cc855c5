"""Chapters: notebooks that survive a round trip, run to the same bytes, and become pages."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import jupytext
import nbformat
import pytest

from mlsysim import paths
from mlsysim.book.execution.chapter_execution import execute, executed
from mlsysim.book.pages.page_sources import Page, pages
from mlsysim.book.source import cells
from mlsysim.book.source.front_matter import FrontMatter
from mlsysim.building import records
from mlsysim.errors import InputError, MlsysimError
from tests.books import (
    CELL,
    HEAD,
    TABLE,
    build,
    built_once,
    command,
    line_of,
    write,
)
from tests.conftest import REPOSITORY

CHAPTERS = sorted(path.stem for path in (REPOSITORY / "chapters").glob("[0-9]*.md"))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_is_a_notebook_and_comes_back_byte_for_byte(chapter: str) -> None:
    text = (REPOSITORY / "chapters" / f"{chapter}.md").read_text(encoding="utf-8")
    notebook = jupytext.reads(text, fmt="md:myst")
    nbformat.validate(notebook)
    assert jupytext.writes(notebook, fmt="md:myst") == text
    # What Jupyter adds when it opens and saves a notebook must not stay in the chapter.
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    opened = nbformat.reads(nbformat.writes(notebook), as_version=4)
    assert jupytext.writes(opened, fmt="md:myst") == text
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.source for cell in cells.code_cells(text)] == sources


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_chapter_reads_the_reference_step_and_opens_as_a_notebook(chapter: str) -> None:
    text = (REPOSITORY / "chapters" / f"{chapter}.md").read_text(encoding="utf-8")
    assert "DenseLLMPretrainingStep" in cells.uses(chapter, text).reads
    Page(chapter).front_matter.check_notebook()


def test_a_cell_is_known_by_its_source_and_first_line() -> None:
    text = (
        "~~~{code-cell} ipython3\nshown = 1\n~~~\n\n```text\n```{code-cell}\nx\n```\n\n"
        "````{code-cell}\n---\ntags: [hide-input]\n---\n\nfirst = 1\n\n```\nsecond\n````\n"
        "```{code-cell}\n:tags: [a]\n:label: b\nthird\n\n```\n```{code-cell}\n```\n"
    )
    assert [(cell.source, cell.line) for cell in cells.code_cells(text)] == [
        ("shown = 1", 2),
        ("first = 1\n\n```\nsecond", 15),
        ("third", 23),
        ("", 27),
    ]


def test_the_edges_of_the_graph_are_the_literal_names_in_cells_alone() -> None:
    text = HEAD + "".join(
        CELL.format(code=code)
        for code in (
            '%time\nfrom mlsysim import read\nstep = read("One")\nx = [1, read("Two")]',
            'save_table("01_small/t", step)\nfigure = save_figure("01_small/f", 1, data=2)',
            '!ls\n"read(name)"  # read(name)',
            "%%bash\nread NAME < file",
        )
    )
    found = cells.uses("01_small", text + '```python\nread("Shown")\n```\n')
    first = line_of(text, "step =")
    assert found.reads == {"One": first, "Two": first + 1}
    assert list(found.tables) == ["01_small/t"]
    assert list(found.figures) == ["01_small/f"]


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        ("x = 1\nread(x)", 2, 'write read("NameOfTheScenario")'),
        ('read(name="One")', 1, "as a text typed there"),
        ('for n in "ab":\n    read(n)', 2, "as a text typed there"),
        ("get = read", 1, "call read by this name"),
        ("from mlsysim import read as get", 1, "cannot import mlsysim.read like this"),
        ("from mlsysim import Scenarios", 1, "cannot import mlsysim.Scenarios"),
        (
            "import pandas\nimport mlsysim.engine.scenarios",
            2,
            "cannot import mlsysim.engine.scenarios",
        ),
        (
            "from mlsysim.book.products.tables import save_table",
            1,
            "cannot import mlsysim.book.products.tables",
        ),
        ("from mlsysim.book import *", 1, "cannot import mlsysim.book.*"),
        ('save_table("ledger", x)', 1, 'write "01_small/ledger"'),
        ('save_table("02_other/ledger", x)', 1, 'write "01_small/ledger"'),
        ('save_table("01_small/My Table!", x)', 1, 'write "01_small/my_table"'),
        ('save_table(f"01_small/{x}", x)', 1, 'save_table("01_small/name", ...)'),
        ('save_table("01_small/a", x)\nsave_table("01_small/a", x)', 2, "made in line"),
        ('if x:\n    save_table("01_small/a", x)', 2, "in a statement of its own"),
        ("x = (1,", 1, "not valid Python"),
    ],
)
def test_what_the_build_cannot_know_before_it_runs_is_refused(
    code: str, line: int, message: str
) -> None:
    text = HEAD + CELL.format(code=code)
    with pytest.raises(InputError) as refused:
        cells.uses("01_small", text)
    at = line_of(text, code) + line - 1
    assert str(refused.value).startswith(f"chapters/01_small.md:{at}: ")
    assert message in str(refused.value)


SHORT = "  scenarios:\n    step: DenseLLMPretrainingStep\n"


@pytest.mark.parametrize(
    ("old", "new", "at", "message"),
    [
        (HEAD, "# Small\n", "", "begin it with these lines:\n---\njupytext:\n  notebook_metadata"),
        ("kernelspec:", "kernel:", "", "front matter: expected a kernelspec with name: python3"),
        (
            "mlsysim,-jupytext",
            "-jupytext",
            "mlsysim:",
            "Jupyter drops mlsysim when it saves; write under jupytext: notebook_metadata_filter:",
        ),
        (
            SHORT,
            f"{SHORT}    replica: DenseLLMReplica\n",
            "    replica",
            "sort the aliases: replica comes before step",
        ),
        (
            SHORT,
            f"{SHORT}  infeasible:\n  - DenseLLMReplica\n",
            "  infeasible",
            "sort the keys of mlsysim: infeasible comes before scenarios",
        ),
        (
            SHORT,
            "  scenarios: {step: DenseLLMPretrainingStep}\n",
            "  scenarios",
            "expected `  scenarios:`, as Jupyter saves it",
        ),
    ],
)
@pytest.mark.usefixtures("root")
def test_front_matter_that_jupyter_would_not_keep_is_refused_with_what_to_write(
    old: str, new: str, at: str, message: str
) -> None:
    text = HEAD.replace(old, new, 1)
    assert text != HEAD
    with pytest.raises(InputError) as refused:
        FrontMatter("01_small", text).check_notebook()
    line = f":{line_of(text, at)}: front matter" if at else ":"
    assert str(refused.value).startswith(f"chapters/01_small.md{line}")
    assert message in str(refused.value)


def test_two_executions_give_the_same_bytes_and_prose_does_not_count(solved: Path) -> None:
    write(solved, " Before.", TABLE, "x = 2\nx + 1", "")
    made = execute("01_small")
    assert made == [
        (f"results/tables/01_small/one.{end}", "new") for end in ("csv", "md", "tex", "quotes.json")
    ]
    first = executed("01_small").read_bytes()
    write(solved, " After, with {quote}`step.step_time`.", TABLE, "x = 2\nx + 1", "")
    assert {what for _, what in execute("01_small")} == {"same"}
    assert executed("01_small").read_bytes() == first
    assert [cell.get("outputs") != [] for cell in nbformat.reads(first.decode(), 4).cells] == [
        True,
        True,
        False,
    ]
    assert sorted(path.name for path in (solved / "chapters").iterdir()) == [
        "01_small.md",
        "references.bib",
    ]


def test_products_that_changed_or_that_no_cell_makes_any_longer_are_named(solved: Path) -> None:
    write(solved, TABLE)
    execute("01_small")
    edited = solved / "results" / "tables" / "01_small" / "one.md"
    edited.write_text("by hand\n", encoding="utf-8")
    for old in ("tables/01_small/old.csv", "figures/01_small/old.svg"):
        path = solved / "results" / old
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("old\n", encoding="utf-8")
    assert {path: what for path, what in execute("01_small") if what != "same"} == {
        "results/tables/01_small/one.md": "re-made",
        "results/figures/01_small/old.svg": "removed",
        "results/tables/01_small/old.csv": "removed",
    }
    assert edited.read_text(encoding="utf-8") != "by hand\n"
    assert not list((solved / "results").rglob("old.*"))


@pytest.mark.parametrize(
    ("code", "at", "message"),
    [
        ("x = 1\n1 / 0", "1 / 0", "ZeroDivisionError: division by zero"),
        (
            'from mlsysim import read\n\nread("DenseReplica")',
            "read(",
            "UnknownName: 'DenseReplica'",
        ),
        ("def f():\n    return missing\n\nf()", "    return", "NameError: name 'missing'"),
        ("import os\nos._exit(3)", "import os", "the cell ended its own process"),
        ("object()", "object()", "the cell shows an address in memory"),
    ],
)
def test_a_cell_that_fails_is_named_by_chapter_and_line(
    solved: Path, code: str, at: str, message: str
) -> None:
    text = write(solved, " Text.", "first = 1", "", code)
    with pytest.raises(MlsysimError) as refused:
        execute("01_small")
    assert str(refused.value).startswith(f"chapters/01_small.md:{line_of(text, at)}: {message}")
    assert "\n" not in str(refused.value)
    assert not executed("01_small").exists()


def test_what_a_cell_warns_of_reaches_the_author_and_not_the_page(
    solved: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = write(solved, "import warnings\nwarnings.warn('mind the gap')\n'shown'")
    execute("01_small")
    told = capfd.readouterr().err
    assert f"chapters/01_small.md:{line_of(text, 'import warn')}: " in told
    assert "mind the gap" in told
    content = executed("01_small").read_text(encoding="utf-8")
    assert "mind the gap" not in re.sub(r'"source": \[.*?\]', "", content, flags=re.DOTALL)
    assert "'shown'" in content


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book that was built once, for tests that only look at it."""
    return built_once(tmp_path_factory, TABLE, PAGE)


PAGE = """\
 ## At {quote}`step.state_per_gpu as .1f`

It is {quote}`step.state_per_gpu as .2f`, see [{quote}`step.precision`](index.md) and
$x = {quote}`step.state_per_gpu in GiB as .2f`$.
A replica is `one`.
It has {quote}`step.pipeline_depth`.

### Claim {claim}`in a heading if step.tensor_parallel = 8`

It is {claim}`all but small if step.state_per_gpu > 40 GB and step.precision is bf16`.

| a |
|--:|
| {quote}`step.tensor_parallel`, {claim}`a power of two if step.tensor_parallel = 8` |

:::{table} Of {quote}`step.pipeline_depth` stages
:name: tab-one

```{include} ../results/tables/01_small/one.md
```
:::

% accept: a reason that no reader sees
:::{image} _static/favicon.svg
:alt: Sign {quote}`step.data_parallel` {claim}`at most if step.data_parallel < 17`
:::
"""


def test_a_chapter_that_is_a_draft_says_so_in_a_box(book: Path) -> None:
    write(book, TABLE, PAGE + "\nTODO: the end.\n")
    assert build(book) == ""
    page = (book / "build/book/01_small.html").read_text("utf-8")
    box = re.search(r'<div class="warning draft admonition">(.*?)</div>', page, re.DOTALL)
    assert box
    assert '<p class="admonition-title">Draft</p>' in box[1]
    assert "TODO stands in chapters/01_small.md" in box[1]
    assert 'Draft<a class="headerlink"' not in page


def test_the_page_shows_every_quote_where_it_stands(built: Path) -> None:
    html = (built / "build" / "book" / "01_small.html").read_text(encoding="utf-8")
    key = "DenseLLMPretrainingStep.state_per_gpu"
    button = (
        rf'<button class="quote" data-key="{key}" id="quote-{key}" type="button">(.*?)</button>'
    )
    assert re.findall(button, html) == ["43.75\xa0GB"]
    assert r"\(x = 40.75\,\mathrm{GiB}\)" in html
    assert 'alt="Sign 16 at most"' in html
    heading = re.search(r"<h2>(?!.*Contents).*?</h2>", html)
    assert heading
    assert "43.8\xa0GB<a" in heading[0]
    assert 'class="quote"' not in heading[0]
    assert 'href="#at-step-state-per-gpu"' in heading[0]  # an anchor that no number moves
    assert "{quote}" not in html
    assert re.search(r'<a class="reference[^>]*><span[^>]*>bf16</span></a>', html)
    script = (built / "build/book/cards/DenseLLMPretrainingStep.js").read_text(encoding="utf-8")
    cards = json.loads(script.partition(", ")[2].removesuffix(");\n"))["cards"]
    places = re.findall(r'href="01_small.html#([^"]*)">(.*?)</a>', cards[key])
    section = "at-step-state-per-gpu"
    assert places == [
        (section, "43.8\xa0GB"),
        (f"quote-{key}", "43.75\xa0GB"),
        (section, "40.75\xa0GiB"),
    ]
    assert all(f'id="{anchor}"' in html for anchor, _ in places)
    for name in ("artifacts/DenseLLMPretrainingStep.json", "_sources/01_small.ipynb"):
        assert (built / "build" / "book" / name).is_file()


def test_the_page_shows_the_phrase_of_every_claim_and_says_what_was_tested(built: Path) -> None:
    html = (built / "build" / "book" / "01_small.html").read_text(encoding="utf-8")
    assert (
        '<span class="claim" title="Tested: DenseLLMPretrainingStep.state_per_gpu &gt; 40 GB and '
        "DenseLLMPretrainingStep.precision is bf16; step.state_per_gpu = 43.75 GB, "
        'step.precision = bf16">all but small</span>'
    ) in html
    assert re.search(r'title="[^"]*">a power of two</span>', html)
    assert re.search(r"<h3>[^C]*</span>Claim in a heading<a", html)
    assert "{claim}" not in html
    assert "a reason that no reader sees" not in html
    notebook = (built / "build" / "notebooks" / "01_small.ipynb").read_text(encoding="utf-8")
    assert "It is all but small." in notebook
    assert "{claim}" not in notebook


def test_the_notebook_to_take_away_has_numbers_and_outputs(built: Path) -> None:
    content = (built / "build" / "notebooks" / "01_small.ipynb").read_text(encoding="utf-8")
    notebook = nbformat.reads(content, as_version=4)
    nbformat.validate(notebook)
    assert "{quote}" not in content
    assert "It is 43.75\xa0GB" in notebook.cells[-1].source
    assert any(cell.get("outputs") for cell in notebook.cells)


def test_no_page_asks_the_network_for_anything(built: Path) -> None:
    for page in (built / "build" / "book").glob("*.html"):
        html = page.read_text(encoding="utf-8")
        assert re.findall(r'<(?:script|link|img|iframe)[^>]*"(?:https?:)?//[^"]*"', html) == []
    assert (built / "build/book/_static/mathjax/tex-svg.js").is_file()


def test_a_second_build_gives_the_same_pages_and_follows_an_artifact(book: Path) -> None:
    write(book, TABLE, PAGE)
    build(book)
    page = book / "build" / "book" / "01_small.html"
    first = page.read_bytes()
    info = page.with_name(".buildinfo")
    made = info.read_text(encoding="utf-8")
    info.write_text(made.replace("config: ", "config: 0"), encoding="utf-8")
    build(book)
    assert info.read_text(encoding="utf-8") == made
    assert not page.with_name(".buildinfo.bak").exists()
    shutil.rmtree(book / "build")
    build(book)
    assert page.read_bytes() == first
    artifact = paths.artifact("DenseLLMPretrainingStep")
    text = artifact.read_text(encoding="utf-8")
    assert "43.75" in text
    artifact.write_text(text.replace("43.75", "43.25"), encoding="utf-8")
    build(book)
    assert "43.25\xa0GB</button>" in page.read_text(encoding="utf-8")


def test_a_wrong_quote_stops_the_build_with_its_line_and_the_nearest_names(book: Path) -> None:
    text = write(book, TABLE, " One.\n\nTwo {quote}`step.step_tim in s`.")
    told = build(book)
    place = f"chapters/01_small.md:{line_of(text, 'Two')}"
    assert told.startswith(f"mlsysim: {place}: quote `step.step_tim in s`: ")
    assert "did you mean 'step_time'" in told
    assert not (book / "build" / "book" / "index.html").exists()


def test_a_warning_stops_every_build_until_it_is_mended(book: Path) -> None:
    text = write(book, TABLE, " One.\n\n#### Deep")
    for _ in range(2):  # also when nothing is read anew
        told = build(book)
        assert f"chapters/01_small.md:{line_of(text, '#### Deep')}: WARNING" in told
        assert str(book) not in told
    write(book, TABLE, " One.")
    assert build(book) == ""


def test_a_chapter_that_the_contents_do_not_list_is_named_with_what_to_write(book: Path) -> None:
    write(book, TABLE)
    (book / "chapters" / "index.md").write_text("# Book\n", encoding="utf-8")
    assert (
        "chapters/01_small.md: in no table of contents; write the line 01_small into the {toctree} "
        "of chapters/index.md"
    ) in build(book)


def test_what_a_chapter_that_is_gone_made_is_removed_and_named(book: Path) -> None:
    index = book / "chapters" / "index.md"
    listed = index.read_text(encoding="utf-8")
    index.write_text(listed.replace("01_small", "01_small\n02_gone"), encoding="utf-8")
    write(book, TABLE)
    draw = 'save_figure("02_gone/one", new_figure()[0], data=pd.DataFrame({"x": [1]}))'
    make = TABLE.replace("01_small", "02_gone").replace("book import", "book import new_figure,")
    shown = " :::{figure} ../results/figures/02_gone/one.svg\nX\n:::"
    write(book, f"{make.replace('new_figure,', 'new_figure, save_figure,')}\n{draw}", shown)
    (book / "chapters" / "01_small.md").rename(book / "chapters" / "02_gone.md")
    write(book, TABLE)
    assert command(book, "execute", "01_small", "02_gone") == ""
    assert command(book, "book") == ""
    assert (book / "build" / "book" / "02_gone.html").is_file()
    assert (book / "build" / "book" / "_images" / "one.svg").is_file()

    (book / "chapters" / "02_gone.md").unlink()
    index.write_text(listed, encoding="utf-8")
    assert command(book, "book", warned=True).splitlines() == [
        "removed: results/tables/02_gone, which no chapter makes any longer",
        "removed: results/figures/02_gone, which no chapter makes any longer",
    ]
    left = [path for path in book.rglob("*") if "02_gone" in path.name or path.name == "one.svg"]
    assert left == []
    assert (book / "build" / "book" / "01_small.html").is_file()
    assert (book / "results" / "tables" / "01_small" / "one.csv").is_file()


def test_a_quote_that_is_lost_on_the_way_to_the_page_is_named(book: Path) -> None:
    text = write(book, TABLE, " One.\n\n:::{acks}\nLost {quote}`step.step_time`\n:::")
    told = build(book)
    assert f"chapters/01_small.md:{line_of(text, 'Lost')}: quote `step.step_time` is lost" in told
    write(book, TABLE, " One.\n\n:::{acks}\n{claim}`x if step.step_time > 1 s`\n:::")
    assert "claim `x if step.step_time > 1 s` is lost on the page" in build(book)


# Cells that save a table and a figure.
DRAWN = (
    TABLE.replace("book import", "book import new_figure, save_figure,")
    + '\nsave_figure("01_small/one", new_figure()[0], data=pd.DataFrame({"x": [1]}))'
)


def test_a_file_of_the_page_that_is_gone_or_torn_is_made_again(book: Path) -> None:
    write(book, DRAWN, " :::{figure} ../results/figures/01_small/one.svg\nX\n:::")
    assert build(book) == ""
    folder = book / "build" / "book"
    made = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    for name in ("_images/one.svg", "searchindex.js", "figures/01_small/one.pdf"):
        (folder / name).unlink()
        assert command(book, "book") == ""
        assert {path: path.read_bytes() for path in made} == made
    (folder / "01_small.html").write_bytes(b"")
    assert command(book, "book") == ""
    assert {path: path.read_bytes() for path in made} == made


def test_a_figure_for_print_that_is_gone_is_drawn_again(
    book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLSYSIM_ROOT", str(book))
    write(book, DRAWN, " One.")
    assert build(book) == ""
    assert records.chapter_reasons("01_small") == []
    printed = book / "build" / "figures" / "01_small" / "one.pdf"
    first = printed.read_bytes()
    printed.unlink()
    assert records.chapter_reasons("01_small") == ["build/figures/01_small/one.pdf missing"]
    assert command(book, "execute", "01_small") == ""
    assert printed.read_bytes() == first


def test_several_processes_make_the_same_pages_and_the_same_errors(book: Path) -> None:
    index, more = book / "chapters" / "index.md", [f"more_{number}" for number in range(6)]
    listed = index.read_text("utf-8").replace("01_small", "\n".join(["01_small", *more]))
    index.write_text(listed, encoding="utf-8")
    for name in more:
        told = f"# {name}\n\nA replica has {{quote}}`DenseLLMReplica.pipeline_depth`.\n"
        (book / "chapters" / f"{name}.md").write_text(told, encoding="utf-8")
    write(book, TABLE, PAGE)

    def made(jobs: str) -> dict[str, bytes]:
        for folder in ("book", "doctrees"):
            shutil.rmtree(book / "build" / folder, ignore_errors=True)
        assert command(book, "book", "--jobs", jobs) == ""
        files = sorted((book / "build" / "book").rglob("*"))
        return {str(path): path.read_bytes() for path in files if path.is_file()}

    assert command(book, "execute", "01_small") == ""
    assert made("3") == made("1")

    lost = book / "chapters" / "more_3.md"
    lost.write_text("# L\n\n:::{acks}\n{quote}`DenseLLMReplica.pipeline_depth`\n:::\n", "utf-8")
    told = [command(book, "book", "--jobs", jobs) for jobs in "31"]
    assert told[0] == told[1]
    assert "chapters/more_3.md:4: quote `DenseLLMReplica.pipeline_depth` is lost" in told[0]
    lost.write_text("# L\n\n#### Deep\n", encoding="utf-8")
    told = [command(book, "book", "--jobs", jobs) for jobs in "31"]
    assert told[0] == told[1]
    assert "chapters/more_3.md:3: WARNING: Non-consecutive header level" in told[0]


def test_a_false_claim_stops_the_build_and_a_changed_artifact_tests_it_again(book: Path) -> None:
    text = write(book, TABLE, " One.\n\nIt is {claim}`small if step.state_per_gpu < 44 GB`.")
    assert build(book) == ""
    page = book / "build" / "book" / "01_small.html"
    artifact = paths.artifact("DenseLLMPretrainingStep")
    content = artifact.read_text(encoding="utf-8")
    artifact.write_text(content.replace("43.75", "43.25"), encoding="utf-8")
    assert build(book) == ""
    assert "step.state_per_gpu = 43.25 GB" in page.read_text(encoding="utf-8")
    artifact.write_text(content.replace("43.75", "44.5"), encoding="utf-8")
    line = line_of(text, "It is {claim}")
    assert build(book) == (
        f'mlsysim: chapters/01_small.md:{line}: the claim "small" is false: it needs '
        "step.state_per_gpu < 44 GB, and step.state_per_gpu = 44.5 GB\n"
    )


def test_a_chapter_reads_what_does_not_fit_only_on_purpose(solved: Path) -> None:
    path = paths.artifact("DenseLLMReplica")
    content = json.loads(path.read_text(encoding="utf-8"))
    content["feasibility"] = {"feasible": False, "reason": "9.0 GB more than 85.5 GB"}
    path.write_text(json.dumps(content), encoding="utf-8")
    text = write(solved, TABLE)
    with pytest.raises(InputError) as refused:
        Page("01_small").check_reads()
    place = f"chapters/01_small.md:{line_of(text, 'step = read')}"
    assert str(refused.value).startswith(f"{place}: read: DenseLLMReplica is infeasible")
    accepted = text.replace("mlsysim:\n", "mlsysim:\n  infeasible:\n  - DenseLLMReplica\n", 1)
    (solved / "chapters" / "01_small.md").write_text(accepted, encoding="utf-8")
    Page("01_small").check_reads()


@pytest.mark.parametrize("sign", ["\ufeff", "\u2028", "\x85", "\x0c"])
def test_an_invisible_character_is_named_with_its_line(root: Path, sign: str) -> None:
    text = write(root, " Text.", f"x = 'a{sign}b'")
    with pytest.raises(InputError) as refused:
        cells.uses("01_small")
    at = line_of(text, "x = ")
    assert str(refused.value).startswith(f"chapters/01_small.md:{at}: the invisible character U+")
    (root / "chapters" / "01_small.md").write_text(f"\ufeff{HEAD}", encoding="utf-8")
    with pytest.raises(InputError, match=r"01_small.md:1: .* U\+FEFF; .* byte-order mark"):
        Page("01_small").text  # noqa: B018  looking is what raises


def test_cells_that_were_not_executed_as_they_stand_stop_the_page(book: Path) -> None:
    write(book, TABLE)
    assert "not executed" in command(book, "book")
    build(book)
    write(book, TABLE, "x = 1")
    assert "has other code cells than were executed" in command(book, "book")


def test_the_book_itself_prints_numbers_in_every_kind_of_place() -> None:
    found = [quote for page in pages() for quote, _ in page.quotes]
    assert len(found) >= 15
    assert {quote.where for quote in found} >= {"text", "math", "alt"}
    assert Page("01_reference_step").front_matter.aliases
