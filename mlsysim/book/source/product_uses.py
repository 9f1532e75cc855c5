"""Who uses a scenario: the chapters that read it, and their figures and tables made from it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mlsysim.book.source import cells
from mlsysim.book.source.myst import Directive, parsed

__all__ = ["Product", "products"]

_FILE = re.compile(r"results/(?P<kind>figures|tables)/(?P<name>[\w/]+)\.\w+")
_SAVES = {"save_figure": "figures", "save_table": "tables"}


@dataclass(frozen=True)
class Product:
    """A figure or table of a chapter; `kind` is the folder of results/ that holds it.

    `scenarios` are those it is made from, `label` is the name that cross-references give it, empty
    if the chapter does not show it under one.
    """

    kind: str
    name: str
    label: str
    scenarios: frozenset[str]

    @property
    def stem(self) -> str:
        """The name inside the chapter."""
        return self.name.partition("/")[2]


def products(chapter: str, text: str) -> list[Product]:
    """The figures and tables of a chapter, those it shows first and in the order it shows them.

    What a product is made from is read off the code: a name holds what the names and the calls of
    `read` hold from which it was assigned or changed. That may name a scenario too many, where one
    name serves several, and never leaves one out that reached the product through names.
    """
    cells.uses(chapter, text)  # refuses what cannot be followed
    follow = _Follow()
    for cell in cells.code_cells(text):
        follow.block(cells.tree(chapter, cell).body)
    shown = _labels(text)
    order = {key: number for number, key in enumerate(shown)}
    return [
        Product(kind, name, shown.get((kind, name), ""), frozenset(scenarios))
        for (kind, name), scenarios in sorted(
            follow.made.items(), key=lambda made: order.get(made[0], len(order))
        )
    ]


def _labels(text: str) -> dict[tuple[str, str], str]:
    """The label under which each file of results/ is shown, in the order of the text."""
    shown: dict[tuple[str, str], str] = {}
    for directive, around in parsed(text).directives:
        found = _FILE.search(directive.title)
        if found and directive.name in ("figure", "include"):
            label = directive.option("name") if directive.name == "figure" else _label(around)
            shown.setdefault((found["kind"], found["name"]), label)
    return shown


def _label(around: tuple[Directive, ...]) -> str:
    """The name of the innermost table among these directives."""
    return next((each.option("name") for each in reversed(around) if each.name == "table"), "")


@dataclass
class _Follow:
    """Which scenarios each name holds, statement by statement."""

    held: dict[str, set[str]] = field(default_factory=dict)
    made: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)

    def block(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self.modules |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            self.held[node.name] = self._in(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value:
            self._note(node.value)
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                whole = isinstance(target, ast.Name) and not isinstance(node, ast.AugAssign)
                self._give(target, self._in(node.value), whole=whole)
        elif isinstance(node, ast.Expr):
            self._note(node.value)
            if isinstance(node.value, ast.Call):
                # A call on its own changes what it is called on, or what it is given.
                for each in (node.value.func, *node.value.args):
                    if not isinstance(each, ast.Name) or each is not node.value.func:
                        self._give(each, self._in(node.value), whole=False)
        else:
            self._compound(node)

    def _compound(self, node: ast.stmt) -> None:
        if isinstance(node, ast.For):
            self._give(node.target, self._in(node.iter), whole=False)
        if isinstance(node, ast.With):
            for item in node.items:
                if item.optional_vars:
                    self._give(item.optional_vars, self._in(item.context_expr), whole=False)
        rounds = 2 if isinstance(node, (ast.For, ast.While)) else 1
        for _ in range(rounds):
            for part in ("body", "handlers", "orelse", "finalbody"):
                for each in getattr(node, part, []):
                    self.block(each.body if isinstance(each, ast.ExceptHandler) else [each])

    def _note(self, value: ast.expr) -> None:
        """A product, if the statement makes one."""
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            first = value.args[0] if value.args else None
            if value.func.id in _SAVES and isinstance(first, ast.Constant):
                self.made[_SAVES[value.func.id], str(first.value)] = self._in(value)

    def _in(self, node: ast.AST) -> set[str]:
        """The scenarios that an expression holds."""
        found: set[str] = set()
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                found |= self.held.get(each.id, set())
            elif isinstance(each, ast.Call) and getattr(each.func, "id", "") == "read":
                found |= {str(arg.value) for arg in each.args if isinstance(arg, ast.Constant)}
        return found

    def _give(self, target: ast.expr, scenarios: set[str], *, whole: bool) -> None:
        """Let what stands at `target` hold these; `whole`, if it is replaced and not changed."""
        for name in _roots(target):
            if name not in self.modules:
                self.held[name] = set(scenarios) | (set() if whole else self.held.get(name, set()))


def _roots(target: ast.expr) -> Iterator[str]:
    """The names whose value a target belongs to: ``table`` of ``table["error"]``."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            yield from _roots(each)
    elif isinstance(target, ast.Starred):
        yield from _roots(target.value)
    else:
        inner: ast.AST = target
        while isinstance(inner, (ast.Attribute, ast.Subscript)):
            inner = inner.value
        if isinstance(inner, ast.Name):
            yield inner.id
