"""Python as text that comments, layout and the version of Python cannot move."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

__all__ = ["assumptions", "data_lines", "is_for_type_checkers", "run", "text"]

_SILENT = ("ctx", "kind", "type_comment")
_PRINTED = ("property", "cached_property", "output")


def text(node: object) -> str:
    """A syntax tree as text: nodes and fields that are not empty, without silent docstrings.

    Our own walk, because the standard dump differs between Python versions.
    """
    if isinstance(node, ast.AST):
        fields = dict(ast.iter_fields(node))
        body = fields.get("body")
        if isinstance(body, list) and _is_docstring(body) and not _prints_docstring(node):
            fields["body"] = body[1:]
        if isinstance(node, ast.JoinedStr):  # of f"{x:{y}}" Python 3.12 tells an empty text more
            fields["values"] = [each for each in node.values if not _is_empty(each)]
        inner = "".join(
            f" {name}:{text(value)}"
            for name, value in fields.items()
            if name not in _SILENT and value is not None and value != []
        )
        return f"({type(node).__name__}{inner})"
    if isinstance(node, list):
        return "[" + "".join(map(text, node)) + "]"
    return ascii(node)


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == ""


def _is_docstring(body: list[ast.stmt]) -> bool:
    first = body[0] if body else None
    return (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )


def _prints_docstring(node: ast.AST) -> bool:
    """Classes and outputs: their docstrings are what a reader sees of an artifact."""
    if isinstance(node, ast.ClassDef):
        return True
    decorators = getattr(node, "decorator_list", [])
    called = [d.func if isinstance(d, ast.Call) else d for d in decorators]
    return any(isinstance(d, ast.Name) and d.id in _PRINTED for d in called)


def assumptions(source: str) -> list[str]:
    """Comments that start with ASSUME, each with the comment lines under it, as one line."""
    found: list[str] = []
    if "# ASSUME " not in source:
        return found
    under = 0  # the line that would go on with the last one
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            (line, column), said = token.start, token.string.removeprefix("#").strip()
            alone = not token.line[:column].strip()
            tagged = said.startswith("ASSUME ")
            if tagged:
                found.append(said.removeprefix("ASSUME ").strip())
            elif alone and line == under:
                found[-1] += f" {said}"
            if tagged or line == under:
                under = line + 1 if alone else 0
    return found


def data_lines(data: bytes) -> list[str]:
    """The lines of a data file beside a module, without comments and layout."""
    lines = (" ".join(line.partition("#")[0].split()) for line in data.decode().splitlines())
    return [line for line in lines if line]


def is_for_type_checkers(node: ast.AST) -> bool:
    """Whether a statement is `if TYPE_CHECKING`, of which only the other branch runs."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


def run(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node of a tree but those that only a type checker sees."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and is_for_type_checkers(node):
            todo += node.orelse
            continue
        yield node
        todo += ast.iter_child_nodes(node)
