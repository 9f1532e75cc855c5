"""The JSON Schema of an artifact, itself a versioned result: results/artifact.schema.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlsysim import paths
from mlsysim.canonical import dumps

__all__ = ["VERSION", "path", "schema", "text"]

VERSION = 1

_TEXT = {"type": "string", "minLength": 1}


def _closed(about: str, /, **properties: Any) -> dict[str, Any]:
    """An object with exactly these keys."""
    return {
        "description": about,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def schema() -> dict[str, Any]:
    """The schema as plain data."""
    value = {"type": ["number", "string", "boolean"]}
    unit = {
        "type": "string",
        "description": "a unit of mlsysim/units/vocabulary.txt; empty for a plain number or a word",
    }
    stated = _closed(
        "A statement, and its topic or the class that makes it.", where=_TEXT, text=_TEXT
    )
    given = _closed(
        "A value as it was given.", value=value, unit=unit, description=_TEXT, source=_TEXT
    )
    given["properties"]["follows"] = {  # optional: most inputs follow none
        **_TEXT,
        "description": "the value that it is, by full name, times a scale and to so many digits",
    }
    made = _closed(
        "A value that the scenario's class computes.",
        value=value,
        unit=unit,
        description=_TEXT,
        equation={"type": "string"},
    )
    table = _closed(
        "The table beside the artifact, as CSV.",
        file=_TEXT,
        rows={"type": "integer", "minimum": 1},
        digest=_TEXT,
    )
    whole: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scenario solved once",
        **_closed(
            "What a named scenario was given and what it gives, wherever it is solved.",
            schema={"const": VERSION, "description": "version of this schema"},
            name={**_TEXT, "description": "stem of the scenario's file"},
            kind={**_TEXT, "description": "class of the scenario"},
            title=_TEXT,
            description=_TEXT,
            inputs={
                "description": "own fields by name, those of things referred to by full name",
                "type": "object",
                "additionalProperties": given,
            },
            outputs={"type": "object", "minProperties": 1, "additionalProperties": made},
            feasibility=_closed("Whether it fits.", feasible={"type": "boolean"}, reason=_TEXT),
            assumptions={"type": "array", "items": stated},
            excludes={"type": "array", "items": stated},
            sources={
                "description": "keys of chapters/references.bib",
                "type": "array",
                "items": _TEXT,
                "uniqueItems": True,
            },
        ),
    }
    whole["properties"]["table"] = table  # optional: most scenarios have none
    return whole


def text() -> str:
    """The schema as the file holds it."""
    return dumps(schema())


def path() -> Path:
    """Where the schema is published."""
    return paths.results() / "artifact.schema.json"
