"""Simulated schedules: what a schedule must be, and the closed form of the bubble beside it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim.declarations.lists import Counts
from mlsysim.engine.scenario_types import (
    PipelineBubbleScenario,
    PipelineScheduleScenario,
    StageSplitScenario,
)
from mlsysim.errors import MlsysimError
from mlsysim.solvers.distributed import solved
from mlsysim.solvers.memory import microbatches_in_flight
from mlsysim.solvers.schedule import Pass, apart, in_flight, simulated, slots_of
from mlsysim.units import to_si
from tests.cases import Case, any_case, step
from tests.conftest import vary


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, int, int]:
    """Stages, parts of a stage, and microbatches that such a schedule can have."""
    stages = draw(st.integers(1, 6))
    parts = draw(st.integers(1, 4)) if stages > 1 else 1
    groups = draw(st.integers(1, 4))
    return stages, parts, groups * stages if parts > 1 else draw(st.integers(1, 12))


seconds = st.floats(0.01, 10)


@st.composite
def timed_shapes(draw: st.DrawFn) -> tuple[list[list[float]], list[list[float]], int]:
    """Seconds of each part of each stage, forward and backward, and microbatches."""
    stages, parts, microbatches = draw(shapes())
    part = st.lists(seconds, min_size=parts, max_size=parts)
    times = st.lists(part, min_size=stages, max_size=stages)
    return draw(times), draw(times), microbatches


def makespan(passes: list[Pass]) -> float:
    return max(each.end for each in passes)


# What a schedule must be.


@given(shapes(), seconds, seconds)
def test_every_stage_does_every_pass_once_and_one_at_a_time(
    shape: tuple[int, int, int], forward: float, backward: float
) -> None:
    stages, parts, microbatches = shape
    passes = simulated([[forward] * parts] * stages, [[backward] * parts] * stages, microbatches)
    for stage in range(stages):
        own = [each for each in passes if each.stage == stage]
        found = [(each.part, each.microbatch, each.is_backward) for each in own]
        expected = itertools.product(range(parts), range(microbatches), (False, True))
        assert sorted(found) == sorted(expected)
        for before, after in itertools.pairwise(own):
            assert after.start >= before.end
        assert all(
            each.end - each.start
            == pytest.approx(backward if each.is_backward else forward, rel=1e-9)
            for each in own
        )


@given(timed_shapes())
def test_no_pass_begins_before_what_it_needs_is_there(
    shape: tuple[list[list[float]], list[list[float]], int],
) -> None:
    forward, backward, microbatches = shape
    stages, parts = len(forward), len(forward[0])
    passes = simulated(forward, backward, microbatches)
    ends = {(e.stage, e.part, e.microbatch, e.is_backward): e.end for e in passes}
    for each in passes:
        # All parts in the order of the model: part 0 of every stage, then part 1 of every stage.
        place = each.part * stages + each.stage
        if each.is_backward:
            last = place == stages * parts - 1
            needed = place if last else place + 1
            before = ends[needed % stages, needed // stages, each.microbatch, not last]
        elif place:
            before = ends[(place - 1) % stages, (place - 1) // stages, each.microbatch, False]
        else:
            before = 0.0
        assert each.start >= before
        own = [e.end for e in passes if e.stage == each.stage and e.end <= each.start]
        # Nor does it wait for anything else.
        assert each.start == max([before, *own])


# The closed form.


@given(shapes(), seconds, seconds)
def test_equal_stages_take_the_slots_of_the_microbatches_and_the_bubble(
    shape: tuple[int, int, int], forward: float, backward: float
) -> None:
    """m slots and (p - 1) / v: Narayanan et al. 2021, section 2.2."""
    stages, parts, microbatches = shape
    slot = forward + backward
    passes = simulated(
        [[forward / parts] * parts] * stages, [[backward / parts] * parts] * stages, microbatches
    )
    expected = (microbatches + (stages - 1) / parts) * slot
    assert makespan(passes) == pytest.approx(expected, rel=1e-9)


@given(
    st.lists(seconds, min_size=1, max_size=6), st.integers(1, 12), st.floats(0.2, 5), st.booleans()
)
def test_the_closed_form_is_exact_if_the_last_stage_is_the_slowest_and_else_an_upper_bound(
    stages: list[float], microbatches: int, ratio: float, slowest_last: bool
) -> None:
    if slowest_last:
        stages = [*stages, max(stages)]
    passes = simulated(
        [[each] for each in stages], [[ratio * each] for each in stages], microbatches
    )
    slots = [(1 + ratio) * each for each in stages]
    slowest = max(slots)
    closed = microbatches * slowest + math.fsum(slots) - slowest
    assert makespan(passes) <= closed * (1 + 1e-9)
    assert makespan(passes) >= max(microbatches * slowest, math.fsum(slots)) * (1 - 1e-9)
    if slowest_last:
        assert makespan(passes) == pytest.approx(closed, rel=1e-9)


@given(any_case)
def test_the_bubble_of_any_solved_step_is_that_of_its_simulated_schedule(case: Case) -> None:
    """The ledger's bubble, where the last stage is the slowest; elsewhere it is no shorter."""
    result = case.solve()
    slots, count = slots_of(result.inputs), result.inputs.microbatches
    assert slots.bubble == pytest.approx(result.ledger.bubble, rel=1e-9, abs=1e-12)
    found = apart(makespan(slots.passes(count)), slots.closed_form(count))
    last = math.fsum(slots.forward[-1]) + math.fsum(slots.backward[-1])
    if last >= slots.slowest * (1 - 1e-12):
        assert found == 0
    else:
        assert -0.5 < found <= 0


