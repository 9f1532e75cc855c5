"""Numbers that a chapter types: in its prose, captions, tables and code, with the unit beside them.

Only those are found that could be a result: with a unit, or of three significant digits or more.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import replace

from mlsysim.book.check._written_numbers import TypedNumber, in_code, in_text
from mlsysim.book.pages.visible import seen
from mlsysim.book.source.cells import code_cells
from mlsysim.book.source.findings import accepts

__all__ = ["typed_numbers"]

# Calls, and arguments of calls, that say where an axis begins, ends and is marked.
_LIMITS = re.compile(
    r"(?:set_)?[xyzr]?(?:lim[0-9]?d?|ticks|ticklabels|bound)|axis|(?:Fixed|Multiple)Locator"
)


def typed_numbers(text: str) -> list[TypedNumber]:
    """Every number in the source of a page that could be a result, in the order of its lines.

    A row of a table that cites a source holds what that source reports.
    """
    parts = list(seen(text))
    sourced = {part.row for part in parts if part.cites}
    found = [
        number
        for part in parts
        if not part.row or part.row not in sourced
        for number in in_text(part.text, part.line, part.about)
    ]
    for cell in code_cells(text):
        found += _in_code(cell.source, cell.line)
    return sorted(found, key=lambda number: number.line)


def _in_code(source: str, first: int) -> Iterator[TypedNumber]:
    """Numbers in code, in its texts and in its comments, but for limits and ticks of axes."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not accepts(token.string):
            yield from in_text(token.string, first + token.start[0] - 1)
    limits = set(_limits(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or isinstance(node.value, (bool, bytes, complex)):
            continue
        if node in limits:
            continue
        line = first + node.lineno - 1
        if isinstance(node.value, str):
            for typed in in_text(node.value.replace("\n", " ")):
                yield replace(typed, line=line, in_code=True)
        elif isinstance(node.value, (int, float)) and abs(node.value) < 1e300:
            number = in_code(node.value, line)
            if number:
                yield number


def _limits(tree: ast.Module) -> Iterator[ast.AST]:
    """What `axes.set_xlim(...)`, `axes.set(xticks=...)` and their like are given.

    What they are given by a name is what the cell gives that name.
    """
    given: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if _LIMITS.fullmatch(called):
                given += [*node.args, *(word.value for word in node.keywords)]
            else:
                given += [w.value for w in node.keywords if _LIMITS.fullmatch(w.arg or "")]
    inside = [node for each in given for node in ast.walk(each)]
    names = {node.id for node in inside if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and names & {getattr(t, "id", "") for t in node.targets}:
            inside += ast.walk(node.value)
    yield from inside
