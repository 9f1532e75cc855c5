"""The arguments of a step, checked and turned into numbers in base units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mlsysim import units
from mlsysim.errors import InputError, LayoutError
from mlsysim.registry.types import Fleet, TransformerModel
from mlsysim.scalars import plain
from mlsysim.solvers.layout_rules import Layout, layout_of
from mlsysim.solvers.pipeline import leaves_a_stage_empty
from mlsysim.solvers.step import Inputs

__all__ = ["GRADIENT_BYTES", "RECOMPUTATION", "StepArguments", "inputs_of"]

# Bytes of a reduced gradient in each precision.
GRADIENT_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0}
RECOMPUTATION = ("none", "selective", "full")
_SPLITS = ("layers", "slots")


@dataclass(frozen=True, kw_only=True)
class StepArguments:
    """The arguments of `DistributedModel.solve`, whose docstring says what each means.

    Scalars of numpy are taken as the Python numbers that they print as. What no step can have is
    refused when it is solved.
    """

    model: TransformerModel
    fleet: Fleet
    batch_size: int
    seq_len: int
    precision: str
    efficiency: float
    bytes_per_param: units.Quantity
    tp_size: int = 1
    cp_size: int = 1
    pp_size: int = 1
    v_stages: int = 1
    microbatch_count: int = 1
    sequence_parallel: bool = False
    fused_attention: bool = False
    activation_recomputation: str = "none"
    gradient_precision: str = "bf16"
    zero_stage: int = 0
    stage_split: str = "layers"
    overlap_comm: bool = True
    overlap_tp_comm: bool = False

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, plain(value))


def inputs_of(given: StepArguments) -> tuple[Inputs, Layout]:
    """The arguments, checked, as numbers in base units, and the layout they give.

    Raises InputError or LayoutError as `DistributedModel.solve` does.
    """
    flags = {
        "sequence_parallel": given.sequence_parallel,
        "fused_attention": given.fused_attention,
        "overlap_comm": given.overlap_comm,
        "overlap_tp_comm": given.overlap_tp_comm,
    }
    words = {
        "activation_recomputation": (given.activation_recomputation, RECOMPUTATION),
        "gradient_precision": (given.gradient_precision, GRADIENT_BYTES),
        "stage_split": (given.stage_split, _SPLITS),
        "zero_stage": (given.zero_stage, (0, 1, 2, 3)),
    }
    _check(given.model, given.fleet, given.efficiency, flags, words)
    if given.stage_split == "slots" and given.v_stages != 1:
        raise LayoutError(
            f"stage_split slots with v_stages {given.v_stages}: interleaved parts are equal in "
            "layers"
        )
    per_param = _bytes_per_param(given.bytes_per_param, GRADIENT_BYTES[given.gradient_precision])
    layout = layout_of(
        given.model,
        given.fleet,
        batch_size=given.batch_size,
        tp_size=given.tp_size,
        cp_size=given.cp_size,
        pp_size=given.pp_size,
        microbatch_count=given.microbatch_count,
        v_stages=given.v_stages,
        seq_len=given.seq_len,
        sequence_parallel=given.sequence_parallel,
    )
    if given.stage_split == "slots" and leaves_a_stage_empty(given.model.layers, layout.pipeline):
        layers = given.model.layers
        raise LayoutError(
            f"stage_split slots: {layers} layers, embedding and head are {layers + 2} places, "
            f"fewer than two for each of {layout.pipeline} stages, so a stage would hold no layer"
        )
    inputs = Inputs(
        **_of_model(given.model),
        **_of_fleet(given.fleet, given.precision),
        **_of_layout(layout),
        seq_len=given.seq_len,
        efficiency=given.efficiency,
        sequence_parallel=given.sequence_parallel,
        fused_attention=given.fused_attention,
        repeats_core=given.activation_recomputation != "none",
        repeats_all=given.activation_recomputation == "full",
        slots_for_ends=given.stage_split == "slots",
        overlap_data=given.overlap_comm,
        overlap_tensor=given.overlap_tp_comm,
        zero_stage=given.zero_stage,
        bytes_per_param=per_param,
        gradient_bytes=GRADIENT_BYTES[given.gradient_precision],
    )
    return inputs, layout


def _of_model(model: TransformerModel) -> dict[str, Any]:
    return {
        "layers": model.layers,
        "hidden": model.hidden_size,
        "heads": model.attention_heads,
        "kv": model.kv_size,
        "ffn": model.ffn_hidden_size,
        "vocabulary": model.vocabulary_size,
        "gated": model.gated_mlp,
        "layer_parameters": model.layer_parameters,
        "embedding_parameters": model.embedding_parameters,
        "head_parameters": model.head_parameters,
        "tied_parameters": model.tied_parameters,
    }


def _of_fleet(fleet: Fleet, precision: str) -> dict[str, Any]:
    accelerator = fleet.node.accelerator
    return {
        "node_size": fleet.node.accelerators,
        "links": fleet.links,
        "peak": accelerator.rate(precision),
        # ASSUME precision: with fp8 the attention core and the output head stay in bf16, as is
        # usual.
        "core_peak": accelerator.rate("bf16" if precision == "fp8" else precision),
        "memory_rate": accelerator.memory_rate,
        "capacity": accelerator.capacity_bytes,
        "half_work": accelerator.half_work_flops,
        "memory_efficiency": accelerator.memory_efficiency,
        "overlap_exposure": accelerator.overlap_exposure,
    }


def _of_layout(layout: Layout) -> dict[str, Any]:
    return {
        "tensor": layout.tensor,
        "context": layout.context,
        "pipeline": layout.pipeline,
        "data": layout.data,
        "interleaving": layout.interleaving,
        "microbatch": layout.microbatch_size,
        "microbatches": layout.microbatches,
    }


def _check(
    model: Any, fleet: Any, efficiency: Any, flags: dict[str, Any], words: dict[str, Any]
) -> None:
    """Refuse an argument of the wrong type or out of its range; the layout checks counts."""
    for name, argument, kind in (("model", model, TransformerModel), ("fleet", fleet, Fleet)):
        if not isinstance(argument, kind):
            raise InputError(f"{name} = {argument!r}: expected a {kind.__name__}")
    number = isinstance(efficiency, (int, float)) and not isinstance(efficiency, bool)
    if not number or not 0 < efficiency <= 1:
        raise InputError(f"efficiency = {efficiency!r}: expected a number in (0, 1]")
    for name, flag in flags.items():
        if type(flag) is not bool:
            raise InputError(f"{name} = {flag!r}: expected true or false")
    for name, (word, choices) in words.items():
        if type(word) not in (str, int) or word not in [*choices]:
            raise InputError(f"{name} = {word!r}: expected one of {', '.join(map(str, choices))}")


def _bytes_per_param(quantity: Any, gradient_bytes: float) -> float:
    """Bytes of training state a parameter, which must hold at least a weight and its gradient."""
    shown = f"bytes_per_param = {units.shown(quantity)}"
    if not isinstance(quantity, units.Quantity) or not quantity.check("[data]"):
        raise InputError(f'{shown}: expected a quantity in bytes, such as Q("16 B")')
    quantity = units.plain_quantity(quantity)
    least = 2 + gradient_bytes
    if not least <= units.to_si(quantity) < math.inf:
        raise InputError(f"{shown}: expected at least {least:g} B, a weight and its gradient")
    return units.to_si(quantity)
