"""Which values follow others, and which those are; what they should be is for settling.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mlsysim import paths
from mlsysim.declarations import documents
from mlsysim.declarations.documents import Document, Known
from mlsysim.declarations.follows import factors, leaves
from mlsysim.errors import MlsysimError, UnknownName, nearest

__all__ = ["Follower", "Following", "Target", "reached"]

_COLLECTIONS = ("Hardware", "Models", "Fleets", "Scenarios")


@dataclass(frozen=True)
class Follower:
    """A value of a file that follows another; `key` is its place there, ``rates.bf16``."""

    document: Document
    key: str
    leaf: dict[str, Any]

    @property
    def name(self) -> str:
        """Its full name."""
        return f"{self.document.reference}.{self.key}"

    @property
    def place(self) -> tuple[str, str]:
        """File and key, which are the same for a scenario that inherits the value."""
        return self.document.place, self.key

    @property
    def terms(self) -> list[str]:
        """The full names that it is computed from: what it follows, then those of its scale."""
        scale = factors(self.leaf.get("scale", "1"))
        return [self.leaf["follows"], *(each for _, each in scale if isinstance(each, str))]


@dataclass(frozen=True)
class Target:
    """What a full name leads to: an input, with its leaf, or an output of a scenario without."""

    document: Document
    key: str
    leaf: dict[str, Any] | None = None


class Following:
    """Values that follow others: all of them, or those that the scenarios `names` rest on.

    `known` holds documents that were read before, by full name, and is filled here. What cannot be
    read has none; `unreadable` holds the errors, each once.
    """

    def __init__(self, known: Known | None = None, names: Iterable[str] | None = None) -> None:
        self.known = Known() if known is None else known
        self.unreadable: list[str] = []
        self._rests: dict[str, set[str]] = {}
        self._met: dict[tuple[str, str], Follower] = {}
        found = self._read(f"Scenarios.{name}" for name in names) if names is not None else ()
        everything = self._read(f"{c}.{n}" for c in _COLLECTIONS for n in documents.names(c))
        self.followers = {
            each.place: each
            for told in (everything if names is None else found)
            for each in (self._own(told) if names is None else self.within(told))
        }

    def _read(self, references: Iterable[str]) -> Iterator[Document]:
        for reference in references:
            try:
                yield documents.document(reference, self.known)
            except MlsysimError as error:
                if str(error) not in self.unreadable:
                    self.unreadable.append(str(error))

    def _own(self, told: Document) -> Iterator[Follower]:
        """The values of a document itself that follow others."""
        for key, leaf in leaves(told.fields):
            if follower := self.follower(told, key, leaf):
                yield follower

    def follower(self, told: Document, key: str, leaf: dict[str, Any]) -> Follower | None:
        """A value of a document as one that follows another; it may stand in the base's file."""
        if "follows" not in leaf or not _is_compared(told, leaf):
            return None
        place = told.places[key.partition(".")[0]]
        if (place, key) not in self._met:
            if place != told.place:
                told = documents.document(f"Scenarios.{Path(place).stem}", self.known)
            self._met[place, key] = Follower(told, key, leaf)
        return self._met[place, key]

    def find(self, name: str) -> Target:
        """What a full name leads to, through references on its way.

        Raises UnknownName with the nearest names; whether an output exists is seen when it is
        computed.
        """
        collection, entry, *parts = name.split(".")
        found = documents.document(f"{collection}.{entry}", self.known)
        while True:
            field = found.fields.get(parts[0])
            if field is None and found.reference.startswith("Scenarios."):
                return Target(found, ".".join(parts))
            key, leaf = parts[0], field or {}
            if field and "value" not in field and len(parts) > 1:
                key, leaf = ".".join(parts[:2]), field.get(parts[1], {})
            rest = parts[key.count(".") + 1 :]
            if "value" not in leaf:
                inputs = [each for each, _ in leaves(found.fields)]
                raise UnknownName(
                    f"{found.reference} has no value {'.'.join(parts)!r}; "
                    f"{nearest('.'.join(parts), inputs, count=20)}"
                )
            if not rest:
                return Target(found, key, leaf)
            linked = found.linked.get(str(leaf["value"]))
            if linked is None:
                raise UnknownName(
                    f"{found.reference}.{key} is no reference, and has no {rest[0]!r}"
                )
            found, parts = linked, rest

    @cached_property
    def origins(self) -> list[str]:
        """The scenarios whose outputs are followed, each after those that it rests on."""
        found = {
            told.name: len(self._behind(told) - {told.name})
            for follower in self.followers.values()
            for told in self._origins_of(follower)
        }
        return sorted(found, key=lambda name: (found[name], name))

    def behind(self, follower: Follower) -> set[str]:
        """The scenarios that a value rests on, through all that their inputs follow in turn."""
        origins = self._origins_of(follower)
        return {told.name for told in origins}.union(*map(self._behind, origins))

    def _behind(self, told: Document) -> set[str]:
        """The scenarios that the inputs of a scenario rest on in this way."""
        if told.name not in self._rests:
            found, todo = set[str](), [told]
            while todo:
                for follower in self.within(todo.pop()):
                    new = [o for o in self._origins_of(follower) if o.name not in found]
                    found |= {each.name for each in new}
                    todo += new
            self._rests[told.name] = found
        return self._rests[told.name]

    def _origins_of(self, follower: Follower) -> list[Document]:
        """The scenarios whose outputs a value takes, itself or by the inputs that it follows."""
        found, todo, seen = [], [follower], {follower.place}
        while todo:
            for target in self.targets(todo.pop()):
                if target.leaf is None:
                    found.append(target.document)
                    continue
                next_ = self.follower(target.document, target.key, target.leaf)
                if next_ and next_.place not in seen:
                    seen.add(next_.place)
                    todo.append(next_)
        return found

    def within(self, told: Document) -> list[Follower]:
        """The values that follow others among all that a document rests on."""
        return [follower for each in _all(told) for follower in self._own(each)]

    def targets(self, follower: Follower) -> Iterator[Target]:
        """What the names lead to that a value is computed from, where they lead to anything."""
        for name in follower.terms:
            try:
                yield self.find(name)
            except MlsysimError:
                continue


def _is_compared(told: Document, leaf: dict[str, Any]) -> bool:
    """Whether what a value follows belongs to this project.

    A registry that serves another project than its own follows scenarios which that need not hold.
    """
    if told.reference.startswith("Scenarios.") or paths.root() == paths.PACKAGE.parent:
        return True
    collection, name, *_ = leaf["follows"].split(".")
    return collection != "Scenarios" or documents.exists(collection, name)


def reached(told: Document) -> set[tuple[str, str]]:
    """File and key of every value that a document rests on."""
    return {
        (each.places[key.partition(".")[0]], key)
        for each in _all(told)
        for key, _ in leaves(each.fields)
    }


def _all(told: Document) -> Iterator[Document]:
    """A document and all that it refers to, each once."""
    todo, seen = [told], set[str]()
    while todo:
        each = todo.pop()
        if each.reference not in seen:
            seen.add(each.reference)
            yield each
            todo += each.linked.values()
