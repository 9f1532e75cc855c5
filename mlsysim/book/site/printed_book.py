"""The book for print: LaTeX from Sphinx, with the figures as PDF, and latexmk to set it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from mlsysim import files, paths
from mlsysim.book.site.html_book import run_sphinx
from mlsysim.declarations import drafts
from mlsysim.errors import MlsysimError

__all__ = ["PACKAGES", "build", "columns", "complaints", "missing", "register"]

# What sets the book, and the Debian packages that have it. poppler-utils reads it in the tests.
PROGRAMS = ("latexmk", "pdflatex", "kpsewhich")
STYLES = ("tabulary.sty", "tgtermes.sty", "txfonts.sty", "ulem.sty", "varwidth.sty")
PACKAGES = (
    *("latexmk", "texlive-latex-recommended", "texlive-latex-extra", "texlive-fonts-recommended"),
    *("texlive-plain-generic", "tex-gyre", "poppler-utils"),
)
_DATE = "0"  # seconds of 1970 to which TeX's clock is set, so that the same book has the same bytes
# Lines of TeX's log that a reader would see on the page.
_SEEN = re.compile(
    r"^(! .*|Overfull \\hbox \((?P<width>[\d.]+)pt too wide\).*"
    r"|(LaTeX|Package \S+) Warning: (?=.*([Uu]ndefined|multiply|not found|[Mm]issing)).*"
    r"|Missing character: .*)$",
    re.MULTILINE,
)
# The generated pages, which have a link for every number, are for the screen alone; Sphinx misses
# them where the first page lists them.
_GENERATED = "reference/"
_LEFT_OUT = re.compile(rf"toctree glob pattern '{_GENERATED}.*' didn't match any documents")
_WIDTH = 10.0  # points that a line may stick out
_LETTERS = 86  # of the text font that a line of a table holds


def missing() -> list[str]:
    """The programs, or else the styles of LaTeX, that are needed and not there."""
    programs = [name for name in PROGRAMS if not shutil.which(name)]
    return programs or [name for name in STYLES if not _has(name)]


def _has(style: str) -> bool:
    return not subprocess.run(["kpsewhich", style], capture_output=True, check=False).returncode


def build() -> Path:
    """Write build/pdf/book.pdf, from chapters that have been executed; returns its path.

    The bytes depend on the book and the version of TeX alone. Raises MlsysimError if TeX is
    missing, for every warning of Sphinx, and for what would look wrong: a character without a
    glyph, a reference that leads nowhere, a line that runs off the page. Drafts are refused.
    """
    drafts.refuse()
    gone = missing()
    if gone:
        raise MlsysimError(
            f"no {' and no '.join(gone)}; `make pdf` installs them as root, or install the Debian "
            f"packages {' '.join(PACKAGES)}"
        )
    out = paths.build() / "latex"
    shutil.rmtree(out, ignore_errors=True)
    told = run_sphinx(out, "latex").splitlines()
    warnings = "\n".join(line for line in told if not _LEFT_OUT.search(line))
    if warnings:
        raise MlsysimError("the book for print has warnings:\n" + warnings)
    _set(out)
    made = paths.build() / "pdf" / "book.pdf"
    files.write(made, (out / "book.pdf").read_bytes())
    return made


def _set(folder: Path) -> None:
    """Run TeX as often as it needs. Raises MlsysimError with what its log complains of."""
    clock = {"SOURCE_DATE_EPOCH": _DATE, "FORCE_SOURCE_DATE": "1", "max_print_line": "1000"}
    done = subprocess.run(
        ["latexmk", "-pdf", "-interaction=nonstopmode", "-halt-on-error", "-silent", "book.tex"],
        cwd=folder,
        env=os.environ | clock,
        capture_output=True,
        check=False,
    )
    log = folder / "book.log"
    text = log.read_text("utf-8", "replace") if log.is_file() else done.stdout.decode()
    wrong = complaints(text)
    if done.returncode or wrong:
        told = "\n".join(wrong) or done.stderr.decode("utf-8", "replace")
        raise MlsysimError(f"TeX is not content; see {paths.shown(log)}\n{told}")


def complaints(log: str) -> list[str]:
    """What TeX's log says that a reader would see on the page; errors alone if there are any."""
    found = [line[0] for line in _SEEN.finditer(log) if float(line["width"] or _WIDTH + 1) > _WIDTH]
    return [line for line in found if line.startswith("!")] or found