def test_the_work_of_the_ledger_is_that_of_the_slowest_stage() -> None:
    """What the ledger adds up beside bubble, replicas and optimizer are m slots."""
    ledger = step().result.ledger
    slots = slots_of(step().result.inputs)
    busy = ledger.total - ledger.bubble - ledger.data_parallel - ledger.optimizer
    assert busy == pytest.approx(96 * slots.slowest, rel=1e-9)


# Microbatches in flight.


@given(shapes())
def test_a_stage_keeps_as_many_microbatches_as_the_model_has_it(
    shape: tuple[int, int, int],
) -> None:
    stages, parts, microbatches = shape
    passes = simulated([[1.0] * parts] * stages, [[2.0] * parts] * stages, microbatches)
    for stage in range(stages):
        kept = in_flight(passes, stage) / parts
        # The model takes a microbatch off for each stage; with parts it is two v-ths of one.
        ahead = stages + (stages - 1) / parts - 2 * stage / parts if parts > 1 else stages - stage
        assert kept == pytest.approx(min(ahead, microbatches))
        if stage == 0 or parts <= 2:
            assert kept == microbatches_in_flight(stage, stages, microbatches, parts)


def test_a_schedule_that_comes_to_a_stop_is_refused() -> None:
    with pytest.raises(MlsysimError, match="4 stages, 3 parts each, and 5 microbatches"):
        simulated([[1.0] * 3] * 4, [[2.0] * 3] * 4, 5)


# The kinds.


def drawn(**changes: Any) -> PipelineScheduleScenario:
    given_: dict[str, Any] = {"stages": 4, "microbatches": 8, "interleaving": 1, "has_head": False}
    return PipelineScheduleScenario(step=step(), **{**given_, **changes})


def test_the_drawn_schedules_lose_what_the_formula_says() -> None:
    plain, interleaved = drawn(), drawn(interleaving=2)
    assert to_si(plain.bubble_over_work) == pytest.approx(3 / 8)
    assert to_si(interleaved.bubble_over_work) == pytest.approx(3 / 16)
    assert to_si(plain.bubble_share) == pytest.approx(3 / 11)
    assert to_si(plain.difference) == to_si(interleaved.difference) == 0
    assert plain.makespan.to("s").magnitude == max(row["end_s"] for row in plain.table())
    assert to_si(plain.closed_form) == pytest.approx(to_si(plain.makespan))
    assert plain.in_flight == {"stage_1": 4, "stage_2": 3, "stage_3": 2, "stage_4": 1}
    assert interleaved.in_flight["stage_1"] == 5.5
    assert (plain.messages, interleaved.messages) == (6, 14)
    assert len(plain.table()) == 4 * 8 * 2
    assert len(interleaved.table()) == 2 * len(plain.table())


def test_a_pass_takes_as_long_as_in_the_step() -> None:
    """Eight stages are those of the step, whose ledger has 96 forward and backward passes."""
    own = drawn(stages=8, microbatches=96)
    slot = to_si(own.forward_slot) + to_si(own.backward_slot)
    first = step().result.stage_ledger
    parts = [name for name in first if name.startswith("first.")]
    waits = ("bubble", "data_parallel", "optimizer")
    busy = math.fsum(to_si(first[name]) for name in parts if name.split(".")[1] not in waits)
    assert busy == pytest.approx(96 * slot, rel=1e-9)
    assert 1.5 < to_si(own.backward_slot) / to_si(own.forward_slot) < 2.5


