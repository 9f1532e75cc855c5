"""The generated pages: complete, linked, followed by every edit, and touched by no other."""

from __future__ import annotations

import dataclasses
import doctest
import html
import json
import re
import shutil
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from mlsysim import paths
from mlsysim.artifacts.reading import Artifact, read
from mlsysim.book.pages.page_records import read_pages
from mlsysim.book.products.markdown import block, code, escaped, in_cell, prose, value
from mlsysim.book.reference import generated_pages
from mlsysim.book.reference._class_examples import example_of
from mlsysim.book.reference._class_pages import class_page
from mlsysim.book.reference._numbers_index import Record, entries, numbers_page
from mlsysim.book.reference._scenario_pages import Told, scenario_page, sourced
from mlsysim.book.site._cards import basis, card
from mlsysim.book.site.html_book import run_sphinx
from mlsysim.book.source import cells
from mlsysim.book.source.product_uses import products
from mlsysim.building import records
from mlsysim.declarations.docstrings import equation_of
from mlsysim.declarations.documents import names
from mlsysim.declarations.outputs import outputs
from mlsysim.engine.scenario_types import KINDS
from mlsysim.solvers import DistributedResult
from tests.books import CELL, HEAD, command, write
from tests.conftest import REPOSITORY, copy_project

SCENARIOS = names("Scenarios")


@cache
def pages() -> dict[str, str]:
    return generated_pages.pages()


def page_of(name: str) -> str:
    return pages()[f"reference/scenarios/{name}"]


def artifacts_of(kind: str) -> list[Artifact]:
    return [read(name) for name in SCENARIOS if read(name).kind == kind]


def test_every_scenario_and_every_class_has_a_page_and_none_is_left_over() -> None:
    expected = {f"reference/scenarios/{name}" for name in SCENARIOS}
    expected |= {f"reference/classes/{kind}" for kind in KINDS}
    entry = {f"reference/{name}" for name in ("index", "numbers", "scenarios", "classes")}
    assert set(pages()) == expected | entry


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_page_prints_every_value_with_its_unit_equation_and_source(name: str) -> None:
    artifact, page = read(name), page_of(name)
    cells_of = {cell.strip() for cell in re.split(r"(?<!\\)[|\n]", page)}
    assert artifact.outputs
    for key, entry in artifact.outputs.items():
        assert in_cell(value(entry)) in cells_of, key
        meaning = prose(entry["description"])
        equation = f"<br>{code(entry['equation'])}" if entry["equation"] else ""
        assert in_cell(meaning + equation) in cells_of, key
    for key, entry in artifact.inputs.items():
        assert in_cell(sourced(entry["source"])) in page, key
        if not str(entry["value"]).startswith(("Scenarios.", "Models.", "Fleets.", "Hardware.")):
            assert in_cell(value(entry)) in cells_of, key
    for source in artifact.sources:
        assert f"{{cite:t}}`{source}`" in page
    for stated in (*artifact.assumptions, *artifact.excludes):
        where = stated["where"]
        assert f" ({code(where) if where[0].isupper() else where})\n" in page


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_page_says_what_it_is_for_and_how_to_make_it_again(name: str) -> None:
    page, source = page_of(name), (paths.scenarios() / f"{name}.toml").read_text("utf-8")
    assert page.startswith(f"# {name}\n\n**{escaped(read(name).title)}**\n")
    assert block(prose(source.partition("\n")[0].lstrip("# "))) in page
    assert f"mlsysim solve {name}" in page
    assert f"](<../../artifacts/{name}.json>)" in page
    assert (f"](<../../artifacts/{name}.csv>)" in page) == paths.table(name).is_file()
    assert f":Class: {{doc}}`{read(name).kind} </reference/classes/{read(name).kind}>`" in page


def test_a_scenario_page_names_chapters_figures_and_tables_that_use_it() -> None:
    page = page_of("DenseLLMPretrainingStep")
    for chapter in cells.chapters():
        assert f"- {{doc}}`/{chapter}` " in page  # every chapter reads it
    assert "{numref}`fig-ledger`" in page
    assert "Other scenarios refer to it: " in page
    varied = page_of("DenseLLMPretrainingStepA100")
    assert ":Derived from: {doc}`DenseLLMPretrainingStep <" in varied
    assert "with its own `replica`, `fleet`" in varied


