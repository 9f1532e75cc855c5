"""Outputs: properties whose docstring is what a reader sees and whose unit the artifact prints."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar, overload

from mlsysim import units
from mlsysim.declarations.docstrings import equation_of, summary_of
from mlsysim.errors import InputError, MlsysimError, UnitError, nearest
from mlsysim.scalars import plain

__all__ = ["Output", "has_outputs", "meant", "output", "outputs"]

T = TypeVar("T")

# Units in which a whole number is a count and needs no quantity.
_COUNTED = ("tok", "seq", "param")


class Output(Generic[T]):
    """A property, computed once per object, whose value is always in `unit`, as it is published.

    Raises InputError or UnitError where it is declared, for a unit that is none, for a docstring
    that does not say what is computed and by which equation, and for an old name that is no name.
    """

    def __init__(self, compute: Callable[[Any], T], unit: str, formerly: str = "") -> None:
        self.compute = compute
        self.unit = unit
        self.formerly = formerly
        self.__doc__ = compute.__doc__
        self.name = compute.__name__
        self._check_declaration()

    def _check_declaration(self) -> None:
        place = f"{self.compute.__module__}: {self.compute.__qualname__}"
        try:
            units.dimension(self.unit)
        except UnitError as error:
            raise UnitError(f"{place}: @output({self.unit!r}): {error}") from None
        if self.formerly and not self.formerly.isidentifier():
            raise InputError(f"{place}: formerly={self.formerly!r}: expected the name that it had")
        if sys.flags.optimize >= 2:  # Python has thrown the docstrings away; nothing is published
            return
        if not summary_of(self):
            raise InputError(f"{place}: an output begins its docstring with what it is")
        if not equation_of(self):
            raise InputError(
                f"{place}: no equation; write 'Equation: ...' into its docstring, the formula over "
                "inputs and other outputs"
            )

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Output[T]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        if instance is None:
            return self
        # Not a data descriptor: the value lands in the instance and is found there next time.
        place = f"{type(instance).__name__}.{self.name}"
        value = instance.__dict__[self.name] = self._published(self.compute(instance), place)
        return value

    def _published(self, value: Any, place: str) -> Any:
        """The value in the declared unit. Raises MlsysimError for one that it cannot be."""
        if isinstance(value, Mapping):
            return {part: self._published(each, f"{place}.{part}") for part, each in value.items()}
        value = plain(value)
        if units.is_quantity(value):
            return self._in_unit(value, place)
        if not self.unit and (isinstance(value, (bool, int, float, str)) or has_outputs(value)):
            return value
        if self.unit in _COUNTED and type(value) is int:
            return value
        declared = f"in {self.unit}" if self.unit else "without a unit"
        expected = "a quantity" if self.unit else "a number, a word, or true or false"
        raise InputError(
            f"{place}: returned {repr(value)[:80]}, and is declared {declared}: expected {expected}"
        )

    def _in_unit(self, value: Any, place: str) -> Any:
        try:
            value = units.plain_quantity(value)
            if not self.unit or value.dimensionality != units.dimension(self.unit):
                declared = f"in {self.unit}" if self.unit else "without a unit"
                raise UnitError(f"returned {units.shown(value)}, and is declared {declared}")
            unit = units.unit(self.unit)
            return value if value.units == unit else value.to(unit)
        except MlsysimError as error:
            raise UnitError(f"{place}: {error}") from None


def output(unit: str = "", *, formerly: str = "") -> Callable[[Callable[[Any], T]], Output[T]]:
    """Declare a method as an output, published in `unit` (empty: a plain number or a word).

    `formerly` is the name that it had in the edition before: who asks for that is told the new one.
    """

    def declare(compute: Callable[[Any], T]) -> Output[T]:
        return Output(compute, unit, formerly)

    return declare


def outputs(cls: type) -> Iterator[Output[Any]]:
    """The outputs of a class, in the order they are written."""
    for base in reversed(cls.__mro__):
        yield from (member for member in vars(base).values() if isinstance(member, Output))


def meant(key: str, known: Iterable[str], declared: Iterable[Output[Any]], count: int = 5) -> str:
    """What may be meant by a key that is none: its new name, or the nearest of those known.

    `declared` are the outputs of which one may have had that name.
    """
    parts, known, declared = key.split("."), list(known), list(declared)
    for number, part in enumerate(parts):
        for new in sorted({each.name for each in declared if each.formerly == part}):
            now = ".".join((*parts[:number], new, *parts[number + 1 :]))
            if now in known:
                return f"it was renamed; write {now!r}"
    return nearest(key, known, count=count)


def has_outputs(thing: object) -> bool:
    """Whether a thing has outputs of its own, under whose names it is published."""
    return any(outputs(type(thing)))
