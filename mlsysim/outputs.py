"""Outputs: properties whose docstring is what a reader sees and whose unit the artifact prints."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, overload

__all__ = ["Output", "equation_of", "output", "outputs", "summary_of"]

T = TypeVar("T")


class Output(Generic[T]):
    """A property, computed once per object; `unit` is the unit it is published in."""

    def __init__(self, compute: Callable[[Any], T], unit: str) -> None:
        self.compute = compute
        self.unit = unit
        self.__doc__ = compute.__doc__
        self.name = compute.__name__

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
        value = instance.__dict__[self.name] = self.compute(instance)
        return value


def output(unit: str = "") -> Callable[[Callable[[Any], T]], Output[T]]:
    """Declare a method as an output, published in `unit` (empty: a plain number or a word)."""

    def declare(compute: Callable[[Any], T]) -> Output[T]:
        return Output(compute, unit)

    return declare


def outputs(cls: type) -> Iterator[Output[Any]]:
    """The outputs of a class, in the order they are written."""
    for base in reversed(cls.__mro__):
        yield from (member for member in vars(base).values() if isinstance(member, Output))


def summary_of(documented: Any) -> str:
    """The first paragraph of a docstring on one line, without its equation."""
    text = inspect.cleandoc(documented.__doc__ or "").partition("\n\n")[0]
    return " ".join(text.partition("Equation:")[0].split())


def equation_of(documented: Any) -> str:
    """What a docstring gives after "Equation:", on one line; empty if it gives none."""
    return section_of(documented, "Equation")


def section_of(documented: Any, title: str) -> str:
    """What a docstring says after "`title`:" up to the end of that paragraph, on one line.

    >>> def area():
    ...     '''Area. Equation: width *
    ...     height.'''
    >>> section_of(area, "Equation")
    'width * height'
    """
    text = inspect.cleandoc(documented.__doc__ or "")
    found = re.search(rf"(?:^|\s){title}:\s+(.*?)(?=\n\n|\Z)", text, re.DOTALL)
    return " ".join(found[1].split()).removesuffix(".") if found else ""
