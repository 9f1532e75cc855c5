"""Scenarios: every file in scenarios/ as an object, `Scenarios.DenseLLMPretrainingStep`."""

from __future__ import annotations

from typing import Any

from mlsysim.documents import Document
from mlsysim.engine import scenario_types
from mlsysim.engine.loading import load
from mlsysim.registry.collections import Collection

__all__ = ["Scenarios", "scenario"]

_KINDS = {name: getattr(scenario_types, name) for name in scenario_types.__all__}


def scenario(document: Document) -> Any:
    """The scenario that a document declares. Raises MlsysimError for one that cannot be."""
    return load(document, _KINDS)


Scenarios = Collection("Scenarios", _KINDS)
