"""The collectives of one solved step: who takes part, how many bytes, and how long they take."""

from __future__ import annotations

from typing import NamedTuple

from mlsysim.solvers import DistributedResult, collectives, pipeline
from mlsysim.solvers.collectives import Group
from mlsysim.solvers.inputs import Inputs
from mlsysim.solvers.layer import parts_of
from mlsysim.solvers.replicas import stage_kinds

__all__ = ["Exchange", "exchanges"]


class Exchange(NamedTuple):
    """One collective of a step: its group, bytes and seconds.

    `times` is how often a rank takes part in a step, `idle` the seconds of one without a byte,
    `sent` the bytes that a rank sends for one; `exposed` and `hidden` are those of all of them.
    """

    members: int
    group: Group
    message: float
    times: int
    seconds: float
    idle: float
    sent: float
    exposed: float
    hidden: float


def exchanges(result: DistributedResult) -> dict[str, Exchange]:
    """The collectives of a step by kind; a kind whose group has one member is left out."""
    x = result.inputs
    made = {
        "tensor_parallel": (x.tensor, _over_tensor_ranks),
        "point_to_point": (x.pipeline, _between_stages),
        "data_parallel": (x.data, _over_replicas),
    }
    return {name: make(result) for name, (members, make) in made.items() if members > 1}


def _over_tensor_ranks(result: DistributedResult) -> Exchange:
    x, parts = result.inputs, parts_of(result.inputs)
    stages = pipeline.split_layers(x.layers, x.pipeline)
    layers = pipeline.over_stages(stages, parts.layer.total, parts.head)[2]
    return _all_reduce(
        x,
        members=x.tensor,
        stride=1,
        message=2.0 * x.microbatch * x.seq_len * x.hidden,
        count=x.microbatches * layers * (6 if x.repeats_all else 4),
        exposed=result.ledger.tensor_parallel,
        hidden=result.step.hidden_tensor_parallel,
    )


def _between_stages(result: DistributedResult) -> Exchange:
    x = result.inputs
    group = collectives.group_of(x.pipeline, x.tensor * x.data, x.node_size)
    message = 2.0 * x.microbatch * x.seq_len * x.hidden / x.tensor
    return Exchange(
        members=2,
        group=Group(1, 2) if group.nodes > 1 else Group(2, 1),
        message=message,
        times=x.microbatches * 2 * x.interleaving,
        seconds=collectives.point_to_point_time(message, group, x.links),
        idle=collectives.point_to_point_time(0.0, group, x.links),
        sent=message,
        exposed=result.ledger.point_to_point,
        hidden=0.0,
    )


def _over_replicas(result: DistributedResult) -> Exchange:
    x = result.inputs
    kinds = stage_kinds(x, pipeline.split_layers(x.layers, x.pipeline))
    return _all_reduce(
        x,
        members=x.data,
        stride=x.tensor,
        message=x.gradient_bytes * max(most for _, count, most, _ in kinds if count > 0),
        count=1,
        exposed=result.ledger.data_parallel,
        hidden=result.step.hidden_data_parallel,
    )


def _all_reduce(
    x: Inputs,
    *,
    members: int,
    stride: int,
    message: float,
    count: int,
    exposed: float,
    hidden: float,
) -> Exchange:
    group = collectives.group_of(members, stride, x.node_size)
    within = (group.inside - 1) / group.inside
    between = (group.nodes - 1) / members
    return Exchange(
        members=members,
        group=group,
        message=message,
        times=count,
        seconds=collectives.all_reduce_time(message, group, x.links),
        idle=collectives.all_reduce_time(0.0, group, x.links),
        sent=2.0 * message * (within + between),
        exposed=exposed,
        hidden=hidden,
    )
