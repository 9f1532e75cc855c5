"""The JSON Schema with which editors check scenario files."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mlsysim.artifacts import scenario_schema, staleness
from mlsysim.building.solving import solve
from mlsysim.engine.scenario_types import KINDS
from tests.conftest import REPOSITORY

PUBLISHED = REPOSITORY / "results" / "scenario.schema.json"
SCENARIOS = sorted((REPOSITORY / "scenarios").glob("*.toml"))
BAD = REPOSITORY / "tests" / "bad" / "scenarios"


@pytest.fixture(scope="module")
def check() -> jsonschema.Draft7Validator:
    content = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(content)
    return jsonschema.Draft7Validator(content)


def read(name: str = "DenseLLMPretrainingStep") -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / f"scenarios/{name}.toml").read_text(encoding="utf-8"))


def test_the_published_schema_is_that_of_the_code() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == scenario_schema.text()
    assert not scenario_schema.is_stale()


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_is_valid(path: Path, check: jsonschema.Draft7Validator) -> None:
    check.validate(tomllib.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("key", "part", "value"),
    [
        ("kind", "", "ReferenceTrainingStep"),
        ("title", "", None),
        ("title", "", " "),
        ("kind", "", None),
        ("efficiency", "", {"value": 0.5, "source": "assumption: one"}),
        ("workload", "", {"value": "Models.GPT3_175B", "source": "assumption: another kind's"}),
        ("fleet", "", None),
        ("fleet", "", "Fleets.DGX_H100_1024"),
        ("fleet", "value", "DGX_H100_1024"),
        ("fleet", "value", "Hardware.DGX_H100"),
        ("fleet", "source", None),
        ("fleet", "source", "assumption: "),
        ("fleet", "source", "brown2020"),
        ("fleet", "note", "x"),
        ("batch_tokens", "value", 0),
        ("batch_tokens", "value", "3.2 GB"),
        ("batch_divisor", "value", 512.5),
        ("batch_divisor", "value", 0),
        ("local_efficiency", "value", 1.1),
        ("local_efficiency", "value", True),
        ("overlap_comm", "value", "true"),
    ],
)
def test_a_mistake_is_seen_while_it_is_typed(
    key: str, part: str, value: Any, check: jsonschema.Draft7Validator
) -> None:
    content = read()
    place, name = (content[key], part) if part else (content, key)
    place.pop(name, None)
    if value is not None:
        place[name] = value
    assert list(check.iter_errors(content)), (key, part, value)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("16 B", True),
        ("16B", True),
        ("0.5 KiB", True),
        ("128 b", True),
        ("16", False),
        ("B", False),
        ("16 s", False),
        ("-16 B", False),
        ("1,600 B", False),
        ("16 kB/s", False),
    ],
)
def test_a_quantity_needs_a_number_and_a_unit_of_its_dimension(
    text: str, valid: bool, check: jsonschema.Draft7Validator
) -> None:
    content = read("DenseLLMReplica")
    content["bytes_per_param"]["value"] = text
    assert check.is_valid(content) == valid


@pytest.mark.parametrize(
    "name",
    [
        *("kind_missing", "kind_unknown", "key_missing", "count_zero", "count_negative"),
        *("efficiency_above_one", "efficiency_as_text", "efficiency_negative", "efficiency_zero"),
        *("bool_for_float", "bool_for_int", "int_for_bool", "number_for_quantity"),
        *("depths_in_a_text", "fleet_size_in_words", "fleet_sizes_none", "link_rates_none"),
        *("interleavings_twice", "link_rate_twice", "list_for_a_count", "list_of_lists"),
        *("number_for_text", "assumption_blank", "assumption_empty", "base_not_a_scenario"),
    ],
)
def test_files_that_solving_refuses_field_by_field_are_seen_as_well(
    name: str, check: jsonschema.Draft7Validator
) -> None:
    content = tomllib.loads((BAD / f"{name}.toml").read_text(encoding="utf-8"))
    assert not check.is_valid(content)


def test_every_field_says_what_it_is_and_in_which_unit() -> None:
    for kind in KINDS:
        for name, leaf in scenario_schema.fields(KINDS[kind]):
            assert leaf["description"], (kind, name)
    replica = dict(scenario_schema.fields(KINDS["SelfContainedReplicaScenario"]))
    assert '"1 B", more than 0 B' in replica["bytes_per_param"]["description"]
    assert "one of none, selective, full" in replica["activation_recomputation"]["description"]


def test_a_damaged_schema_is_noticed_and_made_again(solved: Path) -> None:
    path = solved / "results/scenario.schema.json"
    made = path.read_bytes()
    assert staleness.stale_schemas() == []
    path.write_bytes(made.replace(b'"minimum": 1', b'"minimum": 2', 1))
    assert staleness.stale_schemas() == ["results/scenario.schema.json"]
    solve(["DenseLLMReplica"])
    assert path.read_bytes() == made


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (
            "engine/scenario_definitions/training.py",
            "sequences of a microbatch",
            "sequences at a time",
        ),
        ("declarations/_value_kinds.py", '"type": "boolean"', '"type": "string"'),
        ("declarations/patterns.py", "(1/)?", "(2/)?"),
    ],
)
def test_a_changed_declaration_makes_the_schema_stale(
    module: str, old: str, new: str, solved: Path, registry: Path
) -> None:
    assert (solved / "results").is_dir()
    assert not scenario_schema.is_stale()
    path = registry.parents[1] / module
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    assert scenario_schema.is_stale()


def test_editors_find_the_schema() -> None:
    rules = tomllib.loads((REPOSITORY / ".taplo.toml").read_text(encoding="utf-8"))["rule"]
    assert [(rule["include"], REPOSITORY / rule["schema"]["path"]) for rule in rules] == [
        (["scenarios/*.toml"], PUBLISHED)
    ]
