"""Many layouts at once: a grid, and the search over all of them, are the step itself."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim import Models, Scenarios
from mlsysim.errors import LayoutError, MlsysimError
from mlsysim.solvers import DistributedModel, DistributedResult
from mlsysim.solvers.step import Inputs, Ledger, stacked, step
from mlsysim.units import quantity, to_si
from tests.cases import Case, any_case, fleet_of, model_of


def same_bits(results: list[DistributedResult]) -> None:
    """One step over arrays of all inputs gives, bit for bit, what each gave alone."""
    inputs: list[Inputs] = [result.inputs for result in results]
    together = step(stacked(inputs))
    for part in ("ledger", "memory", "work"):
        alone = np.array([list(getattr(result.step, part)) for result in results], dtype=float)
        for i, column in enumerate(getattr(together, part)):
            assert np.array_equal(np.broadcast_to(column, len(results)), alone[:, i]), (part, i)
        totals = "total" if part != "work" else "model"
        found = np.broadcast_to(getattr(getattr(together, part), totals), len(results))
        assert [*found] == [getattr(getattr(result.step, part), totals) for result in results]
    for name in ("hidden_data_parallel", "hidden_tensor_parallel"):
        hidden = np.broadcast_to(getattr(together, name), len(results))
        assert [*hidden] == [getattr(result.step, name) for result in results], name


@given(st.lists(any_case, min_size=1, max_size=6))
def test_arrays_of_any_layouts_give_the_bits_of_each_alone(found: list[Case]) -> None:
    same_bits([case.solve() for case in found])


def test_arrays_of_the_published_runs_give_the_bits_of_each_alone() -> None:
    same_bits([run.result for run in Scenarios.PublishedStepTimes.solved])


# DistributedModel.solve_grid.

SMALL = {
    "seq_len": 1024,
    "precision": "bf16",
    "efficiency": 0.7,
    "bytes_per_param": quantity("16 B"),
    "sequence_parallel": True,
}
AXES: dict[str, list[Any]] = {
    "tp_size": [1, 2, 3, 8],
    "cp_size": [1, 2],
    "pp_size": [1, 2, 5, 16],
    "v_stages": [1, 2],
    "microbatch_size": [1, 2, 7],
    "activation_recomputation": ["none", "selective", "full"],
    "zero_stage": [0, 1, 3],
}


@cache
def small() -> Case:
    """Twelve wide layers on 64 accelerators, which do not fit in every layout."""
    model = model_of(
        layers=12,
        hidden_size=6144,
        attention_heads=48,
        kv_heads=8,
        ffn_hidden_size=16384,
        gated_mlp=True,
    )
    return Case(model, fleet_of(node_count=8), SMALL)


def solved_alone(row: Any, batch: int) -> DistributedResult:
    layout = {name: int(row[name]) for name in ("tp_size", "cp_size", "pp_size", "v_stages")}
    replica = layout["tp_size"] * layout["cp_size"] * layout["pp_size"]
    slots = 64 // replica * int(row["microbatch_size"])
    if not slots or batch % slots:
        raise LayoutError("no whole microbatch")
    return small().solve(
        batch_size=batch,
        microbatch_count=batch // slots,
        activation_recomputation=row["activation_recomputation"],
        zero_stage=int(row["zero_stage"]),
        **layout,
    )


def test_each_row_of_a_grid_is_what_solve_gives_and_is_refused_where_solve_refuses() -> None:
    frame = DistributedModel.solve_grid(
        small().model, small().fleet, batch_size=128, axes=AXES, **SMALL
    )
    assert len(frame) == np.prod([len(values) for values in AXES.values()])
    kinds = {"solved": 0, "refused": 0, "too large": 0}
    for _, row in frame.iterrows():
        try:
            alone = solved_alone(row, 128)
        except LayoutError:
            kinds["refused"] += 1
            assert row["reason"]
            assert not row["feasible"]
            assert np.isnan(row["step_time"])
            continue
        kinds["solved" if alone.feasible else "too large"] += 1
        assert row["feasible"] == alone.feasible == (row["reason"] == "")
        assert [row[name] for name in Ledger._fields] == [*alone.ledger]
        assert row["step_time"] == alone.ledger.total
        assert row["memory"] == alone.step.memory.total
    assert min(kinds.values()) > 0


def test_the_grid_holds_every_combination_once() -> None:
    axes = {"tp_size": [1, 2], "zero_stage": [0, 1]}
    frame = DistributedModel.solve_grid(
        small().model, small().fleet, batch_size=128, axes=axes, **SMALL
    )
    assert [*zip(frame["tp_size"], frame["zero_stage"], strict=True)] == [
        *itertools.product([1, 2], [0, 1])
    ]
    assert set(frame["pp_size"]) == set(frame["v_stages"]) == {1}
    assert set(frame["activation_recomputation"]) == {"none"}


@pytest.mark.parametrize(
    ("axes", "options", "fragments"),
    [
        ({"tp_degree": [1]}, {}, ("'tp_degree'", "tp_size")),
        ({"tp_size": []}, {}, ("tp_size", "no values")),
        ({"activation_recomputation": ["some"]}, {}, ("'some'", "none, selective, full")),
        ({}, {"efficiency": 1.5}, ("efficiency = 1.5", "(0, 1]")),
        ({}, {"precision": "fp4"}, ("'fp4'",)),
        ({}, {"overlap": True}, ("'overlap'",)),
        ({}, {"tp_size": 2}, ("'tp_size'",)),
        ({}, {"batch_size": 0}, ("batch_size = 0", "at least 1")),
        ({"zero_stage": [4]}, {}, ("zero_stage", "4", "0, 1, 2, 3")),
        ({"tp_size": [2.5]}, {}, ("tp_size", "2.5")),
        ({"tp_size": ["two"]}, {}, ("tp_size", "'two'")),
        ({"tp_size": [True]}, {}, ("tp_size", "True")),
        ({"tp_size": 8}, {}, ("tp_size", "a list")),
        ({"microbatch_size": [2**52]}, {}, ("microbatch_size", "whole number")),
    ],
    ids=str,
)
def test_a_bad_axis_or_option_of_a_grid_is_refused_by_name(
    axes: dict[str, Any], options: dict[str, Any], fragments: tuple[str, ...]
) -> None:
    arguments = {"batch_size": 128, **SMALL, **options}
    with pytest.raises(MlsysimError) as refused:
        DistributedModel.solve_grid(small().model, small().fleet, axes=axes, **arguments)
    for fragment in fragments:
        assert fragment in str(refused.value)


def test_a_count_below_one_is_no_layout_of_a_grid() -> None:
    frame = DistributedModel.solve_grid(
        small().model, small().fleet, batch_size=128, axes={"pp_size": [0, -1, 1]}, **SMALL
    )
    assert [*(frame["reason"] == "")] == [False, False, True]


# DistributedModel.best_layout.


def test_the_best_layouts_are_those_of_an_exhaustive_grid() -> None:
    found = DistributedModel.best_layout(
        small().model, small().fleet, batch_size=128, count=20, **SMALL
    )
    axes = {
        **AXES,
        "tp_size": range(1, 10),  # key-value heads are shared by at most eight
        "cp_size": [1, 2, 4, 8, 16, 32, 64],
        "pp_size": range(1, 13),
        "v_stages": range(1, 13),
        "microbatch_size": [1, 2, 4, 8, 16, 32, 64, 128],
        "zero_stage": [0, 1, 2, 3],
    }
    frame = DistributedModel.solve_grid(
        small().model, small().fleet, batch_size=128, axes=axes, **SMALL
    )
    fitting = frame[frame["feasible"]]
    assert [row["step_time"] for row in found.best] == sorted(fitting["step_time"])[:20]
    assert found.looked_at == len(fitting) + sum(found.fallen.values())


def test_a_found_layout_solves_to_the_time_that_the_search_gives() -> None:
    found = DistributedModel.best_layout(
        small().model, small().fleet, batch_size=128, count=50, **SMALL
    )
    times = [row["step_time"] for row in found.best]
    assert times == sorted(times)
    for row in found.best:
        alone = solved_alone(row, 128)
        assert alone.feasible
        assert alone.ledger.total == row["step_time"]
        assert [*alone.ledger] == [row[name] for name in Ledger._fields]
        assert alone.inputs.data == row["dp_size"]


# What `best_layout` finds, or takes under another name.
FOUND = {"model", "fleet", "batch_size", "microbatch_count", "zero_stage", *AXES}


def test_no_named_layout_of_the_reference_step_beats_the_search() -> None:
    step_scenario = Scenarios.DenseLLMPretrainingStep
    arguments = vars(step_scenario.solver_arguments())
    options = {name: value for name, value in arguments.items() if name not in FOUND}
    found = DistributedModel.best_layout(
        Models.GPT3_175B, step_scenario.fleet, batch_size=1536, count=1, **options
    )
    assert found.best[0]["step_time"] <= to_si(step_scenario.step_time)


def test_a_search_without_any_layout_says_so() -> None:
    with pytest.raises(MlsysimError, match="no layout"):
        DistributedModel.best_layout(
            model_of(attention_heads=1, kv_heads=1, hidden_size=64, ffn_hidden_size=64, layers=1),
            fleet_of(accelerators=7, node_count=1),
            batch_size=5,
            **{**SMALL, "seq_len": 1},
        )


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        ({"zero_stages": (4,)}, "zero_stage 4"),
        ({"zero_stages": ()}, "zero_stages"),
        ({"count": -1}, "count = -1"),
        ({"count": 1.5}, "count = 1.5"),
    ],
    ids=str,
)
def test_a_bad_argument_of_the_search_is_refused_by_name(
    arguments: dict[str, Any], fragment: str
) -> None:
    with pytest.raises(MlsysimError, match=fragment):
        DistributedModel.best_layout(
            small().model, small().fleet, batch_size=128, **SMALL, **arguments
        )


def test_grid_and_search_refuse_interleaving_with_slots_as_solve_does() -> None:
    frame = DistributedModel.solve_grid(
        small().model,
        small().fleet,
        batch_size=128,
        axes={"pp_size": [2], "v_stages": [1, 2]},
        **{**SMALL, "stage_split": "slots"},
    )
    assert "embedding and head" in frame["reason"][1]
    found = DistributedModel.best_layout(
        small().model, small().fleet, batch_size=128, count=50, **{**SMALL, "stage_split": "slots"}
    )
    assert {row["v_stages"] for row in found.best} == {1}
