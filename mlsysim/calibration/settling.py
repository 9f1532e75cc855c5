"""What the values that follow others should be, computed in the order in which they follow."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Any

from mlsysim import files, paths, units
from mlsysim.artifacts.code import one_look
from mlsysim.artifacts.ingredients import ingredients
from mlsysim.artifacts.lock import read_lock
from mlsysim.artifacts.reading import read
from mlsysim.calibration import _trying
from mlsysim.calibration._trying import Written
from mlsysim.calibration.differences import Finding
from mlsysim.calibration.following import Follower, Following, Target
from mlsysim.canonical import digest
from mlsysim.declarations.documents import Document
from mlsysim.declarations.follows import factors, told
from mlsysim.engine.scenarios import scenario
from mlsysim.errors import InputError, MlsysimError, UnitError

__all__ = ["findings"]

_LONGEST = 50  # values that follow each other in a row


@one_look()
def findings(following: Following | None = None) -> list[Finding]:
    """Every value that differs from what it follows, in the order in which they follow.

    An output of a stale artifact is computed anew, from inputs that are what they follow.
    """
    settling = _Settling(following or Following())
    found = []
    for follower in settling.following.followers.values():
        with suppress(MlsysimError):  # which is kept beside it
            settling.settle(follower)
    for follower, due in settling.settled:
        if isinstance(due, MlsysimError):
            found.append(Finding(follower, wrong=str(due)))
        elif due != follower.leaf["value"]:
            found.append(Finding(follower, due=due))
    return found


class _Circle(InputError):
    """A value that follows itself, by whatever way."""


class _Settling:
    """One computation of all values; each and each output is computed once."""

    def __init__(self, following: Following) -> None:
        self.following = following
        self.settled: list[tuple[Follower, Written | MlsysimError]] = []
        self._lock = read_lock()
        self._due: dict[tuple[str, str], Written | MlsysimError] = {}
        self._open: dict[tuple[str, str], str] = {}
        self._loaded: dict[tuple[str, str], Any] = {}
        self._made: dict[tuple[str, str], Any] = {}

    def settle(self, follower: Follower) -> Written:
        """The value as the file should have it: as it is, unless it differs.

        Raises MlsysimError where that cannot be known.
        """
        place = follower.place
        if place in self._open:
            trail = [*self._open.values()]
            trail = [*trail[trail.index(follower.name) :], follower.name]
            raise _Circle(f"these follow each other in a circle: {' -> '.join(trail)}")
        if len(self._open) > _LONGEST:
            raise _Circle(f"follows through more than {_LONGEST} others; follow one of the last")
        if place not in self._due:
            self._open[place] = follower.name
            try:
                self._due[place] = self._computed(follower)
            except MlsysimError as error:
                self._due[place] = error
            del self._open[place]
            self.settled.append((follower, self._due[place]))
        due = self._due[place]
        if isinstance(due, MlsysimError):
            raise due
        return due

    def _computed(self, follower: Follower) -> Written:
        leaf = follower.leaf
        given, own = leaf["value"], _trying.number(follower.document, follower.key, leaf["value"])
        origin, *_ = follower.terms
        followed = self._value(origin)
        if own is None or not isinstance(followed, units.Quantity):
            if own is not None or isinstance(followed, units.Quantity):
                raise InputError(f"{given!r} cannot follow {origin} = {_shown(followed)}")
            if "scale" in leaf or "digits" in leaf:
                raise InputError(f"{given!r} is no number, so it has neither scale nor digits")
            return given if given == followed else followed
        product = followed * self._scale(leaf.get("scale", "1"))
        try:
            exact = product.to(own.units).magnitude
        except units.DimensionalityError:
            raise UnitError(
                f"follows {told(leaf)}, which is in {units.unit_text(product) or 'no unit'}: "
                f"wrong dimension; expected a unit like {units.unit_text(own) or 'none'}"
            ) from None
        due = f"{float(exact):.{leaf.get('digits', _trying.DIGITS)}g}"
        return given if Fraction(due) == own.magnitude else _trying.written(given, float(due))

    def _scale(self, scale: str) -> Any:
        """The product of a scale."""
        product = units.Quantity(Fraction(1), "")
        for sign, factor in factors(scale):
            value = self._value(factor) if isinstance(factor, str) else factor
            if isinstance(value, (str, bool, list)):
                raise InputError(f"scale = {scale!r}: {factor} = {value!r} is no number")
            if not getattr(value, "magnitude", value):
                raise InputError(
                    f"scale = {scale!r}: {factor} is zero, and so is the scale or no number"
                )
            product = product * value if sign == "*" else product / value
        return product

    def _value(self, name: str) -> Any:
        """What a full name stands for: a quantity, or a word, a reference or a list."""
        try:
            target = self.following.find(name)
        except MlsysimError as error:
            raise type(error)(f"follows {name}: {error}") from None
        if target.leaf is None:
            return self._output(name, target)
        value = target.leaf["value"]
        if follower := self.following.follower(target.document, target.key, target.leaf):
            value = self._settled(name, follower)
        number = _trying.number(target.document, target.key, value)
        return value if number is None else number

    def _settled(self, name: str, follower: Follower) -> Written:
        """The due value of another on the way to a name; only a circle is told again."""
        try:
            return self.settle(follower)
        except _Circle:
            raise
        except MlsysimError:
            raise InputError(f"follows {name}: {follower.name} is not known") from None

    def _output(self, name: str, target: Target) -> Any:
        """An output of a scenario: that of the artifact if it is fresh, else computed now."""
        told, memo = target.document, (target.document.reference, target.key)
        if memo in self._made:
            return self._made[memo]
        around, changed = [], {}
        for each in self.following.within(told):
            if told.name in self.following.behind(each):
                around.append(each)  # it is what the output may not rest on
            else:
                due = self._settled(name, each)
                if due != each.leaf["value"]:
                    changed[each.place] = due
        entry = None if changed else self._published(told, target.key)
        try:
            found = entry or self._now(told, target.key, changed)
        except MlsysimError as error:
            raise InputError(f"follows {name}, which cannot be computed: {error}") from None
        if around and not entry and not self._is_apart(target, found, changed, around):
            first = ", ".join(each.name for each in around[:3]) + ", ..." * (len(around) > 3)
            raise _Circle(f"a circle: {name} rests on {first}, and that on it")
        value, unit = found
        if isinstance(value, (str, bool)):
            raise InputError(
                f"follows {name}, which is the word {value!r}: an output to follow is a number"
            )
        self._made[memo] = units.Quantity(_trying.exact(value), units.unit(unit) if unit else "")
        return self._made[memo]

    def _published(self, told: Document, key: str) -> tuple[Any, str] | None:
        """Value and unit in the artifact, if that is fresh and holds the key."""
        artifact = files.read(paths.artifact(told.name))
        if self._lock.certifies(told.name, ingredients(told), digest(artifact)):
            entry = read(told.name).outputs.get(key)
            return (entry["value"], entry["unit"]) if entry else None
        return None

    def _now(self, told: Document, key: str, new: dict[tuple[str, str], Written]) -> Any:
        """An output computed now, from inputs of which some are others."""
        memo = told.reference, repr(sorted(new.items()))
        if memo not in self._loaded:
            self._loaded[memo] = scenario(_trying.patched(told, new))
        return _trying.output(self._loaded[memo], key)

    def _is_apart(
        self,
        target: Target,
        found: Any,
        changed: dict[tuple[str, str], Written],
        around: list[Follower],
    ) -> bool:
        """Whether an output stays when values that follow it move, so that they can follow it."""
        try:
            moved = {each.place: _trying.moved(each.leaf["value"]) for each in around}
            return bool(self._now(target.document, target.key, {**changed, **moved}) == found)
        except MlsysimError:
            return False


def _shown(value: Any) -> str:
    return units.shown(value) if isinstance(value, units.Quantity) else repr(value)
