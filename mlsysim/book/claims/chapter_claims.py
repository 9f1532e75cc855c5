"""Claims: a phrase of a chapter with its condition, tested on the artifacts at every build."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from mlsysim.artifacts.quotes import find
from mlsysim.artifacts.reading import read
from mlsysim.book.claims._condition_tokens import expanded
from mlsysim.book.claims._conditions import parse
from mlsysim.book.claims._evaluation import Evaluation
from mlsysim.book.claims._vacuous import holds_always
from mlsysim.errors import InputError, MlsysimError

__all__ = ["Claim", "examine", "split"]


@dataclass(frozen=True)
class Claim:
    """A phrase whose condition was tested.

    `condition` has the full names of scenarios, `values` says what the sides are, and `scenarios`
    are those that it rests on.
    """

    phrase: str
    condition: str
    holds: bool
    values: str
    scenarios: tuple[str, ...]


def split(text: str) -> tuple[str, str]:
    """Phrase and condition of a claim, ``PHRASE if CONDITION``; the last `if` divides them.

    >>> split("twice as long if a.time / b.time = 2 within 10 %")
    ('twice as long', 'a.time / b.time = 2 within 10 %')
    """
    phrase, divider, condition = f" {' '.join(text.split())} ".rpartition(" if ")
    if not (divider and phrase.strip() and condition.strip()):
        raise InputError("expected PHRASE if CONDITION, as in `a tenth if a.x < 0.1 * a.y`")
    return phrase.strip(), condition.strip()


def examine(
    text: str, aliases: Mapping[str, str] | None = None, *, infeasible: Container[str] = ()
) -> Claim:
    """The claim that a text of the form ``PHRASE if CONDITION`` makes, and whether it holds.

    `aliases` and `infeasible` are those of the chapter, as for quotes. Raises InputError,
    UnknownName or UnitError for a condition that cannot be tested.
    """
    short = aliases or {}
    phrase, condition = split(text)
    tree = parse(condition)
    used: dict[str, None] = {}
    met: dict[str, tuple[str, dict[str, Any]]] = {}

    def entry(key: str) -> dict[str, Any]:
        try:
            artifact, rest = find(key, short, infeasible=infeasible)
        except MlsysimError as error:
            if "-" not in key:
                raise
            raise type(error)(f"{error} (a minus has a space on either side)") from None
        used[artifact.name] = None
        met[key] = f"{artifact.name}.{artifact.resolve(rest)}", artifact.entry(rest)
        return met[key][1]

    def matching(pattern: str) -> list[str]:
        name, _, rest = pattern.partition(".")
        known = read(short.get(name, name)).keys()
        return [f"{name}.{key}" for key in known if fnmatchcase(key, rest)]

    def full(key: str) -> str:
        name, _, rest = key.partition(".")
        return f"{short.get(name, name)}.{rest}" if name in short else key

    tried = Evaluation(entry, matching)
    holds = tried.truth(tree)
    if holds and holds_always(tree, met, matching):
        raise InputError(f"`{condition}` holds whatever the values are, so it tests nothing")
    return Claim(phrase, expanded(condition, full), holds, tried.report(), tuple(used))