def test_a_scenario_that_does_not_fit_says_so_first() -> None:
    content = json.loads(json.dumps(read("DenseLLMReplica").content))
    content["feasibility"] = {"feasible": False, "reason": "1 GB too much"}
    assert ":Feasible: **no** (1 GB too much)\n" in scenario_page(content, Told())
    assert "No chapter and no other scenario uses it." in scenario_page(content, Told())


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_page_has_the_layout_every_field_and_every_output(kind: str) -> None:
    cls, page = KINDS[kind], pages()[f"reference/classes/{kind}"]
    titles = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert titles[:6] == [
        *("Notes", "References", "Example", "Attributes", "Declared fields", "Properties")
    ]
    for part in ("Equation", "Assumptions", "Excludes"):
        assert f"**{part}:** " in page
    shown = dict(re.findall(r":::\{py:\w+\} \w+\.(\w+)\n(.*?)\n:::", page, re.DOTALL))
    for field in dataclasses.fields(cls):
        told, meta = shown[field.name], field.metadata
        assert f"Type: {code(str(field.type))}" in told or f"{{py:class}}`{field.type} " in told
        assert "Declared default: required." in told
        assert not meta["unit"] or re.search(rf"Unit: .*`{re.escape(meta['unit'])}`\.", told)
        for bound in ("above", "at_least", "at_most"):
            if meta[bound] is not None:
                assert f" {meta[bound]:,g}" in told.partition("Range: ")[2]
    for output in outputs(cls):
        told = shown[output.name]
        assert f"Equation: {code(equation_of(output))}." in told
        assert not output.unit or f"Unit: {code(output.unit)}." in told
    assert {"feasible", "feasibility"} <= set(shown)
    listed = re.findall(r"^\| \[`(\w+)`\]", page, re.MULTILINE)
    assert listed == sorted(shown)


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_a_class_page_runs_and_prints_what_the_page_says(kind: str) -> None:
    page = pages()[f"reference/classes/{kind}"]
    shown = re.search(r"```pycon\n(.*?)\n```", page, re.DOTALL)
    if not artifacts_of(kind) and not shown:
        assert "No scenario of this class has a name yet." in page
        return
    assert shown
    assert ">>> from mlsysim import Scenarios\n" in shown[1]
    test = doctest.DocTestParser().get_doctest(shown[1] + "\n", {}, kind, None, 0)
    assert len(test.examples) >= 2
    said: list[str] = []
    assert doctest.DocTestRunner().run(test, out=said.append).failed == 0, "".join(said)


def test_a_class_page_lists_the_properties_of_its_result_with_their_equations() -> None:
    page = pages()["reference/classes/ReferenceTrainingStepScenario"]
    inner = page.partition("## Properties of result")[2]
    for output in outputs(DistributedResult):
        row = next(line for line in inner.split("\n") if f"`result.{output.name}`" in line)
        assert f"<br>{in_cell(code(equation_of(output)))} |" in row
        assert not output.unit or f"| {code(output.unit)} |" in row


def test_a_class_page_says_what_a_row_of_the_table_of_its_scenarios_is() -> None:
    with_table = {read(name).kind for name in SCENARIOS if "table" in read(name).content}
    assert with_table == {k for k in KINDS if "\n## Table\n\n" in pages()[f"reference/classes/{k}"]}
    page = pages()["reference/classes/CollectiveTimesScenario"]
    assert "\n## Table\n\nOne row a message: bytes, seconds, and the two parts of them.\n" in page


def test_a_class_without_an_example_shows_outputs_of_a_named_scenario() -> None:
    cls, made = KINDS["SelfContainedReplicaScenario"], artifacts_of("SelfContainedReplicaScenario")
    shown = example_of(cls, made)
    assert "\n'43.75 GB'" in shown
    assert "No scenario of this class has a name yet." in class_page(cls)  # type: ignore[arg-type]


