"""The example on the page of a scenario class: what one types, and what Python answers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

from mlsysim.artifacts.reading import Artifact
from mlsysim.declarations.outputs import outputs
from mlsysim.engine.scenario import Scenario
from mlsysim.units import Quantity, unit

__all__ = ["example_of", "returned"]


def example_of(cls: type[Scenario], artifacts: Sequence[Artifact] = ()) -> str:
    """What one types to get an output of a named scenario, and what Python answers.

    The docstring's own example, then the first outputs that are one value with a unit; `artifacts`
    are those of the scenarios of this class. Empty if there is neither.
    """
    lines = inspect.cleandoc(cls.__doc__ or "").splitlines()
    first = next((n for n, line in enumerate(lines) if line.startswith(">>> ")), len(lines))
    shown = "\n".join(lines[first:]).strip()
    for artifact in artifacts[:1]:
        for shown_now in [*_examples(cls, artifact)][:2]:
            shown = shown or ">>> from mlsysim import Scenarios"
            shown += f"\n{shown_now}"
    return shown.strip()


def _examples(cls: type[Scenario], artifact: Artifact) -> Iterator[str]:
    """What outputs of a scenario are, as Python answers: first single quantities, then others."""
    order = ("Quantity", "dict[str, Quantity]", "int")
    for kind in order:
        for each in outputs(cls):
            keys = [key for key in artifact.outputs if key.partition(".")[0] == each.name]
            if returned(each.compute) != kind or not keys:
                continue
            told, part = artifact.outputs[keys[0]], keys[0].partition(".")[2]
            value = f"Scenarios.{artifact.name}.{each.name}" + (f"['{part}']" if part else "")
            if kind == "int":
                yield f">>> {value}\n{told['value']}"
            else:
                printed = Quantity(told["value"], unit(told["unit"]))
                asked = f"{value}.to('{told['unit']}')" if told["unit"] else value
                yield f">>> f\"{{{asked}:.4g~}}\"\n'{printed:.4g~}'"


def returned(compute: Any) -> str:
    """The type that a property is annotated with."""
    return str(inspect.get_annotations(compute).get("return", ""))
