"""What a statement of a module does when it runs, beside giving something a name."""

from __future__ import annotations

import ast
import builtins

from mlsysim.artifacts._definitions import dotted

__all__ = ["changes", "run_by"]

# Methods that change the thing whose they are.
_CHANGING = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "register"}
_CHANGING |= {"remove", "set", "setdefault", "update", "__setattr__", "__setitem__"}


def run_by(statement: ast.stmt) -> set[str]:
    """The dotted names of what runs when a statement does: calls, decorators, bases."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        parts: list[ast.AST] = [*statement.decorator_list, *statement.args.defaults]
        parts += [each for each in statement.args.kw_defaults if each]
        found = {dotted(each) for each in statement.decorator_list}
    elif isinstance(statement, ast.ClassDef):
        parts = [*statement.decorator_list, *statement.keywords]
        found = {dotted(each) for each in (*statement.decorator_list, *statement.bases)}
        for each in statement.body:
            found |= run_by(each)
    else:
        parts, found = [statement], set()
    calls = (each for part in parts for each in ast.walk(part) if isinstance(each, ast.Call))
    return (found | {dotted(each.func) for each in calls}) - {""}


def changes(statement: ast.stmt) -> bool:
    """Whether a statement, or what it defines when that is called, changes what others may see."""
    nodes = [*ast.walk(statement)]
    own = {each.arg for each in nodes if isinstance(each, ast.arg)}
    own |= {
        each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    return any(_changes(each, own) for each in nodes)


def _changes(node: ast.AST, own: set[str]) -> bool:
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return not isinstance(node.ctx, ast.Load) and _is_of_others(node, own)
    if isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in _CHANGING:
            return _is_of_others(called.value, own)
        return isinstance(called, ast.Name) and called.id in ("setattr", "delattr")
    if isinstance(node, ast.ClassDef):
        return any(each.arg == "metaclass" for each in node.keywords)
    if isinstance(node, ast.FunctionDef):
        return node.name == "__init_subclass__"
    return isinstance(node, ast.Global)


def _is_of_others(node: ast.AST, own: set[str]) -> bool:
    """Whether something hangs on a name that is given elsewhere, and is not of Python itself."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name) and node.id not in own and not hasattr(builtins, node.id)