class PrintedFigures(SphinxPostTransform):
    """In print a figure is the PDF that was drawn together with the SVG of the page."""

    default_priority = 5  # before Sphinx decides which pictures it can use
    formats = ("latex",)

    def run(self, **_options: Any) -> None:
        """Replace the SVG of the chapters' figures. Raises MlsysimError if a PDF is missing."""
        figures = (paths.results() / "figures").resolve()
        for node in self.document.findall(nodes.image):
            svg = (Path(self.env.srcdir) / node["uri"]).resolve()
            if svg.suffix != ".svg" or not svg.is_relative_to(figures):
                continue
            pdf = paths.build() / "figures" / svg.relative_to(figures).with_suffix(".pdf")
            if not pdf.is_file():
                raise MlsysimError(f"{paths.shown(pdf)} is missing; run: snakemake all")
            uri = os.path.relpath(pdf, self.env.srcdir)
            node["uri"], node["candidates"] = uri, {"*": uri}
            self.env.images.add_file(self.env.docname, uri)


def for_print(app: Sphinx, page: nodes.document) -> None:
    """In print there is no code of cells, and tables keep to the page."""
    if app.builder.format != "latex":
        return
    for cell in list(page.findall(nodes.container)):
        if "tag_hide-input" in cell["classes"] and cell.parent is not None:
            cell.parent.remove(cell)
    for table in list(page.findall(nodes.table)):
        parent, place, spec = table.parent, table.parent.index(table), columns(table)
        if "X" not in spec:  # else a cell would be given its share of the page, however long
            parent.insert(place + 1, _raw(r"\endgroup"))
            parent.insert(place, _raw(r"\begingroup\renewcommand{\sphinxcolwidth}[2]{\linewidth}"))
            place += 1
        parent.insert(place, addnodes.tabular_col_spec(spec=spec))
    if app.env.docname == app.config.root_doc:
        _make_preface(next(page.findall(nodes.section)))


def _make_preface(book: nodes.section) -> None:
    """What the first page says becomes a preface, and what it lists the chapters.

    It lists them inside its last section, which would make them sections of it. LaTeX numbers every
    chapter, HTML only those of a table of contents that says so.
    """
    lists = [(each.parent, each["numbered"]) for each in book.findall(addnodes.toctree)]
    for listed, _ in lists:
        listed.parent.remove(listed)
    preface = nodes.section("", nodes.title("", "Preface"), ids=["preface"])
    for node in book.children[1:]:
        book.remove(node)
        preface += node
    book += _raw(r"\setcounter{secnumdepth}{-1}")
    book += preface
    for listed, numbered in lists:
        book += _raw(rf"\setcounter{{secnumdepth}}{{{2 if numbered else -1}}}")
        book += listed


def _raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="latex")


def columns(table: nodes.table) -> str:
    """The columns of a table for LaTeX: as wide as their text, or shares of the page's width.

    Numbers stand at the right, as they do on the screen.
    """
    rows = [
        [(entry.astext(), "text-right" in entry["classes"]) for entry in row.findall(nodes.entry)]
        for row in table.findall(nodes.row)
    ]
    cells = [*zip(*rows, strict=True)]
    right = [column[-1][1] for column in cells]
    widths = [max(len(text) for text, _ in column) for column in cells]
    if sum(widths) + 2 * len(widths) <= _LETTERS:
        return "".join("r" if each else "l" for each in right)
    # What is long wraps; what is short does not, for a broken number or name is hard to read.
    shares = [min(width, _LETTERS // 2) + 4 for width in widths]
    return "".join(
        (r">{\raggedleft\arraybackslash}" if each else "") + rf"\X{{{share}}}{{{sum(shares)}}}"
        for each, share in zip(right, shares, strict=True)
    )


def leave_out(app: Sphinx) -> None:
    """Leave the generated pages unread for print."""
    if app.builder.format == "latex":
        app.config.exclude_patterns += [f"{_GENERATED}**"]


def register(app: Sphinx) -> None:
    """Register with Sphinx what print needs."""
    app.add_post_transform(PrintedFigures)
    app.connect("doctree-read", for_print, priority=100)  # before Sphinx notes what it holds
    app.connect("builder-inited", leave_out)
