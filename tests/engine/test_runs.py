"""Runs: checkpoints against interruptions, and the bill of a step repeated to a token budget."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim import Scenarios
from mlsysim.engine.scenario_types import FleetReliabilityScenario, TrainingRunScenario
from mlsysim.errors import InputError
from mlsysim.solvers.checkpoints import (
    daly_interval,
    exponential_less_one,
    shares,
    waste,
    young_interval,
)
from mlsysim.units import Quantity, quantity, to_si, unit
from tests.conftest import vary

# Seconds: a checkpoint, a restart, and the mean time between interruptions.
TIMES = st.tuples(st.floats(0.1, 1e3), st.floats(0.1, 1e4), st.floats(1e4, 1e7))


def fleet(**changes: Any) -> FleetReliabilityScenario:
    return vary(Scenarios.DenseLLMFleetReliability, **changes)


def training_run(**changes: Any) -> TrainingRunScenario:
    return vary(Scenarios.DenseLLMTrainingRun, **changes)


def often(factor: float) -> Any:
    """The published rate of interruptions, times a factor."""
    found = Scenarios.Llama31Interruptions
    return vary(found, interruptions=found.interruptions * factor)


def percent(value: Quantity) -> float:
    return float(value.to(unit("%")).magnitude)


# The formulas.


@given(st.floats(1e-12, 300))
def test_the_series_is_the_exponential_that_the_standard_library_computes(x: float) -> None:
    assert exponential_less_one(x) == pytest.approx(math.expm1(x), rel=1e-13)


@given(TIMES, st.floats(1, 1e6))
def test_shares_of_the_time_are_shares_and_add_up_to_all_of_it(
    times: tuple[float, float, float], interval: float
) -> None:
    found = shares(interval, *times)
    assert all(0 <= share <= 1 for share in found)
    assert math.fsum(found) == pytest.approx(1, rel=1e-12)
    assert found.checkpoints * interval == pytest.approx(found.progress * times[0], rel=1e-9)


@pytest.mark.parametrize(
    "case", [(600.0, 30.0, 120.0, 3600.0), (3000.0, 300.0, 900.0, 2000.0), (50.0, 5.0, 2e3, 1e3)]
)
def test_shares_are_those_of_a_run_that_is_interrupted_at_random(
    case: tuple[float, float, float, float],
) -> None:
    interval, write, restart, between = case
    chance = random.Random(2006)
    elapsed = progress = written = restarting = 0.0
    for _ in range(20_000):
        while True:  # one piece, until it and its checkpoint are done
            until = chance.expovariate(1 / between)
            if until >= interval + write:
                elapsed += interval + write
                progress += interval
                written += write
                break
            elapsed += until
            while True:  # a restart, which may be interrupted as well
                until = chance.expovariate(1 / between)
                elapsed += min(until, restart)
                restarting += min(until, restart)
                if until >= restart:
                    break
    found = shares(*case)
    assert progress / elapsed == pytest.approx(found.progress, rel=0.03)
    assert written / elapsed == pytest.approx(found.checkpoints, rel=0.03)
    assert restarting / elapsed == pytest.approx(found.restarts, rel=0.03)


@given(st.floats(1, 1e5), st.floats(0.1, 1e4))
def test_without_interruptions_only_checkpoints_cost_time(interval: float, write: float) -> None:
    found = shares(interval, write, 60.0, 1e15)
    assert found.progress == pytest.approx(interval / (interval + write), rel=1e-9)
    assert found.lost_work + found.restarts < 1e-9


@given(TIMES)
def test_the_first_order_is_what_is_left_when_interruptions_become_rare(
    times: tuple[float, float, float],
) -> None:
    write, restart, between = times
    for rare in (1e2, 1e4):
        calm = between * rare
        interval = young_interval(write, calm)
        first = waste(interval, write, restart, calm)
        missing = 1 - shares(interval, write, restart, calm).progress
        assert missing == pytest.approx(first, abs=first * first + 1e-12)


@given(TIMES)
def test_young_has_the_interval_that_makes_the_first_order_least(
    times: tuple[float, float, float],
) -> None:
    write, restart, between = times
    best = young_interval(write, between)
    grid = [best * factor / 100 for factor in range(20, 500)]
    least = min(grid, key=lambda interval: waste(interval, write, restart, between))
    assert least == pytest.approx(best, rel=0.01)


@given(st.floats(1e-6, 0.5))
def test_daly_comes_closer_than_young_to_the_interval_that_makes_progress_largest(
    write: float,
) -> None:
    # In units of the mean time between interruptions. Progress is largest where its derivative,
    # and with it (1 - interval) e^(interval + write) - 1, is zero; it falls on the way.
    low, high = 0.0, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        value = (1 - middle) * math.exp(middle + write) - 1
        low, high = (middle, high) if value > 0 else (low, middle)
    # The series leaves out terms from the square of its small number on.
    small = write / 2
    assert daly_interval(write, 1.0) == pytest.approx(low, abs=0.1 * small * small + 1e-12)
    assert abs(daly_interval(write, 1.0) - low) <= abs(young_interval(write, 1.0) - low) + 1e-9
    peak = shares(low, write, 0.1, 1.0).progress
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert shares(low * factor, write, 0.1, 1.0).progress < peak


def test_an_interval_of_daly_ends_at_the_time_between_interruptions() -> None:
    assert daly_interval(2.0, 1.0) == daly_interval(9.0, 1.0) == 1.0


# Fleets.


def test_the_table_finds_its_least_waste_at_the_interval_of_young_and_most_progress_at_daly() -> (
    None
):
    case = fleet()
    rows = [row for row in case.table() if row["series"] == "interval"]
    step = math.sqrt(math.sqrt(2))
    least = min(rows, key=lambda row: row["first_order_waste_percent"])
    most = max(rows, key=lambda row: row["progress_percent"])
    young, daly = to_si(case.young_interval) / 60, to_si(case.daly_interval) / 60
    assert young / step < least["interval_min"] < young * step
    assert daly / step < most["interval_min"] < daly * step
    ends = rows[0], rows[-1]
    assert all(row["progress_percent"] < most["progress_percent"] - 5 for row in ends)


def test_goodput_falls_with_the_fleet_and_more_so_on_storage_that_it_shares() -> None:
    case = fleet()
    for found in (case.goodput_of, case.goodput_on_shared_storage_of):
        values = [percent(each) for each in found.values()]
        assert values == sorted(values, reverse=True)
        assert len(set(values)) == len(values) == 13
    own = str(case.accelerators)
    assert case.goodput_of[own] == case.goodput_on_shared_storage_of[own] == case.goodput
    for size in map(str, (2048, 262144)):
        assert case.goodput_of[size] > case.goodput_on_shared_storage_of[size]
    for size in map(str, (64, 512)):
        assert case.goodput_of[size] < case.goodput_on_shared_storage_of[size]


def test_a_fleet_in_the_table_is_that_fleet_alone() -> None:
    case = fleet()
    alone = fleet(accelerators=8192)
    assert alone.goodput == case.goodput_of["8192"]
    rows = {row["accelerators"]: row for row in case.table() if row["series"] == "storage grows"}
    assert rows[8192]["progress_percent"] == percent(alone.goodput)
    assert rows[8192]["checkpoint_s"] == to_si(alone.checkpoint_time)
    assert to_si(alone.mean_time_between) * 8 == pytest.approx(
        to_si(case.mean_time_between), rel=1e-12
    )
    assert to_si(alone.checkpoint_time) == pytest.approx(to_si(case.checkpoint_time) / 8)


def test_the_largest_fleet_at_a_goal_reaches_it_and_one_more_accelerator_does_not() -> None:
    case = fleet()
    most = case.largest_fleet_at_goal
    assert percent(fleet(accelerators=most).goodput) >= 90
    assert percent(fleet(accelerators=most + 1).goodput) < 90
    assert case.largest_fleet_at_goal_on_shared_storage < most
    assert fleet(goodput_goal=1.0).largest_fleet_at_goal == 0


def test_shares_at_the_interval_of_the_fleet_add_up_and_are_near_the_best() -> None:
    case = fleet()
    assert math.fsum(percent(each) for each in case.share.values()) == pytest.approx(100)
    assert percent(case.goodput) + percent(case.without_progress) == pytest.approx(100)
    others = {name: percent(each) for name, each in case.without_progress_at.items()}
    assert percent(case.without_progress) < min(others["half"], others["twice"])
    assert others["half"] < others["quarter"]
    assert others["twice"] < others["four_times"]


def test_faster_storage_and_rarer_interruptions_help_and_slower_restarts_do_not() -> None:
    usual = fleet().goodput
    assert Scenarios.DenseLLMFleetReliabilityFast.goodput > usual
    assert fleet(observed=often(0.5)).goodput > usual
    assert fleet(restart_time=quantity("22 min")).goodput < usual
    # Twice as often and half as long to write: the interval halves, and the share stays.
    twice = fleet(observed=often(2), storage_rate=quantity("80 GB/s"))
    assert to_si(twice.young_interval) == pytest.approx(to_si(fleet().young_interval) / 2)
    assert percent(twice.share["checkpoints"]) == pytest.approx(
        percent(fleet().share["checkpoints"]), rel=0.01
    )


def test_the_published_run_is_as_productive_in_the_model_as_it_reports() -> None:
    # Dubey et al. 2024: more than 90 % effective time, 419 unexpected interruptions in 54 days.
    case = Scenarios.Llama31FleetReliability
    assert 90 < percent(case.goodput) < 95
    assert to_si(case.mean_time_between) == pytest.approx(54 * 86400 / 419)
    # Model-free: so much may each interruption have cost if a tenth of the time was lost.
    assert to_si(case.loss_allowed) == pytest.approx(54 * 86400 / 10 / 419)


def test_rates_of_interruption_compare_at_one_size() -> None:
    observed = Scenarios.Llama31Interruptions
    ratio = to_si(observed.mean_time_between_of_1024) / to_si(observed.mean_time_between)
    assert ratio == pytest.approx(16)
    per_accelerator = to_si(observed.accelerator_time_between)
    assert per_accelerator / 1024 == pytest.approx(to_si(observed.mean_time_between_of_1024))


def test_restarts_as_long_as_retries_say_are_those_of_a_fleet_with_that_restart_time() -> None:
    # Kang et al. 2026: 73 attempts in 12 chains, of which a third succeeded, every 11 minutes.
    case = Scenarios.DenseLLMRestartTimes
    minutes = {n: each.to("min").magnitude for n, each in case.restart_time.items()}
    assert minutes == pytest.approx({"first_retry": 11, "chain": 803 / 12, "success": 803 / 4})
    assert case.goodput["first_retry"] == case.fleet.goodput
    assert case.largest_fleet_at_goal["first_retry"] == case.fleet.largest_fleet_at_goal
    for name, restart in case.restart_time.items():
        alone = fleet(restart_time=restart)
        assert percent(case.goodput[name]) == pytest.approx(percent(alone.goodput))
        assert case.largest_fleet_at_goal[name] == alone.largest_fleet_at_goal
        assert percent(case.restarts[name]) == pytest.approx(percent(alone.share["restarts"]))
    rows = {(row["series"], row["accelerators"]): row for row in case.table()}
    assert rows["chain", 1024]["progress_percent"] == percent(case.goodput["chain"])


def test_the_longest_restart_that_reaches_the_goal_reaches_it_exactly() -> None:
    for case in (Scenarios.DenseLLMRestartTimes, Scenarios.OPTRestartTimes):
        longest = vary(case.fleet, restart_time=case.longest_restart_at_goal)
        assert percent(longest.goodput) == pytest.approx(100 * case.fleet.goodput_goal)
    out_of_reach = vary(Scenarios.DenseLLMRestartTimes, fleet=fleet(goodput_goal=0.99))
    assert to_si(out_of_reach.longest_restart_at_goal) == 0


# Runs.


def test_a_run_takes_the_fewest_steps_that_reach_its_budget() -> None:
    run = training_run()
    tokens = run.step.global_batch_tokens
    assert (run.steps - 1) * tokens < run.token_budget <= run.steps * tokens
    assert training_run(token_budget=7.0 * tokens).steps == 7
    assert training_run(token_budget=7.0 * tokens + 1).steps == 8
    assert to_si(run.productive_time) == run.steps * to_si(run.step.step_time)


def test_the_parts_of_the_elapsed_time_add_up_to_it() -> None:
    for run in (Scenarios.DenseLLMTrainingRun, Scenarios.DenseLLMTrainingRunA100):
        days = {name: to_si(each) for name, each in run.days.items()}
        assert math.fsum(days.values()) == pytest.approx(to_si(run.elapsed_time), rel=1e-9)
        lost = ("checkpoints", "lost_work", "restarts")
        assert math.fsum(days[name] for name in lost) == pytest.approx(
            to_si(run.time_without_progress), rel=1e-6
        )
        assert to_si(run.productive_time) == pytest.approx(
            to_si(run.elapsed_time) * percent(run.goodput) / 100
        )
        assert all(value > 0 for value in days.values())


def test_whole_steps_between_checkpoints_cost_next_to_nothing() -> None:
    run = training_run()
    assert percent(run.goodput) == pytest.approx(percent(run.reliability.goodput), rel=1e-6)
    near = to_si(run.checkpoint_interval) - to_si(run.reliability.daly_interval)
    assert abs(near) <= to_si(run.step.step_time) / 2
    # Checkpoints that cost nothing are taken after every step, never more often.
    fast = fleet(storage_rate=quantity("1000000 TB/s"))
    assert training_run(reliability=fast).steps_between_checkpoints == 1


def test_price_site_and_grid_move_the_bill_in_proportion_and_no_days() -> None:
    run = training_run()
    dear = training_run(price=run.price * 2)
    assert to_si(dear.cost) == pytest.approx(2 * to_si(run.cost))
    assert to_si(dear.cost_without_progress) == pytest.approx(2 * to_si(run.cost_without_progress))
    assert dear.energy == run.energy
    warm = training_run(pue=run.pue * 1.5)
    assert to_si(warm.energy) == pytest.approx(1.5 * to_si(run.energy))
    assert to_si(warm.carbon) == pytest.approx(1.5 * to_si(run.carbon))
    assert warm.cost == run.cost
    clean = training_run(carbon_intensity=quantity("0 kgCO2/kWh"))
    assert to_si(clean.carbon) == 0
    assert dear.elapsed_time == warm.elapsed_time == clean.elapsed_time == run.elapsed_time


def test_twice_the_tokens_take_twice_the_run() -> None:
    run, twice = training_run(), training_run(token_budget=600e9)
    for name in ("elapsed_time", "energy", "carbon", "cost", "accelerator_time"):
        ratio = to_si(getattr(twice, name)) / to_si(getattr(run, name))
        assert ratio == pytest.approx(2, rel=1e-5)
    assert to_si(twice.energy_per_token) == pytest.approx(to_si(run.energy_per_token))


def test_the_bill_of_a_run_can_be_added_up_by_hand() -> None:
    run = training_run()
    hours = run.elapsed_time.to("h").magnitude * 1024
    assert run.accelerator_time.to("h").magnitude == pytest.approx(hours)
    kilowatts = 128 * 10.2 * 0.76 * 1.2
    assert run.site_power.to("kW").magnitude == pytest.approx(kilowatts)
    assert run.energy.to("kWh").magnitude == pytest.approx(kilowatts * hours / 1024)
    assert run.carbon.to("kgCO2").magnitude == pytest.approx(0.366 * run.energy.to("kWh").magnitude)
    assert run.cost.to("USD").magnitude == pytest.approx(3 * hours)
    lost = run.time_without_progress / run.elapsed_time
    assert (run.cost_without_progress / run.cost).magnitude == pytest.approx(lost.magnitude)
    assert (run.energy_without_progress / run.energy).magnitude == pytest.approx(lost.magnitude)


def test_a_run_is_never_faster_than_its_accelerators_at_their_peak() -> None:
    run = training_run()
    model = run.step.replica.workload
    # Six FLOP a parameter and token leave out attention, so the peak takes a little longer.
    least = 6 * to_si(model.parameters) * run.token_budget / 1024 / 989.4e12
    assert least < to_si(run.time_at_peak) < 1.05 * least
    assert to_si(run.time_at_peak) < to_si(run.productive_time) < to_si(run.elapsed_time)
    assert percent(run.utilization) == pytest.approx(
        100 * to_si(run.time_at_peak) / to_si(run.elapsed_time)
    )


def test_a_run_whose_step_does_not_fit_says_so() -> None:
    step = vary(Scenarios.DenseLLMPretrainingStep, sequences_per_microbatch=16)
    assert not step.feasible
    run = training_run(step=step)
    assert not run.feasible
    assert run.feasibility == step.feasibility


def test_published_bills_give_the_power_and_the_grid_behind_them() -> None:
    # 1,287 MWh over 10,000 V100 and 14.8 days; 8,930 t over 30.84 million hours of 700 W.
    gpt = Scenarios.GPT3PublishedRun
    assert gpt.accelerator_power.to("W").magnitude == pytest.approx(1287e6 / (1e4 * 14.8 * 24))
    assert gpt.carbon_intensity.to("kgCO2e/kWh").magnitude == pytest.approx(552 / 1287)
    llama = Scenarios.Llama31PublishedRun
    assert llama.accelerator_power.to("W").magnitude == pytest.approx(700)
    assert llama.carbon_intensity.to("kgCO2e/kWh").magnitude == pytest.approx(0.4137, rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "fragment"),
    [
        ({"restart_time": quantity("0 min")}, "restart_time = 0 min: expected more than 0 min"),
        ({"storage_rate": quantity("0 GB/s")}, "storage_rate"),
        ({"interval_doublings": 0}, "interval_doublings = 0: expected at least 1"),
        ({"accelerators": 0}, "accelerators = 0: expected at least 1"),
        ({"largest_fleet": 2**25}, "at most 1.67772e+07"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused(changes: dict[str, Any], fragment: str) -> None:
    with pytest.raises(InputError) as refused:
        fleet(**changes)
    assert fragment in str(refused.value)
