"""What one accelerator holds: by depth, by what replicas share, and by what is recomputed."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim.declarations.lists import Counts
from mlsysim.engine.scenario_definitions._step_columns import alone
from mlsysim.engine.scenario_types import (
    ActivationMemoryScenario,
    MemoryByDepthScenario,
    ShardedStateScenario,
)
from mlsysim.errors import MlsysimError
from mlsysim.solvers.distributed import solved
from mlsysim.units import quantity, to_si
from tests.cases import ROUNDING, step
from tests.conftest import vary


def by_depth(depths: Any, **changes: Any) -> MemoryByDepthScenario:
    return MemoryByDepthScenario(step=vary(step(), **changes), depths=depths)


def with_capacity(capacity: str) -> dict[str, Any]:
    """The changes of a step that give its accelerators another memory."""
    accelerator = vary(step().fleet.node.accelerator, memory_capacity=quantity(capacity))
    node = vary(step().fleet.node, accelerator=accelerator)
    return {"fleet": vary(step().fleet, node=node), "replica": vary(step().replica, node=node)}


# By depth.


def test_at_its_own_depth_a_replica_alone_holds_what_it_holds_in_the_step() -> None:
    row = by_depth((8,)).table()[0]
    kept = step().result.step.memory
    assert row["total_gb"] * 1e9 == pytest.approx(kept.total, rel=ROUNDING)
    assert row["optimizer_gb"] * 1e9 == pytest.approx(kept.optimizer, rel=ROUNDING)
    assert row["activations_gb"] * 1e9 == pytest.approx(
        to_si(step().result.activation_memory), rel=ROUNDING
    )


def test_a_deeper_pipeline_divides_the_layers_and_not_the_ends() -> None:
    """Twice the depth halves the layers' share; what is left over is the embedding's state."""
    rows = by_depth((1, 2, 4, 8, 16, 32, 96)).table()
    case = by_depth((8,))
    per_parameter = 16 / 8
    # With one stage the embedding exists once, and the norm after the last layer is there too.
    for row in rows[1:]:
        layers = 96 // row["depth"] * case.layer_parameters
        expected = (layers + case.embedding_parameters) * per_parameter
        assert row["state_gb"] * 1e9 == pytest.approx(expected, rel=ROUNDING)
    states = [row["state_gb"] for row in rows]
    assert states == sorted(states, reverse=True)


def test_the_first_stage_keeps_one_microbatch_of_the_whole_model_at_any_depth() -> None:
    """Beside it the embedding keeps a mask of each microbatch in flight, a byte an entry."""
    mask = 2048 * 12288 / 8
    rows = by_depth((2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96)).table()
    for row in rows:
        layers = row["activations_gb"] * 1e9 - row["depth"] * mask
        assert layers == pytest.approx(96 * 34 * mask, rel=ROUNDING)


def test_fewer_microbatches_than_stages_are_all_that_can_be_in_flight() -> None:
    few = by_depth((16, 96), batch_tokens=2048 * 512.0)
    assert few.step.microbatches_per_replica == 32
    sixteen, deepest = few.table()
    # A third of ninety-six microbatches in flight, and the same layers in all.
    assert deepest["activations_gb"] < 0.5 * sixteen["activations_gb"]


def test_the_chosen_depth_is_the_one_that_the_replica_derives() -> None:
    case = by_depth((1, 2, 3, 4, 6, 8, 12, 16))
    assert case.candidate_fits_from == step().replica.pipeline_depth == 8
    assert case.state_fits_from == case.fits_from == 6
    assert [row["depth"] for row in case.table() if row["candidate"]] == [1, 2, 4, 8, 16]


def test_with_less_memory_the_state_may_fit_where_the_activations_do_not() -> None:
    # 46 GB: more than the state of eight stages, less than state and activations.
    case = by_depth((6, 8, 12, 16), **with_capacity("46 GB"))
    assert case.state_fits_from == 8
    assert case.fits_from == 12
    assert case.candidate_fits_from == 16
    assert by_depth((1, 2), **with_capacity("46 GB")).fits_from == 0


@given(depth=st.integers(1, 96), more=st.integers(1, 4))
def test_at_any_depth_kinds_add_up_and_a_larger_microbatch_keeps_no_less(
    depth: int, more: int
) -> None:
    row = by_depth((depth,)).table()[0]
    parts = row["weights_gb"] + row["gradients_gb"] + row["optimizer_gb"]
    assert parts == pytest.approx(row["state_gb"], rel=ROUNDING)
    assert row["state_gb"] + row["activations_gb"] == pytest.approx(row["total_gb"], rel=ROUNDING)
    capacity = step().fleet.node.accelerator.capacity_bytes
    assert row["fits"] == (row["total_gb"] * 1e9 <= capacity)
    one = alone(step(), depth, microbatch_count=more, batch_size=more)
    two = alone(step(), depth, microbatch_count=more, batch_size=2 * more)
    assert two.step.memory.activations >= one.step.memory.activations


# By ZeRO stage.


def sharded(depths: Counts = (8,), stages: Any = (0, 1, 2, 3)) -> ShardedStateScenario:
    return ShardedStateScenario(step=step(), depths=depths, zero_stages=stages)


def test_each_stage_of_zero_divides_one_kind_more_by_the_replicas() -> None:
    rows = sharded().table()
    kinds = ["optimizer_gb", "gradients_gb", "weights_gb"]
    for row in rows:
        for number, kind in enumerate(kinds, start=1):
            share = 16 if row["zero_stage"] >= number else 1
            assert row[kind] * share == pytest.approx(rows[0][kind], rel=ROUNDING)
        assert row["activations_gb"] == rows[0]["activations_gb"]
        assert row["replicas"] == 16


def test_a_row_is_that_step_solved_alone_and_the_unsharded_one_is_the_reference() -> None:
    case = sharded((4, 8), (0, 1))
    assert to_si(case.step_time["p8_zero0"]) == step().result.ledger.total
    given_ = step().solver_arguments()
    changes = {"pp_size": 4, "zero_stage": 1, "microbatch_count": 48}
    found = solved(replace(given_, **changes))
    row = case.table()[1]
    assert row["step_time_s"] == found.ledger.total
    assert row["total_gb"] == found.step.memory.total / 1e9
    assert to_si(case.replica_exchange["p4_zero1"]) == found.ledger.data_parallel
    assert [*case.total] == ["p4_zero0", "p4_zero1", "p8_zero0", "p8_zero1"]


def test_more_sharing_lets_a_shallower_pipeline_fit() -> None:
    fits = sharded((1, 2, 4, 8, 16)).fits_from
    assert fits["zero0"] == 8
    assert fits["zero0"] >= fits["zero1"] >= fits["zero2"] >= fits["zero3"] >= 1


def test_a_depth_whose_replicas_do_not_divide_the_batch_says_so_in_place_of_numbers() -> None:
    rows = sharded((3, 8, 97), (1,)).table()
    assert "42 replicas" in rows[0]["reason"]
    assert rows[0]["step_time_s"] == rows[0]["total_gb"] == ""
    assert not rows[0]["fits"]
    assert rows[1]["fits"]
    assert "96 layers" in rows[2]["reason"]
    assert [*rows[0]] == [*rows[1]] == [*rows[2]]
    assert [*sharded((3, 8), (1,)).step_time] == ["p8_zero1"]


# By what is recomputed.


@pytest.fixture(scope="module")
def policies() -> ActivationMemoryScenario:
    return ActivationMemoryScenario(step=step())


def test_a_layer_keeps_what_the_published_formula_gives(policies: ActivationMemoryScenario) -> None:
    """Korthikanti et al. 2022, Table 2: s b h (10 + 24 / t + 5 a s / (h t)), and all over t."""
    s, h, a, t = 2048, 12288, 96, 8
    scores = 5 * a * s / h
    found = {key: to_si(size) for key, size in policies.layer.items()}
    assert found["none"] == pytest.approx(s * h * (10 + 24 / t + scores / t))
    assert found["none_split"] == pytest.approx(s * h * (34 + scores) / t)
    assert found["none_split_fused"] == pytest.approx(s * h * 34 / t)
    assert found["selective_split"] == pytest.approx(s * h * 34 / t)
    assert found["full_split"] == pytest.approx(s * h * 2 / t)
    assert policies.per_width["none_split"] == pytest.approx(34 + scores)


def test_the_choice_of_the_step_is_the_step(policies: ActivationMemoryScenario) -> None:
    assert to_si(policies.step_time["none_split_fused"]) == step().result.ledger.total
    assert to_si(policies.slower_than_step["none_split_fused"]) == 0
    assert policies.total["none_split_fused"] == quantity(
        f"{step().result.step.memory.total / 1e9!r} GB"
    )
    assert len(policies.table()) == len(policies.layer) == 12


def test_what_is_split_fused_or_repeated_is_never_kept_more(
    policies: ActivationMemoryScenario,
) -> None:
    kept = {key: to_si(size) for key, size in policies.activations.items()}
    for again in ("none", "selective", "full"):
        assert kept[f"{again}_split_fused"] <= kept[f"{again}_split"] <= kept[again]
        assert kept[f"{again}_split_fused"] <= kept[f"{again}_fused"] <= kept[again]
    for rest in ("", "_split", "_fused", "_split_fused"):
        assert kept[f"full{rest}"] <= kept[f"selective{rest}"] <= kept[f"none{rest}"]
        times = [to_si(policies.step_time[f"{k}{rest}"]) for k in ("none", "selective", "full")]
        assert times == sorted(times)


# What is refused.


@pytest.mark.parametrize(
    ("depths", "fragments"),
    [
        ((), ("depths has no values", "at least 1", "[1, 2, 4]")),
        ("4, 8", ("depths = '4, 8'", "a list of whole numbers")),
        (4, ("depths = 4", "a list")),
        ((0,), ("depths: 0", "at least 1")),
        ((True, 2), ("depths: True", "whole numbers")),
        ((4, "8"), ("depths: '8'",)),
        ((2.5,), ("depths: 2.5",)),
        ((4, None), ("depths: None",)),
        ((4, 8, 8), ("depths: 8 after 8", "rise")),
        ((8, 4), ("depths: 4 after 8", "rise")),
        ((1 << 40,), ("depths",)),
        ((97,), ("97", "96 layers")),
    ],
    ids=str,
)
def test_depths_that_are_none_are_refused_by_name(depths: Any, fragments: tuple[str, ...]) -> None:
    with pytest.raises(MlsysimError) as refused:
        by_depth(depths)
    for fragment in fragments:
        assert fragment in str(refused.value)


def test_stages_and_tables_without_a_step_are_refused() -> None:
    with pytest.raises(MlsysimError, match=r"zero_stage.*4.*0, 1, 2, 3"):
        sharded(stages=(4,))
    with pytest.raises(MlsysimError, match=r"zero_stages: -1: .*at least 0"):
        sharded(stages=(-1,))
    with pytest.raises(MlsysimError, match="no depth and ZeRO stage"):
        sharded((1, 2), (0,))


def test_what_is_solved_alone_is_one_replica() -> None:
    found = alone(step(), 4)
    assert found.inputs.data == 1
    assert found.inputs.microbatches == step().microbatches_per_replica
    assert dataclasses.asdict(step().fleet)["node_count"] == 128  # and the step keeps its own