def test_the_head_makes_the_last_stage_slower_and_leaves_the_bubble() -> None:
    plain, uneven = drawn(), drawn(has_head=True)
    assert to_si(uneven.makespan) > to_si(plain.makespan)
    assert to_si(uneven.bubble) == pytest.approx(to_si(plain.bubble), rel=1e-9)
    solved = drawn(stages=8, microbatches=96, has_head=True)
    assert to_si(solved.bubble) == pytest.approx(step().result.ledger.bubble, rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        ({"stages": 0}, ("stages = 0", "at least 1")),
        ({"stages": 97}, ("pp_size 97", "96 layers")),
        ({"microbatches": 0}, ("microbatches = 0", "at least 1")),
        ({"interleaving": 5}, ("pp_size 4 x v_stages 5", "96 / 20")),
        ({"interleaving": 2, "microbatches": 6}, ("groups of pp_size", "6 / 4")),
        ({"interleaving": 2, "stages": 1}, ("no pipeline to interleave",)),
        ({"has_head": 1}, ("has_head = 1", "true or false")),
    ],
    ids=str,
)
def test_a_schedule_that_cannot_be_is_refused(
    changes: dict[str, Any], fragments: tuple[str, ...]
) -> None:
    with pytest.raises(MlsysimError) as refused:
        drawn(**changes)
    for fragment in fragments:
        assert fragment in str(refused.value)


def bubbles(depths: Counts, parts: Any = (1,)) -> PipelineBubbleScenario:
    return PipelineBubbleScenario(step=step(), depths=depths, interleavings=parts)


def test_a_row_of_the_bubble_is_that_step_solved_alone() -> None:
    case = bubbles((4, 8), (1, 2))
    assert case.rows == 4
    assert to_si(case.step_time["p8_v1"]) == step().result.ledger.total
    changes = {"pp_size": 4, "v_stages": 2, "microbatch_count": 48}
    alone = solved(replace(step().solver_arguments(), **changes))
    assert to_si(case.bubble["p4_v2"]) == alone.ledger.bubble
    assert to_si(case.point_to_point["p4_v2"]) == alone.ledger.point_to_point
    assert case.microbatches["p4_v2"] == 48
    assert to_si(case.most_apart) == 0
    assert to_si(case.limit) == pytest.approx(1 / 12)
    for row in case.table():
        assert row["simulated_s"] == pytest.approx(row["bubble_s"], rel=1e-6)


def test_layouts_that_cannot_exist_are_left_out_and_a_table_of_none_is_refused() -> None:
    assert [*bubbles((3, 8, 16), (1, 12)).bubble] == ["p8_v1", "p8_v12", "p16_v1"]
    with pytest.raises(MlsysimError, match="no depth and interleaving"):
        bubbles((3, 5))
    with pytest.raises(MlsysimError, match="interleavings: 'two'"):
        bubbles((8,), ("two",))


def test_stages_hold_all_layers_and_the_slowest_decides() -> None:
    case = StageSplitScenario(step=step(), depths=(1, 5, 7, 8, 14, 48))
    for row in case.table():
        slots = slots_of(
            solved(
                replace(
                    step().solver_arguments(),
                    fleet=vary(step().fleet, node_count=row["depth"]),
                    pp_size=row["depth"],
                    batch_size=96,
                    stage_split=row["split"],
                )
            ).inputs
        )
        assert (len(slots.layers), sum(slots.layers)) == (row["depth"], 96)
        assert row["unevenness"] >= 0
        assert row["apart"] <= 0
        # What stages wait is bubble and unevenness together.
        busy = 96 * row["mean_s"] / (96 * row["slowest_s"] + slots.bubble)
        assert row["waiting"] == pytest.approx(1 - busy, abs=1e-9)
    rows = {(row["depth"], row["split"]): row for row in case.table()}
    assert rows[1, "layers"]["waiting"] == pytest.approx(0, abs=1e-12)
    assert [rows[8, "slots"][each] for each in ("first", "most", "last")] == [11, 13, 11]
    assert [rows[8, "layers"][each] for each in ("first", "most", "last")] == [12, 12, 12]
    assert 0 < case.head_in_layers < 1


def test_a_split_that_leaves_a_stage_without_a_layer_is_refused() -> None:
    with pytest.raises(MlsysimError, match="96 stages"):
        StageSplitScenario(step=step(), depths=(96,))
