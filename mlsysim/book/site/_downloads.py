"""What a reader can take away: artifacts, notebooks, and the data of every figure and table."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from mlsysim import files, paths
from mlsysim.book.pages.page_sources import page
from mlsysim.book.products.product_files import figure_files, print_file, table_files
from mlsysim.book.site import _notebooks
from mlsysim.book.source.cells import chapters
from mlsysim.book.source.product_uses import Product
from mlsysim.declarations.documents import names

__all__ = ["FOLDERS", "box", "copies", "copy", "remove_left_behind"]

# The folders of the built book that hold nothing but these files.
FOLDERS = ("artifacts", "figures", "tables")


def copies() -> dict[str, Path]:
    """Every file that is copied beside the pages: where it goes in the book, and its source."""
    found = {
        f"artifacts/{path.name}": path
        for name in names("Scenarios")
        for path in (paths.artifact(name), paths.table(name))
        if path.is_file()
    }
    for chapter in chapters():
        notebook = _notebooks.resolved(chapter)
        found[f"_sources/{notebook.name}"] = notebook
        for product in page(chapter).products:
            found |= {where: path for _, where, path in _files(product)}
    return found


def _files(product: Product) -> list[tuple[str, str, Path]]:
    """The files of a figure or table: what each is, where it goes, its source."""
    if product.kind == "figures":
        told = figure_files(product.name)
        named = {"CSV": told["csv"], "SVG": told["svg"], "PDF": print_file(product.name)}
    else:
        named = {"CSV": table_files(product.name)["csv"]}
    return [
        (what, f"{product.kind}/{product.name}{path.suffix}", path)
        for what, path in named.items()
        if path.is_file()
    ]


def box(chapter: str) -> nodes.Node:
    """The box at the end of a chapter's page."""
    made = nodes.admonition("", nodes.title("", "Data and notebook"), classes=["downloads"])
    notebook = f"_sources/{chapter}.ipynb"
    made += nodes.paragraph(
        "",
        "",
        nodes.Text("This chapter as a notebook, with its numbers filled in: "),
        _link(f"{chapter}.ipynb", notebook),
        nodes.Text("."),
    )
    listed = nodes.bullet_list("", bullet="-")
    for product in page(chapter).products:
        line = nodes.paragraph("", "", _named(chapter, product), nodes.Text(": "))
        for number, (what, where, _) in enumerate(_files(product)):
            line += [nodes.Text(", ")] * bool(number)
            line += _link(what, where)
        listed += nodes.list_item("", line)
    if listed.children:
        made += nodes.paragraph("", "The data of its figures and tables, with every digit:")
        made += listed
    return made


def _link(text: str, where: str) -> nodes.reference:
    """A link to a file beside the pages of the chapters."""
    return nodes.reference("", text, internal=True, refuri=where)


def _named(chapter: str, product: Product) -> nodes.Node:
    """The figure or table by its number, or by its name if the chapter shows it under none."""
    if not product.label:
        return nodes.literal("", product.stem)
    return addnodes.pending_xref(
        "",
        nodes.inline("", product.label),
        refdoc=chapter,
        refdomain="std",
        reftype="numref",
        reftarget=product.label,
        refexplicit=False,
        refwarn=True,
    )


def remove_left_behind(app: Sphinx, exception: Exception | None) -> None:
    """Remove what pages that are gone left in the book: the page, its source, its pictures."""
    if exception or app.builder.format != "html":
        return
    outdir, pictures = Path(app.outdir), {name for _, name in app.env.images.values()}
    kept = {outdir / where for where in copies()}
    gone = [path for path in (outdir / "_images").glob("*") if path.name not in pictures]
    offered = {outdir / "_downloads" / where for _, where in app.env.dlfiles.values()}
    gone += [p for p in (outdir / "_downloads").rglob("*") if p.is_file() and p not in offered]
    gone += [outdir / ".buildinfo.bak"]  # Sphinx's, of the settings before
    for folder in FOLDERS:
        gone += [p for p in (outdir / folder).rglob("*") if p.is_file() and p not in kept]
    for source in (outdir / "_sources").rglob("*.*"):
        name = source.relative_to(outdir / "_sources").with_suffix("").as_posix()
        if name not in app.env.found_docs:
            gone += [source, outdir / f"{name}.html"]
            gone += [Path(app.doctreedir) / f"{name}.doctree"]
            gone += [outdir.parent / "jupyter_execute" / f"{name}.ipynb"]  # MyST-NB's
    for path in gone:
        path.unlink(missing_ok=True)
        if path.parent.is_dir() and not any(path.parent.iterdir()):
            path.parent.rmdir()


def copy(app: Sphinx, exception: Exception | None) -> None:
    """Put the artifacts, notebooks and data that pages link to beside the pages."""
    if exception or app.builder.format != "html":
        return
    for where, source in copies().items():
        files.write(Path(app.outdir) / where, source.read_bytes())
