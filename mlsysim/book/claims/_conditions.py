"""The condition of a claim: its grammar, and the small tree that it is read into.

    condition   any of `and`, `or`, `not` and ( ) over comparisons
    comparison  SIDE < SIDE, also <= > >= =, and chains: a < b < c
                SIDE = SIDE within 10 %, of the right side, or within 0.2 s
                KEY is WORD, KEY is not WORD, KEY is KEY
    SIDE        keys, numbers (8 s, 10 %, 3.35 TB/s), + - * / ( ), min(...), max(...), abs(...);
                in min and max a key may stand for many: max(runs.mean_error_of.*)

Keys may hold hyphens (`runs.mean_error_of.bloom-176b`), and units * and /, so spaces stand around
every + - * / that computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from mlsysim.book.claims._condition_tokens import EXPECTED, RESERVED, number, tokens
from mlsysim.errors import InputError

__all__ = [
    "Arithmetic",
    "Call",
    "Comparison",
    "Is",
    "Junction",
    "Key",
    "Node",
    "Not",
    "Number",
    "keys",
    "parse",
]

SIGNS = ("<", "<=", ">", ">=", "=")
FUNCTIONS = ("min", "max", "abs")
_MOST = 1000  # characters of a condition
_DEEPEST = 30  # levels of ( ) and not


@dataclass(frozen=True)
class Node:
    """A part of a condition, with the text that it was read from."""

    text: str


@dataclass(frozen=True)
class Number(Node):
    """A number as typed, exactly, with its unit; the empty unit is a plain number."""

    magnitude: Fraction
    unit: str


@dataclass(frozen=True)
class Key(Node):
    """A value of a scenario; the text is the key."""


@dataclass(frozen=True)
class Arithmetic(Node):
    """Two sides joined by + - * or /."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Call(Node):
    """min, max or abs of values."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Comparison(Node):
    """Two or more sides with a sign between each pair; a tolerance belongs to a single =."""

    sides: tuple[Node, ...]
    signs: tuple[str, ...]
    within: Number | None = None


@dataclass(frozen=True)
class Is(Node):
    """Whether a value is a word: `KEY is WORD`; the other may be a key as well."""

    key: Key
    other: Node
    negated: bool


@dataclass(frozen=True)
class Not(Node):
    """The opposite of a condition."""

    part: Node


@dataclass(frozen=True)
class Junction(Node):
    """Conditions joined by `and`, or by `or`."""

    word: str
    parts: tuple[Node, ...]


def parse(text: str) -> Node:
    """The tree of a condition.

    >>> parse("step.bubble < 0.1 * step.step_time").signs
    ('<',)

    Raises InputError that says what was expected where.
    """
    return _Parser(text).whole()


def keys(node: Node) -> Iterator[Key]:
    """Every key below a node, in the order of the text."""
    if isinstance(node, Key):
        yield node
    for value in vars(node).values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Node):
                yield from keys(part)


class _Parser:
    """A recursive descent over the tokens; each method reads one level of precedence."""

    def __init__(self, text: str) -> None:
        if len(text) > _MOST:
            raise InputError(f"a condition of more than {_MOST} characters; write several claims")
        self.source = text
        self.tokens = tokens(text)
        if sum(token.text in ("(", "not") for token in self.tokens) > _DEEPEST:
            raise InputError(f"more than {_DEEPEST} ( and not; write several claims")
        self.at = 0

    def whole(self) -> Node:
        node = self._junction("or")
        if self.at < len(self.tokens):
            raise self._wrong("the condition ends before it")
        if not any(True for _ in keys(node)):
            raise InputError(f"the condition rests on no key; {EXPECTED}")
        return node

    def _wrong(self, why: str) -> InputError:
        found = f"at {self._text()!r}: " if self._text() else ""
        return InputError(f"{found}{why}; {EXPECTED}")

    def _text(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def _take(self, *texts: str) -> str:
        """The next token if it is one of `texts`, else nothing."""
        text = self._text()
        if text in texts:
            self.at += 1
            return text
        return ""

    def _from(self, start: int) -> str:
        """The source from the token at `start` to the last one taken."""
        return self.source[self.tokens[start].start : self.tokens[self.at - 1].end]

    def _junction(self, word: str) -> Node:
        start = self.at
        below: Callable[[], Node] = self._negation
        if word == "or":
            below = partial(self._junction, "and")
        parts = [below()]
        while self._take(word):
            parts.append(below())
        return parts[0] if len(parts) == 1 else Junction(self._from(start), word, tuple(parts))

    def _negation(self) -> Node:
        start = self.at
        if self._take("not"):
            part = self._negation()
            return Not(self._from(start), part)
        return self._comparison()

    def _comparison(self) -> Node:
        start = self.at
        sides, signs = [self._sum()], []
        if isinstance(sides[0], Key) and self._take("is"):
            negated = bool(self._take("not"))
            other = self._word()
            return Is(self._from(start), sides[0], other, negated)
        while sign := self._take(*SIGNS):
            signs.append(sign)
            sides.append(self._sum())
        if not signs:
            return sides[0]
        within = None
        if self._take("within"):
            within = self._tolerance(signs)
        return Comparison(self._from(start), tuple(sides), tuple(signs), within)

    def _word(self) -> Node:
        """What follows `is`: a key, a text in quotation marks, or words up to the next sign."""
        start = self.at
        while (
            self.at < len(self.tokens) and self._kind() == "word" and self._text() not in RESERVED
        ):
            self.at += 1
        if self.at == start and self.at < len(self.tokens) and self._kind() in ("text", "key"):
            self.at += 1
            text = self._from(start)
            return Key(text) if self.tokens[start].kind == "key" else Node(text.strip("'"))
        if self.at == start:
            raise self._wrong("after `is` comes a word, or a text in '...'")
        return Node(" ".join(self._from(start).split()))

    def _kind(self) -> str:
        return self.tokens[self.at].kind

    def _tolerance(self, signs: list[str]) -> Number:
        if signs != ["="]:
            raise self._wrong("`within` belongs to one `=`, as in A = B within 10 %")
        tolerance = self._atom()
        if not isinstance(tolerance, Number) or not tolerance.unit or tolerance.magnitude < 0:
            raise self._wrong("after `within` comes a number with % or another unit")
        return tolerance

    def _sum(self) -> Node:
        return self._left("+-−", self._product)

    def _product(self) -> Node:
        return self._left("*/", self._atom)

    def _left(self, operators: str, below: Callable[[], Node]) -> Node:
        start = self.at
        node = below()
        while operator := self._take(*operators):
            right = below()
            node = Arithmetic(self._from(start), operator.replace("−", "-"), node, right)
        return node

    def _atom(self) -> Node:
        if self.at == len(self.tokens):
            raise self._wrong("the condition ends where a value was expected")
        start, token = self.at, self.tokens[self.at]
        self.at += 1
        if token.kind == "key":
            return Key(token.text)
        if token.kind == "number":
            return Number(token.text, *number(token))
        if token.text in FUNCTIONS and self._take("("):
            arguments = [self._sum()]
            while self._take(","):
                arguments.append(self._sum())
            self._close()
            if token.text == "abs" and len(arguments) != 1:
                raise self._wrong("abs takes one value")
            return Call(self._from(start), token.text, tuple(arguments))
        if token.text == "(":
            node = self._junction("or")
            self._close()
            return node
        self.at -= 1
        if token.kind == "word" and token.text not in RESERVED:
            raise self._wrong("a key names a scenario and one of its values, as in step.step_time")
        raise self._wrong("a key or a number was expected")

    def _close(self) -> None:
        if not self._take(")"):
            raise self._wrong("a ) was expected")
