"""A module as its definitions, and what in it always runs."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from mlsysim.artifacts._definitions import Definition, taken
from mlsysim.artifacts._reader import read
from mlsysim.artifacts._syntax import is_for_type_checkers

__all__ = ["Source", "parse"]


@dataclass
class Source:
    """The definitions of a module in their order, those of each name, and those that always run."""

    definitions: list[Definition] = field(default_factory=list)
    names: dict[str, list[Definition]] = field(default_factory=lambda: defaultdict(list))
    always: list[Definition] = field(default_factory=list)


def parse(source: bytes, package: tuple[str, ...]) -> Source:
    """The definitions of a module that lies in a package, given by its dotted parts."""
    found = Source()
    for statement in _statements(ast.parse(source).body):
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            for name, each in taken(statement, package):
                made = Definition(text=f"{name} = {each[0]}:{each[1]}", takes=each)
                found.definitions.append(made)
                found.names[name].append(made)
            continue
        names = _names(statement)
        made = read(statement, package)
        found.definitions.append(made)
        if names is None or (made.changes and not made.name):
            found.always.append(made)
        for name in names or _stored(statement):
            found.names[name].append(made)
    return found


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run, but for texts that stand alone."""
    for each in body:
        if isinstance(each, ast.If) and is_for_type_checkers(each):
            yield from _statements(each.orelse)
        elif not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)):
            yield each


def _names(statement: ast.stmt) -> list[str] | None:
    """The names that a definition gives, and nothing else; None for any other statement."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        return None
    flat = [
        part
        for each in targets
        for part in (each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each])
    ]
    names = [each.id for each in flat if isinstance(each, ast.Name)]
    return names if len(names) == len(flat) else None


def _stored(statement: ast.stmt) -> set[str]:
    """Every name that a statement gives, wherever in it."""
    found = ast.walk(statement)
    return {
        getattr(each, "id", "") or getattr(each, "name", "")
        for each in found
        if isinstance(each, (ast.FunctionDef, ast.ClassDef))
        or (isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    }
