"""Published steps: runs that others measured, against what the model gives for each."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mlsysim import units
from mlsysim.declared import declared, record
from mlsysim.engine.scenario import Scenario
from mlsysim.errors import InputError, LayoutError, MlsysimError, UnitError, nearest
from mlsysim.outputs import output
from mlsysim.registry.types import Fleet, TransformerModel
from mlsysim.solvers import DistributedModel, DistributedResult
from mlsysim.solvers.statistics import mean, median, rank_correlation
from mlsysim.units import Quantity, unit

__all__ = ["PublishedStepTimesScenario", "Run"]

# A table of named fleets, and the rows of a CSV file.
FleetTable = dict[str, Fleet]
Rows = tuple[dict[str, str], ...]


# The columns that a run is made of.
_COLUMNS = (
    *("run", "source", "machine", "model", "parameters_billion", "layers", "hidden_size"),
    *("attention_heads", "kv_heads", "ffn_hidden_size", "gated_mlp", "vocabulary_size", "seq_len"),
    *("accelerators", "tp_size", "cp_size", "pp_size", "v_stages", "batch_size", "microbatch_size"),
    *("precision", "gradient_precision", "activation_recomputation", "sequence_parallel"),
    *("fused_attention", "zero_stage", "stage_split", "overlap_comm", "overlap_tp_comm"),
    "step_time_s",
)


@dataclasses.dataclass(frozen=True)
class Run:
    """One published run: how the solver is called for it, and the seconds that were measured."""

    name: str
    source: str
    accelerator: str
    measured: float
    arguments: Mapping[str, Any]
    result: DistributedResult

    @property
    def predicted(self) -> float:
        """Seconds that the model gives."""
        return float(self.result.ledger.total)

    @property
    def error(self) -> float:
        """Signed error of the prediction: predicted / measured - 1."""
        return self.predicted / self.measured - 1


@record
class PublishedStepTimesScenario(Scenario):
    """Published, measured training steps, and what the model gives for the same layout.

    Every run is solved with the efficiencies of its accelerator's registry entry; nothing is set
    for a run, a model or a publication.

    Equation: error of a run = predicted / measured - 1.

    Assumptions: a run's accelerators fill whole nodes of the named machine; a vocabulary that a
    source does not give is 51,200; runs on H100 used fused attention.

    Excludes: the scatter between two measurements of one layout, which the table shows.

    Derivation: each row gives the arguments of mlsysim.solvers.DistributedModel.solve, whose
    docstring states equations and sources; errors are those of mlsysim.solvers.statistics.

    >>> from mlsysim import Scenarios
    >>> case = Scenarios.PublishedStepTimes
    >>> case.run_count["narayanan2021"]
    10
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    runs: Rows = declared(description="one row for each run: model, layout, options and time")
    machines: FleetTable = declared(description="the machine of each name in the table")
    bytes_per_param: Quantity = declared(
        unit="B", above=0, description="training state kept for each parameter"
    )

    def check(self) -> None:
        """Refuse a table without rows, and a row that is no run, by run and column."""
        if not self.runs:
            raise InputError("runs: the table has no rows")
        names = [row.get("run") for row in self.runs]
        twice = [name for name in names if names.count(name) > 1 and name is not None]
        if twice:
            raise InputError(f"run {twice[0]} stands in the table twice")
        self.solved  # noqa: B018  each run is solved, and refused, when the scenario is made

    @output("%")
    def mean_error(self) -> Quantity:
        """Mean absolute error over all runs. Equation: mean(|predicted / measured - 1|)."""
        return _percent(mean(self._absolute(self.solved)))

    @output("%")
    def median_error(self) -> Quantity:
        """Median absolute error over all runs. Equation: median(|predicted / measured - 1|)."""
        return _percent(median(self._absolute(self.solved)))

    @output("%")
    def worst_error(self) -> Quantity:
        """Largest absolute error of any run. Equation: max(|predicted / measured - 1|)."""
        return _percent(max(self._absolute(self.solved)))

    @output()
    def rank_correlation(self) -> float:
        """Spearman's rank correlation of predicted and measured times.

        Equation: covariance of the ranks / product of their standard deviations.
        """
        return rank_correlation(
            [run.predicted for run in self.solved], [run.measured for run in self.solved]
        )

    @output()
    def run_count(self) -> dict[str, int]:
        """Runs, in all and of each source. Equation: rows of the table."""
        return {"all": len(self.solved), **{k: len(v) for k, v in self.by_source().items()}}

    @output("%")
    def mean_error_of(self) -> dict[str, Quantity]:
        """Mean absolute error of the runs of a source or an accelerator.

        Equation: mean(|predicted / measured - 1|) over these runs.
        """
        return {k: _percent(mean(self._absolute(v))) for k, v in self._groups().items()}

    @output("%")
    def worst_error_of(self) -> dict[str, Quantity]:
        """Largest absolute error among the runs of a source or an accelerator.

        Equation: max(|predicted / measured - 1|) over these runs.
        """
        return {k: _percent(max(self._absolute(v))) for k, v in self._groups().items()}

    @output("%")
    def bias_of(self) -> dict[str, Quantity]:
        """Mean signed error of the runs of a source or an accelerator; negative is too fast.

        Equation: mean(predicted / measured - 1) over these runs.
        """
        return {k: _percent(mean([r.error for r in v])) for k, v in self._groups().items()}

    @output("s")
    def predicted(self) -> dict[str, Quantity]:
        """Modeled step time of each run. Equation: DistributedModel.solve(...)."""
        return {run.name: Quantity(run.predicted, unit("s")) for run in self.solved}

    @output("s")
    def measured(self) -> dict[str, Quantity]:
        """Measured step time of each run, as published. Equation: as published."""
        return {run.name: Quantity(run.measured, unit("s")) for run in self.solved}

    @property
    def solved(self) -> list[Run]:
        """Every run with its result, in the order of the table."""
        if "_solved" not in self.__dict__:
            self.__dict__["_solved"] = [self._run(row) for row in self.runs]
        found: list[Run] = self.__dict__["_solved"]
        return found

    def by_source(self) -> dict[str, list[Run]]:
        """The runs of each source, in the order of the table."""
        groups: dict[str, list[Run]] = {}
        for run in self.solved:
            groups.setdefault(run.source, []).append(run)
        return groups

    def _groups(self) -> dict[str, list[Run]]:
        groups = self.by_source()
        for run in self.solved:
            groups.setdefault(run.accelerator, []).append(run)
        groups["bloom"] = [r for r in self.solved if r.source.startswith("bloom")]
        groups["fitted"] = [r for r in self.solved if not r.source.startswith("bloom")]
        return {name: runs for name, runs in groups.items() if runs}

    @staticmethod
    def _absolute(runs: Sequence[Run]) -> list[float]:
        return [abs(run.error) for run in runs]

    def table(self) -> list[dict[str, Any]]:
        """One row a run: who measured it, on what, both times, the error, and the ledger."""
        return [
            {
                "run": run.name,
                "source": run.source,
                "accelerator": run.accelerator,
                "accelerators": row["accelerators"],
                "model": row["model"],
                "layout": _layout(row),
                "measured_s": run.measured,
                "predicted_s": run.predicted,
                "error": run.error,
                **{f"{name}_s": float(part) for name, part in run.result.ledger._asdict().items()},
            }
            for run, row in zip(self.solved, self.runs, strict=True)
        ]

    def _run(self, row: Mapping[str, str]) -> Run:
        name = row.get("run", "?")
        try:
            _check_row(row)
            arguments = self._arguments(row)
            measured = _number(row, "step_time_s")
            result = DistributedModel.solve(**arguments)
        except MlsysimError as error:
            raise type(error)(f"run {name}: {error}") from None
        fleet: Fleet = arguments["fleet"]
        return Run(
            row["run"], row["source"], fleet.node.accelerator.name, measured, arguments, result
        )

    def _arguments(self, row: Mapping[str, str]) -> dict[str, Any]:
        """How DistributedModel.solve is called for a row."""
        if row["machine"] not in self.machines:
            raise InputError(
                f"machine {row['machine']!r}; {nearest(row['machine'], self.machines)}"
            )
        fleet = self.machines[row["machine"]]
        nodes, left = divmod(_count(row, "accelerators"), fleet.node.accelerators)
        if left:
            raise InputError(f"{row['accelerators']} accelerators fill no whole nodes")
        named = fleet.node.accelerator.name
        fleet = dataclasses.replace(fleet, node_count=nodes)
        replica = _count(row, "tp_size") * _count(row, "cp_size") * _count(row, "pp_size")
        data, _idle = divmod(_count(row, "accelerators"), replica)
        if not data:
            raise LayoutError(f"{row['accelerators']} accelerators hold no replica of {replica}")
        slots = data * _count(row, "microbatch_size")
        batch = _count(row, "batch_size")
        if batch % slots:
            raise InputError(f"{batch} sequences leave no whole microbatch: {batch} / {slots}")
        fleet.node.accelerator.__dict__.setdefault("name", named)
        return {
            "model": _model(row),
            "fleet": fleet,
            "batch_size": batch,
            "seq_len": _count(row, "seq_len"),
            "precision": row["precision"],
            "efficiency": fleet.node.accelerator.matrix_efficiency,
            "bytes_per_param": self.bytes_per_param,
            "tp_size": _count(row, "tp_size"),
            "cp_size": _count(row, "cp_size"),
            "pp_size": _count(row, "pp_size"),
            "v_stages": _count(row, "v_stages"),
            "microbatch_count": batch // slots,
            "sequence_parallel": _flag(row, "sequence_parallel"),
            "fused_attention": _flag(row, "fused_attention"),
            "activation_recomputation": row["activation_recomputation"],
            "gradient_precision": row["gradient_precision"],
            "zero_stage": _count(row, "zero_stage"),
            "stage_split": row["stage_split"],
            "overlap_comm": _flag(row, "overlap_comm"),
            "overlap_tp_comm": _flag(row, "overlap_tp_comm"),
        }


