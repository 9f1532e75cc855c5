"""A chapter in JupyterLab: opened by a double click, run, edited, saved, and made by a build."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import jupytext
import pytest
from playwright.sync_api import Page, expect

from mlsysim import read
from tests.pipeline.conftest import Clone

pytestmark = pytest.mark.notebook

CHAPTER = "07_a_run"
SENTENCE, LINE = " It was edited.", "added = 1"


def wait_until(page: Page, holds: Callable[[], bool]) -> None:
    for _ in range(150):
        if holds():
            return
        page.wait_for_timeout(200)


def open_chapter(lab: Page) -> None:
    lab.locator(".jp-DirListing-item", has_text=CHAPTER).dblclick()
    expect(lab.locator(".jp-Notebook")).to_contain_text("A run, not a step")
    expect(lab.get_by_text("| Idle")).to_be_visible()


def test_a_chapter_is_run_edited_and_saved_and_a_build_makes_that_edit_alone(
    book: Clone, lab: Page
) -> None:
    file = book.path / f"chapters/{CHAPTER}.md"
    before = file.read_text(encoding="utf-8")
    cells = jupytext.reads(before, fmt="md:myst").cells
    text, code = (
        next(each.source for each in cells if each.cell_type == kind)
        for kind in ("markdown", "code")
    )
    edited = before.replace(text, text + SENTENCE).replace(code, f"{code}\n{LINE}")

    open_chapter(lab)

    # Run: the tables and figures are those of the build, to the byte.
    for kind in ("tables", "figures"):
        shutil.rmtree(book.path / "results" / kind / CHAPTER)
    lab.get_by_role("menuitem", name="Run", exact=True).click()
    lab.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    wait_until(lab, lambda: not book.changed())
    assert book.changed() == []

    # Edit a sentence and a cell, fold a section in, and save.
    lab.locator(".jp-MarkdownCell .jp-InputPrompt").first.click()
    lab.keyboard.press("Enter")
    lab.keyboard.press("Control+End")
    lab.keyboard.type(SENTENCE)
    lab.keyboard.press("Shift+Enter")
    lab.locator(".jp-CodeCell .cm-content").first.click()
    lab.keyboard.press("Control+End")
    lab.keyboard.type(f"\n{LINE}")
    lab.locator(".jp-MarkdownCell .jp-InputPrompt").nth(1).click()
    lab.keyboard.press("ArrowLeft")
    expect(lab.locator(".jp-MarkdownCell.jp-mod-selected")).to_contain_text("hidden")
    lab.keyboard.press("Control+s")
    wait_until(lab, lambda: file.read_text(encoding="utf-8") != before)
    assert file.read_text(encoding="utf-8") == edited
    assert book.changed() == [f" M chapters/{CHAPTER}.md"]

    # A build makes that chapter, and what Jupyter left behind changes nothing.
    assert (book.path / "chapters/.ipynb_checkpoints").is_dir()
    built = book.build()
    assert (built.solved, built.executed, built.page) == ([], [CHAPTER], True)
    assert book.build().nothing
    assert book.mlsysim("check").returncode == 0


def test_a_console_beside_the_notebook_shows_the_text_with_its_numbers(lab: Page) -> None:
    open_chapter(lab)
    lab.locator(".jp-Notebook").click(button="right")
    lab.get_by_role("menuitem", name="New Console for Notebook").click()
    lab.locator(".jp-CodeConsole-input .cm-content").click()
    lab.keyboard.type(f'from mlsysim import preview\npreview("{CHAPTER}")')
    lab.keyboard.press("Shift+Enter")
    time = read("DenseLLMPretrainingStep").quote("step_time in s as .2f")
    shown = lab.locator(".jp-CodeConsole")
    expect(shown).to_contain_text(f"The reference step takes {time}.")
