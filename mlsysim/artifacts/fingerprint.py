"""Which of many parts changed, told by the few characters that a line of a file has left for them.

A part has so many bits as fit, twelve at most. That two of its contents share them is a chance of
one in 4,096, or one in 32 where a long name leaves five: they name what changed, they never decide
whether anything did.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from mlsysim.canonical import digest

__all__ = ["changed", "packed"]

_DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
_MOST = 12

Parts = Sequence[tuple[str, str]]


def packed(parts: Parts, room: int) -> str:
    """The fingerprint of named parts in `room` characters of base64 at most.

    The first character says how many bits a part has; the others are one number, a 1 in front.

    >>> packed([("inputs", "a"), ("mlsysim.units", "b")], 40)
    'MBF3Ml'
    >>> len(packed([("module", str(number)) for number in range(70)], 57))
    48
    """
    bits = max(0, min(_MOST, (6 * (room - 1) - 1) // max(1, len(parts))))
    number = 1
    for symbol in _symbols(parts, bits):
        number = number << bits | symbol
    text = ""
    while number:
        number, last = divmod(number, len(_DIGITS))
        text = _DIGITS[last] + text
    return _DIGITS[bits] + text


def changed(then: str, now: Parts) -> list[str]:
    """The names of parts that are other ones than in a fingerprint, or were none of its parts.

    >>> then = packed([("inputs", "a"), ("memory", "b"), ("units", "c")], 40)
    >>> changed(then, [("inputs", "a"), ("memory", "other"), ("units", "c")])
    ['memory']
    >>> changed(then, [("helper", "new"), ("inputs", "a"), ("memory", "b")])
    ['helper', 'one that is gone']
    """
    bits, before = _unpacked(then)
    if not before:
        return []
    match = SequenceMatcher(None, before, list(_symbols(now, bits)), autojunk=False)
    edits = [edit for edit in match.get_opcodes() if edit[0] != "equal"]
    names = [now[index][0] for *_, first, last in edits for index in range(first, last)]
    return names + ["one that is gone"] * any(what == "delete" for what, *_ in edits)


def _symbols(parts: Parts, bits: int) -> Iterable[int]:
    """A number of so many bits for the name and content of each part."""
    return (int(digest(list(part))[:3], 16) >> (_MOST - bits) for part in parts)


def _unpacked(text: str) -> tuple[int, list[int]]:
    """The bits of a part and the numbers; none of a text that is no fingerprint."""
    bits = _DIGITS.find(text[:1])
    if not (text and 0 < bits <= _MOST and set(text) <= set(_DIGITS)):
        return 0, []
    number = 0
    for sign in text[1:]:
        number = number * len(_DIGITS) + _DIGITS.index(sign)
    count, mask = max(0, number.bit_length() - 1) // bits, (1 << bits) - 1
    return bits, [number >> bits * (count - 1 - index) & mask for index in range(count)]
