"""DistributedModel: one optimizer step of a dense transformer, composed of the parts beside it."""

from __future__ import annotations

from typing import Any

from mlsysim import units
from mlsysim.errors import InputError
from mlsysim.registry.types import Fleet, TransformerModel
from mlsysim.solvers import collectives, flops, memory, pipeline
from mlsysim.solvers.layout import Layout, layout_of
from mlsysim.solvers.result import DistributedResult, Ledger
from mlsysim.units import Quantity

__all__ = ["DistributedModel", "DistributedResult", "Ledger"]

# Bytes of one number in each precision.
_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}
# ASSUME activations travel and are kept in 16 bits, whatever the precision of the products.
_ACTIVATION_BYTES = 2
_RECOMPUTATION = ("none", "selective", "full")


class DistributedModel:
    """Time and memory of one optimizer step under tensor, pipeline and data parallelism.

    Covers matrix work, tensor-parallel, point-to-point and data-parallel communication, and the
    pipeline bubble, after Narayanan et al. 2021 (arXiv 2104.04473) and Korthikanti et al. 2022
    (arXiv 2205.05198).

    Excludes: memory-bound kernels (normalisation, residual, dropout), the optimizer's own pass over
    its state, the tensor-parallel exchange of embedding and logits, the reduction of tied
    embeddings between first and last stage, stragglers, and input from storage.
    """

    @staticmethod
    def solve(
        model: TransformerModel,
        fleet: Fleet,
        *,
        batch_size: int,
        seq_len: int,
        precision: str,
        efficiency: float,
        bytes_per_param: Quantity,
        tp_size: int = 1,
        pp_size: int = 1,
        v_stages: int = 1,
        microbatch_count: int = 1,
        sequence_parallel: bool = False,
        fused_attention: bool = False,
        activation_recomputation: str = "none",
        gradient_precision: str = "bf16",
        overlap_comm: bool = True,
    ) -> DistributedResult:
        """Time, memory and utilization of one step.

        Args:
            model: shape of the transformer.
            fleet: nodes, links and fabric, filled by whole replicas.
            batch_size: sequences of the global batch.
            seq_len: tokens of a sequence.
            precision: of the matrix products; the accelerator must have a rate for it.
            efficiency: share of the peak dense rate that matrix products reach, in (0, 1]. It is
                not a whole-job MFU: bubble and communication are charged on top.
            bytes_per_param: training state of a parameter, as a quantity in bytes.
            tp_size: tensor-parallel degree.
            pp_size: pipeline stages.
            v_stages: parts of each stage in an interleaved schedule; 1 is plain 1F1B.
            microbatch_count: microbatches of a replica in one step.
            sequence_parallel: norms and residuals are split over the tensor-parallel group too.
            fused_attention: scores are never written to memory, and the blocks above the causal
                diagonal are skipped.
            activation_recomputation: "none", "selective" (the attention core) or "full".
            gradient_precision: of the reduced gradients: "bf16", "fp16" or "fp32".
            overlap_comm: the gradient reduction runs behind the last backward pass, as far as
                that lasts.

        Raises:
            InputError: an argument out of its range, or a precision without a rate.
            LayoutError: degrees, batch and fleet that do not fit each other, with the arithmetic.
        """
        per_param = _check_arguments(
            model,
            fleet,
            efficiency,
            bytes_per_param,
            sequence_parallel,
            fused_attention,
            overlap_comm,
        )
        if activation_recomputation not in _RECOMPUTATION:
            raise InputError(
                f"activation_recomputation = {activation_recomputation!r}: "
                f"expected one of {', '.join(_RECOMPUTATION)}"
            )
        if gradient_precision not in [*_BYTES]:
            raise InputError(
                f"gradient_precision = {gradient_precision!r}: expected one of {', '.join(_BYTES)}"
            )
        accelerator = fleet.node.accelerator
        peak = accelerator.rate(precision)
        layout = layout_of(
            model,
            fleet,
            batch_size=batch_size,
            tp_size=tp_size,
            pp_size=pp_size,
            microbatch_count=microbatch_count,
            v_stages=v_stages,
            seq_len=seq_len,
            sequence_parallel=sequence_parallel,
        )
        work = flops.forward_work(model, seq_len, fused_attention=fused_attention)
        repeated = work.repeated(activation_recomputation)
        slots = _slots(
            layout, work, repeated, peak * efficiency, _exchange(model, fleet, layout, seq_len)
        )
        stage_parameters = _stage_parameters(model, layout)
        reductions = _reductions(stage_parameters, layout, _BYTES[gradient_precision])
        paced = pipeline.slowest(slots)
        exposed = pipeline.exposed_reduction(
            reductions, [s.backward_pass for s in slots], layout.stage_layers, overlap=overlap_comm
        )
        m = microbatch_count
        ledger = Ledger(
            forward=m * paced.forward,
            backward=m * paced.backward,
            recomputation=m * paced.recomputation,
            tensor_parallel=m * paced.tensor_parallel,
            point_to_point=m * paced.point_to_point,
            bubble=pipeline.bubble_time([s.total for s in slots], v_stages),
            data_parallel=exposed,
        )
        sequences = layout.data * layout.microbatch_size * m
        used = layout.data * tp_size * pp_size
        return DistributedResult(
            layout=layout,
            ledger=ledger,
            model_work=sequences * 3 * work.by_definition,
            executed_work=sequences * (3 * work.executed + model.layers * repeated),
            peak_rate=used * peak,
            tokens=sequences * seq_len,
            hidden_data_parallel=max(reductions) - exposed,
            state=max(memory.state_bytes(n, per_param, tp_size) for n in stage_parameters),
            activations=_activation_bytes(
                model,
                layout,
                seq_len,
                sequence_parallel=sequence_parallel,
                keeps_scores=not fused_attention and activation_recomputation == "none",
                keeps_input_only=activation_recomputation == "full",
            ),
            capacity=accelerator.capacity_bytes,
        )


