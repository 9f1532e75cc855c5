"""The JSON Schema of scenario files, for editors: itself a result, results/scenario.schema.json.

It says what each kind declares, with units, ranges and choices. What only the whole can show, such
as a layout that does not divide, and whether a name exists, is checked when a scenario is solved.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mlsysim import files, paths
from mlsysim.artifacts.code import definitions
from mlsysim.canonical import digest, dumps, loads
from mlsysim.declarations.docstrings import summary_of
from mlsysim.declarations.follows import NAME

__all__ = ["fields", "is_stale", "made_from", "path", "schema", "text", "told"]

_NAME = r"[A-Za-z]\w*"
_NUMBER = r"[0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?"
# How units of one dimension are spelled; of other dimensions only the form is checked.
_ANY_UNIT = r"(1/)?[A-Za-zµ%][A-Za-z0-9*/]*"
_DECIMAL = "[kMGTPEZ]?"
_SPELLINGS = (
    (re.compile(r"([kMGTPEZ]|[KMGT]i)?[Bb]"), "([kMGTPEZ]|[KMGT]i)?[Bb]"),
    (re.compile(r"[mµun]?s|min|h|d"), "([mµun]?s|min|h|d)"),
    (re.compile(r"[kMGTPEZ]?(?P<word>FLOP|tok|seq|param|USD)"), None),
)
_COLLECTIONS = {
    "TransformerModel": "Models",
    "Fleet": "Fleets",
    "Accelerator": "Hardware",
    "Fabric": "Hardware",
    "Node": "Hardware",
}
_SOURCE = {
    "description": "KEY of chapters/references.bib and the place in it, or 'assumption: reason'",
    "type": "string",
    "pattern": r"^(assumption:\s*\S[\s\S]*|[^,;]+,\s*[^;\s][^;]*(;[^,;]+,\s*[^;\s][^;]*)*)$",
}

_FACTOR = rf"({NAME}|{_NUMBER})"
_FOLLOWS = {
    "follows": {
        "description": "full name of the input or output that the value is, which a build compares",
        "type": "string",
        "pattern": f"^{NAME}$",
    },
    "scale": {
        "description": "what the followed value is multiplied by: a number, or numbers and full "
        "names of values joined by * and / with a space on either side",
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "string", "pattern": rf"^{_FACTOR}( [*/] {_FACTOR})*$"},
        ],
    },
    "digits": {
        "description": "significant digits to which the followed value is rounded; all without it",
        "type": "integer",
        "minimum": 1,
        "maximum": 12,
    },
}


def schema() -> dict[str, Any]:
    """The schema as plain data, in the draft that editors understand."""
    from mlsysim.engine.scenario_types import KINDS

    kinds = {name: dict(fields(KINDS[name])) for name in sorted(KINDS)}
    everything: dict[str, list[Any]] = {}
    for declared in kinds.values():
        for name, leaf in declared.items():
            if leaf not in everything.setdefault(name, []):
                everything[name].append(leaf)
    headers = {
        "kind": {"description": "class of the scenario", "enum": list(kinds)},
        "base": {
            "description": "a scenario whose fields hold here too, unless this file gives them",
            "type": "string",
            "pattern": rf"^Scenarios\.{_NAME}$",
        },
        "title": {"description": "what it is, in a line", "type": "string", "pattern": r"\S"},
        "formerly": {
            "description": "the name that it had in the edition before, which is told this one",
            "type": "string",
            "pattern": rf"^{_NAME}$",
        },
    }
    any_kind = {
        name: leaves[0] if len(leaves) == 1 else {"anyOf": leaves}
        for name, leaves in everything.items()
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A named scenario",
        "type": "object",
        "required": ["title"],
        "anyOf": [{"required": ["kind"]}, {"required": ["base"]}],
        "properties": headers | any_kind,
        "additionalProperties": False,
        "allOf": [
            _of_kind(name, KINDS[name], declared, headers) for name, declared in kinds.items()
        ],
    }


def _of_kind(
    name: str, cls: Any, declared: dict[str, Any], headers: Iterable[str]
) -> dict[str, Any]:
    """What holds for a file of this kind; with a base it need not give every field."""
    return {
        "if": {"required": ["kind"], "properties": {"kind": {"const": name}}},
        "then": {
            "description": summary_of(cls),
            "properties": {**dict.fromkeys(headers, True), **declared},
            "additionalProperties": False,
            "if": {"not": {"required": ["base"]}},
            "then": {"required": list(declared)},
        },
    }


def fields(cls: Any) -> list[tuple[str, dict[str, Any]]]:
    """The declared fields of a class, each with the schema of what a file gives for it."""
    return [(field.name, _field(field)) for field in dataclasses.fields(cls)]


def told(field: dataclasses.Field[Any]) -> str:
    """What a field is, in words: meaning, unit, range, choices.

    >>> from mlsysim.engine.scenario_types import KINDS
    >>> for field in dataclasses.fields(KINDS["ReferenceTrainingStepScenario"])[4:7]:
    ...     print(told(field))
    sequences of a microbatch; a whole number in seq, at least 1
    number format of the matrix products; a text, one of bf16, fp16, fp8
    share of the dense peak rate that matrix products reach; a number, more than 0, at most 1
    """
    meta, kind = field.metadata, str(field.type)
    unit = f" {meta['unit']}" if kind == "Quantity" else ""
    said = [
        f"{words} {meta[key]:g}{unit}"
        for key, words in (("above", "more than"), ("at_least", "at least"), ("at_most", "at most"))
        if meta[key] is not None
    ]
    if meta["choices"]:
        said.append("one of " + ", ".join(map(str, meta["choices"])))
    return "; ".join([meta["description"], ", ".join([_expected(kind, meta["unit"]), *said])])


def _expected(kind: str, unit: str) -> str:
    """What a value of a type looks like."""
    if kind == "Quantity":
        return f'a text of number and unit, such as "1 {unit}"'
    if kind in ("int", "float"):
        return ("a whole number" if kind == "int" else "a number") + (f" in {unit}" if unit else "")
    if kind == "Counts":
        return "a list of rising whole numbers, such as [1, 2, 4]"
    if kind == "Values":
        return 'a list of values as their input takes them, such as ["25 Gb/s", "50 Gb/s"]'
    if kind == "Rows":
        return "the name of a CSV file beside the scenario"
    if kind.endswith("Table"):
        return f"a table of named references to a {kind.removesuffix('Table')}"
    plain = {"bool": "true or false", "str": "a text"}
    return plain.get(kind) or f'a reference to a {kind}, such as "{_collection(kind)}.NAME"'


def _collection(kind: str) -> str:
    return _COLLECTIONS.get(kind, "Scenarios")


def _field(field: dataclasses.Field[Any]) -> dict[str, Any]:
    kind, about = str(field.type), told(field)
    if kind.endswith("Table"):
        part = _leaf(_reference(kind.removesuffix("Table")), about)
        return {"description": about, "type": "object", "minProperties": 1} | {
            "additionalProperties": part
        }
    return _leaf(_value(kind, field.metadata), about)


def _leaf(value: dict[str, Any], about: str) -> dict[str, Any]:
    return {
        "description": about,
        "type": "object",
        "properties": {"value": {"description": about, **value}, "source": _SOURCE, **_FOLLOWS},
        "required": ["value", "source"],
        "dependencies": {"scale": ["follows"], "digits": ["follows"]},
        "additionalProperties": False,
    }


def _value(kind: str, meta: Any) -> dict[str, Any]:
    if kind in ("int", "float"):
        number: dict[str, Any] = {"type": "integer" if kind == "int" else "number"}
        for key, word in (
            ("above", "exclusiveMinimum"),
            ("at_least", "minimum"),
            ("at_most", "maximum"),
        ):
            if meta[key] is not None:
                number[word] = meta[key]
        return {"anyOf": [number, _quantity(meta["unit"] or "%", meta)]}
    if kind == "Quantity":
        return _quantity(meta["unit"], meta)
    if kind == "bool":
        return {"type": "boolean"}
    if kind == "str":
        return {"enum": list(meta["choices"])} if meta["choices"] else {"type": "string"}
    if kind == "Counts":
        least = meta["at_least"] or 0
        return _list({"type": "integer", "minimum": least})
    if kind == "Values":
        return _list({"type": ["string", "number", "boolean"]})
    if kind == "Rows":
        return {"type": "string", "pattern": r"^[^/\\]+\.csv$"}
    return _reference(kind)


def _list(part: dict[str, Any]) -> dict[str, Any]:
    """A list of different values, of which there is one at least."""
    return {"type": "array", "items": part, "minItems": 1, "uniqueItems": True}


def _reference(kind: str) -> dict[str, Any]:
    return {"type": "string", "pattern": rf"^{_collection(kind)}\.{_NAME}$"}


def _quantity(unit: str, meta: Any) -> dict[str, Any]:
    """A text of number and unit; the sign is refused where the range leaves it no room."""
    low = [meta[key] for key in ("above", "at_least") if meta[key] is not None]
    sign = r"\+?" if low and min(low) >= 0 else "[+-]?"
    return {"type": "string", "pattern": rf"^\s*{sign}{_NUMBER}\s*{_unit(unit)}\s*$"}


def _unit(unit: str) -> str:
    """What can stand for a unit: others of its dimension, so far as that is plain to see."""
    if unit == "%":
        return "%"
    factors = [_spelling(factor) for factor in re.split(r"([*/])", unit)]
    return "".join(factors) if all(factors) else _ANY_UNIT


def _spelling(factor: str) -> str:
    if factor in ("*", "/"):
        return re.escape(factor)
    for form, spelled in _SPELLINGS:
        found = form.fullmatch(factor)
        if found:
            return spelled or _DECIMAL + found["word"]
    return ""


def text() -> str:
    """The schema as the file holds it, with a digest of what it was made from and of itself."""
    made = schema()
    return dumps({"$comment": f"generated; {_seal(made)}", **made})


def made_from() -> dict[str, str]:
    """The digests of the modules that the schema is made from."""
    return definitions(__name__)


def _seal(made: dict[str, Any]) -> str:
    return digest({"code": made_from(), "schema": made})


def path() -> Path:
    """Where the schema is published."""
    return paths.results() / "scenario.schema.json"


def is_stale() -> bool:
    """Whether the file is not the schema of this code, found without loading any scenario class."""
    try:
        found = loads(files.read(path()))
        return bool(found.pop("$comment") != f"generated; {_seal(found)}")
    except (AttributeError, KeyError, TypeError, ValueError):
        return True
