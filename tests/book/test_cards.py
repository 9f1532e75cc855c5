"""Cards: what they say of a number, without a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mlsysim.artifacts.reading import Artifact, read
from mlsysim.book.site._cards import Place, Work, basis, card, identity, source, terms

WORKS = {
    "brown2020": Work("Brown et al. 2020", 'The "few-shot" paper', "bibliography.html#id1"),
    "unlisted": Work("Someone 2021", "A title"),
    "Scenarios.Fit": Work("Fit", "The fit", "artifacts/Fit.json"),
}
BROWN = '<a href="bibliography.html#id1" title="The &#34;few-shot&#34; paper">Brown et al. 2020</a>'


@pytest.fixture
def step(solved: Path) -> Artifact:
    assert solved.is_dir()
    return read("DenseLLMPretrainingStep")


def text(html: str) -> str:
    return re.sub(r"<[^>]*>", "", html)


@pytest.mark.parametrize(
    ("said", "html"),
    [
        ("brown2020, Table 2.1", f"{BROWN}, Table 2.1"),
        ("brown2020, p. 3; unlisted, a < b", f"{BROWN}, p. 3; Someone 2021, a &lt; b"),
        ("nobody1999, p. 1", "nobody1999, p. 1"),
        ("assumption: a round, number; really", "Assumption: a round, number; really"),
        ("Scenarios.Fit, e", '<a href="artifacts/Fit.json" title="The fit">Fit</a>, e'),
    ],
)
def test_a_source_names_its_works_by_author_and_links_them(said: str, html: str) -> None:
    assert source(said, WORKS) == html


def test_the_names_in_an_equation_stand_for_keys_and_its_words_for_nothing(step: Artifact) -> None:
    assert terms(step, "state_per_gpu") == {
        "replica.workload.parameters": "Models.GPT3_175B.parameters",
        "replica.bytes_per_param": "Scenarios.DenseLLMReplica.bytes_per_param",
    }
    assert terms(step, "result.bubble_fraction") == {
        "pipeline_bubble_latency": "result.pipeline_bubble_latency",
        "step_latency_total": "result.step_latency_total",
    }
    assert terms(step, "result.backward") == {"forward": "result.forward"}
    assert terms(step, "batch_tokens") == {}  # an input has no equation


def test_a_name_may_stand_for_a_few_results_together_but_not_for_many(step: Artifact) -> None:
    def part(value: float) -> dict[str, object]:
        return {"value": value, "unit": "s", "description": "A part.", "equation": ""}

    def with_parts(count: int) -> Artifact:
        total = {**part(9.0), "equation": "sum of hidden"}
        parts = {f"hidden.p{number}": part(1.0) for number in range(count)}
        return Artifact({**step.content, "outputs": {"total": total, **parts}})

    assert terms(with_parts(2), "total") == {"hidden.p0": "hidden.p0", "hidden.p1": "hidden.p1"}
    assert terms(with_parts(40), "total") == {}


def test_an_equation_that_only_names_a_result_is_followed(step: Artifact) -> None:
    made = text(card(step, "step_time", [], {}))
    assert "= result.step_latency_total= forward + backward + " in made
    assert f"{step.outputs['result.forward']['value']}\N{NO-BREAK SPACE}s" in made


def test_the_card_of_a_result_leaves_room_for_what_it_rests_on(step: Artifact) -> None:
    made = card(step, "step_time", [], WORKS, page="reference/scenarios/X.html")
    value = step.outputs["step_time"]["value"]
    assert f'<p class="value">{value}\N{NO-BREAK SPACE}s</p>' in made
    assert '<div class="basis"></div>' in made
    assert '<a href="reference/scenarios/X.html">' in made
    assert '<a href="artifacts/DenseLLMPretrainingStep.json">' in made
    assert "mlsysim show DenseLLMPretrainingStep.step_time" in text(made)
    assert "reference/" not in card(step, "step_time", [], WORKS)


def test_the_card_of_an_input_has_its_source_instead(step: Artifact) -> None:
    made = card(step, "replica.workload.layers", [], WORKS)
    assert f"{BROWN}, Table 2.1" in made
    assert "Transformer layers." in made
    assert "basis" not in made


def test_the_basis_of_a_scenario_holds_every_input_and_every_assumption(step: Artifact) -> None:
    made = basis(step, WORKS)
    assert made.count("<dt>") == len(step.inputs)
    said = text(made)
    for entry in step.inputs.values():
        assert entry["source"].partition(",")[2].split(";")[0].replace("<", "&lt;") in said
    for each in (*step.assumptions, *step.excludes):
        assert each["text"][1:].replace("<", "&lt;") in said
    assert f"{len(step.assumptions)} assumptions" in said


def test_places_stand_page_by_page(step: Artifact) -> None:
    places = [
        Place("1. One", "one.html#a", "7.7 s"),
        Place("1. One", "one.html#b", "7,721 ms"),
        Place("2. A < B", "two.html", "8 s"),
    ]
    made = card(step, "step_time", places, {})
    assert '<li>1. One: <a href="one.html#a">7.7 s</a>, <a href="one.html#b">7,721 ms</a></li>' in (
        made
    )
    assert '<li>2. A &lt; B: <a href="two.html">8 s</a></li>' in made


def test_an_input_that_scenarios_share_is_one_value_and_a_result_is_its_own(step: Artifact) -> None:
    replica = read("DenseLLMReplica")
    assert identity(step, "replica.workload.layers") == identity(replica, "workload.layers")
    assert identity(step, "tensor_parallel") != identity(replica, "tensor_parallel")


def test_an_infeasible_scenario_says_so_on_its_cards(step: Artifact) -> None:
    content = {**step.content, "feasibility": {"feasible": False, "reason": "needs 9 GB more"}}
    assert "Infeasible: needs 9 GB more." in card(Artifact(content), "step_time", [], {})
