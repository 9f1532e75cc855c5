"""The book for print: columns and complaints here, and with TeX, in `make pdf`, the book itself."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docutils import nodes

from mlsysim.book.pages.page_records import read_pages
from mlsysim.book.site import printed_book
from mlsysim.errors import MlsysimError
from tests.conftest import REPOSITORY


def table(*rows: tuple[str, ...], right: tuple[int, ...] = ()) -> nodes.table:
    """A table as MyST makes it, with the numbers of columns whose text stands at the right."""
    body = nodes.tbody()
    for cells in rows:
        row = nodes.row()
        for i, text in enumerate(cells):
            row += nodes.entry(
                "", nodes.paragraph("", text), classes=["text-right"] if i in right else []
            )
        body += row
    return nodes.table("", nodes.tgroup("", body, cols=len(rows[0])))


def test_numbers_stand_at_the_right_in_print_too() -> None:
    assert printed_book.columns(table(("Part", "Time"), ("Forward", "1.92 s"), right=(1,))) == "lr"


def test_a_wide_table_gets_shares_of_the_page_and_its_longest_text_the_largest() -> None:
    spec = printed_book.columns(table(("step_time", "7.7 s", "a long sentence " * 9), right=(1,)))
    shares = [(int(a), int(b)) for a, b in re.findall(r"\\X\{(\d+)\}\{(\d+)\}", spec)]
    assert [of for _, of in shares] == [sum(share for share, _ in shares)] * 3
    assert shares[1] < shares[0] < shares[2]
    assert spec.count(r"\raggedleft") == 1


def test_what_a_reader_would_see_is_a_complaint_and_what_he_would_not_is_none() -> None:
    log = (
        "Overfull \\hbox (3.1pt too wide) in paragraph at lines 1--2\n"
        "Overfull \\hbox (31.5pt too wide) in paragraph at lines 3--4\n"
        "Underfull \\hbox (badness 10000) in paragraph at lines 5--6\n"
        "Missing character: There is no x in font y!\n"
        "LaTeX Warning: Reference `fig' on page 1 undefined on input line 7.\n"
        "LaTeX Font Warning: Font shape `T1' undefined\n"
    )
    found = printed_book.complaints(log)
    assert [line.split()[0] for line in found] == ["Overfull", "Missing", "LaTeX"]
    assert "31.5pt" in found[0]
    assert printed_book.complaints(f"{log}! LaTeX Error: no such thing\n") == [
        "! LaTeX Error: no such thing"
    ]


def test_without_tex_the_packages_are_named_and_nothing_is_built(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(MlsysimError) as refused:
        printed_book.build()
    for part in ("latexmk", "pdflatex", "make pdf", *printed_book.PACKAGES):
        assert part in str(refused.value)
    assert not (root / "build").exists()


# With TeX. `make pdf` runs these after it has made the pages.


@pytest.fixture(scope="module")
def book() -> Path:
    """The project's book, set now."""
    if gone := printed_book.missing():
        pytest.skip(f"TeX is not complete: no {', '.join(gone)}")
    return made()


def made() -> Path:
    """The book, made by the command, whose libraries may warn of their own future."""
    command = [sys.executable, "-m", "mlsysim", "book", "--pdf"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert done.stdout == "built build/pdf/book.pdf\n"
    return REPOSITORY / "build" / "pdf" / "book.pdf"


@pytest.fixture(scope="module")
def text(book: Path) -> str:
    """The text of the book, with single blanks."""
    if not shutil.which("pdftotext"):
        pytest.skip("no pdftotext; it is in Debian's poppler-utils")
    shown = subprocess.run(["pdftotext", book, "-"], capture_output=True, text=True, check=True)
    return " ".join(shown.stdout.split())


@pytest.mark.print
def test_the_printed_book_has_the_numbers_that_its_chapters_quote(text: str) -> None:
    quotes = read_pages(REPOSITORY / "results" / "quotes.json")
    assert len(quotes) > 7
    for chapter, found in quotes.items():
        for quote in found:
            number = quote["printed"].split()[0]
            if "×" not in number:  # a power of ten is set higher than the line
                assert number in text, (chapter, quote)


@pytest.mark.print
def test_the_printed_book_has_every_chapter_figure_and_table_and_no_code(text: str) -> None:
    for chapter in sorted((REPOSITORY / "chapters").glob("[0-9]*.md")):
        source = chapter.read_text("utf-8")
        title = re.search(r"^# (.*)$", source, re.MULTILINE)
        assert title is not None
        number = int(chapter.name[:2])
        assert f"Chapter {number} {title[1]}".upper() in text.upper()
        for word, kind in (("Fig.", "figure"), ("Table", "table")):
            for i in range(1, source.count(f":::{{{kind}}}") + 1):
                assert f"{word} {number}.{i}: " in text
    assert "save_figure" not in text
    assert "Preface" in text
    assert text.count("Bibliography") < 12  # contents, heading, and the heads of its pages


@pytest.mark.print
def test_the_same_book_has_the_same_bytes(book: Path) -> None:
    first = book.read_bytes()
    assert made().read_bytes() == first
