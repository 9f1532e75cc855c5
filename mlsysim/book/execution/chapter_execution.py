"""Executing a chapter: its code cells in a fresh kernel, their outputs in build/executed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsysim import errors, files, paths
from mlsysim.artifacts.code import check_imported
from mlsysim.book.execution import _chapter_kernels
from mlsysim.book.products.product_files import (
    on_disk,
    print_file,
    print_record,
    product_files,
)
from mlsysim.book.source import cells
from mlsysim.book.source.cells import Cell, Uses, place
from mlsysim.book.source.front_matter import FrontMatter
from mlsysim.errors import MlsysimError
from mlsysim.runtime import turns
from mlsysim.runtime import used as using

__all__ = ["Ran", "execute", "execute_all", "executed", "run_cells"]

# Notes what it imports of the project, from the start.
_HOST = """\
import os, sys
from mlsysim.runtime import loaded
loaded.watch(os.environ["MLSYSIM_ROOT"])
from mlsysim.book.execution._host import main
main(int(sys.argv[1]), *sys.argv[2:])"""

_SECONDS = 600  # that one cell may take
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}")
_FRAME = re.compile(r"Cell In\[(\d+)\], line (\d+)")
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Ran:
    """A chapter that was executed: what became of each product, and what its cells used."""

    made: list[tuple[str, str]]
    used: using.Used


def executed(chapter: str) -> Path:
    """The code cells of the chapter with their outputs, as a notebook."""
    return paths.build() / "executed" / f"{chapter}.ipynb"


def execute(chapter: str) -> list[tuple[str, str]]:
    """Run the code cells of chapters/CHAPTER.md and write build/executed/CHAPTER.ipynb.

    Returns each table and figure file with what became of it: "new", "re-made", "same", or
    "removed" if no cell makes it any longer. Raises MlsysimError with
    ``chapters/x.md:LINE: ErrorType: message`` for a cell that fails, and InputError for front
    matter that does not make a notebook.
    """
    for _, result in execute_all([chapter], 1):
        if isinstance(result, MlsysimError):
            raise result
        return result.made
    raise MlsysimError(f"chapters/{chapter}.md: its execution was ended from outside")


def execute_all(chapters: list[str], at_once: int) -> Iterator[tuple[str, Ran | MlsysimError]]:
    """Execute chapters, `at_once` at a time; yields each as it ends, with what it did.

    A chapter that fails does not stop the others: its error is yielded. Each runs in a kernel of
    its own, all of them forked from one process that has imported what they import.
    """
    if not chapters:
        return
    command = [sys.executable, "-P", "-c", _HOST, str(at_once), *chapters]
    with subprocess.Popen(
        command,
        env=_environment(),
        stdin=subprocess.PIPE,  # its end tells the other process that this one is gone
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as host:
        left = set(chapters)
        for line in host.stdout or ():
            told = json.loads(line)
            left.discard(told["chapter"])
            if "error" in told:
                yield told["chapter"], getattr(errors, told["kind"])(told["error"])
            else:
                made = [(path, what) for path, what in told["made"]]
                yield told["chapter"], Ran(made, told["used"])
    for chapter in sorted(left):
        yield chapter, MlsysimError(f"chapters/{chapter}.md: its execution was ended from outside")


def run_cells(chapter: str) -> Ran:
    """What `execute` does, in a process from which a kernel can be forked.

    The notebook holds code cells alone, so that an edit of the prose changes nothing here; two
    executions give the same bytes.
    """
    text = cells.source(chapter)
    FrontMatter(chapter, text).check_notebook()
    sources, uses = cells.code_cells(text), cells.uses(chapter, text)
    before = {path: path.read_bytes() for path in on_disk(chapter)}
    notebook, used = _run(chapter, sources)
    content = _content(chapter, notebook, sources)
    made = [
        *_made(chapter, uses, before),
        *_remove(set(before) - set(product_files(uses.tables, uses.figures))),
    ]
    check_imported()
    files.write(executed(chapter), content)
    return Ran(made, used)


def _run(chapter: str, sources: list[Cell]) -> tuple[Any, using.Used]:
    """The notebook of these cells, executed in a kernel that is forked from this process."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook: Any = nbformat.from_dict(  # type: ignore[no-untyped-call]
        {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": _unexecuted(sources)}
    )
    with (
        tempfile.TemporaryDirectory(dir=_short()) as settings,
        _chapter_kernels.kernel(Path(settings), paths.chapters()) as manager,
    ):
        client = NotebookClient(
            notebook,
            km=manager,
            timeout=_SECONDS,
            record_timing=False,
        )
        reached = [0]
        client.on_cell_execute = lambda cell, cell_index: reached.append(cell_index)  # noqa: ARG005
        try:
            client.execute(cleanup_kc=False)
        except CellExecutionError as error:
            line, *callers = _lines(sources, error.traceback, reached[-1])
            called = ", ".join(f"called from line {each}" for each in callers)
            told = f"{_said(error)} ({called})" if called else _said(error)
            raise MlsysimError(f"{place(chapter, line)}: {told}") from None
        except CellTimeoutError:
            line = sources[reached[-1]].line
            raise MlsysimError(
                f"{place(chapter, line)}: the cell ran for more than {_SECONDS} s"
            ) from None
        except DeadKernelError:
            line = sources[reached[-1]].line
            raise MlsysimError(f"{place(chapter, line)}: the cell ended its own process") from None
        return notebook, using.noted(Path(settings) / "used")


