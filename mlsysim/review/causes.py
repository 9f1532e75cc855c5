"""Why results moved: inputs with other values, and what follows them; modules and libraries."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest

from mlsysim.artifacts.reading import Artifact
from mlsysim.review.changes import CodeChange, FactChange, InputChange
from mlsysim.review.moves import moved
from mlsysim.review.pairs import Pairs
from mlsysim.review.snapshots import Entry, Snapshot, full_name

__all__ = ["facts", "inputs", "libraries", "modules"]

_OLD_FOLLOWS = re.compile(r"(Scenarios\.\w+), ([\w.-]+)")


def inputs(pairs: Pairs) -> list[InputChange]:
    """Inputs with other values by their names; what follows one that moved is under it."""
    flat = {each.name: each for each in _changed(pairs)}
    parents = {name: _parent(each, flat) for name, each in flat.items()}

    def whole(name: str) -> InputChange:
        below = [whole(each) for each, parent in parents.items() if parent == name]
        return replace(flat[name], under=tuple(below))

    return [whole(name) for name, parent in parents.items() if not parent]


def _changed(pairs: Pairs) -> Iterator[InputChange]:
    entries: dict[str, list[tuple[str, Entry | None, Entry | None]]] = {}
    for old, new in pairs.artifacts:
        was, now = _named(old, new.name), _named(new, new.name)
        for name in dict.fromkeys((*now, *was)):
            entries.setdefault(name, []).append((new.name, was.get(name), now.get(name)))
    for name, found in sorted(entries.items()):
        # Where an artifact lists an input for the first time, others may have listed it before.
        before = next((old for _, old, _ in found if old), None)
        after = next((new for _, _, new in found if new), None)
        if move := moved(before, after):
            yield InputChange(
                name,
                move,
                old_source=_text(before, "source"),
                source=_text(after, "source"),
                follows=_followed(after),
                reaches=tuple(scenario for scenario, *_ in found),
            )


def _named(artifact: Artifact, scenario: str) -> Mapping[str, Entry]:
    return {full_name(scenario, key): entry for key, entry in artifact.inputs.items()}


def _text(entry: Entry | None, field: str) -> str:
    return str((entry or {}).get(field, ""))


def _followed(entry: Entry | None) -> str:
    """What an input follows; the first artifacts said so in its source alone."""
    said = _text(entry, "follows")
    named = _OLD_FOLLOWS.match(_text(entry, "source"))
    return said or (f"{named[1]}.{named[2]}" if named else "")


def _parent(change: InputChange, flat: Mapping[str, InputChange]) -> str:
    """The changed input that one follows: by name, or by an output that the input reaches."""
    follows = change.follows
    if follows in flat:
        return follows if follows != change.name else ""
    scenario = follows.removeprefix("Scenarios.").partition(".")[0]
    for each in flat.values():
        if not each.follows and scenario in each.reaches and each.name != change.name:
            return each.name
    return ""


_FACTS = {"unit": "unit", "equation": "equation", "source": "source", "description": "meaning"}


def facts(pairs: Pairs) -> list[FactChange]:
    """What else artifacts say otherwise; one change of many artifacts is one."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for old, new in pairs.artifacts:
        for what, name, was, now in _facts(old, new, pairs):
            if was != now:
                found.setdefault((what, was, now), []).append(name)
    return [
        FactChange(what, was, now, tuple(dict.fromkeys(names)))
        for (what, was, now), names in found.items()
    ]


def _facts(old: Artifact, new: Artifact, pairs: Pairs) -> Iterator[tuple[str, str, str, str]]:
    for key, entry in new.outputs.items():
        was: Entry | None = old.outputs.get(pairs.old_key(new.name, key))
        for field, what in _FACTS.items() if was else ():
            yield what, f"{new.name}.{key}", _text(was, field), _text(entry, field)
    before = _named(old, new.name)
    for name, now in _named(new, new.name).items():
        for field, what in _FACTS.items() if name in before else ():
            yield what, name, _text(before[name], field), _text(now, field)
    yield "feasibility", new.name, _fits(old), _fits(new)
    yield "title", new.name, old.title, new.title
    for what in ("assumptions", "excludes"):
        lines = [[f"{e['where']}: {e['text']}" for e in getattr(each, what)] for each in (old, new)]
        gone = [line for line in lines[0] if line not in lines[1]]
        come = [line for line in lines[1] if line not in lines[0]]
        for was_line, line in zip_longest(gone, come, fillvalue=""):
            yield what.removesuffix("s"), new.name, was_line, line


def _fits(artifact: Artifact) -> str:
    return f"{'feasible' if artifact.feasible else 'infeasible'}: {artifact.feasibility}"


def modules(before: Snapshot, after: Snapshot) -> list[CodeChange]:
    """Modules that count for some result and say something else, with what in them does.

    What counts is what a lock names; with two locks of which one names a module otherwise. A lock
    of the first schema names none, and two of these let every module count.
    """
    locks = [each.lock.code for each in (before, after)]
    named = {name for lock in locks for word, name in lock if word == "module"}
    found = []
    for path in sorted({*before.tree.ids, *after.tree.ids}):
        if not (path.startswith("mlsysim/") and path.endswith(".py")):
            continue
        if before.tree.ids.get(path) == after.tree.ids.get(path):
            continue
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        lines = [lock.get(("module", name)) for lock in locks]
        if named and (name not in named or lines[0] == lines[1]):
            continue
        parts = _changed_parts(before.text(path), after.text(path))
        if parts:
            found.append(CodeChange(name, tuple(parts)))
    return found


def _changed_parts(old: str, new: str) -> list[str]:
    """The functions, classes and names of a module whose code differs, comments aside."""
    was, now = (dict(_definitions(each)) for each in (old, new))
    return [
        name
        for name in dict.fromkeys((*now, *was))
        if name not in was or name not in now or _differ(was[name], now[name])
    ]


# The text of a definition, and what it is once parsed; nothing for a file that is no Python.
_Definition = tuple[str, ast.AST | None]


def _differ(old: _Definition, new: _Definition) -> bool:
    if old[0] == new[0]:
        return False
    trees = [each and ast.dump(_bare(each)) for _, each in (old, new)]
    return trees[0] is None or trees[0] != trees[1]


def _definitions(source: str) -> Iterator[tuple[str, _Definition]]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        yield "the whole file", (source, None)
        return
    lines = source.split("\n")
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                name = getattr(part, "name", None) or _assigned(part)
                if name:
                    yield f"{node.name}.{name}", (_text_of(part, lines), part)
            node.body = [part for part in node.body if not getattr(part, "name", "")]
        name = getattr(node, "name", None) or _assigned(node)
        if name and name != "__all__":
            yield name, (_text_of(node, lines), node)


def _text_of(node: ast.stmt, lines: list[str]) -> str:
    """The lines of a statement with its decorators; of a class all of them."""
    above = [each.lineno for each in getattr(node, "decorator_list", ())]
    return "\n".join(lines[min([node.lineno, *above]) - 1 : node.end_lineno])


def _assigned(node: ast.AST) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return ", ".join(each.id for each in targets if isinstance(each, ast.Name))


def _bare(node: ast.AST) -> ast.AST:
    """A definition without its docstrings."""
    for each in ast.walk(node):
        if isinstance(each, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(each):
            each.body = each.body[1:] or [ast.Pass()]
    return node


def libraries(before: Snapshot, after: Snapshot) -> list[CodeChange]:
    """Libraries that are pinned otherwise."""
    old, new = before.libraries, after.libraries
    return [
        CodeChange(name, (), old.get(name, ""), new.get(name, ""))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]
