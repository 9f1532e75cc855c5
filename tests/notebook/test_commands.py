"""The commands of CONTRIBUTING.md, "How to work in a notebook": one chapter without JupyterLab."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.pipeline.conftest import Clone

pytestmark = pytest.mark.notebook

CHAPTER = "07_a_run"
SECTION = (
    (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md")
    .read_text(encoding="utf-8")
    .partition("## How to work in a notebook")[2]
    .partition("\n## ")[0]
)
TO_NOTEBOOK, BACK, ALONE = re.findall(r"^jupytext .*", SECTION, re.MULTILINE)


def run(book: Clone, command: str, folder: Path) -> None:
    """A command of that page, in another folder."""
    words = [str(book.path / each) if "/" in each else each for each in shlex.split(command)]
    subprocess.run(words, cwd=folder, env=book.environment(), check=True, capture_output=True)


def remove_products(book: Clone) -> None:
    for kind in ("tables", "figures"):
        shutil.rmtree(book.path / "results" / kind / CHAPTER)


def test_a_chapter_alone_from_any_folder_gives_what_the_build_gives(
    book: Clone, tmp_path: Path
) -> None:
    remove_products(book)
    run(book, ALONE, tmp_path)
    assert book.changed() == []
    assert book.build().nothing


def test_a_notebook_beside_the_chapter_is_run_and_taken_back_with_its_edit_alone(
    book: Clone, tmp_path: Path
) -> None:
    chapter = book.path / f"chapters/{CHAPTER}.md"
    before, file = chapter.read_text(encoding="utf-8"), chapter.with_suffix(".ipynb")
    run(book, TO_NOTEBOOK, tmp_path)
    notebook = nbformat.read(file, as_version=4)

    # Run, in whatever folder an editor starts the kernel.
    remove_products(book)
    NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert book.changed() == []
    executed = nbformat.read(book.path / f"build/executed/{CHAPTER}.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.outputs for cell in cells] == [cell.outputs for cell in executed.cells]

    # Edit and save, with what VS Code writes of its own.
    notebook.metadata.kernelspec.display_name = ".venv (3.11.7)"
    for cell in notebook.cells:
        cell.metadata["vscode"] = {"languageId": "python"}
    old = cells[0].source
    cells[0].source = new = f"{old}\nadded = 1"
    nbformat.write(notebook, file)
    run(book, BACK, tmp_path)
    assert chapter.read_text(encoding="utf-8") == before.replace(old, new)
    assert book.changed() == [f" M chapters/{CHAPTER}.md"]