def test_the_index_of_numbers_lists_every_record_of_the_quotes() -> None:
    page, content = pages()["reference/numbers"], read_pages(paths.quotes())
    own = page.partition("\n## Printed in more")[0] + "".join(re.split(r"(?m)^(?=## )", page)[2:])
    assert content
    for chapter, quotes in content.items():
        for number, quote in enumerate(quotes, start=1):
            rows = [row for row in own.split("\n") if f"`{chapter} {number}`" in row]
            assert len(rows) == 1
            assert f" {escaped(quote['printed'])} " in rows[0].replace("*", "")


def record(number: int, printed: str, key: str = "One.step_time") -> Record:
    return Record("01_small", number, key, key, printed, key, "7.72 s")


def test_texts_that_differ_for_one_key_stand_together_at_the_top() -> None:
    told = [record(1, "8 s"), record(2, "7.7 s"), record(3, "8 s"), record(4, "1", "One.depth")]
    assert [len(entry.texts) for entry in entries(told)] == [2, 1]
    page = numbers_page(told)
    top = page.partition("## Printed in more than one way")[2].partition("\n## ")[0]
    assert "| `One.step_time` | 7.72 s | **8 s** | " in top
    assert "|  |  | **7.7 s** | {printed_at}`01_small 2` |" in top
    assert "`One.depth`" not in top
    assert "more than one way" not in numbers_page(told[3:])


def test_an_input_of_the_registry_is_one_entry_whichever_scenario_it_is_quoted_from() -> None:
    told = {each.key: each for each in generated_pages.records({n: read(n) for n in SCENARIOS})}
    whole = told["DenseLLMPretrainingStep.replica.workload.layers"]
    assert whole.full == "Models.GPT3_175B.layers"
    assert whole.exact == "96"


@pytest.mark.parametrize(
    "text", ["a|b", "`x`", "a * b_c", "$x$", "<b>", r"a\b", "|x - 1|", "{r}`x`"]
)
def test_text_and_code_come_out_of_a_cell_as_they_went_in(text: str) -> None:
    parser = MarkdownIt("commonmark").enable("table")
    shown = parser.render(f"|a|b|\n|-|-|\n|{in_cell(escaped(text))}|{in_cell(code(text))}|\n")
    found = re.findall(r"<td>(.*)</td>", shown)
    assert html.unescape(found[0]) == text
    assert html.unescape(re.sub("</?code>", "", found[1])) == text


def test_a_product_is_made_from_what_its_names_hold() -> None:
    code_of = (
        "import pandas as pd\nfrom mlsysim import read\n"
        'one, two, three = read("One"), read("Two"), read("Three")\nrows = []\n'
        'for name in [one]:\n    rows.append(name)\nsave_table("01_small/a", pd.DataFrame(rows))\n'
        'rows = [1]\nsave_table("01_small/b", rows)\n'
        "def draw(axes):\n    axes.plot(three)\n\nfigure, axes = new_figure()\ndraw(axes)\n"
        'save_figure("01_small/c", figure, data=table(axes))'
    )
    shown = (
        ":::{figure} ../results/figures/01_small/c.svg\n:name: fig-c\n:::\n\n"
        ":::{table} T\n:name: tab-a\n\n```{include} ../results/tables/01_small/a.md\n```\n:::\n"
    )
    found = products("01_small", HEAD + CELL.format(code=code_of) + shown)
    assert [(each.stem, each.label) for each in found] == [
        ("c", "fig-c"),
        ("a", "tab-a"),
        ("b", ""),
    ]
    held = {each.stem: sorted(each.scenarios) for each in found}
    assert held["c"] == ["One", "Three", "Two"]  # one statement reads all three
    assert held["b"] == []


