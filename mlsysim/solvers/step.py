"""One optimizer step as a sum of exposed times, for one layout or for arrays of layouts alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mlsysim.solvers import collectives, flops, kernels, memory, pipeline
from mlsysim.solvers.collectives import Links
from mlsysim.solvers.elementwise import Number, choose, larger, smaller

__all__ = [
    "Inputs",
    "Ledger",
    "Memory",
    "Step",
    "Work",
    "stacked",
    "stage_ledgers",
    "step",
    "times",
]

# ASSUME activations travel and are kept in 16 bits, whatever the precision of the products.
_ACTIVATION_BYTES = 2.0


class Inputs(NamedTuple):
    """All numbers of a step, in base units: model, hardware, layout and its options."""

    layers: Number
    hidden: Number
    heads: Number
    kv: Number
    ffn: Number
    vocabulary: Number
    gated: Number
    layer_parameters: Number
    embedding_parameters: Number
    head_parameters: Number
    tied_parameters: Number
    seq_len: Number
    node_size: Number
    links: Links
    peak: Number
    core_peak: Number
    memory_rate: Number
    capacity: Number
    efficiency: Number
    half_work: Number
    memory_efficiency: Number
    overlap_exposure: Number
    tensor: Number
    context: Number
    pipeline: Number
    data: Number
    interleaving: Number
    microbatch: Number
    microbatches: Number
    sequence_parallel: Number
    fused_attention: Number
    repeats_core: Number
    repeats_all: Number
    slots_for_ends: Number
    overlap_data: Number
    overlap_tensor: Number
    zero_stage: Number
    bytes_per_param: Number
    gradient_bytes: Number


def stacked(all_inputs: Sequence[Inputs]) -> Inputs:
    """Many inputs as one, every number an array over them."""
    import numpy as np

    def column(values: Sequence[Any]) -> Any:
        return np.array(values, dtype=bool if isinstance(values[0], bool) else float)

    links = Links(*map(column, zip(*(each.links for each in all_inputs), strict=True)))
    columns = {
        name: column([getattr(each, name) for each in all_inputs])
        for name in Inputs._fields
        if name != "links"
    }
    return Inputs(**columns, links=links)


class Ledger(NamedTuple):
    """Exposed seconds of one step on its critical path; they add up to it in this order."""

    forward: Number
    backward: Number
    recomputation: Number
    memory_bound: Number
    tensor_parallel: Number
    context_parallel: Number
    point_to_point: Number
    bubble: Number
    data_parallel: Number
    optimizer: Number

    @property
    def total(self) -> Number:
        """Seconds of the step: the entries added in the order in which they are declared."""
        total: Number = 0.0
        for entry in self:
            total = total + entry
        return total


class Memory(NamedTuple):
    """Bytes on the fullest accelerator, by kind."""

    weights: Number
    gradients: Number
    optimizer: Number
    activations: Number

    @property
    def total(self) -> Number:
        """Bytes in all."""
        return self.weights + self.gradients + self.optimizer + self.activations


class Work(NamedTuple):
    """FLOP of the whole step over all accelerators: by the model's definition, and as executed."""

    model: Number
    executed: Number


class Step(NamedTuple):
    """What a step costs: its exposed times, memory and work, and what runs hidden behind others."""

    ledger: Ledger
    hidden_data_parallel: Number
    hidden_tensor_parallel: Number
    memory: Memory
    work: Work


class _Layer(NamedTuple):
    """Seconds of one layer and microbatch on one rank."""

    forward: Number
    backward: Number
    recomputation: Number
    memory_forward: Number
    memory_backward: Number
    exchange_forward: Number
    exchange_backward: Number
    context: Number

    @property
    def forward_pass(self) -> Number:
        return self.forward + self.memory_forward + self.exchange_forward

    @property
    def backward_pass(self) -> Number:
        return self.backward + self.recomputation + self.memory_backward + self.exchange_backward

    @property
    def total(self) -> Number:
        return self.forward_pass + self.backward_pass + self.context


