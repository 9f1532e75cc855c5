"""What in two revisions is one thing: scenarios, outputs, pages, and the entries of lists."""

from __future__ import annotations

import tomllib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from typing import TypeVar

from mlsysim.artifacts.reading import Artifact
from mlsysim.review.snapshots import Snapshot

__all__ = ["Pairs", "aligned"]

_T = TypeVar("_T", bound=Hashable)


class Pairs:
    """The scenarios and pages of two snapshots, brought together over their renames."""

    def __init__(self, before: Snapshot, after: Snapshot) -> None:
        old, new = before.scenarios, after.scenarios
        gone, come = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
        # Old name of each scenario, output and page that has another one now.
        self.scenarios: dict[str, str] = {}
        for name in come:
            if was := _old_scenario(before, after, name, gone):
                self.scenarios[name] = was
                gone.remove(was)
        self.added = [name for name in come if name not in self.scenarios]
        self.removed = gone
        names = {name: name for name in sorted(old.keys() & new.keys())} | self.scenarios
        self.artifacts: list[tuple[Artifact, Artifact]] = []
        for name, was in sorted(names.items()):
            if old[was] != new[name]:
                one, other = before.artifact(was), after.artifact(name)
                if one and other:
                    self.artifacts.append((one, other))
        self.outputs: dict[str, str] = {
            f"{other.name}.{key}": was
            for one, other in self.artifacts
            for key, was in _renamed_outputs(one, other).items()
        }
        self.pages = list(_pages(before, after))

    def key_now(self, key: str) -> str:
        """The full key that a quote of before has now, if its scenario or output was renamed."""
        name, _, rest = key.partition(".")
        name = next((new for new, was in self.scenarios.items() if was == name), name)
        for full, was in self.outputs.items():
            scenario, _, now = full.partition(".")
            if (scenario, was) == (name, rest):
                return f"{name}.{now}"
        return f"{name}.{rest}"

    def old_key(self, scenario: str, key: str) -> str:
        """The key inside its artifact that an output had before."""
        return self.outputs.get(f"{scenario}.{key}", key)


def _old_scenario(before: Snapshot, after: Snapshot, name: str, gone: Sequence[str]) -> str:
    """The scenario that is called `name` now: one that it was formerly, or its very outputs."""
    with suppress(tomllib.TOMLDecodeError):
        said = tomllib.loads(after.text(f"scenarios/{name}.toml")).get("formerly", [])
        for was in gone:
            if was in said:
                return was
    new = after.artifact(name)
    for was in gone if new else ():
        old = before.artifact(was)
        if old and new and (old.kind, old.outputs) == (new.kind, new.outputs):
            return was
    return ""


def _renamed_outputs(old: Artifact, new: Artifact) -> Mapping[str, str]:
    """The old key of each output that says what one with another key said before."""
    gone = [key for key in old.outputs if key not in new.outputs]
    found = {}
    for key in new.outputs if gone else ():
        same = [was for was in gone if old.outputs[was] == new.outputs[key]]
        if key not in old.outputs and len(same) == 1:
            found[key] = same[0]
    return found


def _pages(before: Snapshot, after: Snapshot) -> Iterator[tuple[str, str]]:
    """Old and new name of every page; one that was renamed is known by what it quotes."""
    old, new = before.records(), after.records()
    gone = [page for page in old if page not in new]
    for page in new:
        was = page if page in old else ""
        if not was:
            specs = [quote.spec for quote in after.quotes.get(page, ())]
            was = next((each for each in gone if specs and specs == _specs(before, each)), "")
            gone = [each for each in gone if each != was]
        yield was, page
    yield from ((page, "") for page in gone)


def _specs(snapshot: Snapshot, page: str) -> list[str]:
    return [quote.spec for quote in snapshot.quotes.get(page, ())]


def aligned(old: Sequence[_T], new: Sequence[_T]) -> Iterator[tuple[int | None, int | None]]:
    """The numbers of entries that are one, in the order of `new`; None for what has no other.

    >>> list(aligned("abcd", "axcd"))
    [(0, 0), (1, None), (None, 1), (2, 2), (3, 3)]
    """
    if list(old) == list(new):
        yield from ((each, each) for each in range(len(new)))
        return
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag == "equal":
            yield from zip(range(first, last), range(start, end), strict=True)
        else:
            yield from ((each, None) for each in range(first, last))
            yield from ((None, each) for each in range(start, end))
