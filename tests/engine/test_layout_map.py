"""The map of layouts, what choices in one are worth, and the evidence: each is the step itself."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from mlsysim import Scenarios
from mlsysim.engine.scenario_types import (
    LayoutChoicesScenario,
    LayoutEvidenceScenario,
    LayoutMapScenario,
    LayoutSearchScenario,
    PublishedStepTimesScenario,
)
from mlsysim.errors import LayoutError, MlsysimError
from mlsysim.solvers import DistributedResult
from mlsysim.solvers.distributed import solved
from mlsysim.units import quantity, to_si
from tests.cases import step
from tests.conftest import vary


def solved_alone(row: Any) -> DistributedResult:
    """The layout of a row, solved alone."""
    given = step().solver_arguments()
    names = ("tp_size", "cp_size", "pp_size", "v_stages", "zero_stage", "activation_recomputation")
    count = given.batch_size // (row["dp_size"] * row["microbatch_size"])
    layout = {name: row[name] for name in names}
    return solved(replace(given, **layout, microbatch_count=count))


@pytest.fixture(scope="module")
def atlas() -> LayoutMapScenario:
    found = Scenarios.ReferenceLayoutMap
    assert isinstance(found, LayoutMapScenario)
    return found


@pytest.fixture(scope="module")
def choices() -> LayoutChoicesScenario:
    found = Scenarios.ReferenceLayoutChoices
    assert isinstance(found, LayoutChoicesScenario)
    return found


@pytest.fixture(scope="module")
def evidence() -> LayoutEvidenceScenario:
    found = Scenarios.ReferenceLayoutEvidence
    assert isinstance(found, LayoutEvidenceScenario)
    return found


@pytest.fixture(scope="module")
def search() -> LayoutSearchScenario:
    return LayoutSearchScenario(step=step(), most_sharding=1, kept=300)


def cell(atlas: LayoutMapScenario, tensor: int, pipeline: int) -> Any:
    (found,) = [
        row for row in atlas.table() if (row["tp_size"], row["pp_size"]) == (tensor, pipeline)
    ]
    return found


def test_every_cell_is_the_step_of_its_layout_solved_alone(atlas: LayoutMapScenario) -> None:
    drawn = [row for row in atlas.table() if row["state"] != "none_exists"]
    assert len(drawn) > 30
    for row in drawn:
        alone = solved_alone(row)
        assert alone.ledger.total == row["step_time_s"]
        assert alone.step.memory.total / 1e9 == row["memory_gb"]
        assert alone.feasible == (row["state"] == "fits")
        for name, seconds in alone.ledger._asdict().items():
            assert row[f"{name}_s"] == seconds
        assert alone.inputs.microbatches == row["microbatches"]


def test_the_least_cell_of_the_map_is_the_layout_that_the_search_finds(
    atlas: LayoutMapScenario, search: LayoutSearchScenario
) -> None:
    fits = [row for row in atlas.table() if row["state"] == "fits"]
    least = min(fits, key=lambda row: row["step_time_s"])
    assert least["step_time_s"] == to_si(search.best_step_time)
    assert {name: least[name] for name in search.best} == search.best
    assert min(atlas.over_best_at.values()) == 1


def test_no_layout_of_the_search_is_faster_than_its_cell(
    atlas: LayoutMapScenario, search: LayoutSearchScenario
) -> None:
    times = {(row["tp_size"], row["pp_size"]): row["step_time_s"] for row in atlas.table()}
    seen = set()
    for row in search.table():
        place = row["tp_size"], row["pp_size"]
        if place in times:
            assert times[place] <= row["step_time_s"]
            if place not in seen:  # the first of a cell is its fastest
                assert times[place] == row["step_time_s"]
            seen.add(place)
    assert len(seen) > 5


@pytest.mark.parametrize(
    ("tensor", "pipeline", "reason"),
    [
        (3, 1, "tokens of a rank"),  # 96 / 3 heads, and 2048 / 3 tokens
        (64, 1, "does not divide the heads"),  # 96 / 64
        (32, 64, "more accelerators than the fleet has"),  # 2048 of 1024
        (16, 96, "more accelerators than the fleet has"),  # 1536 of 1024
        (1, 97, "more stages than layers"),
    ],
)
def test_a_cell_without_layouts_gives_the_reason_that_arithmetic_gives(
    tensor: int, pipeline: int, reason: str
) -> None:
    lone = LayoutMapScenario(
        step=step(),
        most_sharding=1,
        tensor_degrees=(tensor,),
        pipeline_degrees=(pipeline,),
    )
    with pytest.raises(LayoutError, match="no cell"):
        lone.table()
    wider = vary(
        lone,
        tensor_degrees=tuple(sorted({tensor, 8})),
        pipeline_degrees=tuple(sorted({pipeline, 8})),
    )
    row = cell(wider, tensor, pipeline)
    assert (row["state"], row["step_time_s"]) == ("none_exists", "")
    assert reason in row["reason"]


def test_replicas_that_do_not_divide_the_batch_leave_only_divided_sequences() -> None:
    # 1024 // 24 = 42 replicas, and 1536 / 42; but 1024 // (24 x 16) = 2.
    lone = LayoutMapScenario(
        step=step(), most_sharding=1, tensor_degrees=(4,), pipeline_degrees=(6,)
    )
    assert cell(lone, 4, 6)["cp_size"] == 16
    with pytest.raises(LayoutError, match="no whole microbatch"):
        solved_alone({**cell(lone, 4, 6), "cp_size": 1, "dp_size": 42, "v_stages": 1})


def test_a_cell_in_which_nothing_fits_says_what_its_leanest_layout_lacks(
    atlas: LayoutMapScenario,
) -> None:
    row = cell(atlas, 8, 1)
    capacity = step().fleet.node.accelerator.capacity_bytes
    assert row["state"] == "too_large"
    assert row["lacking_gb"] == pytest.approx(row["memory_gb"] - capacity / 1e9)
    assert to_si(atlas.lacking_at["tp8_pp1"]) == pytest.approx(row["lacking_gb"] * 1e9)
    assert row["activation_recomputation"] == "full"
    # 175e9 parameters on eight: weights and gradients, 2 B each, whatever the replicas share.
    assert row["memory_gb"] > 175 * 4 / 8
    assert not solved_alone(row).feasible


def test_the_counts_of_the_map_add_up(atlas: LayoutMapScenario) -> None:
    assert sum(atlas.cells_by_state.values()) == atlas.cells == len(atlas.table()) == 64
    assert atlas.cells_by_state["fits"] == len(atlas.step_time_at)
    assert atlas.cells_by_state["too_large"] == len(atlas.lacking_at)
    assert atlas.idle_at["tp8_pp96"] == 1024 - 8 * 96
    assert "tp8_pp8" not in atlas.idle_at


def test_the_rules_of_thumb_hold_in_the_ledger_where_stages_are_equal(
    atlas: LayoutMapScenario,
) -> None:
    assert atlas.tensor_rule["tp8"] == 7
    assert atlas.tensor_rule["tp16"] == pytest.approx(14 + atlas.link_ratio)
    for pipeline in ("pp8", "pp16"):
        spent = {
            t: to_si(atlas.tensor_parallel_at[f"{t}_{pipeline}"]) for t in ("tp2", "tp8", "tp16")
        }
        for wide, narrow in (("tp8", "tp2"), ("tp16", "tp8")):
            rule = atlas.tensor_rule[wide] / atlas.tensor_rule[narrow]
            assert spent[wide] / spent[narrow] == pytest.approx(rule, rel=0.07)  # latencies
    row = cell(atlas, 8, 4)
    busy = row["step_time_s"] - row["bubble_s"] - row["data_parallel_s"] - row["optimizer_s"]
    share = row["bubble_s"] / busy
    # The last stage has the output matrix besides, so the others wait a little more or less.
    assert to_si(atlas.bubble_rule_at["tp8_pp4"]) == pytest.approx(share, rel=0.15)


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        ({"tensor_degrees": (1, "two")}, ("tensor_degrees", "'two'")),
        ({"tensor_degrees": (0, 1)}, ("tensor_degrees: 0", "at least 1")),
        ({"tensor_degrees": ()}, ("tensor_degrees has no values",)),
        ({"pipeline_degrees": (1, 2.5)}, ("pipeline_degrees: 2.5",)),
        ({"pipeline_degrees": (1, 4, 2)}, ("pipeline_degrees", "2 after 4")),
        ({"pipeline_degrees": (4, 4)}, ("pipeline_degrees", "4 after 4")),
        ({"most_sharding": 4}, ("most_sharding = 4", "at most 3")),
    ],
    ids=str,
)
def test_a_bad_map_is_refused_by_field(
    changes: dict[str, Any], fragments: tuple[str, ...], atlas: LayoutMapScenario
) -> None:
    with pytest.raises(MlsysimError) as refused:
        vary(atlas, **changes)
    for fragment in fragments:
        assert fragment in str(refused.value)


# What choices are worth.


def test_changing_a_choice_alone_is_the_step_with_that_input_solved_alone(
    choices: LayoutChoicesScenario,
) -> None:
    own, given = step().result.ledger.total, step().solver_arguments()

    def best(name: str, values: list[Any]) -> float:
        found = [own]
        for value in values:
            try:
                result = solved(replace(given, **{name: value}))
            except LayoutError:
                continue
            found += [result.ledger.total] if result.feasible else []
        return min(found)

    assert to_si(choices.changing["interleaving"]) == best("v_stages", [*range(2, 13)])
    assert to_si(choices.changing["microbatch"]) == best("microbatch_count", [*range(1, 97)])
    assert to_si(choices.changing["sharding"]) == best("zero_stage", [1])
    assert to_si(choices.changing["recomputation"]) == best(
        "activation_recomputation", ["selective", "full"]
    )
    saved = to_si(choices.changing_saves["interleaving"])
    assert saved == pytest.approx(1 - to_si(choices.changing["interleaving"]) / own)


def test_keeping_a_choice_lies_between_the_best_and_the_step(
    choices: LayoutChoicesScenario, search: LayoutSearchScenario
) -> None:
    best, own = to_si(choices.best_step_time), step().result.ledger.total
    assert best == to_si(search.best_step_time)
    columns = {"tensor": ("tp_size", 8), "microbatch": ("microbatch_size", 1)}
    columns |= {"sharding": ("zero_stage", 0), "interleaving": ("v_stages", 1)}
    for name, time in choices.keeping.items():
        assert best <= to_si(time) <= own
        if name in columns:
            column, value = columns[name]
            rows = [row["step_time_s"] for row in search.table() if row[column] == value]
            assert not rows or rows[0] == to_si(time)
    assert to_si(choices.keeping_costs["tensor"]) == pytest.approx(
        to_si(choices.keeping["tensor"]) / best - 1
    )


def test_what_the_fastest_layout_saves_adds_up_to_the_difference_of_the_steps(
    choices: LayoutChoicesScenario,
) -> None:
    saved = sum(map(to_si, choices.best_saves.values()))
    difference = step().result.ledger.total - to_si(choices.best_step_time)
    assert saved == pytest.approx(difference, rel=1e-12)


def test_the_front_falls_in_time_as_it_grows_in_memory_and_nothing_found_beats_it(
    choices: LayoutChoicesScenario, search: LayoutSearchScenario
) -> None:
    front = choices.table()
    for faster, leaner in itertools.pairwise(front):
        assert faster["step_time_s"] <= leaner["step_time_s"]
        assert faster["memory_gb"] > leaner["memory_gb"]
    for row in front:
        assert solved_alone(row).ledger.total == row["step_time_s"]
    for row in search.table():
        assert any(
            each["step_time_s"] <= row["step_time_s"] and each["memory_gb"] <= row["memory_gb"]
            for each in front
        )
    limit = 1.05 * front[0]["step_time_s"]
    within = min(row["memory_gb"] for row in front if row["step_time_s"] <= limit)
    assert to_si(choices.leanest_within["five_percent"]) == pytest.approx(within * 1e9)


def test_a_layout_is_rescued_if_it_fits_with_full_recomputation_alone(
    choices: LayoutChoicesScenario,
) -> None:
    everything = choices._all
    rescued = choices._rescued()
    assert rescued.sum() == choices.rescued_by_recomputation > 0
    for i in rescued.nonzero()[0][:: len(rescued) // 20]:
        row = everything.row(int(i))
        assert row["activation_recomputation"] == "full"
        assert solved_alone(row).feasible
        assert not solved_alone({**row, "activation_recomputation": "none"}).feasible


def test_more_layouts_are_faster_than_the_step_than_there_are_better_choices(
    choices: LayoutChoicesScenario, search: LayoutSearchScenario
) -> None:
    rows = search.table()
    assert len(rows) == 300
    assert rows[-1]["step_time_s"] < step().result.ledger.total
    assert choices.faster_than_step > len(rows)
    assert choices.fitting == search.looked_at - sum(search.fallen.values())


def test_choices_of_a_step_that_fits_in_no_layout_are_refused() -> None:
    accelerator = vary(step().fleet.node.accelerator, memory_capacity=quantity("43.8 GB"))
    node = vary(step().fleet.node, accelerator=accelerator)
    one = vary(
        step(),
        fleet=vary(step().fleet, node=node, node_count=8),
        replica=vary(step().replica, node=node),
    )
    with pytest.raises(LayoutError, match="no layout of the step fits"):
        LayoutChoicesScenario(step=one, most_sharding=1).best_step_time  # noqa: B018


# The evidence.


def test_layouts_within_the_mean_error_are_counted_as_the_search_lists_them(
    evidence: LayoutEvidenceScenario, search: LayoutSearchScenario
) -> None:
    published = Scenarios.PublishedStepTimes
    assert isinstance(published, PublishedStepTimesScenario)
    share = to_si(published.mean_error)
    assert to_si(evidence.tolerance) == pytest.approx(share)
    best = to_si(search.best_step_time)
    close = [row for row in search.table() if row["step_time_s"] <= best * (1 + share)]
    assert 0 < len(close) < 300
    assert evidence.within["tolerance"] == len(close)
    found = evidence.within_tolerance
    for name, column in (("tensor", "tp_size"), ("data", "dp_size"), ("sharding", "zero_stage")):
        assert found[f"least_{name}"] == min(row[column] for row in close)
        assert found[f"most_{name}"] == max(row[column] for row in close)


def test_the_layout_of_a_published_run_is_tried_on_the_step(
    evidence: LayoutEvidenceScenario,
) -> None:
    given = step().solver_arguments()
    published = {"tp_size": 4, "pp_size": 8, "v_stages": 12, "zero_stage": 1}
    alone = solved(replace(given, **published, microbatch_count=given.batch_size // 32))
    assert to_si(evidence.run_layout_time) == alone.ledger.total
    assert to_si(evidence.run_layout_memory) == pytest.approx(alone.step.memory.total)
    assert evidence.run_layout["data"] == 32
    assert evidence.run_layout["recomputation"] == "none"
    assert evidence.beaten_by >= 0


@pytest.mark.parametrize(
    ("run", "fragments"),
    [
        ("dgxc-gpt3-175b-1", ("run = 'dgxc-gpt3-175b-1'", "dgxc-gpt3-175b-01")),
        ("", ("run = ''",)),
    ],
)
def test_a_run_that_nobody_published_is_refused(
    run: str, fragments: tuple[str, ...], evidence: LayoutEvidenceScenario
) -> None:
    with pytest.raises(MlsysimError) as refused:
        vary(evidence, run=run)
    for fragment in fragments:
        assert fragment in str(refused.value)


def test_a_published_layout_that_the_fleet_cannot_hold_is_refused(
    evidence: LayoutEvidenceScenario,
) -> None:
    # 35 stages of 105 layers, which ninety-six layers do not make in three equal parts.
    other = vary(evidence, run="korthikanti2022-05")
    with pytest.raises(LayoutError, match=r"korthikanti2022-05 is none on the step's fleet"):
        other.run_layout_time  # noqa: B018