def step(x: Inputs) -> Step:
    """Exposed times, memory and work of one step; arrays where an input is an array."""
    return Step(*times(x), memory=_memory(x, _stages(x)), work=_work(x))


def _stages(x: Inputs) -> pipeline.Stages:
    return pipeline.split_layers(x.layers, x.pipeline, slots_for_ends=x.slots_for_ends)


def times(x: Inputs) -> tuple[Ledger, Number, Number]:
    """The exposed times, and the hidden seconds of data- and tensor-parallel collectives."""
    parts, stages = _parts(x), _stages(x)
    layer, head = parts.layer, parts.head
    total, slowest, layers = pipeline.over_stages(stages, layer.total, head)
    has_head = choose(slowest > layers * layer.total, 1.0, 0.0)
    bubble = pipeline.bubble_time(
        total + x.pipeline * parts.hand_over, slowest + parts.hand_over, x.interleaving
    )
    optimizer, data_exposed, data_hidden = _once_per_step(x, parts, stages)
    ledger = _ledger(x, parts, layers, has_head, bubble, data_exposed, optimizer)
    exchanges = choose(x.repeats_all, 6.0, 4.0)
    hidden = x.microbatches * layers * exchanges * parts.exchange_hidden
    return ledger, data_hidden, hidden


def stage_ledgers(x: Inputs) -> dict[str, Ledger]:
    """The ledger of a stage of each kind: what it is busy with, and as `bubble` what it waits.

    Each adds up to the step. Kinds: first, interior_more (a layer more than the other interior
    stages), interior, and last; a kind of which there is no stage is left out.
    """
    parts, stages, step_ledger = _parts(x), _stages(x), times(x)[0]
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
            found[name] = busy._replace(bubble=step_ledger.total - busy.total)
    return found


class _Parts(NamedTuple):
    """Seconds of one microbatch: of a layer, of the output head, and of handing over."""

    layer: _Layer
    head_forward: Number
    head_memory: Number
    hand_over: Number
    exchange_hidden: Number
    bandwidth: Number

    @property
    def head(self) -> Number:
        return 3.0 * self.head_forward + self.head_memory


def _parts(x: Inputs) -> _Parts:
    """What one microbatch costs wherever it is."""
    tokens = x.microbatch * x.seq_len / x.context
    matrices = flops.layer_matrix_flops(tokens, x.hidden, x.kv, x.ffn, gated=x.gated) / x.tensor
    # ASSUME what small products cost beyond their work is a time, in fp8 the same as in bf16.
    half_work = x.half_work * (x.peak / x.core_peak)
    rate = kernels.matrix_rate(x.peak, x.efficiency, matrices, half_work)
    core_rate = rate * (x.core_peak / x.peak)
    bandwidth = x.memory_rate * x.memory_efficiency
    all_reduce = collectives.all_reduce_time(
        _ACTIVATION_BYTES * tokens * x.hidden,
        collectives.group_of(x.tensor, 1, x.node_size),
        x.links,
    )
    exposed = choose(x.overlap_tensor, x.overlap_exposure, 1.0)
    head_work = flops.logits_flops(tokens, x.hidden, x.vocabulary) / x.tensor
    return _Parts(
        layer=_layer(x, tokens, matrices, (rate, core_rate), bandwidth, all_reduce * exposed),
        head_forward=head_work / (x.core_peak * x.efficiency),
        head_memory=kernels.logits_moved_bytes(tokens, x.vocabulary, x.tensor) / bandwidth,
        hand_over=_hand_over(x, tokens),
        exchange_hidden=all_reduce * (1.0 - exposed),
        bandwidth=bandwidth,
    )