def _short() -> str | None:
    """A folder for sockets, whose path must stay below some hundred bytes; usually Python's own."""
    return None if len(os.fsencode(tempfile.gettempdir())) < 70 else "/tmp"


def _unexecuted(sources: list[Cell]) -> list[dict[str, Any]]:
    return [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "metadata": {},
            "source": cell.source,
            "execution_count": None,
            "outputs": [],
        }
        for number, cell in enumerate(sources, start=1)
    ]


def _environment() -> dict[str, str]:
    """The environment of chapters: this root, this package, and no person's own settings."""
    search = os.pathsep.join(
        filter(None, [str(paths.PACKAGE.parent), os.environ.get("PYTHONPATH")])
    )
    return {
        **os.environ,
        "MLSYSIM_ROOT": str(paths.root()),
        turns.BUILD: os.environ.get(turns.BUILD, "1"),  # it reads what is fresh
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",  # what a kernel sets by itself
        # A process with threads should not be forked, and chapters run side by side anyway.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # nobody debugs here, so no advice on it
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": search,
    }


def _said(error: Any) -> str:
    """The type and the message of what a cell raised."""
    value = _COLOR.sub("", str(error.evalue)).strip()
    return f"{error.ename}: {value}" if value else str(error.ename)


def _lines(sources: list[Cell], traceback: str, reached: int) -> list[int]:
    """The line of the innermost frame that lies in a cell, then those that led to it.

    It is that of the cell, if no frame is told.
    """
    counted = [cell for cell in sources if cell.source.strip()]  # empty cells are never run
    frames = _FRAME.findall(_COLOR.sub("", traceback))
    lines = [counted[int(number) - 1].line + int(line) - 1 for number, line in frames]
    return lines[::-1] or [sources[reached].line]


def _content(chapter: str, notebook: Any, sources: list[Cell]) -> str:
    """The notebook as text, the same on each execution."""
    import nbformat

    for cell, source in zip(notebook.cells, sources, strict=True):
        cell.metadata = {}
        kept = []
        for output in cell.outputs:
            if output.output_type == "stream":
                told = output.text.strip().replace("\n", "\n    ")
                print(f"{place(chapter, source.line)}: {told}", file=sys.stderr, flush=True)
                if output.name == "stderr":
                    continue  # warnings are for the author, not for the page
            shown = output.get("text", "") + "".join(map(str, output.get("data", {}).values()))
            if _ADDRESS.search(shown):
                raise MlsysimError(
                    f"{place(chapter, source.line)}: the cell shows an address in memory, which "
                    "differs each time; end its last line with a semicolon"
                )
            kept.append(output)
        cell.outputs = kept
    notebook.metadata = {}
    return str(nbformat.writes(notebook)) + "\n"  # type: ignore[no-untyped-call]


def _made(chapter: str, uses: Uses, before: dict[Path, bytes]) -> list[tuple[str, str]]:
    """What became of each declared file. Raises MlsysimError for one that no cell made."""
    made = []
    for path in product_files(uses.tables, uses.figures):
        if not path.is_file():
            name = f"{chapter}/{path.name.partition('.')[0]}"
            line = {**uses.tables, **uses.figures}[name]
            raise MlsysimError(
                f"{place(chapter, line)}: {name!r} was not saved: the call did not run"
            )
        old = before.get(path)
        what = "new" if old is None else "same" if old == path.read_bytes() else "re-made"
        made.append((paths.shown(path), what))
    return made


def _remove(orphans: set[Path]) -> list[tuple[str, str]]:
    """Remove products that no cell makes, with what was made of them for print."""
    for path in sorted(orphans):
        path.unlink()
        if path.suffix == ".svg":
            for made in (print_file, print_record):
                made(f"{path.parent.name}/{path.stem}").unlink(missing_ok=True)
    return [(paths.shown(path), "removed") for path in sorted(orphans)]
