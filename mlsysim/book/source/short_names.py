"""Short names that a page uses and its front matter does not declare, told once for the page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress

from mlsysim.book.source import cells
from mlsysim.book.source.myst import parsed
from mlsysim.declarations.documents import names
from mlsysim.errors import InputError

__all__ = ["check"]

_FIRST = re.compile(r"(?<![\w.{])([A-Za-z_]\w*)\.\w")


def check(page: str, text: str, conditions: list[str], aliases: dict[str, str]) -> None:
    """See that quotes and conditions use no short name whose declaration was lost.

    Such a name is one that a cell gives to an artifact that it reads; or, where nothing is
    declared, any that is written like one. Raises InputError with what to write in the front
    matter, in place of an error for each quote.
    """
    known = {*names("Scenarios"), *aliases}
    used = [name for each in conditions for name in _FIRST.findall(each) if name not in known]
    if not used:
        return
    read: dict[str, str] = {}
    if page in cells.chapters():
        with suppress(InputError):  # cells that are no Python are told otherwise
            read = dict(_read(page, text))
    lost = sorted({name for name in used if name in read or (not aliases and name[0].islower())})
    if not lost:
        return
    lines = [f"`    {name}: {read.get(name, 'NAME_OF_SCENARIO')}`" for name in lost]
    count = sum(name in lost for name in used)
    raise InputError(
        f"chapters/{page}.md: front matter: {_listed(lost)} "
        f"{'are no short names' if len(lost) > 1 else 'is no short name'}, but {count} "
        f"{'uses rest' if count > 1 else 'use rests'} on it; write under "
        + _above(text, aliases)
        + ", ".join(lines)
    )


def _above(text: str, aliases: dict[str, str]) -> str:
    """The lines of the front matter under which a short name stands, as far as they are there."""
    if aliases:
        return "mlsysim: scenarios: "
    block = re.search(r"^mlsysim:", parsed(text).front_matter, re.MULTILINE)
    return "mlsysim: `  scenarios:`, " if block else "kernelspec `mlsysim:`, `  scenarios:`, "


def _listed(found: list[str]) -> str:
    return ", ".join(map(repr, found[:-1])) + (" and " if found[1:] else "") + repr(found[-1])


def _read(page: str, text: str) -> Iterator[tuple[str, str]]:
    """The names that cells give to what they read: `step = read("DenseLLMPretrainingStep")`."""
    known = names("Scenarios")
    for cell in cells.code_cells(text):
        for node in cells.tree(page, cell).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                call, target = node.value, node.targets[0]
                named = call.args[0] if call.args else None
                if (
                    isinstance(target, ast.Name)
                    and getattr(call.func, "id", "") == "read"
                    and isinstance(named, ast.Constant)
                    and named.value in known
                ):
                    yield target.id, str(named.value)
