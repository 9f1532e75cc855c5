"""The JSON Schema of scenario files, for editors: itself a result, results/scenario.schema.json.

It says what each kind declares, with units, ranges and choices. What only the whole can show, such
as a layout that does not divide, and whether a name exists, is checked when a scenario is solved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mlsysim import files, paths
from mlsysim.artifacts.code import definitions
from mlsysim.canonical import digest, dumps, loads
from mlsysim.declarations import patterns
from mlsysim.declarations.docstrings import summary_of
from mlsysim.declarations.follows import NAME

__all__ = ["fields", "is_stale", "made_from", "path", "schema", "text", "told"]

# The modules that say what a declared field takes.
_DESCRIBING = tuple(
    f"mlsysim.declarations.{name}"
    for name in ("_kind", "_made_kinds", "_value_kinds", "kinds", "patterns")
)
_SOURCE = {
    "description": "KEY of chapters/references.bib and the place in it, or 'assumption: reason'",
    "type": "string",
    "pattern": r"^(assumption:\s*\S[\s\S]*|[^,;]+,\s*[^;\s][^;]*(;[^,;]+,\s*[^;\s][^;]*)*)$",
}

_FACTOR = rf"({NAME}|{patterns.NUMBER})"
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
            "pattern": rf"^Scenarios\.{patterns.NAME}$",
        },
        "title": {"description": "what it is, in a line", "type": "string", "pattern": r"\S"},
        "formerly": {
            "description": "the name that it had in the edition before, which is told this one",
            "type": "string",
            "pattern": rf"^{patterns.NAME}$",
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
    from mlsysim.declarations.kinds import kind_of  # it needs units, which a build does without

    kind = kind_of(field)
    said = [kind.example_in_words, *kind.ends_in_words()]
    if kind.choices:
        said.append("one of " + ", ".join(map(str, kind.choices)))
    return "; ".join([field.metadata["description"], ", ".join(said)])


def _field(field: dataclasses.Field[Any]) -> dict[str, Any]:
    from mlsysim.declarations.kinds import kind_of

    kind, about = kind_of(field), told(field)
    if kind.parts:
        part = _leaf(kind.json_schema(), about)
        return {"description": about, "type": "object", "minProperties": 1} | {
            "additionalProperties": part
        }
    return _leaf(kind.json_schema(), about)


def _leaf(value: dict[str, Any], about: str) -> dict[str, Any]:
    return {
        "description": about,
        "type": "object",
        "properties": {"value": {"description": about, **value}, "source": _SOURCE, **_FOLLOWS},
        "required": ["value", "source"],
        "dependencies": {"scale": ["follows"], "digits": ["follows"]},
        "additionalProperties": False,
    }


def text() -> str:
    """The schema as the file holds it, with a digest of what it was made from and of itself."""
    made = schema()
    return dumps({"$comment": f"generated; {_seal(made)}", **made})


def made_from() -> dict[str, str]:
    """The digests of the modules that the schema is made from."""
    return definitions(__name__, *_DESCRIBING)


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
