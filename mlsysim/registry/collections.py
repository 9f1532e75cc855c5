"""Hardware, Models and Fleets: named things, loaded from their files when they are asked for."""

from __future__ import annotations

from typing import Any

from mlsysim import documents
from mlsysim.declared import Declared, build
from mlsysim.documents import Document
from mlsysim.errors import InputError, UnknownName, nearest
from mlsysim.registry.types import Accelerator, Fabric, Fleet, Node, TransformerModel

__all__ = ["Collection", "Fleets", "Hardware", "Models", "entry"]

_KINDS: dict[str, type[Declared]] = {
    "Accelerator": Accelerator,
    "Fabric": Fabric,
    "Fleet": Fleet,
    "Node": Node,
    "TransformerModel": TransformerModel,
}


def entry(document: Document) -> Any:
    """The registry entry that a document declares."""
    if document.kind not in _KINDS:
        raise InputError(
            f"{document.place}: kind = {document.kind!r}: {nearest(document.kind, _KINDS)}"
        )
    return build(_KINDS[document.kind], document, entry)


class Collection:
    """Named things as attributes, ``Hardware.H100_SXM``; iteration lists the names.

    Each access reads the file again, so an edit is seen at once.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._load(documents.document(f"{self._name}.{name}"))

    def _load(self, document: Document) -> Any:
        return entry(document)

    def __getitem__(self, name: str) -> Any:
        if name not in documents.names(self._name):
            raise UnknownName(
                f"{name!r} is not in {self._name}; {nearest(name, documents.names(self._name))}"
            )
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
