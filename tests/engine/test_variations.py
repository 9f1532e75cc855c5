"""Sweeps of a step and the search over its layouts: each row is that step, solved alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from mlsysim.engine.scenario_types import (
    LayoutSearchScenario,
    TrainingStepSweepScenario,
)
from mlsysim.errors import MlsysimError
from mlsysim.solvers.distributed import solved
from mlsysim.units import quantity, to_si
from tests.cases import step
from tests.conftest import vary


def sweep(name: str, values: Any, second: str = "none", others: Any = ("none",)) -> Any:
    return TrainingStepSweepScenario(
        step=step(), input=name, values=values, second_input=second, second_values=others
    )


def test_each_row_of_a_sweep_is_the_step_with_that_input_solved_alone() -> None:
    rows = sweep("local_efficiency", (0.4, 0.5, 0.6)).table()
    assert [row["local_efficiency"] for row in rows] == ["0.4", "0.5", "0.6"]
    for row in rows:
        alone = vary(step(), local_efficiency=float(row["local_efficiency"])).result
        assert row["step_time_s"] == alone.ledger.total
        parts = [value for name, value in row.items() if name.endswith("_s")][1:]
        assert len(parts) == len(alone.ledger)
        assert math.fsum(parts) == pytest.approx(row["step_time_s"], rel=1e-12)
        assert row["feasible"]


def test_a_sweep_reaches_inputs_of_what_the_step_refers_to_and_keeps_the_rest() -> None:
    made = sweep(
        "fleet.node.nic_bandwidth", ("100 Gb/s", "400 Gb/s"), "overlap_comm", (True, False)
    )
    rows = made.table()
    assert [(row["fleet.node.nic_bandwidth"], row["overlap_comm"]) for row in rows] == [
        ("100 Gb/s", "true"),
        ("100 Gb/s", "false"),
        ("400 Gb/s", "true"),
        ("400 Gb/s", "false"),
    ]
    times = [row["step_time_s"] for row in rows]
    assert times[2] == step().result.ledger.total  # the last rate and overlap are the step's own
    node = vary(step().fleet.node, nic_bandwidth=quantity("100 Gb/s"))
    assert times[0] == vary(step(), fleet=vary(step().fleet, node=node)).result.ledger.total
    assert times[0] > times[2]
    assert (made.points, made.feasible_points) == (4, 4)
    assert to_si(made.shortest_step) == min(times)
    assert to_si(made.longest_step) == max(times)
    assert sorted(map(to_si, made.step_time_at.values())) == sorted(times)
    assert len(made.step_time_at) == 4


def test_a_row_that_cannot_exist_or_does_not_fit_says_why_in_place_of_a_time() -> None:
    rows = sweep("sequences_per_microbatch", (1, 5, 16)).table()
    assert [row["feasible"] for row in rows] == [True, False, False]
    assert "1536 / 80 = 19.2" in rows[1]["reason"]
    assert rows[1]["step_time_s"] == ""
    assert "does not fit" in rows[2]["reason"]
    assert [*rows[0]] == [*rows[1]] == [*rows[2]]


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (("local_eficiency", (0.5,)), ("'local_eficiency'", "'local_efficiency'")),
        (("fleet.node.nics.x", (8,)), ("'nics' has no parts",)),
        (("fleet.nod.nics", (8,)), ("'nod'", "'node'")),
        (("fleet", ("Fleets.DGX_A100_1024",)), ("'fleet'", "refers to a thing")),
        (("fleet.node.accelerator.rates", (1,)), ("rates'", "refers to a thing")),
        (("local_efficiency", ("high",)), ("'local_efficiency'", "'high'")),
        (("local_efficiency", (1.5,)), ("local_efficiency", "at most 1")),
        (("batch_divisor", (1.5,)), ("'batch_divisor'", "1.5")),
        (("overlap_comm", ("yes",)), ("'overlap_comm'", "'yes'")),
        (("fleet.node.nic_bandwidth", ("400 Gb",)), ("nic_bandwidth", "400 Gb")),
        (("fleet.node.nic_bandwidth", (400,)), ("nic_bandwidth", "400")),
        (("local_efficiency", ()), ("values has no values",)),
        (("local_efficiency", (0.5,), "overlap_comm", ()), ("second_values has no values",)),
        (("local_efficiency", "0.5, 0.6"), ("values = '0.5, 0.6'", "a list")),
        (("local_efficiency", ([0.5],)), ("values: [0.5]", "a list of values")),
        (("local_efficiency", (" ",)), ("values", "a list of values")),
        (("sequences_per_microbatch", (5,)), ("no value of the sweep",)),
        (("local_efficiency", (0.5, 0.5)), ("'0.5' stands there twice",)),
        (("local_efficiency", (0.5,), "local_efficiency", (0.6,)), ("local_efficiency",)),
    ],
    ids=str,
)
def test_a_bad_sweep_is_refused_by_input_and_value(
    arguments: tuple[Any, ...], fragments: tuple[str, ...]
) -> None:
    with pytest.raises(MlsysimError) as refused:
        sweep(*arguments)
    for fragment in fragments:
        assert fragment in str(refused.value)


# The search over layouts.


@pytest.fixture(scope="module")
def search() -> LayoutSearchScenario:
    return LayoutSearchScenario(step=step(), most_sharding=1, kept=5)


def test_the_found_layouts_are_no_slower_than_the_step_and_solve_to_their_times(
    search: LayoutSearchScenario,
) -> None:
    rows = search.table()
    assert len(rows) == 5
    times = [row["step_time_s"] for row in rows]
    assert times == sorted(times)
    assert to_si(search.best_step_time) == times[0] <= to_si(step().step_time)
    assert to_si(search.gain) == pytest.approx(1 - times[0] / to_si(step().step_time))
    given = step().solver_arguments()
    for row in rows:
        count = given.batch_size // (row["dp_size"] * row["microbatch_size"])
        names = ("tp_size", "cp_size", "pp_size", "v_stages", "zero_stage")
        layout = {name: row[name] for name in (*names, "activation_recomputation")}
        alone = solved(replace(given, **layout, microbatch_count=count))
        assert alone.feasible
        assert alone.ledger.total == row["step_time_s"]
        assert alone.step.memory.total / 1e9 == row["memory_gb"]
        assert row["zero_stage"] <= 1
    assert search.best == {k: v for k, v in rows[0].items() if isinstance(v, (int, str))}


def test_every_layout_looked_at_is_one_that_fits_or_fell_for_a_stated_reason(
    search: LayoutSearchScenario,
) -> None:
    assert 0 < sum(search.fallen.values()) < search.looked_at
    assert all(count > 0 for count in search.fallen.values())


def test_more_sharding_is_never_slower_for_there_is_more_to_choose_from(
    search: LayoutSearchScenario,
) -> None:
    none = vary(search, most_sharding=0)
    assert to_si(search.best_step_time) <= to_si(none.best_step_time)


def test_a_search_in_which_nothing_fits_is_refused() -> None:
    # One replica, whose state fits if it is spread evenly, and in no layout with activations.
    accelerator = vary(step().fleet.node.accelerator, memory_capacity=quantity("43.8 GB"))
    node = vary(step().fleet.node, accelerator=accelerator)
    one = vary(
        step(),
        fleet=vary(step().fleet, node=node, node_count=8),
        replica=vary(step().replica, node=node),
    )
    assert not one.feasible
    with pytest.raises(MlsysimError, match="fit"):
        LayoutSearchScenario(step=one, most_sharding=1, kept=5).best_step_time  # noqa: B018


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        ({"most_sharding": 4}, ("most_sharding = 4", "at most 3")),
        ({"most_sharding": -1}, ("most_sharding = -1", "at least 0")),
        ({"kept": 0}, ("kept = 0", "at least 1")),
        ({"step": "Scenarios.DenseLLMPretrainingStep"}, ("step", "ReferenceTrainingStepScenario")),
    ],
    ids=str,
)
def test_a_bad_search_is_refused_by_field(
    changes: dict[str, Any], fragments: tuple[str, ...], search: LayoutSearchScenario
) -> None:
    with pytest.raises(MlsysimError) as refused:
        vary(search, **changes)
    for fragment in fragments:
        assert fragment in str(refused.value)
