"""Chapters as notebooks: the cells of the chapter with the outputs of the executed one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlsysim import files, paths
from mlsysim.book.execution.chapter_execution import executed
from mlsysim.book.pages.page_sources import Page
from mlsysim.book.source.cells import chapters
from mlsysim.book.source.myst import EXTENSIONS
from mlsysim.errors import MlsysimError

__all__ = ["resolved", "with_outputs", "write_resolved"]


def resolved(chapter: str) -> Path:
    """The chapter as a notebook to take away: numbers in the text, outputs in the cells."""
    return paths.build() / "notebooks" / f"{chapter}.ipynb"


def with_outputs(page: Page, text: str | None = None) -> Any:
    """The page as a notebook; `text` is its source if not that of the file.

    Raises MlsysimError if the cells are not those that were executed.
    """
    from myst_nb.core.read import read_myst_markdown_notebook
    from myst_parser.config.main import MdParserConfig

    from mlsysim.library_hooks.myst_nb_pages import mend_source_map

    source = page.text if text is None else text
    config = MdParserConfig(enable_extensions=set(EXTENSIONS))
    notebook = read_myst_markdown_notebook(source, config=config, add_source_map=True)
    mend_source_map(notebook, source.split("\n"))
    if page.name in chapters():
        _paste_outputs(page.name, notebook)
    return notebook


def _paste_outputs(chapter: str, notebook: Any) -> None:
    import nbformat

    try:
        ran: Any = nbformat.read(executed(chapter), as_version=4)  # type: ignore[no-untyped-call]
    except (FileNotFoundError, ValueError):
        raise MlsysimError(
            f"chapters/{chapter}.md is not executed yet; run: mlsysim execute {chapter}"
        ) from None
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if [cell.source.rstrip() for cell in cells] != [cell.source for cell in ran.cells]:
        raise MlsysimError(
            f"chapters/{chapter}.md has other code cells than were executed; "
            f"run: mlsysim execute {chapter}"
        )
    for cell, done in zip(cells, ran.cells, strict=True):
        cell.outputs, cell.execution_count = done.outputs, done.execution_count


def write_resolved(page: Page) -> None:
    """Write build/notebooks/CHAPTER.ipynb."""
    import nbformat

    notebook = with_outputs(page, page.plain())
    notebook.metadata = {
        key: value for key, value in notebook.metadata.items() if key == "kernelspec"
    }
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id = f"cell-{number}"
    content = str(nbformat.writes(notebook))  # type: ignore[no-untyped-call]
    files.write(resolved(page.name), content + "\n")
