"""Scenarios: every file in scenarios/ as an object, `Scenarios.DenseLLMPretrainingStep`."""

from __future__ import annotations

from typing import Any

from mlsysim.declared import build
from mlsysim.documents import Document
from mlsysim.engine import scenario_types
from mlsysim.errors import InputError, nearest
from mlsysim.registry.collections import Collection, entry

__all__ = ["Scenarios", "scenario"]


def scenario(document: Document) -> Any:
    """The scenario that a document declares. Raises MlsysimError for one that cannot be."""
    if document.kind not in scenario_types.__all__:
        raise InputError(
            f"{document.place}: kind = {document.kind!r} is no scenario class; "
            f"{nearest(document.kind, scenario_types.__all__)}"
        )
    return build(getattr(scenario_types, document.kind), document, _linked)


def _linked(document: Document) -> Any:
    if document.reference.startswith("Scenarios."):
        return scenario(document)
    return entry(document)


class _Scenarios(Collection):
    def _load(self, document: Document) -> Any:
        return scenario(document)


Scenarios = _Scenarios("Scenarios")
