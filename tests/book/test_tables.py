"""Tables: exact in CSV, and printed as they are in Markdown and LaTeX, whatever a cell holds."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mlsysim import paths
from mlsysim.artifacts.numbers import NBSP
from mlsysim.artifacts.reading import read
from mlsysim.book import Code, save_table
from mlsysim.book.products.latex import in_text
from mlsysim.book.products.markdown import escaped
from mlsysim.errors import InputError, MlsysimError

NAME = "01_x/table"


def saved(end: str) -> str:
    return (paths.results() / "tables" / f"{NAME}.{end}").read_text(encoding="utf-8")


def rows_of(markdown: str) -> list[list[str]]:
    """The cells of a pipe table as a reader sees them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    cells, row = [], []
    for token in tokens:
        if token.type == "inline":
            row.append("".join(child.content for child in token.children or []))
        elif token.type == "tr_close":
            cells.append(row)
            row = []
    return cells


NASTY = [
    *("50% of a_b", "a | b", "x & y", "#1 {c} $2$ ~3 ^4", "back\\slash", "*bold* _it_", "`code`"),
    *("[link](x)", "<b>", "{quote}`a.b`", "−1.5×10⁻⁷", "5 µs", "* first", "[first", "&amp;", ""),
]


@pytest.mark.usefixtures("root")
def test_what_a_cell_holds_is_what_every_form_shows() -> None:
    save_table(NAME, pd.DataFrame({"Any | thing": NASTY, "n_%": range(len(NASTY))}))
    with (paths.results() / "tables" / f"{NAME}.csv").open(encoding="utf-8", newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["Any | thing", *NASTY]
    shown = rows_of(saved("md"))
    assert [row[0] for row in shown] == ["Any | thing", *(text.strip() for text in NASTY)]
    latex = saved("tex").split("\n")
    assert latex[2] == r"Any \textbar{} thing & n\_\% \\"
    assert latex[4:8] == [
        r"50\% of a\_b & 0 \\",
        r"a \textbar{} b & 1 \\",
        r"x \& y & 2 \\",
        r"\#1 \{c\} \$2\$ \textasciitilde{}3 \textasciicircum{}4 & 3 \\",
    ]
    assert r"{*} first & 12 \\" in latex  # else an option of the row's end
    assert r"{[}first & 13 \\" in latex


@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), max_size=20))
def test_any_text_of_a_cell_survives_markdown(text: str) -> None:
    table = f"| h |\n| :-- |\n| {escaped(text)} |\n"
    assert rows_of(table)[1] == [text]


@given(st.text(st.sampled_from("ab%_&#${}~^\\[*|<> "), max_size=12))
def test_no_special_character_of_latex_is_left_bare(text: str) -> None:
    escaped = in_text(text)
    for command in (r"\textbackslash{}", r"\textasciitilde{}", r"\textasciicircum{}"):
        escaped = escaped.replace(command, "")
    for command in (r"\textbar{}", r"\textless{}", r"\textgreater{}"):
        escaped = escaped.replace(command, "")
    for sign in "%_&#${}":
        escaped = escaped.replace(f"\\{sign}", "")
    assert not set("%_&#$~^\\|<>") & set(escaped)
    assert escaped.count("{") == escaped.count("}") <= 1


@pytest.mark.usefixtures("root")
def test_numbers_are_exact_in_csv_and_formatted_elsewhere() -> None:
    frame = pd.DataFrame({"n": [123456789, 7], "x": [1e-11, 0.5], "y": [0.1 + 0.2, 2.5e9]})
    save_table(NAME, frame, columns={"x": ".1e", "y": ",.1f"})
    assert saved("csv") == "n,x,y\n123456789,1e-11,0.3\n7,0.5,2500000000.0\n"
    assert saved("md") == (
        "| n | x | y |\n| --: | --: | --: |\n"
        "| 123,456,789 | 1.0×10⁻¹¹ | 0.3 |\n"
        "| 7 | 5.0×10⁻¹ | 2,500,000,000.0 |\n"
    )
    assert r"7 & 5.0$\times$10$^{-1}$ & 2,500,000,000.0 \\" in saved("tex")