def _model(row: Mapping[str, str]) -> TransformerModel:
    """The model of a row; what moves no time is taken as in GPT-3."""
    return TransformerModel(
        parameters=Quantity(_number(row, "parameters_billion") * 1e9, unit("param")),
        layers=_count(row, "layers"),
        hidden_size=_count(row, "hidden_size"),
        attention_heads=_count(row, "attention_heads"),
        kv_heads=_count(row, "kv_heads"),
        ffn_hidden_size=_count(row, "ffn_hidden_size"),
        gated_mlp=_flag(row, "gated_mlp"),
        vocabulary_size=_count(row, "vocabulary_size"),
        context_length=_count(row, "seq_len"),
        tied_embeddings=True,
        learned_positions=False,
        biases=not _flag(row, "gated_mlp"),
    )


def _check_row(row: Mapping[Any, Any]) -> None:
    """A row has every column of a run, and no cell beyond the header."""
    missing = [column for column in _COLUMNS if row.get(column) is None]
    if missing:
        raise InputError(f"the column {missing[0]!r} is missing")
    if None in row:
        raise InputError(f"more cells than the header names: {row[None]}")


def _count(row: Mapping[str, str], column: str) -> int:
    """A whole number of at least 1 (or 0 for a ZeRO stage)."""
    least = 0 if column == "zero_stage" else 1
    text = row[column].strip()
    if not re.fullmatch(r"-?[0-9]{1,15}", text):
        raise InputError(f"{column} = {text!r}: expected a whole number")
    if int(text) < least:
        raise InputError(f"{column} = {text}: expected at least {least}")
    return int(text)


def _number(row: Mapping[str, str], column: str) -> float:
    """A number above 0."""
    try:
        value = units.number(row[column])
    except UnitError as error:
        raise InputError(f"{column} = {row[column]}: {error}") from None
    if not value > 0:
        raise InputError(f"{column} = {row[column]}: expected more than 0")
    return value


def _flag(row: Mapping[str, str], column: str) -> bool:
    if row[column] not in ("true", "false"):
        raise InputError(f"{column} = {row[column]!r}: expected true or false")
    return row[column] == "true"


def _layout(row: Mapping[str, str]) -> str:
    """The layout in a word: degrees, parts of a stage, microbatch."""
    degrees = (("t", "tp_size"), ("c", "cp_size"), ("p", "pp_size"), ("v", "v_stages"))
    text = " ".join(f"{letter}{row[column]}" for letter, column in degrees if row[column] != "1")
    return f"{text} b{row['microbatch_size']}".strip()


def _percent(share: float) -> Quantity:
    return Quantity(100 * share, unit("%"))
