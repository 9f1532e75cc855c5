"""The module of each scenario class, from the table HOMES of scenario_types, which is not run."""

from __future__ import annotations

import ast
from functools import lru_cache

from mlsysim.artifacts._modules import PACKAGE, file_of

__all__ = ["kinds"]


def kinds() -> dict[str, str]:
    """The module of each scenario class, from the table HOMES of scenario_types."""
    path = file_of(f"{PACKAGE}.engine.scenario_types")
    return _homes(path.read_bytes() if path else b"HOMES = {}")


@lru_cache(maxsize=8)
def _homes(source: bytes) -> dict[str, str]:
    homes = next(
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "HOMES"
    )
    return {
        name: f"{PACKAGE}.engine.scenario_definitions.{home}"
        for name, home in ast.literal_eval(homes).items()
    }
