"""From a scenario to the content of its artifact."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

from mlsysim import units
from mlsysim.artifacts.canonical import dumps
from mlsysim.artifacts.code import closure_of_kind
from mlsysim.artifacts.schema import VERSION
from mlsysim.declared import Declared, Rates
from mlsysim.documents import Document, cited_keys
from mlsysim.engine.scenario import Scenario
from mlsysim.errors import InputError
from mlsysim.outputs import equation_of, outputs, section_of, summary_of

__all__ = ["artifact_text", "content", "inputs"]


def artifact_text(scenario: Scenario, document: Document) -> str:
    """The text of the artifact: canonical JSON of `content`."""
    return dumps(content(scenario, document))


def content(scenario: Scenario, document: Document) -> dict[str, Any]:
    """All that an artifact says of a scenario. Nothing in it depends on when, where or who."""
    given = inputs(scenario, document)
    return {
        "schema": VERSION,
        "name": document.name,
        "kind": document.kind,
        "title": document.title,
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
            if isinstance(value, Declared):
                reference = leaf["value"]
                given[prefix + field.name] = _leaf(reference, field, leaf)
                if reference not in seen:
                    seen.add(reference)
                    todo.append((f"{reference}.", value, told.linked[reference]))
            elif isinstance(value, Rates):
                for part, each in value.items():
                    given[f"{prefix}{field.name}.{part}"] = _leaf(each, field, leaf[part])
            else:
                given[prefix + field.name] = _leaf(value, field, leaf)
    return given


def _leaf(value: Any, field: dataclasses.Field[Any], leaf: dict[str, Any]) -> dict[str, Any]:
    """A value as it was given: a quantity keeps the unit it was written in."""
    unit = "" if isinstance(value, str) else field.metadata["unit"]
    if isinstance(value, units.Quantity):
        value, unit = value.magnitude, units.unit_text(value)
    return {
        "value": value,
        "unit": unit,
        "description": field.metadata["description"],
        "source": leaf["source"],
    }


def _outputs(thing: Any, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each output in its published unit; one with outputs of its own is spread under its name."""
    for output in outputs(type(thing)):
        value = getattr(thing, output.name)
        key = prefix + output.name
        if any(outputs(type(value))):
            yield from _outputs(value, f"{key}.")
            continue
        if isinstance(value, units.Quantity):
            value = value.to(units.unit(output.unit)).magnitude
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{key} comes out as {value}: the inputs are out of all proportion")
        yield (
            key,
            {
                "value": value,
                "unit": output.unit,
                "description": summary_of(output),
                "equation": equation_of(output),
            },
        )


def _assumptions(scenario: Scenario) -> Iterator[dict[str, str]]:
    """What is taken for granted: by the class, and by the lines of code tagged ASSUME."""
    stated = section_of(type(scenario), "Assumptions")
    if stated:
        yield {"where": type(scenario).__name__, "text": stated}
    for name, module in closure_of_kind(type(scenario).__name__).items():
        for text in module.assumptions:
            yield {"where": name, "text": text}