BOOK = """\
# Book

```{toctree}
:numbered:

01_small
```

```{toctree}
:glob:

bibliography
reference/index*
reference/numbers*
```
"""
DRAW = """\
import pandas as pd
from mlsysim import read
from mlsysim.book import new_figure, save_figure
step = read("DenseLLMReplica")
figure, axes = new_figure()
save_figure("01_small/f", figure, data=pd.DataFrame({"a": [step.replica_gpus]}))"""
TEXT = """\
 ## At {quote}`step.state_per_gpu as .1f`

It is {quote}`step.state_per_gpu as .2f` or {quote}`step.state_per_gpu as .1f`.[^n]

[^n]: That is {quote}`step.tensor_parallel` times as much.

:::{figure} ../results/figures/01_small/f.svg
:name: fig-f
:alt: Of {quote}`step.pipeline_depth`

A figure of {quote}`step.pipeline_depth`
:::
"""


# Signs that mean something to TOML, YAML, Markdown, MyST, HTML or LaTeX.
NASTY = (
    """: a: b, :c: # *d* _e_ $g$ $$h$$ [x](y) [^1] {role} <b>i</b> <role-0> | % & &amp; ~ ^ \\ """
    """"q" 'r' -- ... ::: (t)= {{ u }} @v http://w.x/y_z \ue0000\ue001 --"""
)
CITED = NASTY.replace(";", "")  # which would begin another source
HELD = "DenseLLMReplicaA100"


def with_nasty_texts(root: Path) -> None:
    """Let a scenario have such a title, such a first comment and such sources of either kind."""
    (root / "scenarios" / f"{HELD}.toml").write_text(
        f"""# {NASTY}
base = "Scenarios.DenseLLMReplica"
title = {json.dumps(f" {NASTY}{chr(10)} ")}

[node]
value = "Hardware.DGX_A100"
source = {json.dumps(f"assumption: {NASTY}")}

[bytes_per_param]
value = "16 B"
source = {json.dumps(f"rajbhandari2020, {CITED}")}
""",
        encoding="utf-8",
    )