def _check_arguments(
    model: Any, fleet: Any, efficiency: Any, bytes_per_param: Any, *flags: Any
) -> float:
    """Bytes per parameter, if each argument has its type and range; counts are the layout's."""
    for name, argument, kind in (("model", model, TransformerModel), ("fleet", fleet, Fleet)):
        if not isinstance(argument, kind):
            raise InputError(f"{name} = {argument!r}: expected a {kind.__name__}")
    if type(efficiency) not in (int, float) or not 0 < efficiency <= 1:
        raise InputError(f"efficiency = {efficiency!r}: expected a number in (0, 1]")
    for name, flag in zip(
        ("sequence_parallel", "fused_attention", "overlap_comm"), flags, strict=True
    ):
        if type(flag) is not bool:
            raise InputError(f"{name} = {flag!r}: expected true or false")
    shown = f"bytes_per_param = {units.shown(bytes_per_param)}"
    if not isinstance(bytes_per_param, units.Quantity) or not bytes_per_param.check("[data]"):
        raise InputError(f'{shown}: expected a quantity in bytes, such as Q("16 B")')
    if not bytes_per_param.magnitude > 0:
        raise InputError(f"{shown}: expected more than 0 B")
    return units.to_si(bytes_per_param)


def _exchange(
    model: TransformerModel, fleet: Fleet, layout: Layout, seq_len: int
) -> tuple[float, float]:
    """Seconds of one tensor-parallel all-reduce, and of sending one stage's activations on."""
    stream = float(_ACTIVATION_BYTES) * layout.microbatch_size * seq_len * model.hidden_size
    all_reduce = (
        collectives.all_reduce_time(stream, layout.tensor_group) if layout.tensor > 1 else 0.0
    )
    if layout.pipeline == 1:
        return all_reduce, 0.0
    across = layout.pipeline_crosses_nodes
    rate, latency = (
        (fleet.network_rate, fleet.network_latency)
        if across
        else (fleet.link_rate, fleet.link_latency)
    )
    # Every rank of the tensor-parallel group sends its own part (Narayanan et al. 2021, section
    # 4.1).
    return all_reduce, collectives.point_to_point_time(stream / layout.tensor, rate, latency)


def _slots(
    layout: Layout,
    work: flops.ForwardWork,
    repeated: float,
    reached_rate: float,
    exchange: tuple[float, float],
) -> list[pipeline.StageSlot]:
    """What one microbatch costs each stage, in seconds; the last stage also has the output head."""
    all_reduce, hand_over = exchange
    seconds = layout.microbatch_size / layout.tensor / reached_rate
    last = layout.pipeline - 1
    slots = []
    for stage, layers in enumerate(layout.stage_layers):
        forward = (layers * work.layer + (work.logits if stage == last else 0.0)) * seconds
        # A layer all-reduces twice forward and twice backward (Shoeybi et al. 2019); a repeated
        # forward pass repeats its two. A reduce-scatter and an all-gather of sequence parallelism
        # take as long as an all-reduce. ASSUME the extra all-gather of sequence parallelism in the
        # backward pass hides behind the weight gradients, as Korthikanti et al. 2022 arrange it.
        backward_exchange = layers * (4 if repeated >= work.layer else 2) * all_reduce
        slots.append(
            pipeline.StageSlot(
                forward=forward,
                backward=2 * forward,
                recomputation=layers * repeated * seconds,
                tensor_parallel=layers * 2 * all_reduce + backward_exchange,
                tensor_parallel_backward=backward_exchange,
                point_to_point=2 * layout.interleaving * hand_over,
            )
        )
    return slots


def _stage_parameters(model: TransformerModel, layout: Layout) -> list[int]:
    """Parameters of each stage: layers, the embedding on the first, the head on the last."""
    counts = [layers * model.layer_parameters for layers in layout.stage_layers]
    counts[0] += model.embedding_parameters
    counts[-1] += model.head_parameters
    if layout.pipeline > 1 and model.tied_embeddings:
        counts[-1] += (
            model.vocabulary_size * model.hidden_size
        )  # the last stage keeps a copy of its own
    return counts


def _reductions(stage_parameters: list[int], layout: Layout, gradient_bytes: int) -> list[float]:
    """Seconds of the gradient all-reduce of each stage."""
    if layout.data == 1:
        return [0.0] * len(stage_parameters)
    return [
        collectives.all_reduce_time(
            float(gradient_bytes) * count / layout.tensor, layout.data_group
        )
        for count in stage_parameters
    ]


def _activation_bytes(
    model: TransformerModel,
    layout: Layout,
    seq_len: int,
    *,
    sequence_parallel: bool,
    keeps_scores: bool,
    keeps_input_only: bool,
) -> float:
    """Activations of the fullest stage, in bytes per accelerator."""
    layer = memory.layer_activation_bytes(
        layout.microbatch_size,
        seq_len,
        model.hidden_size,
        model.attention_heads,
        layout.tensor,
        sequence_parallel=sequence_parallel,
        keeps_scores=keeps_scores,
        keeps_input_only=keeps_input_only,
    )
    in_flight = (
        memory.microbatches_in_flight(
            stage, layout.pipeline, layout.microbatches, layout.interleaving
        )
        for stage in range(layout.pipeline)
    )
    return max(n * layers * layer for n, layers in zip(in_flight, layout.stage_layers, strict=True))
