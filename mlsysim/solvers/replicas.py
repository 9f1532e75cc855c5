"""What the replicas do once per step: reduce gradients, gather weights, and update the state."""

from __future__ import annotations

from collections.abc import Iterator

from mlsysim.solvers import collectives, kernels, memory, pipeline
from mlsysim.solvers.elementwise import Number, choose, larger, smaller
from mlsysim.solvers.inputs import Inputs
from mlsysim.solvers.layer import Parts

__all__ = ["over_replicas", "stage_kinds"]


def over_replicas(
    x: Inputs, parts_of: Parts, stages: pipeline.Stages, slowest: Number
) -> tuple[Number, Number, Number]:
    """Seconds of the optimizer, of the exposed and of the hidden part of the replicas' collectives.

    Gradients are reduced once a step; from ZeRO stage 1 on each replica updates its share and the
    weights are gathered again, behind the first forward pass. Stage 2 keeps no whole gradients, so
    every microbatch reduces its own; stage 3 keeps no whole weights, so every microbatch gathers
    them twice (Rajbhandari et al. 2020). The stages end one after the other, the first stage last.
    `slowest` is the slot of the slowest stage, which the others wait for in every microbatch.
    """
    layer, head, bandwidth = parts_of.layer, parts_of.head, parts_of.bandwidth
    replicas = x.data * x.context
    sharded = x.zero_stage >= 1
    interleaved = x.interleaving > 1
    # An interleaved schedule ends part by part, each with a microbatch of every stage; what every
    # microbatch sends for itself has the window of that microbatch alone.
    waves = choose(interleaved, smaller(x.pipeline, x.microbatches), 1)
    waves_back = choose(x.zero_stage >= 2, 1, waves)
    waves_front = choose(x.zero_stage >= 3, 1, waves)
    others = x.microbatches - 1.0
    more_gradients = choose(x.zero_stage >= 2, others, 0.0)
    more_weights = choose(x.zero_stage >= 3, others, 0.0)
    exposed: Number = 0.0
    longest: Number = 0.0
    largest: Number = 0.0
    ended: Number = 0.0
    for layers, count, parameters, head_share in stage_kinds(x, stages):
        gradients = _gathered(x, x.gradient_bytes * parameters, choose(sharded, 1.0, 2.0))
        weights = _gathered(x, memory.WEIGHT_BYTES * parameters, choose(sharded, 1.0, 0.0))
        parts = larger(choose(interleaved, x.interleaving, layers), 1)
        free = 1.0 - 1.0 / parts
        window_back = layer.backward_window.repeated(layers, head_share * (2.0 / 3.0 * head))
        window_front = layer.forward_window.repeated(layers, head_share * (head / 3.0))
        # What is gathered in the backward pass shares wires and window with what is reduced.
        gathered_back = choose(x.zero_stage >= 3, 1.0, 0.0)
        load = (
            gradients[0] + gathered_back * weights[0],
            gradients[1] + gathered_back * weights[1],
        )
        last = window_back.repeated(waves_back * free)
        first = window_front.repeated(waves_front * free)
        # A stage that is faster than the slowest has its wires free while it waits for that one.
        waits = slowest - (layers * layer.total + head_share * head)
        beyond = more_gradients * _beyond(x, load, window_back) + more_weights * _beyond(
            x, weights, window_front
        )
        left = (
            pipeline.exposed_reduction(*load, last, parts, ended, overlap=x.overlap_data)
            + pipeline.exposed_reduction(*weights, first, parts, 0.0, overlap=x.overlap_data)
            + choose(x.overlap_data, larger(beyond - others * waits, 0.0), beyond)
        )
        loads, gathers = load[0] + load[1], weights[0] + weights[1]
        every = loads * (1.0 + more_gradients) + gathers * (1.0 + more_weights)
        present = count > 0
        exposed = larger(exposed, choose(present, left, 0.0))
        longest = larger(longest, choose(present, every, 0.0))
        largest = larger(largest, choose(present, parameters, 0.0))
        ended = ended + count * window_back.whole / x.interleaving
    shards = choose(sharded, replicas, 1)
    update = kernels.optimizer_moved_bytes(largest / shards, x.gradient_bytes) / bandwidth
    return update, exposed, larger(longest - exposed, 0.0)


def _gathered(x: Inputs, size: Number, times: Number) -> tuple[Number, Number]:
    """Seconds between nodes and within them in which the replicas gather `size` bytes `times`."""
    group = collectives.group_of(x.data * x.context, x.tensor, x.node_size)
    between, within = collectives.gather_parts(size, group, x.links)
    return times * between, times * within


def _beyond(x: Inputs, collective: tuple[Number, Number], window: pipeline.Window) -> Number:
    """Seconds of a collective of every microbatch that its own pass does not hide."""
    left = larger(window.excess(*collective), 0.0)
    return choose(x.overlap_data, left, collective[0] + collective[1])


def stage_kinds(
    x: Inputs, stages: pipeline.Stages
) -> Iterator[tuple[Number, Number, Number, float]]:
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
