"""What a build says of an author's mistakes: line, thing, and what was meant, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.books import CELL, HEAD, build, command, line_of, write

FIGURE = """\
import pandas as pd
from mlsysim.book import new_figure, save_figure
save_figure("01_small/growth", new_figure()[0], data=pd.DataFrame({"x": [1]}))"""
SHOWN = """\
 (small)=
:::{figure} ../results/figures/01_small/growth.svg
:name: fig-growth

Growth, in {numref}`fig-growth`.
:::

$$
a = b
$$ (eq-same)

See {ref}`here <small>` and {eq}`eq-same`."""


def test_what_a_page_points_to_in_vain_is_told_at_once_with_lines_and_nearest_names(
    book: Path,
) -> None:
    (book / "chapters/references.bib").write_text(
        "@misc{brown2020,\n  title = {T},\n  note = {Read: all of it}\n}\n", encoding="utf-8"
    )
    wrong = """
![](../results/figures/01_small/grwth.svg)

First {numref}`fig-grwth`,
then {eq}`eq-sam`, {ref}`smal` and [this](#smll).

After {cite}`brown2021` and {quote}`step.step_tim`.

:::{notee}
{refff}`small`
:::"""
    text = write(book, FIGURE, SHOWN, f" {wrong}")
    told = build(book).removeprefix("mlsysim: ").splitlines()
    assert [each.partition(": ")[0] for each in told] == [
        f"chapters/01_small.md:{line_of(text, part)}"
        for part in (
            *("![](", "First {numref}", "then {eq}", "then {eq}", "then {eq}"),
            *("After {cite}", "After {cite}", ":::{notee}", "{refff}"),
        )
    ]
    meant = ("growth.svg", "fig-growth", "eq-same", "small", "small", "step_time", "brown2020")
    for line, word in zip(told, (*meant, "note", "ref"), strict=True):
        assert f"did you mean '{word}'" in line or f"or '{word}'" in line
    assert not (book / "build/book/index.html").exists()
    write(book, FIGURE, SHOWN)
    assert build(book) == ""


@pytest.mark.parametrize(
    ("text", "part", "fragment"),
    [
        (HEAD + CELL.format(code="x = 1").replace("x = 1\n```", "x = 1"), "```{code", "not closed"),
        (
            HEAD + "```{code-cell}\nx = 1\n\nProse.\n\n" + CELL.format(code="y = 1"),
            "```{code",
            "before line",
        ),
        (
            HEAD.replace("python\n  name", "[python\n  name"),
            "  name: python3",
            "no valid YAML: expected ','",
        ),
        (
            HEAD + "```{code-cell}\n:tags: [a\n\nx = 1\n```\n",
            ":tags:",
            "options of the cell: no valid YAML: expected ',' or ']'",
        ),
    ],
    ids=["cell without end", "cell that swallows prose", "front matter", "options"],
)
def test_a_slip_of_form_is_told_with_its_line_and_reason(
    book: Path, text: str, part: str, fragment: str
) -> None:
    (book / "chapters/01_small.md").write_text(text, encoding="utf-8")
    told = command(book, "execute", "01_small") or command(book, "book")
    assert f"chapters/01_small.md:{line_of(text, part)}: " in told
    assert fragment in told


def test_what_a_cell_prints_is_shown_to_its_author(book: Path) -> None:
    text = write(book, 'print("a number")', " After.")
    assert command(book, "execute", "01_small", warned=True) == (
        f"chapters/01_small.md:{line_of(text, 'print')}: a number\n"
    )


def test_an_error_in_a_function_of_a_chapter_tells_the_lines_that_led_to_it(book: Path) -> None:
    text = write(
        book, "def share(of):\n    return 1 / of", "def half():\n    return share(0)", "half()"
    )
    lines = [line_of(text, part) for part in ("return 1", "return share", "\nhalf()")]
    lines[2] += 1
    assert command(book, "execute", "01_small") == (
        f"mlsysim: chapters/01_small.md:{lines[0]}: ZeroDivisionError: division by zero "
        f"(called from line {lines[1]}, called from line {lines[2]})\n"
    )
