"""Which definitions of which modules can move a digit or a text of an artifact.

From the roots one follows every name to what it stands for. What cannot be told apart is taken: a
class with its bases and methods, a module that is used as a thing with all that it defines. A
message of an exception counts only where some handler that is reached prints it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mlsysim.artifacts._definitions import OUTSIDE, Definition, Made
from mlsysim.artifacts._names import Key, Paths, Place
from mlsysim.canonical import digest

__all__ = ["Reached", "reach"]

# Who uses these may print any exception without giving it a name.
_TELL_ALL = {"__cause__", "__context__", "__exit__", "exc_info", "exception", "format_exc"}
# Bases whose own code calls no method by name.
_PLAIN_BASES = {"Generic", "NamedTuple", "object"}


@dataclass
class Reached:
    """What of a module counts, and the libraries that it uses."""

    texts: list[str] = field(default_factory=list)
    libraries: set[str] = field(default_factory=set)

    @property
    def digest(self) -> str:
        """One digest of all that counts, in its order."""
        return digest("\n".join(self.texts))


def reach(
    paths: Paths,
    roots: Iterable[tuple[str, str]],
    runs: Iterable[str],
    *,
    silent: Iterable[str] = (),
) -> dict[str, Reached]:
    """What is reached from roots, given as module and name, by module.

    `runs` are the modules that are imported, whose statements without a name run too. The
    docstrings of classes named `silent` are not printed.
    """
    begin = [place for module, name in roots for place in paths.follow(module, [name])]
    begin += [place for module in runs for place in paths.at_import(module)]
    told = frozenset[Key]()
    while True:
        walk = _Walk(paths, told, frozenset(silent))
        walk.add(begin)
        walk.finish()
        more = told | walk.tells()
        if more == told:
            return walk.result()
        told = more


class _Walk:
    """What is reached while the messages of some exceptions, those `told`, count."""

    def __init__(self, paths: Paths, told: frozenset[Key], silent: frozenset[str]) -> None:
        self._paths = paths
        self._told = told
        self._told_above = {above for each in told for above in paths.above(each)}
        self._silent = silent
        self._todo: list[Place] = []
        self._texts: dict[int, str] = {}
        self._whole: list[Place] = []
        self._mentions = set[str]()
        self._waiting: dict[str, list[Place]] = {}
        self._found: dict[str, Reached] = {}

    def add(self, places: Iterable[Place], user: str = "") -> None:
        """Take what a name of a module stands for."""
        for module, made in places:
            if module:
                self._todo.append((module, made))
            else:
                self._of(user).libraries.add(made.text)

    def _of(self, module: str) -> Reached:
        return self._found.setdefault(module, Reached())

    def finish(self) -> None:
        """Follow all that was taken."""
        while self._todo:
            module, made = self._todo.pop()
            if id(made) not in self._texts:
                self._of(module)
                self._take(module, made)

    def _take(self, module: str, made: Definition) -> None:
        paths = self._paths
        if made.is_class and any(paths.exceptions(module, made, base) for base in made.bases):
            key = (module, made.name)
            if not (key in self._told_above or paths.above(key) & self._told):
                self._texts[id(made)] = made.header
                self.add(paths.refs(module, made, made.bases), module)
                return
        self._whole.append((module, made))
        text, kept = [made.text], self._kept(module, made)
        if made.name not in self._silent:
            text.append(made.docstring)
        for index, each in enumerate(made.made):
            if index in kept:
                text.append(each.text)
            if each.raised and each.within in kept and each.of:
                self.add(paths.refs(module, made, [each.of]), module)
        for index in kept:
            self.add(paths.used(module, made, index), module)
            self._mention(made.mentions.get(index, set()))
        plain = all(
            base in _PLAIN_BASES
            or any(each.is_class for _, each in paths.refs(module, made, [base]))
            for base in made.bases
        )
        for name, member in made.members.items():
            if plain and name not in self._mentions:
                self._waiting.setdefault(name, []).append((module, member))
            else:
                self._todo.append((module, member))
        self._texts[id(made)] = "\n".join(text)

    def _mention(self, names: set[str]) -> None:
        for name in names - self._mentions:
            self._mentions.add(name)
            self._todo += self._waiting.pop(name, ())

    def _kept(self, module: str, made: Definition) -> set[int]:
        """Which of the things that are made count with their arguments, and what is outside."""
        kept, maker = {OUTSIDE}, bool(self._paths.makes(module, made))
        for index, each in enumerate(made.made):
            if each.within in kept and self._counts(module, made, each, maker):
                kept.add(index)
        return kept

    def _counts(self, module: str, made: Definition, each: Made, maker: bool) -> bool:
        """Whether the arguments of a call can get into an artifact."""
        if each.raised and not each.of:  # type(error)(...)
            return bool(self._told)
        exceptions = self._paths.exceptions(module, made, each.of)
        if not exceptions or not (each.raised or maker):
            return True
        return any(
            key in self._told_above or self._paths.above(key) & self._told for key in exceptions
        )

    def tells(self) -> frozenset[Key]:
        """The exceptions whose messages some definition that is reached may print."""
        found = set[Key]({"BaseException"} if self._mentions & _TELL_ALL else ())
        paths = self._paths
        for module, made in self._whole:
            kept, maker = self._kept(module, made), paths.makes(module, made)
            for handler in made.handlers:
                if handler.uses & kept:
                    for name in handler.caught:
                        found |= paths.exceptions(module, made, name)
            if maker:
                continue
            for each in made.made:
                if not each.raised and each.within in kept:
                    found |= paths.exceptions(module, made, each.of)
            for index in kept:
                for where, each_made in paths.used(module, made, index):
                    found |= paths.makes(where, each_made)
        return frozenset(found)

    def result(self) -> dict[str, Reached]:
        """What counts, by module, in the order of its text."""
        for module, found in self._found.items():
            source = self._paths.source(module)
            for each in source.definitions if source else ():
                parts = (each, *each.members.values())
                found.texts += [self._texts[id(part)] for part in parts if id(part) in self._texts]
        return dict(sorted(self._found.items()))
