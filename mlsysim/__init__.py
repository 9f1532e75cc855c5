"""The public names, loaded when they are first asked for.

Scenarios, Hardware, Models and Fleets are collections of named things; `read` gives a published
artifact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlsysim.artifacts.reading import read as read
    from mlsysim.book.pages.chapter_preview import preview as preview
    from mlsysim.engine.scenarios import Scenarios as Scenarios
    from mlsysim.registry.collections import Fleets as Fleets
    from mlsysim.registry.collections import Hardware as Hardware
    from mlsysim.registry.collections import Models as Models
    from mlsysim.units import Q as Q

# Where each public name is defined. Imports here are by text so that importing the package costs
# nothing and the digest of a scenario's code need not follow every door
# (mlsysim/artifacts/code.py).
_HOMES = {
    "Fleets": "mlsysim.registry.collections",
    "Hardware": "mlsysim.registry.collections",
    "Models": "mlsysim.registry.collections",
    "Q": "mlsysim.units",
    "Scenarios": "mlsysim.engine.scenarios",
    "preview": "mlsysim.book.pages.chapter_preview",
    "read": "mlsysim.artifacts.reading",
}

__all__ = ["Fleets", "Hardware", "Models", "Q", "Scenarios", "preview", "read"]


def __getattr__(name: str) -> Any:
    from mlsysim.doors import opened

    return opened(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted((*globals(), *__all__))