@pytest.mark.usefixtures("solved")
def test_a_quoted_cell_prints_its_unit_and_keeps_value_and_unit_apart_in_csv() -> None:
    step = read("DenseLLMPretrainingStep")
    frame = pd.DataFrame(
        {
            "Name": [Code("state_per_gpu"), Code("precision")],
            "Value": [step.quote("state_per_gpu in GiB as .1f"), step.quote("precision")],
        }
    )
    shown = save_table(NAME, frame)
    assert saved("csv") == "Name,Value,Value unit\nstate_per_gpu,43.75,GB\nprecision,bf16,\n"
    assert f"| `state_per_gpu` | 40.7{NBSP}GiB |\n" in saved("md")
    assert r"\texttt{state\_per\_gpu} & 40.7~GiB \\" in saved("tex")
    assert shown._repr_markdown_() == saved("md")


@pytest.mark.parametrize(
    ("data", "columns", "message"),
    [
        ({"x": [0.5]}, {}, "column 'x', row 1: 0.5 needs a format"),
        ({"x": [1.0, 1e-9]}, {"x": ".2f"}, "column 'x', row 2: '.2f' prints 1e-09 as 0.00"),
        ({"x": [1.0]}, {"x": "s"}, "no format of a number"),
        ({"x": [1.0]}, {"y": ".1f"}, "'y' is not in the table"),
        ({"x": [1.0, float("nan")]}, {"x": ".1f"}, "column 'x', row 2: a value is missing"),
        ({"x": [float("inf")]}, {"x": ".1f"}, "column 'x', row 1: inf is no number"),
        ({"x": ["a", None]}, {}, "row 2: a value is missing"),
        ({"x": ["a\nb"]}, {}, "more than one line"),
        ({"x": [[1]]}, {}, "list: expected a text, a number"),
        ({"": ["a"]}, {}, "a column is headed by a text"),
        ({"x": []}, {}, "there is nothing in it"),
    ],
)
@pytest.mark.usefixtures("root")
def test_what_no_table_can_show_is_refused_with_column_and_row(
    data: dict[str, list[Any]], columns: dict[str, str], message: str
) -> None:
    with pytest.raises(MlsysimError, match="01_x/table") as refused:
        save_table(NAME, pd.DataFrame(data), columns=columns)
    assert message in str(refused.value)
    assert not (paths.results() / "tables").exists()


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("name", ["table", "01_x/Table", "01_x/../y", "x/table", "01_x/table.csv"])
def test_a_name_outside_the_chapters_folder_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="names no product"):
        save_table(name, pd.DataFrame({"x": ["a"]}))


def test_two_columns_of_one_name_are_refused(root: Path) -> None:
    frame = pd.DataFrame([["a", "b"]], columns=["x", "x"])
    with pytest.raises(InputError, match="two columns are headed 'x'"):
        save_table(NAME, frame)
    assert not (root / "results").exists()


@pytest.mark.usefixtures("root")
def test_a_dash_for_a_number_that_there_is_not_leaves_the_column_right_aligned() -> None:
    save_table(NAME, pd.DataFrame({"n": [1, "–"], "words": ["a", "–"], "none": ["–", "–"]}))
    assert saved("md").split("\n")[1] == "| --: | :-- | :-- |"
    assert r"\begin{tabular}{rll}" in saved("tex")


@pytest.mark.usefixtures("solved")
def test_a_unit_in_a_heading_is_that_of_the_values_below_it() -> None:
    step = read("DenseLLMPretrainingStep")
    for heading, spec in (
        ("State (GB)", "state_per_gpu"),
        ("State (in GiB)", "state_per_gpu in GiB as .1f"),
        ("Efficiency (%)", "local_efficiency as .0%"),
        ("State (of the fullest)", "state_per_gpu"),
    ):
        save_table(NAME, pd.DataFrame({heading: [step.quote(spec)]}))
    for heading, spec in (
        ("State (GB)", "state_per_gpu in GiB as .1f"),
        ("State (GiB)", "state_per_gpu"),
        ("Efficiency (%)", "local_efficiency"),
    ):
        with pytest.raises(InputError, match=r"column '.*', row 2: prints .* under a heading in "):
            save_table(NAME, pd.DataFrame({heading: ["–", step.quote(spec)]}))
