"""Artifacts: one way to write them, nothing volatile in them, and every key can be read."""

from __future__ import annotations

import json
import math
import re
import shutil
import time
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim import canonical, paths, read
from mlsysim.artifacts import artifact_schema
from mlsysim.artifacts.lock import read_lock
from mlsysim.artifacts.staleness import judge
from mlsysim.declarations import documents
from mlsysim.errors import InputError, UnknownName
from mlsysim.units import quantity, unit
from tests.conftest import REPOSITORY, SCENARIOS, Run

STEP = "DenseLLMPretrainingStep"
REPLICA = "DenseLLMReplica"
ALL = sorted(SCENARIOS)
# The efficiency of the step as its file has it; the A100 step has one of its own.
with (REPOSITORY / "scenarios" / f"{STEP}.toml").open("rb") as _file:
    GIVEN = tomllib.load(_file)["local_efficiency"]["value"]
# What the project publishes, whatever authors added.
PUBLISHED = sorted(path.stem for path in (REPOSITORY / "results" / "scenarios").glob("*.json"))

finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(), each, max_size=4),
    max_leaves=12,
)


# Canonical JSON.


@given(json_values)
def test_canonical_json_read_and_written_again_is_the_same_text(content: Any) -> None:
    text = canonical.dumps(content)
    assert canonical.dumps(json.loads(text)) == text
    assert text.endswith("\n")


@given(finite)
def test_a_number_is_kept_to_twelve_digits(value: float) -> None:
    kept = canonical.rounded(value)
    assert kept == pytest.approx(value, rel=5e-12, abs=5e-324)
    assert float(f"{kept:.11e}") == kept
    assert canonical.rounded(kept) == kept


def test_zero_has_no_sign_and_neither_nan_nor_infinity_is_written() -> None:
    assert canonical.dumps([-0.0]) == canonical.dumps([0.0])
    assert "-" not in canonical.dumps({"a": -0.0})
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="JSON"):
            canonical.dumps([value])


@given(st.dictionaries(st.text(min_size=1), st.integers(), min_size=2, max_size=5))
def test_a_digest_does_not_see_the_order_of_keys_and_sees_every_value(
    content: dict[str, int],
) -> None:
    before = canonical.digest(content)
    assert canonical.digest(dict(reversed(content.items()))) == before
    for key, value in content.items():
        assert canonical.digest({**content, key: value + 1}) != before
        assert canonical.digest({**content, key: str(value)}) != before


