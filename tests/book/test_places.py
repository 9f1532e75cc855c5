"""What is wrong in a chapter is named with its own line in chapters/, not with a generated file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.books import command, line_of, write

# Each line with a mistake ends with a comment that says what is reported for it; the comments are
# taken out before the build.
BEFORE = """\
 A paragraph of three lines,
the second of which {ref}`goes nowhere <no-label>`, <!-- no-label -->
and so does {numref}`no-figure`. <!-- no-figure -->

:::{nodirective} Title <!-- nodirective -->
Text.
:::

:::{figure} _static/favicon.svg
:alt: a sign

A caption {ref}`that goes nowhere <no-caption>`. <!-- no-caption -->
:::"""
AFTER = """\
 After a cell a citation
{cite}`nobody2020` of nobody. <!-- nobody2020 -->

- an item
- {norole}`x` <!-- norole -->

| a |
|--|
| {ref}`no-table` | <!-- no-table -->
| {eq}`no-equation` | <!-- no-equation -->

> A word
> and {ref}`no-word` <!-- no-word -->

Text with a note [^note]
and a [link](missing.md). <!-- missing.md -->

[^note]: In {doc}`none-of-these`. <!-- none-of-these -->"""


EMPTY_TABLE = """\
import pandas as pd
from mlsysim.book import save_table

save_table(
    "01_small/t",
    pd.DataFrame(),
)"""


def test_every_warning_of_a_page_names_the_line_of_the_chapter(book: Path) -> None:
    marked = write(book, BEFORE, "x = 1", AFTER)
    expected = {
        found[1]: number
        for number, line in enumerate(marked.splitlines(), 1)
        if (found := re.search(r" <!-- (\S+) -->$", line))
    }
    text = re.sub(r"(?m) <!-- \S+ -->$", "", marked)
    (book / "chapters/01_small.md").write_text(text, encoding="utf-8")
    assert command(book, "execute", "01_small") == ""
    said = command(book, "book")
    found = {
        word: int(line)
        for line, message in re.findall(r"(?m)chapters/01_small\.md:(\d+): (.*)$", said)
        for word in expected
        if word in message
    }
    assert found == expected
    assert str(book) not in said
    assert ".ipynb" not in said


def test_an_option_that_a_directive_does_not_know_is_told_with_its_line(book: Path) -> None:
    text = write(book, "x = 1", " :::{figure} _static/favicon.svg\n:alternative: a sign\n\nX\n:::")
    assert command(book, "execute", "01_small") == ""
    line = line_of(text, ":alternative:")
    told = command(book, "book")
    assert re.search(rf"chapters/01_small\.md:{line}: .*alternative", told), told


@pytest.mark.parametrize(
    ("cell", "line", "message"),
    [
        ("x = 1\n\n\ny = (\n    x\n    / 0\n)", 5, "ZeroDivisionError"),
        ("def f():\n    return missing\n\n\nf()", 2, "NameError: name 'missing'"),
        ("%time\nx = 1\nraise KeyError('k')", 3, "KeyError: 'k'"),
        ("import pandas as pd\n\npd.DataFrame({'a': [1]})['b']", 3, "KeyError: 'b'"),
        (
            EMPTY_TABLE,
            4,
            "there is nothing in it",
        ),
        ("import sys\n\nsys.exit(3)", 1, "SystemExit: 3"),
    ],
)
def test_an_exception_in_a_cell_names_the_line_of_its_statement(
    book: Path, cell: str, line: int, message: str
) -> None:
    text = write(book, " Prose.", "first = 1", " More.", cell)
    said = command(book, "execute", "01_small")
    start = text.partition(cell)[0].count("\n") + 1
    found = re.match(r"mlsysim: chapters/01_small\.md:(\d+): (.*)", said)
    assert found, said
    assert message in found[2]
    assert int(found[1]) - start + 1 == line


def test_what_stands_in_a_comment_or_a_directive_is_not_executed(book: Path) -> None:
    hidden = "<!-- Not now:\n```{code-cell} ipython3\nraise KeyError\n```\n-->"
    write(book, f" Prose.\n\n{hidden}\n\nMore.", "1 + 1")
    assert command(book, "execute", "01_small") == ""
    assert command(book, "book") == ""
    content = (book / "build/executed/01_small.ipynb").read_text(encoding="utf-8")
    assert "KeyError" not in content
    write(book, " Prose.\n\n:::{note}\n```{code-cell} ipython3\nraise KeyError\n```\n:::", "1 + 1")
    assert command(book, "execute", "01_small") == ""
    assert "chapters/01_small.md:" in command(book, "book")


def test_a_backend_that_the_person_set_does_no_harm(
    book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLBACKEND", "bogus")
    write(book, "from mlsysim.book import new_figure\n\nfigure, axes = new_figure()")
    assert command(book, "execute", "01_small") == ""
