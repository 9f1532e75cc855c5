"""The outputs on a scenario's page: a row for each property, a table for those of many parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from mlsysim.book.products.markdown import code, prose, table, under, value

__all__ = ["outputs_section"]


@dataclass(frozen=True)
class _Group:
    """Outputs that one property spreads over parts: ``predicted`` of each run."""

    base: str
    entries: Mapping[str, Mapping[str, Any]]

    @property
    def first(self) -> Mapping[str, Any]:
        return next(iter(self.entries.values()))


def _groups(outputs: Mapping[str, Mapping[str, Any]]) -> Iterator[_Group]:
    """The outputs, those of one property together."""

    def told(item: tuple[str, Mapping[str, Any]]) -> tuple[str, str, str]:
        return item[1]["description"], item[1]["equation"], item[1]["unit"]

    for _, run in groupby(outputs.items(), key=told):
        entries = dict(run)
        first, *others = (key.split(".") for key in entries)
        common = len(first) if not others else 0
        while others and all(key[: common + 1] == first[: common + 1] for key in others):
            common += 1
        if others and not common:
            for key, entry in entries.items():
                yield _Group(key, {"": entry})
            continue
        base = ".".join(first[:common])
        yield _Group(base, {key[len(base) + 1 :]: entry for key, entry in entries.items()})


def outputs_section(outputs: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """One row a property; then the values of those that have one for each part."""
    groups = list(_groups(outputs))
    rows = []
    for group in groups:
        many = len(group.entries) > 1
        given = f"{len(group.entries)} values below" if many else value(group.first)
        equation = group.first["equation"]
        meaning = under(prose(group.first["description"]), code(equation) if equation else "")
        rows.append([code(group.base), given, meaning])
    yield table(["Output", "Value", "Meaning and equation"], rows)
    spread = [group for group in groups if len(group.entries) > 1]
    for parts, alike in groupby(spread, key=lambda group: list(group.entries)):
        yield from _spread(parts, list(alike))


def _spread(parts: list[str], groups: list[_Group]) -> Iterator[str]:
    """The values of outputs that have the same parts, beside each other."""
    bases = [group.base for group in groups]
    yield "### Values of " + " and ".join(filter(None, (", ".join(bases[:-1]), bases[-1])))
    split = [part.split(".") for part in parts]
    across = list(dict.fromkeys(part[0] for part in split))
    down = list(dict.fromkeys(part[1] for part in split if len(part) == 2))
    if len(groups) == 1 and len(across) * len(down) == len(parts) and len(across) > 1:
        entries = groups[0].entries
        yield table(
            [_short(groups[0].base), *across],
            [[code(row), *(value(entries[f"{col}.{row}"]) for col in across)] for row in down],
            kind="numbers",
            numbers=range(1, len(across) + 1),
        )
        return
    yield table(
        ["Of", *(_short(base) for base in bases)],
        [[code(part), *(value(group.entries[part]) for group in groups)] for part in parts],
        kind="numbers",
        numbers=range(1, len(bases) + 1),
    )


def _short(base: str) -> str:
    return base.rpartition(".")[2]