# What an artifact holds.


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_artifact_is_valid_by_the_published_schema(name: str) -> None:
    results = REPOSITORY / "results"
    published = json.loads((results / "artifact.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(published)
    content = json.loads((results / "scenarios" / f"{name}.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(published).validate(content)


def test_the_schema_refuses_an_artifact_with_a_key_more_or_less(solved: Path) -> None:
    content = json.loads((solved / "results" / "scenarios" / f"{STEP}.json").read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(artifact_schema.schema())
    assert validator.is_valid(content)
    assert not validator.is_valid({**content, "made_on": "today"})
    for key in content:
        assert not validator.is_valid({k: v for k, v in content.items() if k != key}), key


def test_every_scenario_is_published_and_nothing_else_is() -> None:
    scenarios = {path.stem for path in (REPOSITORY / "scenarios").glob("*.toml")}
    assert scenarios == {*PUBLISHED}
    tables = {path.stem for path in (REPOSITORY / "results" / "scenarios").glob("*.csv")}
    assert tables == {name for name in PUBLISHED if "table" in read(name).content}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_artifact_is_certified_and_written_in_the_one_way(name: str) -> None:
    # That its scenario makes it now, `mlsysim verify` says for all, before the tests.
    found = (REPOSITORY / "results" / "scenarios" / f"{name}.json").read_bytes()
    assert canonical.dumps(json.loads(found)).encode() == found
    assert judge(name, read_lock()).reasons == ()


def test_nothing_in_the_results_depends_on_when_where_or_by_whom_they_are_made(
    solved: Path, run: Run, tmp_path: Path
) -> None:
    for path in (solved / "results").rglob("*"):
        text = path.read_text("utf-8") if path.is_file() else ""
        for volatile in (str(solved), str(REPOSITORY), time.strftime("%Y-%m-%d")):
            assert volatile not in text
    elsewhere = tmp_path / "a folder with spaces"
    shutil.copytree(solved, elsewhere, ignore=shutil.ignore_patterns("results", "build"))
    done = run(elsewhere, "solve", "--all", TZ="Pacific/Auckland", LC_ALL="C", HOME=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert texts(elsewhere / "results") == texts(solved / "results")


def texts(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.usefixtures("solved")
def test_every_input_down_to_the_registry_is_in_the_artifact_with_its_source() -> None:
    inputs = read(STEP).inputs
    for reference in (f"Scenarios.{STEP}", f"Scenarios.{REPLICA}", "Fleets.DGX_H100_1024"):
        for field in documents.document(reference).fields:
            own = reference == f"Scenarios.{STEP}"
            assert (field if own else f"{reference}.{field}") in inputs
    for key in ("Hardware.H100_SXM.rates.bf16", "Hardware.DGX_H100.link_bandwidth"):
        assert inputs[key]["unit"]
    assert inputs["Models.GPT3_175B.parameters"] == {
        "value": 175e9,
        "unit": "param",
        "description": "nominal parameter count, as the model is named",
        "source": documents.document("Models.GPT3_175B").fields["parameters"]["source"],
    }
    assert inputs["batch_tokens"]["unit"] == "tok"


@pytest.mark.usefixtures("solved")
def test_the_nominal_and_the_counted_parameters_are_told_apart() -> None:
    replica = read(REPLICA)
    assert replica.value("workload.parameters") == quantity("175e9 param")
    assert replica.entry("counted_parameters")["value"] == 174_604_259_328
    assert "nominal" in replica.entry("counted_parameters")["description"]


@pytest.mark.usefixtures("solved")
def test_every_value_of_an_artifact_is_a_quantity_that_goes_to_json_and_back() -> None:
    for name in ALL:
        artifact = read(name)
        for key in artifact.keys():  # noqa: SIM118  an artifact is no mapping
            entry, value = artifact.entry(key), artifact.value(key)
            if isinstance(value, pint.Quantity):
                assert value.magnitude == entry["value"]
                assert value.units == unit(entry["unit"])
            else:
                assert value == entry["value"]


def test_assumptions_and_exclusions_say_where_they_are_made(solved: Path) -> None:
    artifact = read(STEP)
    where = {each["where"] for each in artifact.assumptions}
    assert "ReferenceTrainingStepScenario" in where
    tagged = [
        found
        for path in paths.PACKAGE.joinpath("solvers").glob("*.py")
        for found in re.findall(r"# ASSUME ([^:\n]+): ", path.read_text("utf-8"))
    ]
    assert len(tagged) > 5
    assert where >= {*tagged}
    assert not [each for each in where if "mlsysim" in each]
    assert {each["where"] for each in artifact.excludes} == {
        "ReferenceTrainingStepScenario",
        "DistributedModel",
    }
    bibliography = (solved / "chapters" / "references.bib").read_text("utf-8")
    for source in artifact.sources:
        assert f"{{{source}," in bibliography


# Reading.


@pytest.mark.usefixtures("solved")
def test_a_value_is_read_by_attributes_down_to_the_registry() -> None:
    step = read(STEP)
    assert step.tensor_parallel == 8
    assert step.state_per_gpu == quantity("43.75 GB")
    assert step.step_time == step.result.step_latency_total
    assert step.fleet.node_count == 128
    assert step.fleet.node.link_bandwidth == quantity("450 GB/s")
    assert step.replica.workload.layers == 96
    assert step.replica.bytes_per_param == quantity("16 B")
    assert step.local_efficiency == GIVEN
    assert step.overlap_comm is True
    assert step.precision == "bf16"


@pytest.mark.usefixtures("solved")
def test_a_rate_is_read_by_attributes_like_any_other_value() -> None:
    rates = read(STEP).fleet.node.accelerator.rates
    assert rates.bf16 == quantity("989.4 TFLOP/s")


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("step_tim", "'step_time'"),
        ("result.forwar", "'result.forward'"),
        ("resul.forward", "'result.forward'"),
        ("fleet.nod_count", "node_count"),
        ("replica.workload.layer", "layers"),
    ],
)
@pytest.mark.usefixtures("solved")
def test_a_key_that_does_not_exist_is_refused_with_the_nearest(key: str, nearest: str) -> None:
    step = read(STEP)
    for way in (step.value, step.entry, step.resolve):
        with pytest.raises(UnknownName) as refused:
            way(key)
        assert nearest in str(refused.value)
        assert STEP in str(refused.value)


@pytest.mark.usefixtures("solved")
def test_an_attribute_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'step_time'"):
        read(STEP).step_tim  # noqa: B018
    with pytest.raises(UnknownName, match=r"did you mean 'result\.forward'"):
        read(STEP).result.forwar  # noqa: B018
    assert not hasattr(read(STEP), "nonsense")


@pytest.mark.usefixtures("root")
def test_reading_says_whether_a_name_is_wrong_or_its_artifact_is_not_there() -> None:
    with pytest.raises(UnknownName, match="did you mean 'DenseLLMReplica'"):
        read("DenseLLMReplika")
    with pytest.raises(InputError, match="snakemake artifacts"):
        read(REPLICA)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'{"schema": 1, "name": "Another"}',
        b'{"schema": 1, "name": "DenseLLMReplica"}',
        b'{"schema": 1, "name": "DenseLLMReplica", "inputs": [], "outputs": []}',
    ],
)
@pytest.mark.usefixtures("solved")
def test_an_unreadable_artifact_is_refused_by_path(content: bytes) -> None:
    paths.artifact(REPLICA).write_bytes(content)
    with pytest.raises(InputError, match=rf"scenarios/{REPLICA}\.json.*snakemake artifacts"):
        read(REPLICA)
