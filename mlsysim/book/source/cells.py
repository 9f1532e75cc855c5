"""The code cells of a chapter, and what their calls read and make, known before anything runs."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import lru_cache

from mlsysim import files, paths
from mlsysim.book.source._code_cells import Cell, code_cells, remember
from mlsysim.book.source.yaml_slips import line_of, reason
from mlsysim.errors import InputError

__all__ = [
    "Cell",
    "Uses",
    "chapters",
    "code_cells",
    "place",
    "remember",
    "source",
    "tree",
    "uses",
]

_MAGIC = re.compile(r"^([ \t]*)[%!].*$", re.MULTILINE)
_INVISIBLE = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029\ufeff]")
# A directive or a cell that opens inside of a cell which should have been closed.
_FENCE = re.compile(r"^(?:`{3,}|~{3,}|:{3,})\{", re.MULTILINE)
_PRODUCT = re.compile(r"[a-z0-9_]+")
# The calls that make the edges of the graph, and the field of Uses each one fills.
_CALLS = {"read": "reads", "save_table": "tables", "save_figure": "figures"}


@dataclass(frozen=True)
class Uses:
    """Names that a chapter's calls give literally, each with the line of the first call.

    `reads` are scenario names; `tables` and `figures` are products, ``"01_reference_step/ledger"``.
    """

    reads: dict[str, int] = field(default_factory=dict)
    tables: dict[str, int] = field(default_factory=dict)
    figures: dict[str, int] = field(default_factory=dict)


def chapters() -> list[str]:
    """The stems of chapters/NN_*.md, sorted: the chapters of the book in their order."""
    return sorted(path.stem for path in paths.chapters().glob("[0-9][0-9]_*.md"))


def place(chapter: str, line: int) -> str:
    """A line of a chapter as messages print it, ``chapters/01_reference_step.md:12``."""
    return f"chapters/{chapter}.md:{line}"


def source(chapter: str) -> str:
    """The text of a page in chapters/.

    Raises InputError with ``chapters/x.md:LINE`` for a byte-order mark, and for invisible
    characters that some of the tools that read a chapter take for the end of a line; and for a page
    that is empty, which Sphinx cannot lay out.
    """
    text = files.text(paths.chapters() / f"{chapter}.md", mark=True)
    if not text.strip():
        raise InputError(f"chapters/{chapter}.md: empty; begin with # TITLE, or remove the file")
    if found := _INVISIBLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise InputError(
            f"{place(chapter, line)}: the invisible character U+{ord(found[0]):04X}; remove it"
            + (" (save without a byte-order mark)" if found[0] == "\ufeff" else "")
        )
    return text


def uses(chapter: str, text: str | None = None) -> Uses:
    """What the code cells of `chapter` read and make; `text` is its source if not that of the file.

    Raises InputError with ``chapters/x.md:LINE`` for a cell that is no Python, a name that is not a
    literal, a product that is outside the chapter's own folder, made twice or made only sometimes,
    and an import that goes around the artifacts.
    """
    return _uses(chapter, source(chapter) if text is None else text)


@lru_cache(maxsize=128)
def _uses(chapter: str, text: str) -> Uses:
    found = Uses()
    for cell in code_cells(text):
        module = tree(chapter, cell)
        nodes = sorted(ast.walk(module), key=lambda node: getattr(node, "lineno", 0))
        called = {node.func for node in nodes if isinstance(node, ast.Call)}
        always = {s.value for s in module.body if isinstance(s, (ast.Assign, ast.Expr))}
        for node in nodes:
            where = place(chapter, cell.line + getattr(node, "lineno", 1) - 1)
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                _check_import(node, where)
            elif isinstance(node, ast.Name) and node.id in _CALLS and node not in called:
                raise InputError(
                    f'{where}: call {node.id} by this name, as in {node.id}("{_example(node.id)}")'
                )
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in _CALLS:
                _note(found, node, chapter, where, always=node in always)
    return found


def tree(chapter: str, cell: Cell) -> ast.Module:
    """The cell's syntax tree, with lines that only Jupyter understands left out."""
    _check_fence(chapter, cell)
    for source in (cell.source, _MAGIC.sub(r"\1pass", cell.source)):
        try:
            return ast.parse(source)
        except SyntaxError as error:
            wrong = error
    if cell.source.startswith("%%"):
        return ast.Module(body=[], type_ignores=[])  # a cell in another language
    if swallowed := _FENCE.search(cell.source):
        line = cell.line + cell.source.count("\n", 0, swallowed.start())
        raise _unclosed(chapter, cell, f"before line {line}, where another fence opens")
    line = cell.line + (wrong.lineno or 1) - 1
    raise InputError(f"{place(chapter, line)}: not valid Python: {wrong.msg}")


