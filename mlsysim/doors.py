"""Names that a module offers and another one holds, loaded when they are first asked for.

A module with such names has a table of them, and asks here in its `__getattr__`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

__all__ = ["opened"]


def opened(door: str, homes: Mapping[str, str], name: str) -> Any:
    """The thing of that name, from the module where `homes` says it is at home.

    Raises AttributeError, as Python does, with the names that the module `door` offers.
    """
    if name in homes:
        return getattr(importlib.import_module(homes[name]), name)
    raise AttributeError(f"module {door!r} has no attribute {name!r}; it offers {', '.join(homes)}")
