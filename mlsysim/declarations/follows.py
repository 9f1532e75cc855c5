"""What an input that follows another value says of it: the keys `follows`, `scale` and `digits`.

    [half_work]
    value = "407 GFLOP"
    follows = "Hardware.H100_SXM.half_work"
    scale = "Hardware.B200.rates.bf16 / Hardware.H100_SXM.rates.bf16"
    digits = 3
    source = "assumption: a layer costs the same time beyond its work as on H100"

It is the value of `follows`, an input or an output by its full name, times `scale`: a number, or
numbers and values with a * or / and a space on either side between them. Without `digits` it is
exactly that, with them that rounded to so many significant digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from mlsysim.errors import InputError

__all__ = ["KEYS", "NAME", "factors", "leaves", "stated", "told"]

KEYS = ("follows", "scale", "digits")
# The full name of a value, and the digits that a value may have in an artifact.
NAME = r"(?:Scenarios|Hardware|Models|Fleets)\.[A-Za-z]\w*(?:\.[\w-]+)+"
_MOST_DIGITS = 12
_COLLECTIONS = ("Hardware", "Models", "Fleets", "Scenarios")
_BORROWED = re.compile(
    r"assumption: *(?:as(?: in| on)?|those of|that of|the same as) "
    r"(?:(Scenarios|Hardware|Models|Fleets)\.)?([A-Za-z]\w*)"
)
_NUMBER = r"[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]{1,2})?"
_LONGEST = 400  # characters of a scale


def stated(
    table: Mapping[str, Any], key: str, place: str, exists: Callable[[str, str], bool]
) -> dict[str, Any]:
    """What the table of `key` says of the value that its own follows; nothing if it follows none.

    Raises InputError for what cannot be read, and for a source that says "as in NAME" of a value
    that follows nothing: nobody would compare the two. `exists` tells the names of a collection.
    """
    given = {part: table[part] for part in KEYS if part in table}
    place = f"{place}: {key}"
    if not given:
        _check_reason(table["source"], key, place, exists)
        return {}
    origin, scale, digits = (given.get(part) for part in KEYS)
    if not isinstance(origin, str) or not re.fullmatch(NAME, origin, re.ASCII):
        said = "is missing" if origin is None else f"= {str(origin)[:80]!r}"
        raise InputError(
            f"{place}.follows {said}: expected the full name of a value, as in "
            "'Hardware.H100_SXM.half_work' or 'Scenarios.DenseLLMPretrainingStep.data_parallel'"
        )
    if digits is not None and (type(digits) is not int or not 1 <= digits <= _MOST_DIGITS):
        raise InputError(
            f"{place}.digits = {str(digits)[:80]}: expected a whole number from 1 to {_MOST_DIGITS}"
        )
    if "scale" in given:
        given["scale"] = scale if isinstance(scale, str) else repr(scale)
        try:
            numbers = [
                factor for _, factor in factors(given["scale"]) if isinstance(factor, Fraction)
            ]
        except InputError as error:
            raise InputError(f"{place}.scale = {str(scale)[:80]!r}: {error}") from None
        if 0 in numbers:
            raise InputError(f"{place}.scale = {str(scale)[:80]!r}: a scale of zero says nothing")
    return given


def _check_reason(source: str, key: str, place: str, exists: Callable[[str, str], bool]) -> None:
    """Refuse a reason that is another value, in words that name a file."""
    found = _BORROWED.match(source)
    if not found:
        return
    for collection in [found[1]] if found[1] else _COLLECTIONS:
        if exists(collection, found[2]):
            raise InputError(
                f"{place}.source = {source[:80]!r}: a value that is as in another follows it; "
                f"write follows = '{collection}.{found[2]}.{key}', and here why it is that one"
            )


def factors(scale: str) -> Iterator[tuple[str, str | Fraction]]:
    """The numbers and names of a scale, each with the sign before it.

    >>> list(factors("2"))
    [('*', Fraction(2, 1))]
    >>> [factor for _, factor in factors("Hardware.B200.rates.bf16 / Hardware.H100_SXM.rates.bf16")]
    ['Hardware.B200.rates.bf16', 'Hardware.H100_SXM.rates.bf16']
    """
    parts = re.split(r" ([*/]) ", scale[: _LONGEST + 1])
    for sign, part in zip(("*", *parts[1::2]), parts[::2], strict=True):
        if len(scale) <= _LONGEST and re.fullmatch(NAME, part, re.ASCII):
            yield sign, part
        elif len(scale) <= _LONGEST and re.fullmatch(_NUMBER, part, re.ASCII):
            yield sign, Fraction(part)
        else:
            raise InputError(
                "expected numbers and full names of values, joined by * and / with a space on "
                "either side, as in 'Hardware.B200.rates.bf16 / Hardware.H100_SXM.rates.bf16'"
            )


def told(leaf: Mapping[str, Any]) -> str:
    """What the value of a leaf follows, in words; empty if it follows nothing.

    >>> told({"value": 16, "follows": "Models.GPT3_175B.layers", "scale": "2 / 3", "digits": 1})
    'Models.GPT3_175B.layers * 2 / 3, to 1 digit'
    """
    text = str(leaf.get("follows", ""))
    if text and "scale" in leaf:
        text += f" * {leaf['scale']}"
    if text and "digits" in leaf:
        text += f", to {leaf['digits']} digit{'s' if leaf['digits'] > 1 else ''}"
    return text


def leaves(fields: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every value of a document's fields by its key, ``rates.bf16``."""
    for name, leaf in fields.items():
        if "value" in leaf:
            yield prefix + name, leaf
        else:
            yield from leaves(leaf, f"{prefix}{name}.")
