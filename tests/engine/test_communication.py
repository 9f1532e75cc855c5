"""The collectives of a step and of a group, and the rate of links: sums, limits and known forms."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mlsysim.engine.scenario_types import (
    CollectiveTimesScenario,
    NodeLinkSweepScenario,
    ReferenceTrainingStepScenario,
    StepCollectivesScenario,
)
from mlsysim.errors import MlsysimError
from mlsysim.solvers import collectives
from mlsysim.units import quantity, to_si
from tests.cases import step
from tests.conftest import vary


def with_replica(**changes: Any) -> ReferenceTrainingStepScenario:
    return vary(step(), replica=vary(step().replica, **changes))


def with_node(made: ReferenceTrainingStepScenario, **changes: Any) -> ReferenceTrainingStepScenario:
    node = vary(made.fleet.node, **changes)
    return vary(made, fleet=vary(made.fleet, node=node), replica=vary(made.replica, node=node))


def group(members: int, stride: int, **changes: Any) -> CollectiveTimesScenario:
    made = CollectiveTimesScenario(
        fleet=step().fleet,
        members=members,
        stride=stride,
        smallest=quantity("768 B"),
        doublings=24,
    )
    return vary(made, **changes)


STEPS = {
    "reference": step,
    "not_overlapped": lambda: vary(step(), overlap_comm=False),
    "recomputed": lambda: with_replica(activation_recomputation="full"),
    "interleaved": lambda: with_replica(interleaving=3),
    "larger_microbatches": lambda: vary(step(), sequences_per_microbatch=2),
    "one_replica": lambda: vary(step(), fleet=vary(step().fleet, node_count=8)),
    "slow_node_links": lambda: with_node(step(), link_bandwidth=quantity("50 GB/s")),
}


@pytest.mark.parametrize("name", STEPS)
def test_count_times_one_is_what_the_step_exposes_and_hides(name: str) -> None:
    made = StepCollectivesScenario(step=STEPS[name]())
    result = made.step.result
    ledger = {
        "tensor_parallel": result.ledger.tensor_parallel,
        "point_to_point": result.ledger.point_to_point,
        "data_parallel": result.ledger.data_parallel,
    }
    for kind in made.members:
        exposed, hidden = to_si(made.exposed[kind]), to_si(made.hidden[kind])
        assert exposed == ledger[kind]
        total = made.count[kind] * to_si(made.time_of_one[kind])
        assert exposed + hidden == pytest.approx(total, rel=1e-12), kind
    assert to_si(made.exposed_total) == pytest.approx(math.fsum(ledger.values()), rel=1e-12)
    assert 0 < to_si(made.exposed_share) < 1
    hidden = math.fsum(map(to_si, made.hidden.values()))
    assert to_si(made.hidden_total) == pytest.approx(hidden, rel=1e-12)


def test_messages_and_counts_follow_from_the_layout() -> None:
    made, workload = StepCollectivesScenario(step=step()), step().replica.workload
    tokens = step().sequences_per_microbatch * step().context_length
    activations = 2 * tokens * workload.hidden_size
    assert to_si(made.message["tensor_parallel"]) == activations
    assert to_si(made.message["point_to_point"]) == activations / step().tensor_parallel
    layers = workload.layers // step().pipeline_depth
    assert made.count["tensor_parallel"] == 4 * layers * step().microbatches_per_replica
    assert made.count["data_parallel"] == 1
    # Two bytes for each parameter of the stage that has the embedding as well.
    stage = layers * workload.layer_parameters + workload.embedding_parameters
    assert to_si(made.message["data_parallel"]) == 2 * stage / step().tensor_parallel
    again = StepCollectivesScenario(step=with_replica(activation_recomputation="full"))
    assert again.count["tensor_parallel"] * 2 == made.count["tensor_parallel"] * 3
    assert made.nodes == {"tensor_parallel": 1, "point_to_point": 2, "data_parallel": 16}


def test_an_accelerator_of_a_ring_sends_nearly_twice_the_message() -> None:
    made = StepCollectivesScenario(step=step())
    for kind in ("tensor_parallel", "data_parallel"):
        members, message = made.members[kind], to_si(made.message[kind])
        sent = to_si(made.sent[kind]) / made.count[kind]
        assert sent == pytest.approx(2 * message * (members - 1) / members, rel=1e-12)


def test_without_overlap_nothing_is_hidden_and_without_others_nobody_talks() -> None:
    plain = StepCollectivesScenario(step=vary(step(), overlap_comm=False))
    assert to_si(plain.hidden_total) == 0
    one = StepCollectivesScenario(step=vary(step(), fleet=vary(step().fleet, node_count=8)))
    assert [*one.members] == ["tensor_parallel", "point_to_point"]
    assert one.reduction_over_window == 0


def test_a_step_on_one_accelerator_has_no_collective_and_is_refused() -> None:
    huge = vary(step().fleet.node.accelerator, memory_capacity=quantity("4 TB"))
    node = vary(step().fleet.node, accelerator=huge, accelerators=1)
    alone = vary(
        step(),
        fleet=vary(step().fleet, node=node, node_count=1),
        replica=vary(step().replica, node=node),
    )
    with pytest.raises(MlsysimError, match="one accelerator"):
        StepCollectivesScenario(step=alone)


def test_gradients_hide_behind_the_last_backward_pass_and_no_more() -> None:
    made = StepCollectivesScenario(step=step())
    window, most = to_si(made.reduction_window), to_si(made.reduction_hidden_at_most)
    assert to_si(made.hidden["data_parallel"]) == pytest.approx(most, rel=1e-12)
    layers = step().replica.workload.layers // step().pipeline_depth
    assert most == pytest.approx(window * (layers - 1) / layers, rel=1e-12)
    # As many times the network's rate, and latency left out, and the reduction fits the window.
    fabric = step().fleet.fabric
    faster = 1.01 * made.reduction_over_window
    node = vary(step().fleet.node, nic_bandwidth=faster * step().fleet.node.nic_bandwidth)
    wide = vary(fabric, port_bandwidth=faster * fabric.port_bandwidth, latency=quantity("0 us"))
    fast = vary(
        step(),
        fleet=vary(step().fleet, node=node, fabric=wide),
        replica=vary(step().replica, node=node),
    )
    quick = StepCollectivesScenario(step=fast)
    left = to_si(quick.exposed["data_parallel"])
    assert left == pytest.approx(to_si(quick.time_of_one["data_parallel"]) / layers, rel=1e-12)


def test_products_of_a_layer_are_what_limits_hidden_sums() -> None:
    # On links so slow that the sums outlast the products, what is hidden is as long as these.
    slow = StepCollectivesScenario(step=with_node(step(), link_bandwidth=quantity("20 GB/s")))
    layers = step().replica.workload.layers // step().pipeline_depth
    passes = step().microbatches_per_replica * layers
    products = 3 * passes * to_si(slow.layer_products)  # one forward, two backward
    assert to_si(slow.hidden["tensor_parallel"]) == pytest.approx(products, rel=1e-12)
    assert to_si(slow.layer_exchange) > to_si(slow.layer_products)


# One group.


def test_a_row_is_the_collective_of_the_solver_and_the_sum_of_its_parts() -> None:
    for made in (group(8, 1), group(16, 1), group(16, 8), group(128, 1)):
        members = collectives.group_of(made.members, made.stride, 8)
        rows = made.table()
        assert len(rows) == 25
        for row in rows:
            alone = collectives.all_reduce_time(row["message_B"], members, step().fleet.links)
            assert row["time_s"] == pytest.approx(alone, rel=1e-12)
            assert row["latency_s"] + row["transfer_s"] == pytest.approx(alone, rel=1e-12)
        times = [row["time_s"] for row in rows]
        assert times == sorted(times)
        assert [*made.time_at][-1] == f"{768 * 2**24}_B"


def test_at_the_balanced_message_latency_and_transfer_are_equal() -> None:
    for made in (group(8, 1), group(16, 1), group(16, 8)):
        message, rate = to_si(made.balanced_message), to_si(made.large_rate)
        assert message / rate == pytest.approx(to_si(made.latency_time), rel=1e-12)
    one = group(8, 1)
    links = step().fleet.links
    balance = 8 * links.link_latency * links.link_rate
    assert to_si(one.balanced_message) == pytest.approx(balance, rel=1e-12)


def test_one_step_of_a_ring_for_each_latency() -> None:
    made, links = group(16, 1), step().fleet.links
    assert (made.inside, made.nodes, made.ring_steps) == (8, 2, 16)
    latency = 14 * links.link_latency + 2 * links.network_latency
    assert to_si(made.latency_time) == pytest.approx(latency, rel=1e-12)


def test_more_members_are_never_faster_and_the_network_is_slower_than_the_node() -> None:
    size = "50331648_B"
    times = [to_si(group(members, 1).time_at[size]) for members in (2, 4, 8, 16, 32, 64)]
    assert times == sorted(times)
    assert to_si(group(8, 8).time_at[size]) > to_si(group(8, 1).time_at[size])


# Links inside the node.


def test_a_sweep_of_links_is_the_step_with_those_links_solved_alone() -> None:
    made = NodeLinkSweepScenario(step=step(), rates=("56.25 GB/s", "450 GB/s", "900 GB/s"))
    rows = made.table()
    for row in rows:
        alone = with_node(step(), link_bandwidth=quantity(row["rate"])).result
        assert row["step_time_s"] == alone.ledger.total
        assert row["tensor_parallel_s"] == alone.ledger.tensor_parallel
        parts = [row[f"{name}_s"] for name in alone.ledger._fields]
        assert math.fsum(parts) == pytest.approx(row["step_time_s"], rel=1e-12)
    assert rows[1]["step_time_s"] == step().result.ledger.total
    times = [row["step_time_s"] for row in rows]
    assert times == sorted(times, reverse=True)
    assert [*made.step_time_at] == ["56_25_GB_per_s", "450_GB_per_s", "900_GB_per_s"]
    assert to_si(made.hidden_at["450_GB_per_s"]) == step().result.step.hidden_tensor_parallel
    assert to_si(made.exposed_at["450_GB_per_s"]) == step().result.ledger.tensor_parallel
