"""A step on fleets of many sizes, and published runs on more and more replicas."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mlsysim import Scenarios
from mlsysim.engine.scenario_definitions.published_steps import PublishedStepTimesScenario
from mlsysim.engine.scenario_types import (
    FleetScalingScenario,
    MeasuredScalingScenario,
)
from mlsysim.errors import MlsysimError
from mlsysim.units import quantity, to_si
from tests.cases import step
from tests.conftest import vary

SIZES = (32, 64, 128, 1024, 16384, 32768, 65536, 98304)


def study(**changes: Any) -> FleetScalingScenario:
    given: dict[str, Any] = {
        "step": step(),
        "sizes": SIZES,
        "batch": "fixed",
        "layout": "repeated",
        "most_sharding": 0,
        "least_efficiency": 0.7,
    }
    return FleetScalingScenario(**{**given, **changes})


@pytest.fixture(scope="module")
def strong() -> FleetScalingScenario:
    return study()


@pytest.fixture(scope="module")
def weak() -> FleetScalingScenario:
    return study(batch="grows", sizes=(64, 256, 1024, 4096, 16384))


@pytest.fixture(scope="module")
def fastest() -> FleetScalingScenario:
    return study(layout="fastest", most_sharding=1, sizes=(64, 1024, 65536))


def seconds(of: dict[str, Any]) -> list[float]:
    return [to_si(value) for value in of.values()]


@pytest.mark.parametrize("batch", ["fixed", "grows"])
def test_at_its_own_size_a_study_is_the_step_itself(batch: str) -> None:
    made, own = study(batch=batch), step().result
    assert to_si(made.step_time_at["1024"]) == own.ledger.total
    assert made.batch_at["1024"] == step().global_batch_sequences
    assert made.replicas_at["1024"] == step().data_parallel
    assert made.microbatches_at["1024"] == step().microbatches_per_replica
    used = to_si(own.model_flops_utilization)
    assert to_si(made.utilization_at["1024"]) == pytest.approx(used, rel=1e-12)
    (row,) = (row for row in made.table() if row["accelerators"] == 1024)
    assert made.tensor_parallel_at["1024"] == step().tensor_parallel
    assert made.pipeline_depth_at["1024"] == step().pipeline_depth
    assert made.context_parallel_at["1024"] == 1
    for name, part in own.ledger._asdict().items():
        assert row[f"{name}_s"] == part


def test_each_size_is_the_step_on_that_fleet_solved_alone(strong: FleetScalingScenario) -> None:
    for size in (64, 128, 16384):
        alone = vary(step(), fleet=vary(step().fleet, node_count=size // 8))
        assert to_si(strong.step_time_at[str(size)]) == alone.result.ledger.total


def test_sizes_without_a_layout_say_why_and_have_no_times(strong: FleetScalingScenario) -> None:
    rows = {row["accelerators"]: row for row in strong.table()}
    assert [size for size, row in rows.items() if not row["feasible"]] == [32, 65536]
    assert "one replica of 64" in rows[32]["reason"]
    assert "1536 / 1024 = 1.5" in rows[65536]["reason"]
    assert rows[32]["step_time_s"] == rows[65536]["efficiency"] == ""
    assert [*rows[32]] == [*rows[64]] == [*rows[65536]]
    assert (strong.smallest_fleet, strong.largest_fleet) == (64, 98304)
    assert strong.microbatches_at["98304"] == 1
    assert "65536" not in strong.step_time_at


def test_a_size_whose_step_does_not_fit_the_memory_says_so() -> None:
    # State fits an accelerator if it is spread evenly; with activations it does not.
    accelerator = vary(step().fleet.node.accelerator, memory_capacity=quantity("43.8 GB"))
    node = vary(step().fleet.node, accelerator=accelerator)
    tight = vary(
        step(),
        fleet=vary(step().fleet, node=node),
        replica=vary(step().replica, node=node),
    )
    with pytest.raises(MlsysimError, match=r"no size works: does not fit: .* GB needed"):
        study(step=tight)


def test_more_accelerators_shorten_the_step_by_less_than_their_number(
    strong: FleetScalingScenario,
) -> None:
    times, costs = seconds(strong.step_time_at), seconds(strong.accelerator_time_at)
    assert times == sorted(times, reverse=True)
    assert costs == sorted(costs)
    efficiencies = seconds(strong.efficiency_at)
    assert efficiencies[0] == 1
    assert efficiencies == sorted(efficiencies, reverse=True)
    for key, time in strong.step_time_at.items():
        speed_up = to_si(strong.step_time_at["64"]) / to_si(time)
        assert strong.speed_up_at[key] == pytest.approx(speed_up, rel=1e-12)
        ideal = int(key) / 64
        assert to_si(strong.efficiency_at[key]) == pytest.approx(speed_up / ideal, rel=1e-12)
        hours = int(key) * to_si(time)
        assert to_si(strong.accelerator_time_at[key]) == pytest.approx(hours, rel=1e-12)


def test_shares_add_up_and_the_bubble_takes_what_work_leaves(
    strong: FleetScalingScenario,
) -> None:
    for key in strong.step_time_at:
        parts = [
            to_si(share) for name, share in strong.share_at.items() if name.startswith(f"{key}.")
        ]
        assert len(parts) == 5
        assert math.fsum(parts) == pytest.approx(1, rel=1e-12)
    bubbles = [to_si(strong.share_at[f"{key}.bubble"]) for key in strong.step_time_at]
    assert bubbles == sorted(bubbles)


def test_the_time_of_a_step_is_that_of_its_microbatches_and_a_fixed_one(
    strong: FleetScalingScenario,
) -> None:
    one = {
        key: (to_si(time) - to_si(strong.fixed_time_at[key])) / strong.microbatches_at[key]
        for key, time in strong.step_time_at.items()
    }
    for key, seconds_of_one in one.items():  # a microbatch takes as long at every size
        assert seconds_of_one == pytest.approx(one["64"], rel=1e-12)
        m, c = strong.microbatches_at[key], strong.fixed_microbatches_at[key]
        assert c == pytest.approx(to_si(strong.fixed_time_at[key]) / seconds_of_one, rel=1e-12)
        assert to_si(strong.fixed_efficiency_at[key]) == pytest.approx(m / (m + c), rel=1e-12)
    # The bubble alone is nearly a microbatch for each stage but one; the head makes one longer.
    assert strong.fixed_microbatches_at["64"] > 0.9 * (step().pipeline_depth - 1)


def test_the_efficient_fleet_is_the_largest_that_keeps_the_stated_efficiency() -> None:
    loose, strict = study(least_efficiency=0.3), study(least_efficiency=1.0)
    assert strict.efficient_fleet == 64
    assert loose.efficient_fleet == 16384
    assert to_si(loose.efficiency_at["16384"]) >= 0.3 > to_si(loose.efficiency_at["32768"])
    assert study().fastest_fleet == 98304


def test_a_growing_batch_keeps_the_work_of_each_replica(weak: FleetScalingScenario) -> None:
    assert {*weak.microbatches_at.values()} == {step().microbatches_per_replica}
    assert [*weak.batch_at.values()] == [96, 384, 1536, 6144, 24576]
    efficiencies = seconds(weak.efficiency_at)
    assert efficiencies == sorted(efficiencies, reverse=True)
    assert efficiencies[-1] > 0.9
    # Only gradients travel further; nothing else in the step knows how many replicas there are.
    small, large = weak.table()[0], weak.table()[-1]
    changed = {name for name in small if name.endswith("_s") and small[name] != large[name]}
    assert changed == {"step_time_s", "data_parallel_s"}


def test_a_batch_that_cannot_grow_in_whole_sequences_says_so() -> None:
    odd = study(batch="grows", sizes=(8, 1024), step=vary(step(), batch_divisor=16))
    assert "1552 x 8 / 1024" in odd.table()[0]["reason"]


def test_the_fastest_layout_is_never_slower_than_the_repeated_replica(
    strong: FleetScalingScenario, fastest: FleetScalingScenario
) -> None:
    for key in ("64", "1024"):
        assert to_si(fastest.step_time_at[key]) <= to_si(strong.step_time_at[key])
    # Larger replicas exist where so many small ones have no whole share of the batch.
    assert "65536" in fastest.step_time_at
    assert fastest.replicas_at["65536"] * fastest.microbatches_at["65536"] <= 1536
    for row in fastest.table():
        replica = row["tensor"] * row["context"] * row["pipeline"]
        assert replica * row["replicas"] <= row["accelerators"]
        assert f"t{row['tensor']}" in row["layout"].split() or row["tensor"] == 1
        parts = [row[f"{name}_s"] for name in step().result.ledger._fields]
        assert math.fsum(parts) == pytest.approx(row["step_time_s"], rel=1e-12)
        assert row["memory_gb"] * 1e9 <= step().fleet.node.accelerator.capacity_bytes


# Published runs.


@pytest.fixture(scope="module")
def published() -> PublishedStepTimesScenario:
    found = Scenarios.PublishedStepTimes
    assert isinstance(found, PublishedStepTimesScenario)
    return found


def test_a_series_differs_in_its_replicas_alone(published: PublishedStepTimesScenario) -> None:
    made = MeasuredScalingScenario(published=published, least_runs=4)
    runs = {run.name: run for run in published.solved}
    rows = made.table()
    assert len({row["series"] for row in rows}) == made.series_count
    for row in rows:
        first, run = runs[row["series"]], runs[row["run"]]
        assert run.source == first.source
        assert run.result.inputs.microbatches == first.result.inputs.microbatches
        assert run.result.inputs.microbatch == first.result.inputs.microbatch
        grown = run.arguments["batch_size"] / first.arguments["batch_size"]
        assert grown == row["times_smallest"]
        growth = 100 * (run.measured / first.measured - 1)
        assert row["measured_growth_percent"] == pytest.approx(growth, rel=1e-12, abs=1e-12)
    lasts = {row["series"]: row for row in rows}
    for series, row in lasts.items():
        assert made.largest[series] == row["accelerators"] > made.smallest[series]
    growths = [row["measured_growth_percent"] / 100 for row in lasts.values()]
    assert to_si(made.mean_measured_growth) == pytest.approx(math.fsum(growths) / len(growths))
    assert to_si(made.least_measured_growth) == pytest.approx(min(growths))
    assert to_si(made.most_measured_growth) == pytest.approx(max(growths))


def test_a_longer_series_is_asked_for_than_there_is(
    published: PublishedStepTimesScenario,
) -> None:
    shorter = MeasuredScalingScenario(published=published, least_runs=2)
    assert (
        shorter.series_count
        > MeasuredScalingScenario(published=published, least_runs=5).series_count
    )
    with pytest.raises(MlsysimError, match="least_runs = 90: no series"):
        MeasuredScalingScenario(published=published, least_runs=90)
    with pytest.raises(MlsysimError, match="at least 2"):
        MeasuredScalingScenario(published=published, least_runs=1)
