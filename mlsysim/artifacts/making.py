"""From a scenario to the content of its artifact."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from mlsysim import units
from mlsysim.artifacts.artifact_schema import VERSION
from mlsysim.artifacts.code import assumptions
from mlsysim.artifacts.printing import filled
from mlsysim.canonical import csv_text, digest, dumps
from mlsysim.declarations import lists
from mlsysim.declarations.docstrings import equation_of, section_of, summary_of
from mlsysim.declarations.documents import Document, cited_keys
from mlsysim.declarations.fields import Declared
from mlsysim.declarations.follows import told
from mlsysim.declarations.outputs import Output, has_outputs, meant, outputs
from mlsysim.engine.scenario import Scenario
from mlsysim.errors import InputError, MlsysimError, UnknownName

__all__ = ["artifact_texts", "content", "inputs"]


def artifact_texts(scenario: Scenario, document: Document) -> tuple[str, str]:
    """The texts of the artifact: canonical JSON of `content`, and its table as CSV, empty if none.

    The JSON gives the digest of the table, so that the digest of the JSON stands for both.
    """
    rows = scenario.table()
    table = csv_text(rows[0], (row.values() for row in rows)) if rows else ""
    made = content(scenario, document)
    if table:
        made["table"] = {
            "file": f"{document.name}.csv",
            "rows": table.count("\n") - 1,
            "digest": digest(table),
        }
    return dumps(made), table


def content(scenario: Scenario, document: Document) -> dict[str, Any]:
    """All that an artifact says of a scenario. Nothing in it depends on when, where or who."""
    given = inputs(scenario, document)
    return {
        "schema": VERSION,
        "name": document.name,
        "kind": document.kind,
        "title": _title(scenario, document),
        "description": summary_of(type(scenario)),
        "inputs": given,
        "outputs": dict(_outputs(scenario, "")),
        "feasibility": {"feasible": scenario.feasible, "reason": scenario.feasibility},
        "assumptions": list(_assumptions(scenario)),
        "excludes": [
            {"where": each.__name__, "text": text}
            for each in (type(scenario), *type(scenario).solvers)
            if (text := section_of(each, "Excludes"))
        ],
        "sources": sorted({key for leaf in given.values() for key in cited_keys(leaf["source"])}),
    }


def _title(scenario: Scenario, document: Document) -> str:
    """The title, plain: with what its quotes print. Raises MlsysimError with the file."""
    try:
        return filled(document.title, lambda key: _entry(scenario, document, key))
    except MlsysimError as error:
        raise type(error)(f"{document.place}: title: {error}") from None


def _entry(thing: Declared, told: Document, key: str) -> dict[str, Any]:
    """A value by its key, ``step_time``, or by the field that leads to it, ``step.step_time``."""
    known = {**inputs(thing, told), **dict(_outputs(thing, ""))}
    if key in known:
        return known[key]
    field, _, rest = key.partition(".")
    other = getattr(thing, field, None) if field in told.fields else None
    if not (rest and isinstance(other, Declared)):
        raise UnknownName(f"{told.name} has no {key!r}; {meant(key, known, _declared(thing))}")
    return _entry(other, told.linked[told.fields[field]["value"]], rest)


def _declared(thing: object) -> Iterator[Output[Any]]:
    """The outputs of a thing, and of those of its values that have some."""
    for each in outputs(type(thing)):
        yield each
        if has_outputs(value := getattr(thing, each.name)):
            yield from _declared(value)


def inputs(scenario: Declared, document: Document) -> dict[str, dict[str, Any]]:
    """Every input, with unit and source: own fields, then those of each thing referred to, once.

    Own fields have their plain name, others their full one: ``batch_tokens``,
    ``Hardware.H100_SXM.rates.bf16``.
    """
    given: dict[str, dict[str, Any]] = {}
    todo: list[tuple[str, Declared, Document]] = [("", scenario, document)]
    seen = {document.reference}
    while todo:
        prefix, thing, told = todo.pop(0)
        for field in dataclasses.fields(thing):
            value, leaf = getattr(thing, field.name), told.fields[field.name]
            if isinstance(value, Mapping):
                parts = {f"{field.name}.{part}": (value[part], leaf[part]) for part in leaf}
            else:
                parts = {field.name: (value, leaf)}
            for key, (each, each_leaf) in parts.items():
                given[prefix + key] = _leaf(each, field, each_leaf)
                reference = each_leaf["value"]
                if isinstance(each, Declared) and reference not in seen:
                    seen.add(reference)
                    todo.append((f"{reference}.", each, told.linked[reference]))
    return given


def _leaf(value: Any, field: dataclasses.Field[Any], leaf: dict[str, Any]) -> dict[str, Any]:
    """A value as it was given: a quantity keeps the unit it was written in."""
    unit = field.metadata["unit"]
    if isinstance(value, units.Quantity):
        value, unit = value.magnitude, units.unit_text(value)
    elif not isinstance(value, (int, float)):
        value, unit = leaf["value"], ""
        if isinstance(value, list):
            value = lists.as_written(value)
    made = {
        "value": value,
        "unit": unit,
        "description": field.metadata["description"],
        "source": leaf["source"],
    }
    return {**made, "follows": told(leaf)} if "follows" in leaf else made


def _outputs(thing: Any, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each output in its published unit; one with outputs of its own is spread under its name."""
    for output in outputs(type(thing)):
        value = getattr(thing, output.name)
        key = prefix + output.name
        if has_outputs(value):
            yield from _outputs(value, f"{key}.")
            continue
        if isinstance(value, Mapping):
            for part, each in value.items():
                yield f"{key}.{part}", _made(f"{key}.{part}", each, output)
            continue
        yield key, _made(key, value, output)


def _made(key: str, value: Any, output: Output[Any]) -> dict[str, Any]:
    """A value in the unit in which it is published, which a live output is in."""
    if isinstance(value, units.Quantity):
        value = value.magnitude
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{key} comes out as {value}: the inputs are out of all proportion")
    return {
        "value": value,
        "unit": output.unit,
        "description": summary_of(output),
        "equation": equation_of(output),
    }


def _assumptions(scenario: Scenario) -> Iterator[dict[str, str]]:
    """What is taken for granted: by the class, and by the lines of code tagged ASSUME."""
    stated = section_of(type(scenario), "Assumptions")
    if stated:
        yield {"where": type(scenario).__name__, "text": stated}
    for _, topic, text in sorted(assumptions(type(scenario).__name__), key=itemgetter(0)):
        yield {"where": topic, "text": text}
