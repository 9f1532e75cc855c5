"""The layout of a replica and its batch; what cannot exist is refused with the arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from mlsysim.errors import InputError, LayoutError, division
from mlsysim.registry.types import Fleet, TransformerModel

__all__ = ["Layout", "layout_of"]


@dataclass(frozen=True)
class Layout:
    """Degrees of parallelism and the batch: counts that are known to fit each other.

    `idle` are the accelerators outside any replica.
    """

    tensor: int
    context: int
    pipeline: int
    data: int
    interleaving: int
    microbatch_size: int
    microbatches: int
    idle: int


def layout_of(
    model: TransformerModel,
    fleet: Fleet,
    *,
    batch_size: int,
    tp_size: int,
    cp_size: int,
    pp_size: int,
    microbatch_count: int,
    v_stages: int,
    seq_len: int,
    sequence_parallel: bool,
) -> Layout:
    """The layout that these degrees give on the fleet. Raises LayoutError if there is none."""
    counts = {
        "batch_size": batch_size,
        "tp_size": tp_size,
        "cp_size": cp_size,
        "pp_size": pp_size,
        "microbatch_count": microbatch_count,
        "v_stages": v_stages,
        "seq_len": seq_len,
    }
    for name, count in counts.items():
        if type(count) is not int or not 1 <= count < 2**53:
            raise InputError(f"{name} = {count!r}: expected a whole number of at least 1")
    _check_widths(model, tp_size, cp_size, seq_len, sequence_parallel=sequence_parallel)
    _check_stages(model, pp_size, v_stages, microbatch_count)
    # ASSUME layout: ranks are placed tensor parallel innermost, then context, data and pipeline
    # parallel.
    devices, replica = fleet.total_accelerators, tp_size * cp_size * pp_size
    data = devices // replica
    if not data:
        raise LayoutError(
            f"the fleet has {devices} accelerators, fewer than one replica: "
            f"tp_size {tp_size} x cp_size {cp_size} x pp_size {pp_size} = {replica}"
        )
    slots = data * microbatch_count
    if batch_size % slots:
        raise LayoutError(
            f"batch_size leaves no whole microbatch: {data} replicas x "
            f"{microbatch_count} microbatches = {slots}, "
            f"and {division(batch_size, slots)} sequences a microbatch"
        )
    return Layout(
        tensor=tp_size,
        context=cp_size,
        pipeline=pp_size,
        data=data,
        interleaving=v_stages,
        microbatch_size=batch_size // slots,
        microbatches=microbatch_count,
        idle=devices - replica * data,
    )


def _check_widths(
    model: TransformerModel, tensor: int, context: int, seq_len: int, *, sequence_parallel: bool
) -> None:
    """Tensor parallelism gives every rank whole heads and equal parts of MLP and tokens."""
    shares = {
        "attention_heads": model.attention_heads,
        "kv_heads": model.kv_heads,
        "ffn_hidden_size": model.ffn_hidden_size,
    }
    if seq_len % context:
        raise LayoutError(f"cp_size does not divide seq_len: {division(seq_len, context)}")
    if sequence_parallel:
        shares["the tokens of a rank"] = seq_len // context
    for name, width in shares.items():
        if width % tensor:
            raise LayoutError(f"tp_size {tensor} does not divide {name}: {division(width, tensor)}")
    if model.learned_positions and seq_len > model.context_length:
        raise LayoutError(
            f"seq_len {seq_len} exceeds the {model.context_length} positions that the model learned"
        )


def _check_stages(
    model: TransformerModel, pipeline: int, interleaving: int, microbatches: int
) -> None:
    """Every stage (and every part of an interleaved one) holds at least one layer."""
    chunks = pipeline * interleaving
    if chunks > model.layers:
        raise LayoutError(
            f"pp_size {pipeline} x v_stages {interleaving} = {chunks} stages, and only "
            f"{model.layers} layers to fill them"
        )
    if interleaving > 1:
        if pipeline == 1:
            raise LayoutError(
                f"v_stages {interleaving} with pp_size 1: there is no pipeline to interleave"
            )
        if model.layers % chunks:
            raise LayoutError(
                f"interleaving needs equal parts: layers / (pp_size {pipeline} x v_stages "
                f"{interleaving}): {division(model.layers, chunks)}"
            )
        if microbatches % pipeline:
            raise LayoutError(
                "an interleaved schedule runs microbatches in groups of pp_size: "
                f"microbatch_count / pp_size: {division(microbatches, pipeline)}"
            )
