"""A document in which some values are others, and what then comes out of its scenario."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from mlsysim import units
from mlsysim.canonical import rounded
from mlsysim.declarations.documents import Document, document
from mlsysim.declarations.follows import leaves
from mlsysim.declarations.kinds import kind_of
from mlsysim.declarations.outputs import meant, outputs
from mlsysim.declarations.renamed import loaded_outputs
from mlsysim.engine.scenario_types import KINDS as SCENARIOS
from mlsysim.errors import InputError, UnitError, UnknownName
from mlsysim.registry.types import KINDS as ENTRIES

__all__ = [
    "DIGITS",
    "Written",
    "exact",
    "is_count",
    "moved",
    "number",
    "output",
    "patched",
    "written",
]

DIGITS = 12  # significant ones of an artifact, and of a value that follows without `digits`
# A value as a file has it: a number, a text, true or false, or a list of these.
Written = Any

_REFERENCE = re.compile(r"(Scenarios|Hardware|Models|Fleets)\.\w+")
_NUMBER = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")


def moved(value: Written) -> Written:
    """Another value of the same kind: half of a number, twice a count."""
    if type(value) is int:
        return 2 * value
    if type(value) is float:
        return value / 2
    if isinstance(value, str):
        return written(value, units.quantity(value).magnitude / 2)
    raise InputError("not a number")


def output(thing: Any, key: str) -> tuple[Any, str]:
    """An output of a scenario as its artifact would have it: value and unit."""
    name, unit = thing.name, ""
    for part in key.split("."):
        declared = {each.name: each for each in outputs(type(thing))}
        if part in declared:
            thing, unit = getattr(thing, part), declared[part].unit
        elif isinstance(thing, Mapping) and part in thing:
            thing = thing[part]
        else:
            known = declared or (thing if isinstance(thing, Mapping) else {})
            raise UnknownName(f"{name} has no {key!r}; {meant(part, known, loaded_outputs())}")
    if isinstance(thing, units.Quantity):
        thing = thing.to(units.unit(unit)).magnitude if unit else thing.to("").magnitude
    if not isinstance(thing, (int, float, str)):
        raise UnknownName(f"{name}.{key} is no value, but several")
    return thing, unit


def patched(told: Document, new: Mapping[tuple[str, str], Written]) -> Document:
    """A document in which these values, by file and key, are others."""
    if not new:
        return told
    fields, linked = dict(told.fields), {}
    for (place, key), value in new.items():
        top, _, part = key.partition(".")
        if told.places.get(top) != place:
            continue
        leaf = fields[top]
        fields[top] = (
            {**leaf, part: {**leaf[part], "value": value}} if part else {**leaf, "value": value}
        )
    linked = {name: patched(each, new) for name, each in told.linked.items()}
    for _, leaf in leaves(fields):
        value = leaf["value"]
        if isinstance(value, str) and _REFERENCE.fullmatch(value) and value not in linked:
            linked[value] = patched(document(value), new)
    return dataclasses.replace(told, fields=fields, linked=linked)


def number(told: Document, key: str, value: Written) -> Any:
    """A value as an exact quantity, or None if it is no number."""
    if isinstance(value, (bool, list)):
        return None
    if isinstance(value, str):
        try:
            given = units.quantity(value)
        except UnitError:
            return None
        return units.Quantity(exact(given.magnitude), given.units)
    unit = next((each.metadata["unit"] for each in _declared(told) if each.name == key), "")
    return units.Quantity(exact(value), units.unit(unit) if unit else "")


def is_count(told: Document, key: str) -> bool:
    """Whether a field takes whole numbers alone."""
    return any(each.name == key and kind_of(each).name == "int" for each in _declared(told))


def _declared(told: Document) -> tuple[dataclasses.Field[Any], ...]:
    kinds: Mapping[str, type] = SCENARIOS if told.reference.startswith("Scenarios.") else ENTRIES
    return dataclasses.fields(kinds[told.kind]) if told.kind in kinds else ()


def exact(value: float) -> Fraction:
    """A float as it is printed in an artifact."""
    return Fraction(repr(rounded(value)))


def written(given: Written, due: float) -> Written:
    """A number as a file would have it that had `given`: with its unit, whole where it was."""
    if isinstance(given, str):
        return _NUMBER.sub(f"{due:.{DIGITS}g}", given, count=1)
    return int(due) if type(given) is int and due.is_integer() else due