def _ledger(
    x: Inputs,
    parts: _Parts,
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


def _layer(
    x: Inputs,
    tokens: Number,
    matrices: Number,
    rates: tuple[Number, Number],
    bandwidth: Number,
    all_reduce: Number,
) -> _Layer:
    """One layer: a layer all-reduces twice forward and twice backward (Shoeybi et al. 2019).

    A repeated forward pass repeats its two. Reduce-scatter and all-gather of sequence parallelism
    take as long as an all-reduce.
    """
    # ASSUME the extra all-gather of sequence parallelism in the backward pass hides behind the
    # weight gradients, as Korthikanti et al. 2022 arrange it.
    core = flops.attention_core_flops(
        x.microbatch, x.seq_len, x.hidden, causal_half=x.fused_attention
    ) / (x.tensor * x.context)
    moved, core_moved = kernels.layer_moved_bytes(
        tokens,
        x.hidden,
        x.kv,
        x.ffn,
        x.heads,
        x.seq_len,
        x.tensor,
        gated=x.gated,
        sequence_parallel=x.sequence_parallel,
        fused_attention=x.fused_attention,
    )
    rate, core_rate = rates
    forward = matrices / rate + core / core_rate
    # A fused kernel computes the scores again in its backward pass: five products to two
    # (Dao et al. 2022), not four.
    backward = 2.0 * (matrices / rate) + choose(x.fused_attention, 2.5, 2.0) * (core / core_rate)
    memory_forward = (moved + core_moved) / bandwidth
    again = choose(x.repeats_all, forward, choose(x.repeats_core, core / core_rate, 0.0))
    memory_again = choose(
        x.repeats_all, memory_forward, choose(x.repeats_core, core_moved / bandwidth, 0.0)
    )
    return _Layer(
        forward=forward,
        backward=backward,
        recomputation=again,
        memory_forward=memory_forward,
        memory_backward=2.0 * memory_forward + memory_again,
        exchange_forward=2.0 * all_reduce,
        exchange_backward=choose(x.repeats_all, 4.0, 2.0) * all_reduce,
        context=_context_exchange(x, tokens, core / core_rate),
    )


def _context_exchange(x: Inputs, tokens: Number, core: Number) -> Number:
    """Seconds of the context-parallel ring of keys and values that the core leaves exposed.

    Forward they go round once, backward they and their gradients do.
    """
    size = _ACTIVATION_BYTES * 2.0 * tokens * x.kv / x.tensor
    group = collectives.group_of(x.context, x.tensor, x.node_size)
    ring = (x.context - 1) * collectives.point_to_point_time(size, group, x.links)
    return larger(ring - core, 0.0) + larger(2.0 * ring - 2.5 * core, 0.0)


def _hand_over(x: Inputs, tokens: Number) -> Number:
    """Seconds in which a microbatch is sent on and its gradient sent back, for one stage.

    Every rank of the tensor-parallel group sends its own part (Narayanan et al. 2021, section 4.1).
    """
    size = _ACTIVATION_BYTES * tokens * x.hidden / x.tensor
    group = collectives.group_of(x.pipeline, x.tensor * x.context * x.data, x.node_size)
    # ASSUME what stages hand over hides behind nothing; the published runs with many parts a stage
    # come out too fast if it does.
    sent = 2.0 * x.interleaving * collectives.point_to_point_time(size, group, x.links)
    return choose(x.pipeline > 1, sent, 0.0)


def _once_per_step(
    x: Inputs, parts_of: _Parts, stages: pipeline.Stages
) -> tuple[Number, Number, Number]:
    """Seconds of the optimizer, of the exposed and of the hidden part of the replicas' collectives.

    Gradients are reduced once a step; from ZeRO stage 1 on each replica updates its share and the
    weights are gathered again, behind the first forward pass. Stage 2 keeps no whole gradients, so
    every microbatch reduces its own; stage 3 keeps no whole weights, so every microbatch gathers
    them twice (Rajbhandari et al. 2020). The stages end one after the other, the first stage last.
    """
    layer, head, bandwidth = parts_of.layer, parts_of.head, parts_of.bandwidth
    replicas = x.data * x.context
    group = collectives.group_of(replicas, x.tensor, x.node_size)
    sharded = x.zero_stage >= 1
    interleaved = x.interleaving > 1
    waves = choose(interleaved, smaller(x.pipeline, x.microbatches), 1)
    more_gradients = choose(x.zero_stage >= 2, x.microbatches - 1.0, 0.0)
    more_weights = choose(x.zero_stage >= 3, x.microbatches - 1.0, 0.0)
    exposed: Number = 0.0
    longest: Number = 0.0
    largest: Number = 0.0
    ended: Number = 0.0
    for layers, count, parameters, head_share in _kinds(x, stages):
        gradients = collectives.all_gather_time(x.gradient_bytes * parameters, group, x.links)
        weights = collectives.all_gather_time(memory.WEIGHT_BYTES * parameters, group, x.links)
        gradients = choose(sharded, gradients, 2.0 * gradients)
        weights = choose(sharded, weights, 0.0)
        parts = larger(choose(interleaved, x.interleaving, layers), 1)
        free = waves * (1.0 - 1.0 / parts)
        back = layers * layer.backward_pass + head_share * (2.0 / 3.0 * head)
        front = layers * layer.forward_pass + head_share * (head / 3.0)
        # What is gathered in the backward pass shares links and window with what is reduced.
        load = gradients + choose(x.zero_stage >= 3, weights, 0.0)
        left = (
            pipeline.exposed_reduction(load, back * free, parts, ended, overlap=x.overlap_data)
            + pipeline.exposed_reduction(weights, front * free, parts, 0.0, overlap=x.overlap_data)
            + more_gradients * _beyond(x, load, back)
            + more_weights * _beyond(x, weights, front)
        )
        every = load * (1.0 + more_gradients) + weights * (1.0 + more_weights)
        present = count > 0
        exposed = larger(exposed, choose(present, left, 0.0))
        longest = larger(longest, choose(present, every, 0.0))
        largest = larger(largest, choose(present, parameters, 0.0))
        ended = ended + count * back
    shards = choose(sharded, replicas, 1)
    update = kernels.optimizer_moved_bytes(largest / shards, x.gradient_bytes) / bandwidth
    return update, exposed, larger(longest - exposed, 0.0)


def _beyond(x: Inputs, collective: Number, window: Number) -> Number:
    """Seconds of a collective of every microbatch that its own pass does not hide."""
    return choose(x.overlap_data, larger(collective - window, 0.0), collective)


def _memory(x: Inputs, stages: pipeline.Stages) -> Memory:
    """Memory of the fullest stage: weights, gradients and state of it, and its activations."""
    tokens = x.microbatch * x.seq_len / x.context
    kept = memory.layer_activation_bytes(
        tokens,
        x.seq_len,
        x.hidden,
        x.ffn,
        x.heads,
        x.tensor,
        gated=x.gated,
        sequence_parallel=x.sequence_parallel,
        keeps_scores=choose(x.fused_attention, False, choose(x.repeats_core, False, True)),
        keeps_input_only=x.repeats_all,
    )
    fullest = Memory(0.0, 0.0, 0.0, 0.0)
    position: Number = 0
    for layers, count, parameters, _ in _kinds(x, stages):
        in_flight = memory.microbatches_in_flight(
            position, x.pipeline, x.microbatches, x.interleaving
        )
        state = memory.state_bytes(
            parameters, x.bytes_per_param, x.gradient_bytes, x.data * x.context, x.zero_stage
        )
        here = Memory(*state, activations=in_flight * layers * kept)
        fuller = (count > 0) & (here.total > fullest.total)
        fullest = Memory(
            *(choose(fuller, new, old) for new, old in zip(here, fullest, strict=True))
        )
        position = position + count
    return fullest


def _kinds(x: Inputs, stages: pipeline.Stages) -> Iterator[tuple[Number, Number, Number, float]]:
    """For stages of each kind from front to back: layers, how many, parameters a rank, and head.

    The embedding is on the first stage; the last one has the output matrix, its own or a copy.
    """
    one_stage = x.pipeline == 1
    output = x.head_parameters + choose(one_stage, x.embedding_parameters, x.tied_parameters)
    for layers, count, extra, head in (
        (stages.first, stages.n_first, x.embedding_parameters, 0.0),
        (stages.more, stages.n_more, 0, 0.0),
        (stages.base, stages.n_base, 0, 0.0),
        (stages.last, 1, output, 1.0),
    ):
        yield layers, count, (layers * x.layer_parameters + extra) / x.tensor, head


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
