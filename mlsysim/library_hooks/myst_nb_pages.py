"""MyST-NB: the lines of warnings, and the style sheet."""

from __future__ import annotations

from typing import Any

from myst_nb.sphinx_ext import add_global_html_resources
from sphinx.application import Sphinx

from mlsysim.library_hooks import changed

__all__ = ["mend_source_map", "write_style_sheet"]


def mend_source_map(notebook: Any, lines: list[str]) -> None:
    """Let warnings about a notebook that was read from these lines name the right one.

    Written for MyST-NB 1.4.0, which counts a text cell from the empty lines before it, which it
    strips, and counts one line too many; the two cancel where there is one empty line. Buys the
    line of every warning of Sphinx.
    """
    begins = notebook.metadata.get("source_map")
    if begins is None or len(begins) != len(notebook.cells):
        raise changed("myst-nb", "1.4.0", "a source_map with a line for each cell")
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            while not lines[begins[index]].strip():
                begins[index] += 1
            begins[index] -= 1


def write_style_sheet(app: Sphinx) -> None:
    """Write MyST-NB's style sheet now, and not at the end of the build.

    Written for MyST-NB 1.4.0. Sphinx names the digest of a style sheet in pages only if it exists.
    Buys that a book that was built again has the bytes of a first build.
    """
    add_global_html_resources(app, None)
