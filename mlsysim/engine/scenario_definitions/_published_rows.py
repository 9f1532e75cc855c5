"""A row of the table of published steps: a call of the solver, and the time that was measured."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from mlsysim import units
from mlsysim.errors import InputError, LayoutError, MlsysimError, UnitError, nearest
from mlsysim.registry.types import Fleet, TransformerModel
from mlsysim.solvers import DistributedModel, DistributedResult
from mlsysim.solvers.arguments import GRADIENT_BYTES
from mlsysim.solvers.memory import WEIGHT_BYTES
from mlsysim.units import Quantity, unit

__all__ = ["Run", "layout_in_words", "run_of"]

# The columns that a run is made of.
_COLUMNS = (
    *("run", "source", "machine", "model", "parameters_billion", "layers", "hidden_size"),
    *(
        "attention_heads",
        "kv_heads",
        "ffn_hidden_size",
        "gated_mlp",
        "tied_embeddings",
        "vocabulary_size",
        "seq_len",
    ),
    *("accelerators", "tp_size", "cp_size", "pp_size", "v_stages", "batch_size", "microbatch_size"),
    *("precision", "gradient_precision", "activation_recomputation", "sequence_parallel"),
    *(
        "fused_attention",
        "zero_stage",
        "optimizer_bytes",
        "stage_split",
        "overlap_comm",
        "overlap_tp_comm",
    ),
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


def run_of(row: Mapping[str, str], machines: Mapping[str, Fleet]) -> Run:
    """The run of a row, solved. Raises MlsysimError that names the run for a row that is none."""
    name = row.get("run", "?")
    try:
        _check_row(row)
        arguments = _arguments(row, machines)
        measured = _number(row, "step_time_s")
        result = DistributedModel.solve(**arguments)
    except MlsysimError as error:
        raise type(error)(f"run {name}: {error}") from None
    fleet: Fleet = arguments["fleet"]
    return Run(row["run"], row["source"], fleet.node.accelerator.name, measured, arguments, result)


def _arguments(row: Mapping[str, str], machines: Mapping[str, Fleet]) -> dict[str, Any]:
    """How DistributedModel.solve is called for a row."""
    if row["machine"] not in machines:
        raise InputError(f"machine {row['machine']!r}; {nearest(row['machine'], machines)}")
    fleet = machines[row["machine"]]
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
        "bytes_per_param": _state(row),
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
    """The model of a row; positions and biases, which the table lacks, move next to nothing."""
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
        tied_embeddings=_flag(row, "tied_embeddings"),
        learned_positions=False,
        biases=not _flag(row, "gated_mlp"),
    )


def _state(row: Mapping[str, str]) -> Quantity:
    """Bytes of training state a parameter: a weight, its gradient, and what the optimizer keeps."""
    gradient = GRADIENT_BYTES.get(row["gradient_precision"], 0.0)
    return Quantity(WEIGHT_BYTES + gradient + _count(row, "optimizer_bytes"), unit("B"))


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


def layout_in_words(row: Mapping[str, str]) -> str:
    """The layout in a word: degrees, parts of a stage, microbatch."""
    degrees = (("t", "tp_size"), ("c", "cp_size"), ("p", "pp_size"), ("v", "v_stages"))
    text = " ".join(f"{letter}{row[column]}" for letter, column in degrees if row[column] != "1")
    return f"{text} b{row['microbatch_size']}".strip()
