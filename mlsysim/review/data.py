"""A comparison as plain data, for programs."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from mlsysim.review.comparison import Comparison, Verdict

__all__ = ["as_data"]


def as_data(found: Comparison) -> dict[str, Any]:
    """Everything that differs, nothing folded; infinite slacks are null."""
    pairs = found.pairs
    return {
        "before": found.before.tree.label,
        "after": found.after.tree.label,
        "verdict": Verdict.WORDS[found.verdict],
        "status": found.verdict,
        "warnings": found.warnings,
        "scenarios": {
            "added": pairs.added,
            "removed": pairs.removed,
            "renamed": pairs.scenarios,
            "outputs_renamed": pairs.outputs,
        },
        "inputs": _plain(found.inputs),
        "modules": _plain(found.modules),
        "libraries": _plain(found.libraries),
        "outputs": _plain(found.outputs),
        "facts": _plain(found.facts),
        "printed": _plain(found.printed),
        "below_the_digits": _plain(dict(found.hidden)),
        "claims": _plain(found.claims),
        "texts": _plain(found.texts),
        "figures": _plain(found.figures),
    }


def _plain(content: Any) -> Any:
    if dataclasses.is_dataclass(content) and not isinstance(content, type):
        return {
            each.name: _plain(getattr(content, each.name)) for each in dataclasses.fields(content)
        }
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_plain(each) for each in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content
