"""Quotes in tables: found in the page's source, shown as buttons, and counted like any other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from mlsysim import paths
from mlsysim.artifacts.reading import read
from mlsysim.book import Code, save_table
from mlsysim.book.execution.chapter_execution import execute
from mlsysim.book.pages.page_records import read_pages
from mlsysim.book.pages.page_sources import Page, write_records
from mlsysim.book.products import table_quotes
from mlsysim.book.products.table_quotes import TableQuote
from mlsysim.book.source.shown_tables import Shown, shown
from mlsysim.errors import MlsysimError
from tests.books import build, built_once, command, line_of, write

INCLUDE = "```{include} ../results/tables/01_small/one.md\n```"
CELLS = """\
import pandas as pd
from mlsysim import read
from mlsysim.book import Code, save_table

step = read("DenseLLMPretrainingStep")
rows = {
    "Name": [Code("state"), Code("stages"), "words"],
    "Value": [step.quote("state_per_gpu as .1f"), step.quote("pipeline_depth"), "44 GB or so"],
    "Count": [96, 97, step.quote("pipeline_depth")],
}
save_table("01_small/one", pd.DataFrame(rows))"""
TEXT = f"""\
 It holds {{quote}}`step.pipeline_depth` stages.

:::{{table}} Of {{quote}}`step.pipeline_depth` stages
:name: tab-one

{INCLUDE}
:::

Then {{quote}}`step.pipeline_depth` again."""
STEP = "DenseLLMPretrainingStep"
STATE, DEPTH = f"{STEP}.state_per_gpu", f"{STEP}.pipeline_depth"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book that was built once, for tests that only look at it."""
    return built_once(tmp_path_factory, CELLS, TEXT)


def page_of(root: Path) -> str:
    return (root / "build/book/01_small.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("solved")
def test_a_saved_table_says_which_of_its_cells_are_quotes() -> None:
    step = read(STEP)
    frame = pd.DataFrame(
        {
            "Name": [Code("state"), "state"],
            "Value": [step.quote("state_per_gpu in GiB as .1f"), "43.8 GB"],
            "Two": [step.quote("pipeline_depth").text, step.quote("precision")],
        }
    )
    save_table("01_x/table", frame)
    path = paths.results() / "tables" / "01_x" / "table.quotes.json"
    assert path.read_text(encoding="utf-8") == (
        f'[\n{{"row": 1, "column": 2, "spec": "{STATE} in GiB as .1f"}},\n'
        f'{{"row": 2, "column": 3, "spec": "{STEP}.precision"}}\n]\n'
    )
    assert table_quotes.read("01_x/table") == [
        TableQuote(1, 2, f"{STATE} in GiB as .1f"),
        TableQuote(2, 3, f"{STEP}.precision"),
    ]
    save_table("01_x/table", pd.DataFrame({"n": [1]}))
    assert table_quotes.read("01_x/table") == []


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("content", ["[", "{}x", '[{"row": 1}]', "[1]"])
def test_a_file_of_quotes_that_was_edited_is_named_with_what_to_run(content: str) -> None:
    path = paths.results() / "tables" / "01_x" / "table.quotes.json"
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="utf-8")
    with pytest.raises(MlsysimError) as refused:
        table_quotes.read("01_x/table")
    assert str(refused.value) == (
        "results/tables/01_x/table.quotes.json is not as save_table writes it; "
        "run: mlsysim execute 01_x"
    )


def test_the_tables_of_a_page_are_those_that_it_includes_whole() -> None:
    other = INCLUDE.replace("one", "two")
    cut = other.replace("\n", "\n:start-line: 3\n", 1)
    text = (
        f"# T\n\n{INCLUDE}\n\n<!--\n{other}\n-->\n\n````text\n{other}\n````\n\n{cut}\n\n"
        f"::::{{note}} N\n:class: a\n\n:::{{table}} X\n:name: t\n\n{other}\n:::\n::::\n"
    )
    assert shown(text) == [
        Shown(3, "01_small/one"),
        Shown(line_of(text, other + "\n:::"), "01_small/two"),
    ]


def test_a_quoted_cell_is_a_button_where_its_number_stood(built: Path) -> None:
    table = re.search(r"<tbody>.*?</tbody>", page_of(built), re.DOTALL)
    assert table
    button = r'<button class="quote" data-key="(\S+)" id="(\S+)" type="button">(.*?)</button>'
    assert re.findall(button, table[0]) == [
        (STATE, f"quote-{STATE}", "43.8\xa0GB"),
        (DEPTH, f"quote-{DEPTH}:3", "8"),
        (DEPTH, f"quote-{DEPTH}:4", "8"),
    ]
    cells = re.findall(r'<td class="text-\w+"><p>(.*?)</p></td>', re.sub(button, "Q", table[0]))
    plain = [re.sub(r"<.*?>", "", cell) for cell in cells]
    assert plain == ["state", "Q", "96", "stages", "Q", "97", "words", "44 GB or so", "Q"]


