"""The outputs of all classes that are loaded, for whoever has no object to ask for an old name.

Apart from the outputs themselves, because no artifact may rest on what happens to be loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from mlsysim.declarations.outputs import Output

__all__ = ["loaded_outputs"]


def loaded_outputs() -> Iterator[Output[Any]]:
    """Every output of every class that a loaded module holds."""
    for module in [*sys.modules.values()]:
        for each in [*vars(module).values()]:
            if isinstance(each, type):
                yield from (member for member in vars(each).values() if isinstance(member, Output))
