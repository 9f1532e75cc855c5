"""From a document to the object that it declares: a scenario, or an entry of a registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.declarations.documents import Document
from mlsysim.declarations.fields import Declared, from_document
from mlsysim.errors import InputError, nearest
from mlsysim.registry.types import KINDS

__all__ = ["load"]


def load(document: Document, scenario_kinds: Mapping[str, type[Declared]]) -> Any:
    """The object of the class that the document names as its kind, with all it refers to.

    Raises MlsysimError with file and field for what cannot be.
    """
    of_scenario = document.reference.startswith("Scenarios.")
    kinds = scenario_kinds if of_scenario else KINDS
    if document.kind not in kinds:
        what = "scenario class" if of_scenario else "registry type"
        raise InputError(
            f"{document.place}: kind = {document.kind!r} is no {what}; "
            f"{nearest(document.kind, kinds)}"
        )
    return from_document(
        kinds[document.kind], document, lambda linked: load(linked, scenario_kinds)
    )
