"""Scenarios: every file in scenarios/ as an object, `Scenarios.DenseLLMPretrainingStep`."""

from __future__ import annotations

from typing import Any

from mlsysim.declarations.documents import Document
from mlsysim.engine.scenario_types import KINDS
from mlsysim.registry.collections import Collection
from mlsysim.registry.loading import load

__all__ = ["Scenarios", "scenario"]


def scenario(document: Document) -> Any:
    """The scenario that a document declares. Raises MlsysimError for one that cannot be."""
    return load(document, KINDS)


Scenarios = Collection("Scenarios", KINDS)
