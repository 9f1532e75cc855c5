"""Hardware, Models and Fleets: named things, loaded from their files when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.declarations import documents
from mlsysim.declarations.fields import Declared
from mlsysim.naming import unknown
from mlsysim.registry.loading import load

__all__ = ["Collection", "Fleets", "Hardware", "Models"]


class Collection:
    """Named things as attributes, ``Hardware.H100_SXM``; iteration lists the names.

    Each access reads the file again, so an edit is seen at once.
    """

    def __init__(
        self, name: str, scenario_kinds: Mapping[str, type[Declared]] | None = None
    ) -> None:
        self._name = name
        self._scenario_kinds = scenario_kinds or {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return load(documents.document(f"{self._name}.{name}"), self._scenario_kinds)

    def __getitem__(self, name: str) -> Any:
        if name not in documents.names(self._name):
            raise unknown(self._name, name)
        return getattr(self, name)

    def __iter__(self) -> Any:
        return iter(documents.names(self._name))

    def __len__(self) -> int:
        return len(documents.names(self._name))

    def __contains__(self, name: object) -> bool:
        return name in documents.names(self._name)

    def __dir__(self) -> list[str]:
        return documents.names(self._name)

    def __repr__(self) -> str:
        return f"<{self._name}: {', '.join(self)}>"


Hardware = Collection("Hardware")
Models = Collection("Models")
Fleets = Collection("Fleets")
