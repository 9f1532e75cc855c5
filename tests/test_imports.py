"""The house: imports run one way, downwards, and what begins with an underscore stays at home."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter

from tests.conftest import REPOSITORY

# From the ground up; whoever adds a room says here what it rests on.
ROOMS = (
    *("doors", "__init__", "errors", "bounds", "scalars", "canonical", "paths", "files", "naming"),
    *("templates", "library_hooks", "runtime", "units", "declarations", "registry", "solvers"),
    *("engine", "artifacts", "calibration"),
    *("book.source", "book.claims", "book.arithmetic", "book.products", "book.pages"),
    *("book.execution", "book.check", "book.reference", "book.site", "book"),
    *("building", "review", "cli", "__main__"),
)
PACKAGE = REPOSITORY / "mlsysim"
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}


def room(name: str) -> str:
    """The room of a module: `book.site` for `book.site.html_book`."""
    return next(each for each in reversed(ROOMS) if f"{name}.".startswith(f"{each}."))


def imports() -> Iterator[tuple[str, str]]:
    """A module and what it imports when it runs, each without the package's own name."""
    for name, path in MODULES.items():
        for node in run(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                named = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            else:
                named = []
            yield from (
                (name, each.removeprefix("mlsysim."))
                for each in named
                if each.startswith("mlsysim.")
            )


def run(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but those that only a type checker sees."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from run(node)


def module(full: str) -> str:
    """The module of an imported name, which may be one."""
    return full if full in MODULES else full.rpartition(".")[0]


def test_imports_run_downwards() -> None:
    edges: dict[str, set[str]] = {}
    for name, full in imports():
        assert ROOMS.index(room(full)) <= ROOMS.index(room(name)), f"{name} imports {full}"
        edges.setdefault(name, set()).add(module(full))
    assert len(edges) > 100
    TopologicalSorter(edges).prepare()  # raises CycleError


def test_what_begins_with_an_underscore_is_imported_by_its_own_folder_alone() -> None:
    for name, full in imports():
        folder = MODULES[name].parent.relative_to(PACKAGE).parts
        *rooms, last = full.split(".")
        own = not last.startswith("_") or (full in MODULES and folder == tuple(rooms))
        own &= not any(part.startswith("_") for part in rooms) or folder == tuple(rooms[:-1])
        assert own, f"{name} imports {full}"