def _check_fence(chapter: str, cell: Cell) -> None:
    if not cell.closed:
        raise _unclosed(chapter, cell, "before the end of the page")


def _unclosed(chapter: str, cell: Cell, where: str) -> InputError:
    return InputError(
        f"{place(chapter, cell.fence)}: the code cell that begins here is not closed {where}; end "
        "it with a line of ```"
    )


def check_options(chapter: str, cell: Cell) -> None:
    """See that the options of a cell are YAML. Raises InputError with the line and the reason."""
    import yaml

    try:
        yaml.safe_load(cell.settings)
    except yaml.YAMLError as error:
        line = cell.fence + 1 + line_of(error)
        raise InputError(f"{place(chapter, line)}: options of the cell: {reason(error)}") from None


def _check_import(node: ast.Import | ast.ImportFrom, where: str) -> None:
    """Chapters only read: they import `read`, and what mlsysim.book offers, under these names."""
    if isinstance(node, ast.Import):
        wrong = [alias.name for alias in node.names if alias.name.split(".")[0] == "mlsysim"]
    elif node.module == "mlsysim":
        wrong = [
            f"mlsysim.{alias.name}" for alias in node.names if alias.name != "read" or alias.asname
        ]
    elif node.module == "mlsysim.book":
        wrong = [f"mlsysim.book.{a.name}" for a in node.names if a.asname or a.name == "*"]
    else:
        module = node.module or ""
        wrong = [module] if module.startswith("mlsysim.") else []
    if wrong:
        raise InputError(
            f"{where}: a chapter only reads what is published, so it cannot import {wrong[0]} like "
            "this; write `from mlsysim import read`, or `from mlsysim.book import` with "
            "new_figure, save_figure, save_table"
        )


def _note(found: Uses, call: ast.Call, chapter: str, where: str, *, always: bool) -> None:
    """Enter the name that a call gives as a literal."""
    function = call.func.id if isinstance(call.func, ast.Name) else ""
    first = call.args[0] if call.args else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        raise InputError(
            f"{where}: {function} takes its name as a text typed there, as the build must know "
            f'it before anything runs; write {function}("{_example(function, chapter)}"'
            f"{'' if function == 'read' else ', ...'})"
        )
    name, names = first.value, getattr(found, _CALLS[function])
    line = int(where.rpartition(":")[2])
    if function == "read":
        names.setdefault(name, line)
        return
    folder, _, product = name.partition("/")
    if folder != chapter or not _PRODUCT.fullmatch(product):
        raise InputError(
            f"{where}: {function}({name!r}): a product bears the name of its chapter, then one of "
            f'its own in a-z, 0-9 and _; write "{chapter}/{_suggestion(name)}"'
        )
    if not always:
        raise InputError(
            f"{where}: {function}({name!r}): call it in a statement of its own, outside of if, for "
            "and def, so that the product is made whenever the chapter runs"
        )
    if name in names:
        raise InputError(
            f"{where}: {function}({name!r}): made in line {names[name]} already; "
            "a product is made once"
        )
    names[name] = line


def _suggestion(name: str) -> str:
    last = re.sub(r"[^a-z0-9_]+", "_", name.rpartition("/")[2].lower()).strip("_")
    return last or "name"


def _example(function: str, chapter: str = "01_chapter") -> str:
    return "NameOfTheScenario" if function == "read" else f"{chapter}/name"
