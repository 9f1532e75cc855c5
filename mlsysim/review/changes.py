"""The kinds of things that a change moves: plain records, which the forms of a review print."""

from __future__ import annotations

from dataclasses import dataclass

from mlsysim.review.moves import Move, Noticed, noticed
from mlsysim.review.places import Place

__all__ = [
    "ClaimChange",
    "CodeChange",
    "FactChange",
    "FigureChange",
    "InputChange",
    "OutputChange",
    "PrintedChange",
    "TextChange",
]

_NARROW = 0.1  # a claim whose slack shrank below this part of what it was is nearly another one


@dataclass(frozen=True)
class InputChange:
    """An input with another value: its full name, its sources, and the artifacts that list it.

    `follows` is what it follows; `under` are changed inputs that follow it, or what it reaches.
    """

    name: str
    move: Move
    old_source: str
    source: str
    follows: str
    reaches: tuple[str, ...]
    under: tuple[InputChange, ...] = ()

    @property
    def is_unexplained(self) -> bool:
        """Whether the value moved while its source says the same, and it follows nothing."""
        return not self.follows and self.old_source == self.source and self.move.is_change


@dataclass(frozen=True)
class CodeChange:
    """A module or a library that artifacts rest on: its versions, or what in it changed."""

    name: str
    parts: tuple[str, ...] = ()
    old: str = ""
    new: str = ""


@dataclass(frozen=True)
class OutputChange:
    """An output with another value, and how many places of the book print it."""

    name: str
    move: Move
    places: int


@dataclass(frozen=True)
class FactChange:
    """What else artifacts say otherwise: unit, equation, source, feasibility and the like.

    `names` are all in which the same text became the same other one.
    """

    what: str
    old: str
    new: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class PrintedChange:
    """A place of the book that prints another text.

    `why` is "moved" where the value did, "printed otherwise" where the page asks for another form
    of it, "typed" for a plain cell of a table, and "drawn" for a text in a figure. The last two
    have no key.
    """

    key: str
    place: Place
    old: str
    new: str
    why: str
    move: Move | None = None

    @property
    def noticed(self) -> Noticed:
        """How much a reader would notice."""
        return noticed(self.old, self.new, prominent=self.place.is_prominent)


@dataclass(frozen=True)
class TextChange:
    """A quote or a claim that a page has now, or has no longer."""

    place: Place
    what: str
    said: str
    is_new: bool


@dataclass(frozen=True)
class ClaimChange:
    """A claim whose values moved, and how far it is from falling, before and after."""

    place: Place
    phrase: str
    condition: str
    old: float
    new: float

    @property
    def fell(self) -> bool:
        """Whether it is false now."""
        return self.new < 0

    @property
    def is_narrow(self) -> bool:
        """Whether it came much nearer to falling."""
        return 0 <= self.new < _NARROW * self.old


@dataclass(frozen=True)
class FigureChange:
    """A figure with other data: its largest move in parts of the span of its column.

    `row` is the first cell of that row. `rows` and `columns` are those that came (+) or went (-).
    A figure with the same data and another drawing has neither, and `style_only`.
    """

    name: str
    place: Place
    largest: float = 0.0
    column: str = ""
    row: str = ""
    old: str = ""
    new: str = ""
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    style_only: bool = False
