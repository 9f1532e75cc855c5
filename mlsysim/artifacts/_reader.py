"""From a statement of a module to its definition: what of it can move a result.

Silent docstrings and annotations of functions are left out. The arguments of whatever may be an
exception are kept apart: they are but a message, unless some handler prints it.
"""

from __future__ import annotations

import ast

from mlsysim.artifacts._definitions import OUTSIDE, Definition, Handler, Made, dotted, taken
from mlsysim.artifacts._effects import changes, run_by
from mlsysim.artifacts._syntax import is_for_type_checkers, text

__all__ = ["read"]

# Functions under these decorators have docstrings that nobody reads.
_UNREAD = {"property", "cached_property", "staticmethod", "classmethod", "cache", "lru_cache"}
_UNREAD |= {"contextmanager", "overload", "wraps"}


def read(statement: ast.stmt, package: tuple[str, ...]) -> Definition:
    """The definition that a statement makes, in a package given by its dotted parts."""
    made = Definition(runs=run_by(statement), changes=changes(statement))
    reader = _Reader(made, package)
    if isinstance(statement, ast.ClassDef):
        _read_class(statement, reader)
    else:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            made.name, made.returns = statement.name, dotted(statement.returns)
        made.text = text(reader.read(statement))
    return made


def _read_class(statement: ast.ClassDef, reader: _Reader) -> None:
    made, package = reader.found, reader.package
    made.name, made.is_class = statement.name, True
    made.bases = tuple(map(dotted, statement.bases))
    made.docstring = ast.get_docstring(statement) or ""
    made.header = f"class {statement.name}({', '.join(map(text, statement.bases))})"
    body = []
    for each in statement.body:
        if isinstance(each, ast.FunctionDef) and _is_static(each):
            made.members[each.name] = read(each, package)
        elif each is not statement.body[0] or not made.docstring:
            body.append(each)
    statement.body = body or [ast.Pass()]
    made.text = text(reader.read(statement))


def _is_static(node: ast.FunctionDef) -> bool:
    return [dotted(each) for each in node.decorator_list] in (["staticmethod"], ["classmethod"])


class _Reader(ast.NodeTransformer):
    """Takes out of a statement what cannot move a result, and notes what it refers to."""

    def __init__(self, found: Definition, package: tuple[str, ...]) -> None:
        self.found = found
        self.package = package
        self._within = OUTSIDE
        self._handlers: list[Handler] = []
        self._in_class = False
        self._again: dict[int, str] = {}  # type(error)(...) by its index: the error's name

    def read(self, statement: ast.AST) -> ast.AST:
        """What is left of a statement."""
        left: ast.AST = self.visit(statement)
        return left

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Store):
            self.found.refs[self._within].add(node.id)
            self._use(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if whole := dotted(node):
            self.found.refs[self._within].add(whole)
            self._mention(*whole.split(".")[1:])
            self._use(whole.partition(".")[0])
            return node
        self._mention(node.attr)
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and node.value.isidentifier():
            self._mention(node.value)
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        self._mention(node.arg or "")
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.AST]:
        if is_for_type_checkers(node):
            return [self.visit(each) for each in node.orelse]
        return self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> ast.AST:
        return self._import(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        return self._import(node)

    def _import(self, node: ast.Import | ast.ImportFrom) -> ast.AST:
        for name, each in taken(node, self.package):
            self.found.local[name].append(each)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        node.cause = None
        if isinstance(node.exc, ast.Call):
            node.exc = self._make(node.exc, raised=True)
        elif isinstance(node.exc, ast.Name):  # a class, or an error that is raised again
            self.found.refs[self._within].add(node.exc.id)
        elif node.exc:
            node.exc = self.visit(node.exc)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        last = dotted(node.func).rpartition(".")[2]
        if last.lstrip("_")[:1].isupper():
            return self._make(node, raised=False)
        return self.generic_visit(node)

    def _make(self, node: ast.Call, *, raised: bool) -> ast.expr:
        made, outer = self.found.made, self._within
        of, index = dotted(node.func), len(made)
        if raised:
            self._mention(*of.split(".")[1:])
        else:
            self.visit(node.func)
        made.append(Made(of, raised, outer, ""))
        if isinstance(node.func, ast.Call) and dotted(node.func.func) == "type":
            self._again[index] = " ".join(map(dotted, node.func.args))
        self._within = index
        given = [text(self.visit(each)) for each in (*node.args, *node.keywords)]
        self._within = outer
        made[index] = Made(of, raised, outer, " ".join(given))
        return ast.Call(func=node.func, args=[], keywords=[])

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        if node.type:
            self.visit(node.type)
        if node.name:
            types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            caught = tuple(dotted(each) or "BaseException" for each in types)
            self.found.handlers.append(Handler(caught, node.name))
            self._handlers.append(self.found.handlers[-1])
        node.body = self._bodies(node.body)
        if node.name:
            self._handlers.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self._in_class, before = True, self._in_class
        node.body = self._bodies(node.body)
        self._in_class = before
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        decorators = [
            dotted(each.func if isinstance(each, ast.Call) else each)
            for each in node.decorator_list
        ]
        read = any(each.rpartition(".")[2] not in _UNREAD for each in decorators)
        if ast.get_docstring(node) is not None and not read:
            node.body = node.body[1:] or [ast.Pass()]
        node.returns = None
        if node.name.startswith("__"):
            self._mention(node.name)
        self._in_class, before = False, self._in_class
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        node.args = self.visit(node.args)
        node.body = self._bodies(node.body)
        self._in_class = before
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if self._in_class:  # a field, whose type a dataclass reads
            return self.generic_visit(node)
        if node.value is None:
            return ast.Pass()
        return self.generic_visit(ast.Assign(targets=[node.target], value=node.value))

    def _bodies(self, body: list[ast.stmt]) -> list[ast.stmt]:
        left: list[ast.stmt] = []
        for each in body:
            found = self.visit(each)
            left += found if isinstance(found, list) else [found]
        return left or [ast.Pass()]

    def _use(self, name: str) -> None:
        for handler in self._handlers:
            if handler.name == name != self._again.get(self._within):
                handler.uses.add(self._within)

    def _mention(self, *names: str) -> None:
        self.found.mentions[self._within].update(names)