def test_a_number_in_a_table_is_in_the_record_in_its_place_and_in_the_index(built: Path) -> None:
    record = read_pages(built / "results/quotes.json")["01_small"]
    assert [(each["key"], each["printed"], each.get("table")) for each in record] == [
        (DEPTH, "8", None),
        (DEPTH, "8", None),
        (STATE, "43.8\xa0GB", "01_small/one"),
        (DEPTH, "8", "01_small/one"),
        (DEPTH, "8", "01_small/one"),
        (DEPTH, "8", None),
    ]


def test_the_card_of_a_number_lists_its_places_in_tables(built: Path) -> None:
    script = (built / f"build/book/cards/{STEP}.js").read_text(encoding="utf-8")
    cards = json.loads(script.partition(", ")[2].removesuffix(");\n"))["cards"]
    places = re.findall(r'href="01_small.html#([^"]*)">(.*?)</a>', cards[DEPTH])
    assert [anchor for anchor, _ in places] == [
        f"quote-{DEPTH}",
        *(f"quote-{DEPTH}:{number}" for number in range(2, 6)),
    ]
    assert all(f'id="{anchor}"' in page_of(built) for anchor, _ in places)
    assert re.findall(r'href="01_small.html#([^"]*)">', cards[STATE]) == [f"quote-{STATE}"]


def test_the_notebook_to_take_away_shows_the_table_as_plain_text(built: Path) -> None:
    content = (built / "build/notebooks/01_small.ipynb").read_text(encoding="utf-8")
    assert "| `state` | 43.8\xa0GB | 96 |" in content
    assert "{quote}" not in content


def test_a_table_that_says_otherwise_than_the_artifact_stops_the_page(book: Path) -> None:
    text = write(book, CELLS, TEXT)
    assert build(book) == ""
    path = paths.artifact(STEP)
    content = path.read_text(encoding="utf-8")
    path.write_text(content.replace("43.75", "44.5"), encoding="utf-8")
    assert command(book, "book") == (
        f"mlsysim: chapters/01_small.md:{line_of(text, INCLUDE)}: "
        "results/tables/01_small/one.md, row 1, column 2: prints '43.8\\xa0GB', and "
        f"`{STATE} as .1f` is '44.5\\xa0GB'; run: mlsysim execute 01_small\n"
    )
    assert build(book) == ""
    assert "44.5\xa0GB</button>" in page_of(book)
    cut = book / "results/tables/01_small/one.md"
    cut.write_text("| Name |\n| :-- |\n| x |\n", encoding="utf-8")
    assert "01_small/one.md, row 1, column 2: prints '', and" in command(book, "book")


def test_a_cell_that_is_no_quote_any_longer_is_plain_again_and_leaves_the_record(
    book: Path,
) -> None:
    write(book, CELLS, TEXT)
    assert build(book) == ""
    plain = CELLS.replace('"44 GB or so"', '"x"').replace('as .1f")', 'as .1f").text')
    write(book, plain, TEXT)
    assert build(book) == ""
    assert f'data-key="{STATE}"' not in page_of(book)
    assert STATE not in paths.quotes().read_text(encoding="utf-8")


def test_a_table_that_the_page_drops_is_named_by_its_line(book: Path) -> None:
    text = write(book, CELLS, f" :::{{acks}}\n{INCLUDE}\n:::")
    told = build(book)
    assert f"chapters/01_small.md:{line_of(text, INCLUDE)}: quote `{STATE} as .1f` is lost" in told
    assert "around the table 01_small/one drops it" in told


def test_a_table_is_pruned_with_its_quotes(solved: Path) -> None:
    write(solved, CELLS)
    assert ("results/tables/01_small/one.quotes.json", "new") in execute("01_small")
    write(solved, CELLS.replace("01_small/one", "01_small/two"))
    made = dict(execute("01_small"))
    assert made["results/tables/01_small/one.quotes.json"] == "removed"
    assert made["results/tables/01_small/two.quotes.json"] == "new"
    (solved / "results/tables/01_small/two.quotes.json").unlink()
    assert ("results/tables/01_small/two.quotes.json", "new") in execute("01_small")


def test_a_table_with_results_that_do_not_fit_is_shown_only_on_purpose(solved: Path) -> None:
    text = write(solved, CELLS, f" {INCLUDE}")
    execute("01_small")
    path = paths.artifact(STEP)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["feasibility"] = {"feasible": False, "reason": "9.0 GB more than 85.5 GB"}
    path.write_text(json.dumps(content), encoding="utf-8")
    place = f"chapters/01_small.md:{line_of(text, INCLUDE)}"
    with pytest.raises(MlsysimError) as refused:
        write_records([Page("01_small")])
    assert str(refused.value).startswith(f"{place}: table 01_small/one, row 1, column 2: ")
    assert f"{STEP} is infeasible" in str(refused.value)
    accepted = text.replace("mlsysim:\n", f"mlsysim:\n  infeasible:\n  - {STEP}\n", 1)
    (solved / "chapters" / "01_small.md").write_text(accepted, encoding="utf-8")
    assert write_records([Page("01_small")])
