"""Variations of a training step: a sweep of one or two of its inputs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from mlsysim.declarations.fields import Declared, declared, record
from mlsysim.declarations.lists import Values, as_written
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import InputError, LayoutError, MlsysimError, UnknownName, nearest
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.inputs import Ledger
from mlsysim.units import Quantity
from mlsysim.units.quantities import seconds

__all__ = ["TrainingStepSweepScenario"]


@record
class TrainingStepSweepScenario(Scenario):
    """A training step with one or two of its inputs varied, everything else as it is.

    Equation: each row = the base scenario with the inputs of that row, solved by
    DistributedModel.solve.

    Assumptions: inputs that are not varied stay as they are, also where a real machine would change
    them together.

    Excludes: rows whose layout cannot exist; the table gives the reason in place of a time.

    Derivation: the base scenario is made again with the inputs of each row, and goes to
    mlsysim.solvers.DistributedModel.solve, whose docstring states equations and sources.

    >>> from mlsysim import Scenarios
    >>> case = Scenarios.NetworkRateSweep
    >>> case.points
    10
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step that is varied")
    input: str = declared(description="dotted name of the varied input, from the base scenario")
    values: Values = declared(description="its values")
    second_input: str = declared(description="dotted name of a second varied input, or none")
    second_values: Values = declared(description="its values, or none")

    def check(self) -> None:
        """Refuse inputs that do not exist, values of another kind, and a sweep without a result."""
        if not any(row["feasible"] for row in self.table()):
            raise LayoutError("no value of the sweep gives a step that exists and fits")

    @output()
    def points(self) -> int:
        """Rows of the sweep. Equation: values * second values."""
        return len(self.table())

    @output()
    def feasible_points(self) -> int:
        """Rows whose step exists and fits. Equation: rows without a reason against them."""
        return len(self._fitting())

    @output("s")
    def shortest_step(self) -> Quantity:
        """The fastest step of the sweep that fits. Equation: min(step_time) over rows that fit."""
        return seconds(min(row["step_time_s"] for row in self._fitting()))

    @output("s")
    def longest_step(self) -> Quantity:
        """The slowest step of the sweep that fits. Equation: max(step_time) over rows that fit."""
        return seconds(max(row["step_time_s"] for row in self._fitting()))

    @output("s")
    def step_time_at(self) -> dict[str, Quantity]:
        """Step time of each value that fits, by the value as it is written in a name.

        Equation: DistributedModel.solve(...).step_latency_total.
        """
        return {_key(row, self._names()): seconds(row["step_time_s"]) for row in self._fitting()}

    @output("s")
    def bubble_at(self) -> dict[str, Quantity]:
        """Pipeline bubble of each value that fits. Equation: ledger.bubble."""
        return {_key(row, self._names()): seconds(row["bubble_s"]) for row in self._fitting()}

    def table_rows(self) -> Iterator[dict[str, Any]]:
        """One row a combination: inputs, step, ledger and memory, or why there is none."""
        axes = self._axes()
        if len(dict(axes)) < len(axes):
            raise InputError(f"second_input = {axes[1][0]!r}: it is the first one")
        for combination in itertools.product(*(values for _, values in axes)):
            row: dict[str, Any] = dict(
                zip(self._names(), map(as_written, combination), strict=True)
            )
            try:
                made: Any = self.step
                for (name, _), value in zip(axes, combination, strict=True):
                    made = _replaced(made, name.split("."), value, name)
                result = made.result
            except LayoutError as error:
                yield row | {"feasible": False, "reason": str(error)} | _NO_TIMES
                continue
            yield row | {
                "feasible": result.feasible,
                "reason": "" if result.feasible else result.feasibility,
                "step_time_s": float(result.ledger.total),
                **{f"{n}_s": float(v) for n, v in result.ledger._asdict().items()},
                "memory_gb": result.step.memory.total / 1e9,
                "mfu_percent": float(result.model_flops_utilization.magnitude),
            }

    def _axes(self) -> list[tuple[str, Values]]:
        second = [] if self.second_input == "none" else [(self.second_input, self.second_values)]
        return [(self.input, self.values), *second]

    def _names(self) -> list[str]:
        return [name for name, _ in self._axes()]

    def _fitting(self) -> list[Mapping[str, Any]]:
        return [row for row in self.table() if row["feasible"]]


_NO_TIMES: dict[str, Any] = dict.fromkeys(
    ("step_time_s", *(f"{name}_s" for name in Ledger._fields), "memory_gb", "mfu_percent"), ""
)


def _key(row: Mapping[str, Any], names: Sequence[str]) -> str:
    """The varied values as part of a key: ``400_Gb_per_s``."""
    words = "_".join(str(row[name]) for name in names)
    return "".join(c if c.isalnum() else "_" for c in words.replace("/", "_per_"))


def _replaced(thing: Declared, path: Sequence[str], value: Any, name: str) -> Any:
    """`thing` with the field at `path` set to the value."""
    fields = {field.name: field for field in dataclasses.fields(thing)}
    if path[0] not in fields:
        raise UnknownName(f"input {name!r}: no {path[0]!r}; {nearest(path[0], fields, count=20)}")
    old = getattr(thing, path[0])
    if len(path) > 1:
        if not isinstance(old, Declared):
            raise InputError(f"input {name!r}: {path[0]!r} has no parts")
        value = _replaced(old, path[1:], value, name)
    elif isinstance(old, (Declared, Mapping)):
        raise InputError(f"input {name!r} refers to a thing; vary one of its numbers")
    try:
        return dataclasses.replace(thing, **{path[0]: value})
    except LayoutError:
        raise
    except MlsysimError as error:
        raise InputError(f"input {name!r} = {as_written(value)}: {error}") from None