def lay_out(root: Path) -> Path:
    """A small book that lists the generated pages, built once."""
    with_nasty_texts(copy_project(root))
    assert command(root, "solve", "--all") == ""
    for name in ("conf.py", "bibliography.md"):
        shutil.copy(REPOSITORY / "chapters" / name, root / "chapters")
    shutil.copytree(REPOSITORY / "chapters" / "_static", root / "chapters" / "_static")
    (root / "chapters" / "index.md").write_text(BOOK, encoding="utf-8")
    write(root, DRAW, TEXT)
    assert command(root, "execute", "01_small") == ""
    assert command(root, "book") == ""
    return root


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book for tests that only look at it."""
    return lay_out(tmp_path_factory.mktemp("built") / "root") / "build" / "book"


def links(page: Path) -> list[tuple[str, Path, str]]:
    """Where the links of a page lead: as written, file, anchor."""
    text = page.read_text(encoding="utf-8")
    found = []
    for target in re.findall(r'(?:href|src)="([^"]*)"', text):
        file, _, anchor = html.unescape(target).partition("#")
        if not re.match(r"\w+:", target):
            place = (page.parent / unquote(file.partition("?")[0])).resolve() if file else page
            found.append((target, place, unquote(anchor)))
    return found


def test_no_link_of_any_page_is_dead(built: Path) -> None:
    checked = 0
    for page in sorted(built.rglob("*.html")):
        if page.is_relative_to(built / "_static"):
            continue
        for target, place, anchor in links(page):
            assert place.is_file(), (page.name, target)
            if anchor and place.suffix == ".html":
                assert f'id="{anchor}"' in place.read_text(encoding="utf-8"), (page.name, target)
            checked += 1
    assert checked > 500


def test_the_index_leads_to_every_place_by_the_number_of_its_section(built: Path) -> None:
    index = (built / "reference" / "numbers.html").read_text(encoding="utf-8")
    places = re.findall(r'href="\.\./01_small\.html#([\w.:-]+)"[^>]*>([^<]*)<', index)
    state, depth = "quote-DenseLLMPretrainingStep.state_per_gpu", "DenseLLMPretrainingStep"
    # Two in the text, one in a heading, one in a footnote, one in a caption, one in a picture.
    assert {anchor for anchor, _ in places} == {
        *(state, f"{state}:2", "at-step-state-per-gpu"),
        *(f"quote-{depth}.tensor_parallel", f"quote-{depth}.pipeline_depth", "fig-f"),
    }
    footnote = f"quote-{depth}.tensor_parallel"  # at the end of the chapter, in no section of it
    assert {shown for anchor, shown in places if anchor != footnote} == {"1.1"}
    assert "Printed in more than one way" in index


def test_sources_are_citations_that_lead_to_the_bibliography(built: Path) -> None:
    for name in names("Scenarios"):
        path = built / "reference" / "scenarios" / f"{name}.html"
        if not path.is_file():
            continue
        led = {anchor for target, place, anchor in links(path) if place.stem == "bibliography"}
        assert led, name


def test_cells_of_generated_tables_show_their_roles_and_the_search_finds_their_words(
    built: Path,
) -> None:
    step = (built / "reference/scenarios/DenseLLMPretrainingStep.html").read_text("utf-8")
    rows = dict(re.findall(r"<tr>\s*<td[^>]*><code>(\w+)</code></td>(.*?)</tr>", step, re.DOTALL))
    plain = {name: re.sub(r"<[^>]+>", " ", row).split() for name, row in rows.items()}
    assert 'href="DenseLLMReplica.html"' in rows["replica"]
    assert " ".join(plain["batch_tokens"]).endswith(
        "Brown et al. [ 2020 ] , Table 2.1: batch size of GPT-3 175B"
    )
    assert "<role-" not in step
    index = (built / "searchindex.js").read_text("utf-8")
    found = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    pages_of = found["terms"]["batch_divisor"]
    names_of = [found["docnames"][n] for n in ([pages_of] if type(pages_of) is int else pages_of)]
    assert "reference/scenarios/DenseLLMPretrainingStep" in names_of


def shown(markup: str) -> str:
    """What a reader sees of HTML."""
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", markup)).split())


def test_whatever_a_file_holds_is_printed_as_it_is(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = shown((built / f"reference/scenarios/{HELD}.html").read_text("utf-8"))
    assert page.count(NASTY) == 3  # title, first comment, and a source in a cell
    assert page.count(CITED) == 1
    assert shown((built / "reference/scenarios.html").read_text("utf-8")).count(NASTY) == 1
    monkeypatch.setenv("MLSYSIM_ROOT", str(built.parents[1]))
    held = read(HELD)
    assert shown(card(held, "state_per_gpu", [], {})).count(NASTY) == 1
    told = shown(basis(held, {}))
    assert (told.count(NASTY), told.count(CITED)) == (1, 1)


def test_a_chapter_ends_with_its_notebook_and_data_as_real_files(built: Path) -> None:
    chapter = (built / "01_small.html").read_text(encoding="utf-8")
    box = chapter.partition("Data and notebook")[2].partition("</footer>")[0]
    told = re.findall(r'href="([^"#]*)">(?:<[^>]*>)?([\w.]+)<', box)[:4]
    assert told == [
        ("_sources/01_small.ipynb", "01_small.ipynb"),
        ("figures/01_small/f.csv", "CSV"),
        ("figures/01_small/f.svg", "SVG"),
        ("figures/01_small/f.pdf", "PDF"),
    ]
    assert "Fig. 1.1" in box
    assert (built / "figures/01_small/f.csv").read_text(encoding="utf-8") == "a\n64\n"


def test_an_edit_reaches_the_pages_it_concerns_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = lay_out(tmp_path / "root")
    monkeypatch.setenv("MLSYSIM_ROOT", str(root))
    folder = root / "build" / "book"

    def pages_now() -> dict[str, tuple[int, bytes]]:
        found = sorted(folder.rglob("*.html"))
        listed = [path for path in found if not path.is_relative_to(folder / "_static")]
        return {
            path.relative_to(folder).with_suffix("").as_posix(): (
                path.stat().st_mtime_ns,
                path.read_bytes(),
            )
            for path in listed
        }

    def written(then: dict[str, tuple[int, bytes]]) -> set[str]:
        now = pages_now()
        told = {name for name in {*then, *now} if then.get(name) != now.get(name)}
        # Sphinx writes these every time, and a page with the one that lists it.
        return told - {"genindex", "search", "index", "reference/scenarios"}

    then = pages_now()
    chapter = root / "chapters" / "01_small.md"
    chapter.write_text(chapter.read_text("utf-8").replace("It is", "It is now"), encoding="utf-8")
    assert command(root, "book") == ""
    assert written(then) == {"01_small"}

    key, then = records.page_key(), pages_now()
    scenario = root / "scenarios" / "DenseLLMReplica.toml"
    scenario.write_text("# Why, at last.\n" + scenario.read_text("utf-8"), encoding="utf-8")
    assert records.page_key() != key
    assert command(root, "book") == ""
    assert written(then) == {"reference/scenarios/DenseLLMReplica"}
    assert b"Why, at last." in pages_now()["reference/scenarios/DenseLLMReplica"][1]

    then, quoted = pages_now(), "{quote}`step.step_time as .3f` before.\n\nIt is now"
    chapter.write_text(chapter.read_text("utf-8").replace("It is now", quoted), encoding="utf-8")
    assert command(root, "book") == ""
    assert "reference/numbers" in written(then)
    assert "reference/scenarios/DenseLLMReplica" not in written(then)
    assert b"html#quote-DenseLLMPretrainingStep.step_time" in pages_now()["reference/numbers"][1]

    works = root / "chapters" / "references.bib"
    told = works.read_text("utf-8")
    works.write_text(re.sub(r"(@\w+\{brown2020,.*?year = \{)\d+", r"\g<1>1999", told, flags=re.S))
    chapter.write_text(chapter.read_text("utf-8").replace("## At", "## Erstwhile at"), "utf-8")
    assert command(root, "book") == ""
    chapter.write_text(chapter.read_text("utf-8").replace("## Erstwhile at", "## At"), "utf-8")
    assert command(root, "book") == ""
    assert b">1999</a>" in pages_now()["reference/scenarios/DenseLLMPretrainingStep"][1]

    (root / "scenarios" / "DenseLLMPretrainingStepA100.toml").unlink()
    assert command(root, "book") == ""
    left = list(folder.rglob("DenseLLMPretrainingStepA100*"))
    assert left == []
    assert not [n for n, (_, text) in pages_now().items() if b"PretrainingStepA100" in text]

    def texts() -> dict[str, bytes]:
        # MyST-NB's style sheet has its digest in its name, and one more from the second build on.
        shown = {
            n: re.sub(rb"(mystnb\.\w+\.css)\?v=\w+", rb"\1", t) for n, (_, t) in pages_now().items()
        }
        return shown | {"search": (folder / "searchindex.js").read_bytes()}

    then_texts = texts()
    for each in (folder, root / "build" / "doctrees", root / "build" / "reference"):
        shutil.rmtree(each)
    assert command(root, "book") == ""
    assert texts() == then_texts


def test_a_warning_on_a_generated_page_names_the_file_that_an_author_edits(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = "build/reference/scenarios/One.md:7: WARNING: x\n"
    other = "build/reference/classes/LayoutSearchScenario.md: WARNING: y"

    def warn(self: object) -> None:
        self._warning.write(f"{root}/{wrong}{root}/{other}")  # type: ignore[attr-defined]

    for name in ("conf.py", "bibliography.md"):
        shutil.copy(REPOSITORY / "chapters" / name, root / "chapters")
    shutil.copytree(REPOSITORY / "chapters" / "_static", root / "chapters" / "_static")
    (root / "chapters" / "index.md").write_text("# Book\n", encoding="utf-8")
    monkeypatch.setattr("sphinx.application.Sphinx.build", warn)
    assert run_sphinx(root / "out", "html").splitlines() == [
        "scenarios/One.toml, on its page: WARNING: x",
        "mlsysim/engine/scenario_definitions/layout_search.py, on its page: WARNING: y",
    ]


def test_a_book_that_does_not_list_the_pages_has_none(root: Path) -> None:
    (root / "chapters" / "index.md").write_text("# Book\n", encoding="utf-8")
    assert not generated_pages.is_listed()
    (root / "chapters" / "index.md").write_text(BOOK, encoding="utf-8")
    assert generated_pages.is_listed()
