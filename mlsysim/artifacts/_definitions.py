"""What is known of a definition of a module: what it says as text, and which names it refers to."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["OUTSIDE", "Definition", "Handler", "Import", "Made", "dotted", "taken"]

OUTSIDE = -1  # of anything that is made

Import = tuple[str, str]  # a module, and the name taken from it; empty for the module itself
Names = defaultdict[int, set[str]]


@dataclass(frozen=True)
class Made:
    """A call of what may be a class: of what, whether it is raised, in which other, and with what.

    What is called is dotted names, empty for anything else.
    """

    of: str
    raised: bool
    within: int
    text: str


@dataclass
class Handler:
    """The exceptions that a handler gives a name to, and where it uses that name."""

    caught: tuple[str, ...]
    name: str
    uses: set[int] = field(default_factory=set)


@dataclass(eq=False)
class Definition:
    """A statement at the top of a module, or a static method of a class there.

    `refs` are dotted names, `mentions` attributes and words that may be some; both by the index of
    the `made` in whose arguments they stand.
    """

    text: str = ""
    header: str = ""  # of a class
    docstring: str = ""  # of a class
    name: str = ""  # of a class or a function
    is_class: bool = False
    bases: tuple[str, ...] = ()
    returns: str = ""
    refs: Names = field(default_factory=lambda: defaultdict(set))
    mentions: Names = field(default_factory=lambda: defaultdict(set))
    made: list[Made] = field(default_factory=list)
    handlers: list[Handler] = field(default_factory=list)
    members: dict[str, Definition] = field(default_factory=dict)
    local: dict[str, list[Import]] = field(default_factory=lambda: defaultdict(list))
    takes: Import | None = None
    runs: set[str] = field(default_factory=set)
    changes: bool = False


def taken(
    statement: ast.Import | ast.ImportFrom, package: tuple[str, ...]
) -> Iterator[tuple[str, Import]]:
    """Each name that an import binds, and what it stands for."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            whole = alias.asname or alias.name.partition(".")[0]
            yield whole, (alias.name if alias.asname else whole, "")
        return
    base = statement.module or ""
    if statement.level:
        above = package[: len(package) - statement.level + 1]
        base = ".".join((*above, *filter(None, (base,))))
    for alias in statement.names:
        yield alias.asname or alias.name, (base, alias.name)


def dotted(node: ast.AST | None) -> str:
    """Names joined by dots; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := dotted(node.value)):
        return f"{base}.{node.attr}"
    return ""
