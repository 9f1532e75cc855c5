"""One optimizer step as a sum of exposed times, for one layout or for arrays of layouts alike."""

from __future__ import annotations

from typing import NamedTuple

from mlsysim.solvers import flops, memory, pipeline
from mlsysim.solvers.elementwise import Number, choose
from mlsysim.solvers.inputs import Inputs, Ledger, Memory, Work, stacked
from mlsysim.solvers.layer import Parts, parts_of
from mlsysim.solvers.replicas import over_replicas, stage_kinds

__all__ = [
    "Inputs",
    "Ledger",
    "Memory",
    "Step",
    "Work",
    "memory_of",
    "stacked",
    "stage_ledgers",
    "step",
    "times",
]


class Step(NamedTuple):
    """What a step costs: its exposed times, memory and work, and what runs hidden behind others."""

    ledger: Ledger
    hidden_data_parallel: Number
    hidden_tensor_parallel: Number
    memory: Memory
    work: Work


def step(x: Inputs) -> Step:
    """Exposed times, memory and work of one step; arrays where an input is an array."""
    return Step(*times(x), memory=memory_of(x), work=_work(x))


def _stages(x: Inputs) -> pipeline.Stages:
    return pipeline.split_layers(x.layers, x.pipeline, slots_for_ends=x.slots_for_ends)


def times(x: Inputs) -> tuple[Ledger, Number, Number]:
    """The exposed times, and the hidden seconds of data- and tensor-parallel collectives."""
    parts, stages = parts_of(x), _stages(x)
    layer, head = parts.layer, parts.head
    total, slowest, layers = pipeline.over_stages(stages, layer.total, head)
    has_head = choose(slowest > layers * layer.total, 1.0, 0.0)
    bubble = pipeline.bubble_time(
        total + x.pipeline * parts.hand_over, slowest + parts.hand_over, x.interleaving
    )
    optimizer, data_exposed, data_hidden = over_replicas(x, parts, stages, slowest)
    ledger = _ledger(x, parts, layers, has_head, bubble, data_exposed, optimizer)
    hidden = x.microbatches * layers * layer.exchange_hidden
    return ledger, data_hidden, hidden


def stage_ledgers(x: Inputs) -> dict[str, Ledger]:
    """The ledger of a stage of each kind: what it is busy with, and as `bubble` what it waits.

    Each adds up to the step, to one unit in the last place. Kinds: first, interior_more (a layer
    more than the other interior stages), interior, and last; a kind of which there is no stage is
    left out.
    """
    parts, stages, step_ledger = parts_of(x), _stages(x), times(x)[0]
    kinds = (
        ("first", stages.first, stages.n_first, 0.0),
        ("interior_more", stages.more, stages.n_more, 0.0),
        ("interior", stages.base, stages.n_base, 0.0),
        ("last", stages.last, 1, 1.0),
    )
    found = {}
    for name, layers, count, head in kinds:
        if count > 0:
            busy = _ledger(
                x, parts, layers, head, 0.0, step_ledger.data_parallel, step_ledger.optimizer
            )
            found[name] = busy.waiting_until(step_ledger.total)
    return found


def _ledger(
    x: Inputs,
    parts: Parts,
    layers: Number,
    head: Number,
    bubble: Number,
    data_parallel: Number,
    optimizer: Number,
) -> Ledger:
    """All microbatches of a stage with so many layers, and with the output head if `head` is 1."""
    m, layer = x.microbatches, parts.layer
    return Ledger(
        forward=m * (layers * layer.forward + head * parts.head_forward),
        backward=m * (layers * layer.backward + head * 2.0 * parts.head_forward),
        recomputation=m * layers * layer.recomputation,
        memory_bound=m
        * (layers * (layer.memory_forward + layer.memory_backward) + head * parts.head_memory),
        tensor_parallel=m * layers * (layer.exchange_forward + layer.exchange_backward),
        context_parallel=m * layers * layer.context,
        point_to_point=m * parts.hand_over,
        bubble=bubble,
        data_parallel=data_parallel,
        optimizer=optimizer,
    )


def memory_of(x: Inputs) -> Memory:
    """Memory of the fullest stage: weights, gradients and state of it, and its activations.

    What is recomputed is there again while its layer runs backward, one layer at a time.
    """
    tokens = x.microbatch * x.seq_len / x.context
    split = {"sequence_parallel": x.sequence_parallel}
    layer_input, all_kept, scores = memory.layer_activation_bytes(
        tokens, x.seq_len, x.hidden, x.kv, x.ffn, x.heads, x.tensor, gated=x.gated, **split
    )
    scores = choose(x.fused_attention, 0.0, scores)
    everything = all_kept + scores
    kept = choose(x.repeats_all, layer_input, choose(x.repeats_core, all_kept, everything))
    again = everything - kept
    embedding = memory.embedding_activation_bytes(tokens, x.hidden, x.tensor, **split)
    head = memory.head_activation_bytes(tokens, x.hidden, x.vocabulary, x.tensor, **split)
    fullest = Memory(0.0, 0.0, 0.0, 0.0)
    position: Number = 0
    for layers, count, parameters, has_head in stage_kinds(x, _stages(x)):
        in_flight = memory.microbatches_in_flight(
            position, x.pipeline, x.microbatches, x.interleaving
        )
        state = memory.state_bytes(
            parameters, x.bytes_per_param, x.gradient_bytes, x.data * x.context, x.zero_stage
        )
        first = choose(position == 0, embedding, 0.0)
        here = Memory(
            *state, activations=in_flight * (layers * kept + first) + again + has_head * head
        )
        fuller = (count > 0) & (here.total > fullest.total)
        fullest = Memory(
            *(choose(fuller, new, old) for new, old in zip(here, fullest, strict=True))
        )
        position = position + count
    return fullest


def _work(x: Inputs) -> Work:
    """Work of the whole batch, forward and backward; recomputation only as executed."""
    matrices = flops.layer_matrix_flops(x.seq_len, x.hidden, x.kv, x.ffn, gated=x.gated)
    square = flops.attention_core_flops(1, x.seq_len, x.hidden, causal_half=False)
    core = flops.attention_core_flops(1, x.seq_len, x.hidden, causal_half=x.fused_attention)
    logits = flops.logits_flops(x.seq_len, x.hidden, x.vocabulary)
    again = choose(x.repeats_all, matrices + core, choose(x.repeats_core, core, 0.0))
    fused = choose(x.fused_attention, 3.5, 3.0)
    sequences = x.data * x.microbatches * x.microbatch
    return Work(
        model=sequences * 3.0 * (x.layers * (matrices + square) + logits),
        executed=sequences * (x.layers * (3.0 * matrices + fused * core + again) + 3.0 * logits),
    )
