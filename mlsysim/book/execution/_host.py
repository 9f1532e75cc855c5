"""The process that executes chapters, started as COMMAND says, with JOBS CHAPTER...

It imports what the chapters import, once, then forks for each of them. chapter_execution starts it,
with an environment that does not depend on who builds, and reads a line of JSON for each chapter.
It ends when its standard input does.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mlsysim import files, paths
from mlsysim.book.execution import _chapter_kernels
from mlsysim.book.execution.chapter_execution import run_cells
from mlsysim.book.source import cells
from mlsysim.errors import MlsysimError
from mlsysim.library_hooks import jupyter_kernels
from mlsysim.runtime import loaded, turns


def main(jobs: int, *chapters: str) -> None:
    """Execute the chapters, `jobs` at a time, and print what became of each as a line of JSON."""
    told = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what anything else prints is no answer
    with turns.at_work():
        _preload(chapters)
        for chapter, result in _chapter_kernels.each(run_cells, [*chapters], jobs, sys.stdin):
            answer = {"chapter": chapter, **_answer(chapter, result)}
            print(json.dumps(answer), file=told, flush=True)


def _answer(chapter: str, result: Any) -> dict[str, Any]:
    if isinstance(result, MlsysimError):
        return {"error": str(result), "kind": type(result).__name__}
    if isinstance(result, OSError):
        error = f"chapters/{chapter}.md: {files.unwritten(result)}"
        return {"error": error, "kind": "MlsysimError"}
    if isinstance(result, Exception):  # a defect of ours, or a killed process
        notes = "".join(getattr(result, "__notes__", ()))
        return {"error": f"{result}\n{notes}".strip(), "kind": "MlsysimError"}
    return {"made": result.made, "used": result.used}


def _preload(chapters: tuple[str, ...]) -> None:
    """Import the kernel and what the chapters import, for all forks to come.

    An import that fails is left to the cell, which tells its line.
    """
    jupyter_kernels.import_what_kernels_import()
    for module, name in sorted({each for chapter in chapters for each in _imported(chapter)}):
        with suppress(Exception):
            if not _is_of_project(module):
                getattr(importlib.import_module(module), name)
    if "mlsysim.book.products.figures" in sys.modules:
        _draw()


def _is_of_project(module: str) -> bool:
    """Whether a module is none of the package or a library: each kernel notes that it uses it."""
    top = module.partition(".")[0]
    spec = importlib.util.find_spec(top)
    places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
    return top != paths.PACKAGE.name and any(map(loaded.is_ours, places))


def _imported(chapter: str) -> Iterator[tuple[str, str]]:
    """The modules that the cells of a chapter import, each with a name in it."""
    for cell in cells.code_cells(files.text(paths.chapters() / f"{chapter}.md")):
        with suppress(SyntaxError):
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.Import):
                    yield from ((alias.name, "__name__") for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    yield from ((node.module, alias.name) for alias in node.names)


def _draw() -> None:
    """Draw once, which loads fonts and writers; the settings of matplotlib stay as they are."""
    import matplotlib as mpl

    from mlsysim.book.products.figures import new_figure

    with mpl.rc_context():
        figure, axes = new_figure(width=1, height=1)
        axes.plot([0, 1], [0, 1])
        for kind in ("svg", "pdf"):
            figure.savefig(io.BytesIO(), format=kind)
