"""Variations of a training step: a sweep of one or two inputs, and the search over layouts."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mlsysim import units
from mlsysim.declared import Declared, declared, record
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import InputError, LayoutError, MlsysimError, UnknownName, nearest
from mlsysim.outputs import output
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.inputs import Ledger
from mlsysim.units import Quantity, unit

__all__ = ["LayoutSearchScenario", "TrainingStepSweepScenario"]


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
    values: str = declared(description="its values, separated by commas")
    second_input: str = declared(description="dotted name of a second varied input, or none")
    second_values: str = declared(description="its values, separated by commas, or none")

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
        return _seconds(min(row["step_time_s"] for row in self._fitting()))

    @output("s")
    def longest_step(self) -> Quantity:
        """The slowest step of the sweep that fits. Equation: max(step_time) over rows that fit."""
        return _seconds(max(row["step_time_s"] for row in self._fitting()))

    @output("s")
    def step_time_at(self) -> dict[str, Quantity]:
        """Step time of each value that fits, by the value as it is written in a name.

        Equation: DistributedModel.solve(...).step_latency_total.
        """
        return {_key(row, self._names()): _seconds(row["step_time_s"]) for row in self._fitting()}

    def table(self) -> Sequence[Mapping[str, Any]]:
        """One row a combination: inputs, step, ledger and memory, or why there is none."""
        if "_rows" not in self.__dict__:
            self.__dict__["_rows"] = [*self._solved()]
        rows: list[dict[str, Any]] = self.__dict__["_rows"]
        return rows

    def _solved(self) -> Any:
        axes = [(name, _split(values)) for name, values in self._axes()]
        if not all(values for _, values in axes):
            raise InputError("values: expected at least one value for each varied input")
        if len(dict(axes)) < len(axes):
            raise InputError(f"second_input = {axes[1][0]!r}: it is the first one")
        for name, values in axes:
            twice = [value for value in values if values.count(value) > 1]
            if twice:
                raise InputError(f"values of {name!r}: {twice[0]} stands there twice")
        for combination in itertools.product(*(values for _, values in axes)):
            row: dict[str, Any] = dict(zip(self._names(), combination, strict=True))
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

    def _axes(self) -> list[tuple[str, str]]:
        second = [] if self.second_input == "none" else [(self.second_input, self.second_values)]
        return [(self.input, self.values), *second]

    def _names(self) -> list[str]:
        return [name for name, _ in self._axes()]

    def _fitting(self) -> list[Mapping[str, Any]]:
        return [row for row in self.table() if row["feasible"]]


_NO_TIMES: dict[str, Any] = dict.fromkeys(
    ("step_time_s", *(f"{name}_s" for name in Ledger._fields), "memory_gb", "mfu_percent"), ""
)


def _split(values: str) -> list[str]:
    return [each.strip() for each in values.split(",") if each.strip()]


def _key(row: Mapping[str, Any], names: Sequence[str]) -> str:
    """The varied values as part of a key: ``400_Gb_per_s``."""
    words = "_".join(str(row[name]) for name in names)
    return "".join(c if c.isalnum() else "_" for c in words.replace("/", "_per_"))


def _replaced(thing: Declared, path: Sequence[str], value: str, name: str) -> Any:
    """`thing` with the field at `path` set to the value that the text spells."""
    fields = {field.name: field for field in dataclasses.fields(thing)}
    if path[0] not in fields:
        raise UnknownName(f"input {name!r}: no {path[0]!r}; {nearest(path[0], fields, count=20)}")
    old = getattr(thing, path[0])
    if len(path) > 1:
        if not isinstance(old, Declared):
            raise InputError(f"input {name!r}: {path[0]!r} has no parts")
        new = _replaced(old, path[1:], value, name)
    else:
        new = _value(old, value, name)
    try:
        return dataclasses.replace(thing, **{path[0]: new})
    except LayoutError:
        raise
    except MlsysimError as error:
        raise InputError(f"input {name!r} = {value}: {error}") from None


def _value(old: Any, text: str, name: str) -> Any:
    """The text as a value of the kind that the input has."""
    try:
        if isinstance(old, bool):
            return {"true": True, "false": False}[text]
        if isinstance(old, int):
            return int(text)
        if isinstance(old, float):
            return units.number(text)
        if units.is_quantity(old):
            return units.quantity(text)
    except (KeyError, ValueError) as error:
        raise InputError(f"input {name!r}: {text!r}, expected a value like {old!r}") from error
    if isinstance(old, str):
        return text
    raise InputError(f"input {name!r} refers to a thing; vary one of its numbers")


@record
class LayoutSearchScenario(Scenario):
    """The fastest layouts of a training step, of all that exist on its fleet and fit its memory.

    Every tensor, context and pipeline degree, interleaving, microbatch, recomputation and ZeRO
    stage up to `most_sharding` is looked at; data parallelism takes what is left of the fleet.

    Equation: best = arg min step time over layouts that exist and fit.

    Assumptions: all layouts share the step's efficiency, overlap and kernels.

    Excludes: the work of moving to another layout, and how well a framework runs it.

    Derivation: mlsysim.solvers.DistributedModel.best_layout solves every layout by the formulas of
    DistributedModel.solve, whose docstring states equations and sources.

    >>> from mlsysim import Scenarios
    >>> case = Scenarios.ReferenceLayoutSearch
    >>> case.best_step_time < case.step.step_time
    True
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step whose layout is searched")
    most_sharding: int = declared(
        at_least=0, at_most=3, description="highest ZeRO stage that is looked at"
    )
    kept: int = declared(at_least=1, description="how many of the fastest the table lists")

    @output()
    def looked_at(self) -> int:
        """Layouts that were looked at. Equation: those that exist and those that cannot."""
        return int(self._search().looked_at)

    @output()
    def fallen(self) -> dict[str, int]:
        """Layouts that cannot exist or do not fit, by reason. Equation: count of each reason."""
        return {_slug(why): count for why, count in sorted(self._search().fallen.items())}

    @output("s")
    def best_step_time(self) -> Quantity:
        """Step time of the fastest layout that fits. Equation: min over layouts."""
        return _seconds(self._search().best[0]["step_time"])

    @output()
    def best(self) -> dict[str, Any]:
        """The fastest layout that fits. Equation: arg min over layouts."""
        return {
            name: value
            for name, value in self._search().best[0].items()
            if isinstance(value, (int, str))
        }

    @output("%")
    def gain(self) -> Quantity:
        """Share of the step's time that the fastest layout saves. Equation: 1 - best / step."""
        base = float(self.step.result.ledger.total)
        return Quantity(100 * (1 - self._search().best[0]["step_time"] / base), unit("%"))

    def table(self) -> Sequence[Mapping[str, Any]]:
        """The fastest layouts: degrees, step, ledger in seconds, memory in GB."""
        return [
            {
                name if isinstance(value, (int, str)) else _column(name): (
                    value / 1e9 if name == "memory" else value
                )
                for name, value in row.items()
            }
            for row in self._search().best
        ]

    def _search(self) -> Any:
        if "_found" not in self.__dict__:
            arguments = self.step.solver_arguments()
            fixed = {name: arguments[name] for name in FIXED}
            self.__dict__["_found"] = DistributedModel.best_layout(
                arguments["model"],
                arguments["fleet"],
                batch_size=arguments["batch_size"],
                count=self.kept,
                zero_stages=range(self.most_sharding + 1),
                **fixed,
            )
        return self.__dict__["_found"]


# The arguments of a step that its layouts share.
FIXED = (
    "seq_len",
    "precision",
    "efficiency",
    "bytes_per_param",
    "sequence_parallel",
    "fused_attention",
    "gradient_precision",
    "overlap_comm",
    "overlap_tp_comm",
)


def _column(name: str) -> str:
    return "memory_gb" if name == "memory" else f"{name}_s"


def _slug(reason: str) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in reason.lower()).split())


def _seconds(value: float) -> Quantity:
    return Quantity(value, unit("s"))
