"""Artifacts: one way to write them, nothing volatile in them, and stale by content alone."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import time
import tomllib
from collections.abc import Callable
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
from mlsysim.artifacts.staleness import housekeeping, judge, stale
from mlsysim.building import plan
from mlsysim.building.solving import solve, verify
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
        path
        for path in paths.PACKAGE.joinpath("solvers").glob("*.py")
        if "# ASSUME " in path.read_text("utf-8")
    ]
    assert where >= {f"mlsysim.solvers.{path.stem}" for path in tagged}
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


# Staleness.


def reasons(name: str = STEP) -> str:
    return "; ".join(judge(name, read_lock()).reasons)


def test_what_is_solved_is_fresh_whatever_its_time_stamps(solved: Path) -> None:
    assert stale() == []
    for stamp in (1, 1e9, 4e9):
        for path in solved.rglob("*.*"):
            os.utime(path, (stamp, stamp))
        assert stale() == []


def swap(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.unlink(), "artifact missing"),
        (lambda path: path.write_bytes(b""), "artifact empty"),
        (lambda path: path.write_bytes(path.read_bytes()[:1000]), "artifact truncated"),
        (lambda path: path.write_bytes(b"\xff"), "artifact truncated or unreadable"),
        (lambda path: swap(path, '"value": 16', '"value": 17'), "artifact edited by hand"),
        (lambda path: path.write_bytes(path.read_bytes() + b"\n"), "artifact edited by hand"),
        (
            lambda path: path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n")),
            "artifact edited by hand",
        ),
    ],
    ids=["deleted", "emptied", "truncated", "binary", "edited", "line added", "line ends"],
)
@pytest.mark.usefixtures("solved")
def test_a_damaged_artifact_is_stale_by_its_damage_and_made_again(
    damage: Callable[[Path], object], reason: str
) -> None:
    path = paths.artifact(STEP)
    before = path.read_bytes()
    damage(path)
    assert reason in reasons()
    assert stale() == [STEP]
    assert [done.verdict for done in verify([STEP])] != ["identical"]
    solve([STEP])
    assert path.read_bytes() == before
    assert stale() == []


def test_a_changed_input_is_named_with_both_values_and_stales_what_uses_it_alone(
    solved: Path,
) -> None:
    swap(solved / "scenarios" / f"{STEP}.toml", f"value = {GIVEN}", "value = 0.75")
    assert reasons() == f"inputs changed: local_efficiency: {GIVEN} -> 0.75"
    assert stale() == [STEP]
    swap(solved / "scenarios" / f"{STEP}.toml", "value = 0.75", f"value = {GIVEN}")
    assert stale() == []
    swap(solved / "scenarios" / f"{STEP}.toml", "value = 512", "value = 256")
    assert reasons() == "inputs changed: batch_divisor: 512 seq -> 256 seq"
    assert stale() == [STEP, f"{STEP}A100"]  # which has it from its base


@pytest.mark.usefixtures("solved")
def test_a_changed_registry_value_is_named_with_both_values(registry: Path) -> None:
    swap(registry / "hardware" / "H100_SXM.toml", "3.35 TB/s", "3.36 TB/s")
    expected = "Hardware.H100_SXM.memory_bandwidth: 3.35 TB/s -> 3.36 TB/s"
    assert expected in reasons()
    assert stale() == [STEP, REPLICA]
    swap(registry / "hardware" / "B200.toml", "7.67 TB/s", "7.7 TB/s")
    assert stale() == [STEP, REPLICA]


def test_a_changed_source_is_named_and_not_shown_as_two_equal_values(solved: Path) -> None:
    swap(solved / "scenarios" / f"{STEP}.toml", "brown2020, Table 2.1:", "brown2020, Table 2.2:")
    assert "inputs changed" in reasons()
    assert "source" in reasons()
    assert "3200000.0 tok -> 3200000.0 tok" not in reasons()


def test_a_changed_title_is_named(solved: Path) -> None:
    swap(solved / "scenarios" / f"{STEP}.toml", 'title = "One optimizer step', 'title = "One step')
    assert "title" in reasons()


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: "# a remark\n\n" + text.replace(" = ", "   =  ") + "\n\n",
        lambda text: "\n\n".join(
            [text.partition("\n[")[0], *sorted(re.split(r"\n(?=\[)", text)[1:], reverse=True)]
        ),
        lambda text: re.sub(r"value = (.*)\nsource = (.*)", r"source = \2\nvalue = \1", text),
    ],
    ids=["comments and layout", "tables in another order", "keys in another order"],
)
def test_what_does_not_change_the_content_of_a_scenario_file_stales_nothing(
    edit: Callable[[str], str], solved: Path
) -> None:
    for name in ALL:
        path = solved / "scenarios" / f"{name}.toml"
        edited = edit(path.read_text("utf-8"))
        assert edited != path.read_text("utf-8")
        path.write_text(edited, "utf-8")
    assert stale() == []
    assert [done.verdict for done in verify(ALL)] == ["identical"] * len(ALL)


def test_changed_code_is_named_by_module(solved: Path, package: Path, run: Run) -> None:
    swap(package / "solvers" / "memory.py", "inner = 4.0 * hidden", "inner = 9.0 * hidden")
    found = json.loads(run(solved, "status", "--json", package=package).stdout)
    reasons_of = {each["what"]: each["reasons"] for each in found}
    for name in ALL:
        (reason,) = reasons_of[f"results/scenarios/{name}.json"]
        assert reason == "code changed: mlsysim.solvers.memory"


def test_a_broken_scenario_is_stale_with_what_is_wrong(solved: Path) -> None:
    swap(solved / "scenarios" / f"{STEP}.toml", 'value = "bf16"', 'value = "bf15"')
    assert stale() == [STEP, f"{STEP}A100"]
    swap(solved / "scenarios" / f"{STEP}.toml", "[precision]", "[precision")
    assert "cannot be solved" in reasons()
    assert "not valid TOML" in reasons()


# The lock.


def test_two_branches_that_solve_different_scenarios_merge_by_union_and_stay_right(
    solved: Path,
) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(
            ["git", *identity, *arguments], cwd=solved, check=True, capture_output=True, timeout=30
        )

    def commit_with(name: str, old: str, new: str) -> None:
        swap(solved / "scenarios" / f"{name}.toml", old, new)
        solve(stale())
        git("add", "-A")
        git("commit", "-m", name)

    shutil.copy(REPOSITORY / ".gitattributes", solved)
    (solved / ".gitignore").write_text("/build/\n", "utf-8")
    git("init", "-b", "main")
    git("add", "-A")
    git("commit", "-m", "start")
    git("checkout", "-b", "other")
    commit_with(f"{STEP}A100", "The reference step on", "The same step on")
    git("checkout", "main")
    commit_with(STEP, "One optimizer step of", "One update of")
    git("merge", "other", "-m", "both")
    # The A100 step refers to neither title, so both branches are right together.
    assert "<<<<" not in paths.lock().read_text("utf-8")
    assert stale() == []
    git("checkout", "other")
    assert stale() == []
    solve(ALL)
    again = paths.lock().read_text("utf-8")
    solve(ALL)
    assert paths.lock().read_text("utf-8") == again


def test_a_lock_with_merge_markers_and_lines_twice_certifies_nothing_wrong(solved: Path) -> None:
    right = paths.lock().read_text("utf-8").splitlines()
    swap(solved / "scenarios" / f"{STEP}.toml", "value = 512", "value = 256")
    solve([STEP])
    changed = paths.lock().read_text("utf-8").splitlines()
    both = ["<<<<<<< ours", *right, "=======", *changed, *changed, ">>>>>>> theirs", "", "scenario"]
    paths.lock().write_text("\n".join([*both, "code", "scenario x y", "\u2028"]), "utf-8")
    assert stale() == [f"{STEP}A100"]  # it has 512 from its base, and was not solved again
    swap(paths.artifact(STEP), '"value": 256', '"value": 257')
    assert "merged from two branches, which no build has made" in reasons()
    solve(ALL)
    assert stale() == []
    kept = paths.lock().read_text("utf-8").splitlines()
    assert [line.split()[1] for line in kept if line.startswith("scenario ")] == ALL
    assert len(kept) == len(set(kept))


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"scenario DenseLLMReplica\n", None])
@pytest.mark.usefixtures("solved")
def test_without_a_lock_that_can_be_read_everything_is_stale_and_made_again(
    content: bytes | None,
) -> None:
    before = paths.lock().read_bytes()
    if content is None:
        paths.lock().unlink()
    else:
        paths.lock().write_bytes(content)
    assert stale() == ALL
    assert "not in results/artifacts.lock" in reasons()
    solve(ALL)
    assert paths.lock().read_bytes() == before


DAMAGE: dict[str, Callable[[list[str]], list[str]]] = {
    "a scenario twice": lambda lines: [*lines, lines[-1]],
    "a module twice": lambda lines: [*lines, lines[9]],
    "a module cut": lambda lines: [*lines[:9], lines[9][:-6], *lines[10:]],
    "its schema lost": lambda lines: lines[1:],
    "a scenario cut": lambda lines: [*lines[:-1], lines[-1][:-30]],
    "a scenario's digest changed": lambda lines: [*lines[:-1], lines[-1][:-4] + "0000"],
    "another order": lambda lines: lines[::-1],
    "other blanks": lambda lines: [line.replace(" ", "  ") for line in lines],
    "a remark": lambda lines: ["# of ours", *lines],
    "a line of nothing": lambda lines: ["code 4f53cda18c2baa0c0354bb5f", *lines],
    "a scenario that is gone": lambda lines: [*lines, lines[-1].replace("A100", "A99")],
    "nothing at its end": lambda lines: [*lines[:-1], lines[-1] + " "],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_lock_is_told_and_the_next_build_writes_it_as_a_clean_one(
    damage: str, solved: Path, run: Run
) -> None:
    before = paths.lock().read_text("utf-8")
    assert not housekeeping()
    paths.lock().write_text("\n".join(DAMAGE[damage](before.splitlines())) + "\n", "utf-8")
    assert paths.lock().read_text("utf-8") != before
    assert run(solved, "status").stdout.startswith("stale: results/")
    made = plan.plan()
    solve([name for name, due in made.scenarios.items() if due])
    assert paths.lock().read_text("utf-8") == before
    assert not housekeeping()


def test_each_scenario_changed_in_turn_leaves_one_line_each_in_the_lock(solved: Path) -> None:
    before = f"value = {GIVEN}"
    for value in ("value = 0.71", "value = 0.72", "value = 0.73"):
        swap(solved / "scenarios" / f"{STEP}.toml", before, value)
        before = value
        solve(stale())
    lines = paths.lock().read_text("utf-8").splitlines()
    assert [line.split()[1] for line in lines if line.startswith("scenario ")] == ALL


def test_what_a_scenario_that_is_gone_made_is_an_orphan_until_the_next_solve(
    solved: Path, run: Run
) -> None:
    (solved / "scenarios" / f"{REPLICA}A100.toml").unlink()
    (solved / "scenarios" / f"{STEP}A100.toml").unlink()
    done = run(solved, "verify")
    assert done.returncode == 1
    assert f"orphan: results/scenarios/{STEP}A100.json" in done.stdout
    removed = [done.name for done in solve([STEP]) if done.removed]
    assert removed == [f"results/scenarios/{name}A100.json" for name in (STEP, REPLICA)]
    assert "A100 " not in paths.lock().read_text("utf-8")
    assert run(solved, "verify").returncode == 0


def test_a_scenario_that_cannot_be_solved_keeps_its_old_artifact(solved: Path) -> None:
    before = paths.artifact(STEP).read_bytes()
    swap(solved / "scenarios" / f"{STEP}.toml", "value = 3.2e6", "value = -3.2e6")
    (done,) = solve([STEP])
    assert "more than 0" in done.error
    assert paths.artifact(STEP).read_bytes() == before
    assert stale() == [STEP, f"{STEP}A100"]  # which has it from its base


def test_solving_writes_only_what_changes(solved: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (solved / "results").rglob("*.*")}
    assert not any(done.changed for done in solve(ALL))
    assert {path: path.stat().st_mtime_ns for path in (solved / "results").rglob("*.*")} == before
    assert not list((solved / "results").rglob("*.partial"))
