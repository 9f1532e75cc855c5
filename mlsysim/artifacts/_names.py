"""Where the names in a definition lead: to definitions of ours, to libraries, to exceptions."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from mlsysim.artifacts._definitions import Definition, Import
from mlsysim.artifacts._sources import Source

__all__ = ["Key", "Paths", "Place"]

Key = tuple[str, str] | str  # an exception: module and name, or the name of a builtin one
Place = tuple[str, Definition]  # of a library there is no module


class Paths:
    """Where names lead, in modules that do not change meanwhile.

    `source` gives the definitions of a module of ours. What lies behind `doors`, a module, or a
    name in one, is not followed: whatever it gives is an ingredient by itself.
    """

    def __init__(
        self, source: Callable[[str], Source | None], doors: Iterable[tuple[str, str]] = ()
    ) -> None:
        self.source = cache(source)
        self._doors = frozenset(doors)
        self._known: dict[tuple[str, str, int], list[Place]] = {}
        self._used: dict[tuple[int, int], list[Place]] = {}
        self._exceptions: dict[tuple[str, str, int], set[Key]] = {}
        self._above: dict[Key, set[Key]] = {}
        self._at_import: dict[str, list[Place]] = {}

    def refs(self, module: str, made: Definition, refs: Iterable[str]) -> Iterator[Place]:
        """What the dotted names in a definition stand for."""
        for each in refs:
            key = (module, each, id(made) if made.local else 0)
            if key not in self._known:
                name, *rest = each.split(".")
                found = [
                    place
                    for taken in made.local.get(name, ())
                    for place in self._taken(taken, rest)
                ]
                self._known[key] = found or [*self.follow(module, [name, *rest])]
            yield from self._known[key]

    def used(self, module: str, made: Definition, within: int) -> list[Place]:
        """What the names stand for that a definition has in the arguments of something it makes."""
        key = (id(made), within)
        if key not in self._used:
            places = self.refs(module, made, sorted(made.refs.get(within, ())))
            self._used[key] = [*{id(each): (where, each) for where, each in places}.values()]
        return self._used[key]

    def follow(self, module: str, names: list[str]) -> Iterator[Place]:
        """What a name in a module stands for, and the names after it, as far as these are ours."""
        found = self.source(module)
        if not found or self._is_door(module, names[0]):
            return
        for each in found.names.get(names[0], ()):
            yield module, each
            if each.takes:
                yield from self._taken(each.takes, names[1:])

    def _taken(self, taken: Import, rest: list[str]) -> Iterator[Place]:
        module, name = taken
        found, rest = self.source(module), [name, *rest] if name else rest
        if not found:
            top = module.partition(".")[0]
            if top not in sys.stdlib_module_names:
                yield "", Definition(text=top)
        elif not rest or rest[0] == "*":
            yield from ((module, each) for each in found.definitions)
        elif rest[0] in found.names:
            yield from self.follow(module, rest)
        elif self.source(f"{module}.{rest[0]}"):
            yield from self._taken((f"{module}.{rest[0]}", ""), rest[1:])
        else:
            yield from self.follow(module, ["__getattr__"])

    def _is_door(self, module: str, name: str) -> bool:
        return bool({(module, ""), (module, name)} & self._doors)

    def at_import(self, module: str) -> list[Place]:
        """What counts once a module is imported: statements that may change what others see."""
        found = self.source(module)
        if not found or self._is_door(module, ""):
            return []
        if module not in self._at_import:
            runs = [*self.follow(module, ["*"])]
            runs += [
                (module, each)
                for each in found.definitions
                if each in found.always
                or any(self._changes(*place) for place in self.refs(module, each, each.runs))
            ]
            self._at_import[module] = runs
        return self._at_import[module]

    def _changes(self, module: str, made: Definition) -> bool:
        """Whether a definition that is called may change what others see."""
        todo, seen = [(module, made)], set[int]()
        while todo:
            where, each = todo.pop()
            if id(each) not in seen:
                seen.add(id(each))
                if each.changes:
                    return True
                for part in (each, *each.members.values()):
                    for within in part.refs:
                        todo += self.used(where, part, within)
        return False

    def exceptions(self, module: str, made: Definition, name: str) -> set[Key]:
        """The exceptions that a dotted name stands for, or that a function of that name makes."""
        key = (module, name, id(made) if made.local else 0)
        if key not in self._exceptions:
            self._exceptions[key] = self._found_exceptions(module, made, name)
        return self._exceptions[key]

    def _found_exceptions(self, module: str, made: Definition, name: str) -> set[Key]:
        places = [*self.refs(module, made, [name])] if name else []
        if not places and isinstance(getattr(builtins, name, None), type):
            return {name} if issubclass(getattr(builtins, name), BaseException) else set()
        found = set[Key]()
        for where, each in places:
            if each.is_class and self._is_exception(where, each):
                found.add((where, each.name))
            elif each.returns:
                found |= self.exceptions(where, each, each.returns)
        return found

    def _is_exception(self, module: str, made: Definition) -> bool:
        return any(self.exceptions(module, made, base) for base in made.bases)

    def makes(self, module: str, made: Definition) -> set[Key]:
        """The exceptions that a function gives back, for others to raise."""
        return self.exceptions(module, made, made.returns) if not made.is_class else set()

    def above(self, key: Key) -> set[Key]:
        """An exception and all that it is a kind of."""
        if key not in self._above:
            self._above[key] = self._found_above(key)
        return self._above[key]

    def _found_above(self, key: Key) -> set[Key]:
        if isinstance(key, str):
            return {each.__name__ for each in getattr(builtins, key).__mro__}
        found: set[Key] = {key}
        for module, made in self.follow(key[0], [key[1]]):
            for base in made.bases:
                for each in self.exceptions(module, made, base):
                    found |= self.above(each)
        return found
