"""From the peak to the step: the parts add up to it, and are what they are said to be."""

from __future__ import annotations

import math

import pytest

from mlsysim import Scenarios
from mlsysim.engine.scenario_types import PeakUseScenario
from mlsysim.units import to_si
from tests.cases import step
from tests.conftest import vary

STEPS = {
    "reference": step,
    "a100": lambda: Scenarios.DenseLLMPretrainingStepA100,
    "recomputed": lambda: vary(
        step(), replica=vary(step().replica, activation_recomputation="full")
    ),
    "interleaved": lambda: vary(step(), replica=vary(step().replica, interleaving=3)),
}


@pytest.mark.parametrize("name", STEPS)
def test_time_at_peak_and_losses_are_the_step(name: str) -> None:
    made = PeakUseScenario(step=STEPS[name]())
    whole = math.fsum((to_si(made.time_at_peak), *map(to_si, made.lost.values())))
    assert whole == pytest.approx(to_si(made.step.step_time), rel=1e-12)
    assert math.fsum(map(to_si, made.spent.values())) == pytest.approx(
        to_si(made.step.step_time), rel=1e-12
    )


@pytest.mark.parametrize("name", STEPS)
def test_time_at_peak_is_the_utilization_of_the_step(name: str) -> None:
    made = PeakUseScenario(step=STEPS[name]())
    used = to_si(made.time_at_peak) / to_si(made.step.step_time)
    assert 100 * used == pytest.approx(made.step.result.model_flops_utilization.magnitude)


def test_the_work_is_that_of_the_model() -> None:
    made = PeakUseScenario(step=step())
    assert math.fsum(map(to_si, made.work.values())) == pytest.approx(
        to_si(step().result.model_flops), rel=1e-12
    )
    tokens, width = 2048, 12288
    assert to_si(made.layer_work) == 24 * tokens * width**2 / 8
    assert to_si(made.work["attention"]) == 3 * 96 * 4 * tokens**2 * width * 1536


def test_only_the_head_makes_the_stages_of_the_reference_step_uneven() -> None:
    made, ledgers = PeakUseScenario(step=step()), step().result.stage_ledger
    products = {
        kind: to_si(ledgers[f"{kind}.forward"]) + to_si(ledgers[f"{kind}.backward"])
        for kind in ("first", "last")
    }
    mean = (7 * products["first"] + products["last"]) / 8
    assert to_si(made.lost["uneven"]) == pytest.approx(products["last"] - mean, rel=1e-9)
