"""What code behind an artifact may not do, because the digest or another Python cannot see it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlsysim import paths
from mlsysim.artifacts.code import closure_of_kind
from mlsysim.engine import scenario_types

KINDS = [*scenario_types.HOMES]
# Of the math module, what gives the same bits on every machine.
EXACT = ("fsum", "sqrt", "isqrt", "nextafter", "isfinite", "inf")
SOLVERS = sorted(paths.PACKAGE.joinpath("solvers").glob("*.py"))


def of_closures() -> list[str]:
    # The table of scenario_types is read, and the class that it names is followed.
    beside = {"mlsysim", "mlsysim.doors", "mlsysim.engine.scenario_types"}
    return sorted({name for kind in KINDS for name in closure_of_kind(kind)} - beside)


def source(name: str) -> Path:
    base = paths.PACKAGE.parent.joinpath(*name.split("."))
    return base.with_suffix(".py") if base.with_suffix(".py").is_file() else base / "__init__.py"


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text("utf-8")))


@pytest.mark.parametrize("name", of_closures())
def test_no_module_behind_an_artifact_imports_by_text_or_runs_text(name: str) -> None:
    for node in nodes(source(name)):
        if isinstance(node, ast.Import):
            assert not {alias.name.partition(".")[0] for alias in node.names} & {
                "importlib",
                "pkgutil",
                "runpy",
                "mlsysim",
            }, f"{name}:{node.lineno}"
        if isinstance(node, ast.ImportFrom):
            assert node.module not in ("importlib", "pkgutil", "runpy"), f"{name}:{node.lineno}"
        if isinstance(node, ast.Name):
            assert node.id not in ("__import__", "exec", "eval", "compile"), f"{name}:{node.lineno}"


# By which code could look at annotations, at names of modules, or at an error without a name.
UNSEEN = {"__annotations__", "annotation", "get_type_hints", "singledispatch", "globals", "modules"}


@pytest.mark.parametrize("name", of_closures())
def test_no_module_behind_an_artifact_looks_at_what_the_digest_leaves_out(name: str) -> None:
    for node in nodes(source(name)):
        found = getattr(node, "attr", getattr(node, "id", ""))
        assert found not in UNSEEN, f"{name}:{getattr(node, 'lineno', 0)}"


def test_no_scenario_class_stands_for_another() -> None:
    # A field that takes a class takes those that derive from it, which the closure would not see;
    # and the text of a class is printed in the artifacts of its own scenarios alone.
    classes = [scenario_types.KINDS[kind] for kind in KINDS]
    for each in classes:
        assert not {*each.__mro__[1:]} & {*classes}
        assert not {*getattr(each, "solvers", ())} & {*classes}


@pytest.mark.parametrize("name", of_closures())
def test_no_module_behind_an_artifact_takes_names_from_the_door_of_the_package(name: str) -> None:
    # mlsysim/__init__.py finds its names by text, where the closure cannot follow.
    for node in nodes(source(name)):
        if isinstance(node, ast.ImportFrom) and node.module == "mlsysim":
            for alias in node.names:
                assert source(f"mlsysim.{alias.name}").is_file(), f"{name}:{node.lineno}"


OF_NUMPY = {
    "argsort",
    "array",
    "asarray",
    "broadcast_to",
    "concatenate",
    "flatnonzero",
    "full",
    "inf",
    "int64",
    "maximum",
    "meshgrid",
    "minimum",
    "ndarray",
    "repeat",
    "shape",
    "tile",
    "where",
}


@pytest.mark.parametrize("path", SOLVERS, ids=lambda path: path.stem)
def test_solvers_use_only_arithmetic_that_every_python_and_processor_rounds_alike(
    path: Path,
) -> None:
    # sum() of floats differs between Python 3.11 and 3.12; log, exp and pow between processors.
    for node in nodes(path):
        place = f"{path.name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Name):
            # Whole numbers, as the search counts them, add up alike everywhere.
            assert node.id != "pow", place
            assert node.id != "sum" or path.stem == "search", place
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id != "math" or node.attr in EXACT, place
            assert (node.value.id, node.attr) != ("statistics", "mean"), place
            # Elementwise arithmetic, comparisons and layout; nothing that adds up or approximates.
            assert node.value.id not in ("np", "numpy") or node.attr in OF_NUMPY, place
        if isinstance(node, ast.Import):
            assert "statistics" not in {alias.name for alias in node.names}, place
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").partition(".")[0] not in ("numpy", "math", "cmath"), place
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Pow):
            power = node.right if isinstance(node, ast.BinOp) else node.value
            assert isinstance(power, ast.Constant), place
            assert type(power.value) is int, place
