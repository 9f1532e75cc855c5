"""The command line: what each command prints for people and for programs, and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mlsysim import paths
from mlsysim.cli.main import main
from mlsysim.runtime.turns import BUILD
from tests.conftest import SCENARIOS, Run, copy_project

STEP = "DenseLLMPretrainingStep"
NAMES = sorted(SCENARIOS)


@dataclass(frozen=True)
class Said:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.out)


Say = Callable[..., Said]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """A command line run in this process."""

    def command(*arguments: str) -> Said:
        code = main(arguments)
        printed = capsys.readouterr()
        return Said(code, printed.out, printed.err)

    return command


# list


@pytest.mark.usefixtures("root")
def test_list_names_every_scenario_with_its_title(say: Say) -> None:
    said = say("list")
    assert (said.code, said.err) == (0, "")
    assert [line.split()[0] for line in said.out.splitlines()] == NAMES
    assert "One optimizer step of GPT-3 175B on ... H100" in said.out  # not solved yet
    assert [each["name"] for each in say("list", "--json").data] == NAMES


def test_list_shows_a_file_that_cannot_be_read_beside_the_others(root: Path, say: Say) -> None:
    (root / "scenarios" / "Broken.toml").write_text("kind = ", "utf-8")
    said = say("list")
    assert said.code == 0
    assert "Broken" in said.out
    assert "not valid TOML" in said.out
    assert all(name in said.out for name in NAMES)


# solve


def test_solve_writes_the_named_scenarios_alone_and_says_what_changed(root: Path, say: Say) -> None:
    said = say("solve", STEP)
    assert (said.code, said.err) == (0, "")
    assert said.out == f"solved {STEP} -> results/scenarios/{STEP}.json (changed)\n"
    assert [path.stem for path in (root / "results" / "scenarios").iterdir()] == [STEP]
    assert "(unchanged)" in say("solve", STEP).out
    assert say("solve", STEP, STEP, "--json").data == [
        {"name": STEP, "changed": False, "error": ""}
    ]


def test_solve_all_solves_every_scenario(root: Path, say: Say) -> None:
    assert [each["name"] for each in say("solve", "--all", "--json").data] == NAMES
    assert sorted(path.stem for path in (root / "results" / "scenarios").iterdir()) == NAMES


def test_solve_goes_on_after_a_bad_scenario_and_ends_with_1(root: Path, say: Say) -> None:
    (root / "scenarios" / "Broken.toml").write_text("kind = ", "utf-8")
    said = say("solve", "--all")
    assert said.code == 1
    assert said.err.startswith("mlsysim: Broken: scenarios/Broken.toml: not valid TOML")
    assert said.out.count("(changed)") == len(NAMES)
    said = say("solve", "--all", "--json")
    assert said.code == 1
    assert [each["name"] for each in said.data if each["error"]] == ["Broken"]


@pytest.mark.parametrize("arguments", [(), ("--all", STEP)])
@pytest.mark.usefixtures("root")
def test_solve_without_names_or_with_both_says_what_to_type(
    arguments: tuple[str, ...], say: Say
) -> None:
    said = say("solve", *arguments)
    assert (said.code, said.out) == (1, "")
    assert "--all" in said.err


def test_an_unknown_name_is_refused_before_anything_is_solved(root: Path, say: Say) -> None:
    said = say("solve", STEP, "DenseLLMReplika")
    assert (said.code, said.out) == (1, "")
    assert "'DenseLLMReplika' is no scenario; did you mean 'DenseLLMReplica'" in said.err
    assert not (root / "results").exists()


# show


@pytest.mark.usefixtures("solved")
def test_show_gives_a_scenario_as_a_page(say: Say) -> None:
    said = say("show", STEP)
    assert (said.code, said.err) == (0, "")
    for part in (
        "One optimizer step of GPT-3 175B on 1,024 H100",
        "Feasible: yes; fits:",
        "Outputs",
        "3,145,728 tok",
        "43.75 GB",
        "Inputs",
        "brown2020, Table 2.1",
        "Assumptions",
        "Excludes",
    ):
        assert part in said.out
    assert "STALE" not in said.out
    assert max(map(len, said.out.splitlines())) <= 160


@pytest.mark.usefixtures("solved")
def test_show_gives_a_value_with_its_equation_inputs_and_sources(say: Say) -> None:
    said = say("show", f"{STEP}.state_per_gpu")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(f"{STEP}.state_per_gpu = 43.75 GB\n")
    assert "replica.workload.parameters.magnitude * replica.bytes_per_param" in said.out
    assert "175,000,000,000 param" in said.out
    assert "Hardware.H100_SXM.memory_capacity" in said.out
    assert f"mlsysim solve {STEP}" in said.out


@pytest.mark.usefixtures("solved")
def test_show_gives_an_input_with_its_source(say: Say) -> None:
    said = say("show", f"{STEP}.fleet.node.link_bandwidth")
    assert "Hardware.DGX_H100.link_bandwidth = 450 GB/s" in said.out
    assert "nccl-tests-212" in said.out


@pytest.mark.usefixtures("solved")
def test_show_as_json_is_the_artifact_or_one_entry_of_it(say: Say) -> None:
    whole = say("show", STEP, "--json").data
    assert whole.pop("stale") == []
    assert whole == json.loads(paths.artifact(STEP).read_text("utf-8"))
    value = say("show", f"{STEP}.step_time", "--json").data
    assert (value["key"], value["unit"]) == (f"{STEP}.step_time", "s")
    assert value["value"] == whole["outputs"]["step_time"]["value"]
    assert value["equation"] == "result.step_latency_total"
    assert value["inputs"] == whole["inputs"]


def test_show_warns_of_a_stale_artifact_with_the_reason(solved: Path, say: Say) -> None:
    path = solved / "scenarios" / f"{STEP}.toml"
    path.write_text(path.read_text("utf-8").replace("value = 512", "value = 256"), "utf-8")
    said = say("show", f"{STEP}.step_time")
    assert "STALE" in said.out.splitlines()[0]
    assert "batch_divisor: 512 seq -> 256 seq" in said.out.splitlines()[0]
    assert say("show", STEP, "--json").data["stale"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (f"{STEP}.step_tim", "did you mean 'step_time'"),
        ("DenseLLMReplika", "did you mean 'DenseLLMReplica'"),
        ("DenseLLMReplika.state_per_gpu", "did you mean 'DenseLLMReplica'"),
        ("../references", "is no scenario"),
        ("", "is no scenario"),
    ],
)
@pytest.mark.usefixtures("solved")
def test_show_refuses_what_does_not_exist_with_the_nearest(
    name: str, message: str, say: Say
) -> None:
    said = say("show", name)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("mlsysim: ")
    assert message in said.err


@pytest.mark.usefixtures("root")  # nothing need be solved
def test_show_gives_a_value_of_a_registry_with_its_source_and_the_scenarios_that_use_it(
    say: Say,
) -> None:
    said = say("show", "Hardware.H100_SXM.memory_bandwidth")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("Hardware.H100_SXM.memory_bandwidth = 3.35 TB/s\n")
    assert "source: nvidia-h100-datasheet, H100 SXM column" in said.out
    assert "Set in mlsysim/registry/data/hardware/H100_SXM.toml" in said.out
    used = said.out.partition("Used by ")[2].partition("\n\n")[0].replace(",", " ").split()
    assert {STEP, "DenseLLMReplica"} <= set(used) <= set(NAMES)
    assert not [name for name in used if name.endswith(("A100", "B200"))]
    data = say("show", "Hardware.H100_SXM.memory_bandwidth", "--json").data
    assert (data["value"], data["unit"], data["used_by"]) == (3.35, "TB/s", used)


@pytest.mark.usefixtures("root")
def test_show_gives_an_entry_of_a_registry_and_a_registry(say: Say) -> None:
    said = say("show", "Hardware.DGX_H100")
    assert said.out.startswith("Hardware.DGX_H100\nNVIDIA DGX H100\n")
    for part in (
        "450 GB/s",
        "nccl-tests-212",
        "Hardware.H100_SXM",
        STEP,
        "show Hardware.DGX_H100.",
    ):
        assert part in said.out
    assert "989.4 TFLOP/s" not in said.out  # of the accelerator, not of the node
    assert set(say("show", "Hardware.DGX_H100", "--json").data["values"]) >= {"nics", "accelerator"}
    listed = say("show", "Models").out
    assert "Models.GPT3_175B       GPT-3 175B" in listed
    assert say("show", "Models", "--json").data["entries"]["GPT3_175B"] == "GPT-3 175B"


@pytest.mark.usefixtures("root")
def test_show_follows_references_between_entries(say: Say) -> None:
    said = say("show", "Fleets.DGX_H100_1024.node.accelerator.rates.bf16")
    assert said.out.startswith("Hardware.H100_SXM.rates.bf16 = 989.4 TFLOP/s\n")
    assert say("show", f"Scenarios.{STEP}").err == say("show", STEP).err  # as sources print it


def test_show_of_a_registry_names_a_scenario_that_cannot_be_read(root: Path, say: Say) -> None:
    (root / "scenarios" / "Broken.toml").write_text("kind = ", "utf-8")
    said = say("show", "Hardware.H100_SXM.memory_bandwidth")
    assert said.code == 0
    assert "Broken (cannot be read)" in said.out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Hardware.H100_SXM.memory_bandwith", "has no 'memory_bandwith'; did you mean 'memory_ba"),
        ("Hardware.H100_SXM.memory_bandwidth.x", "has no 'memory_bandwidth.x'"),
        ("Hardware.DGX_H100.accelerator.rate", "Hardware.H100_SXM has no 'rate'; did you mean"),
        ("Hardware.H100_SXN", "'H100_SXN' is not in Hardware; did you mean 'H100_SXM'"),
        ("Hardwar.H100_SXM", "'Hardwar' is no scenario or registry; did you mean 'Hardware'"),
        ("H100_SXM.half_work", "did you mean 'Hardware.H100_SXM.half_work'"),
        ("GPT3_175B", "did you mean 'Models.GPT3_175B'"),
        ("Hardware./../models/GPT3_175B", "is not in Hardware"),
    ],
)
@pytest.mark.usefixtures("root")
def test_show_of_a_registry_refuses_what_does_not_exist_with_the_choices(
    name: str, message: str, say: Say
) -> None:
    said = say("show", name)
    assert (said.code, said.out) == (1, "")
    assert message in said.err


@pytest.mark.usefixtures("root")
def test_show_before_solve_says_what_to_run(say: Say) -> None:
    said = say("show", STEP)
    assert said.code == 1
    assert said.err == f"mlsysim: {STEP} is not solved yet; run: snakemake artifacts\n"


@pytest.mark.usefixtures("solved")
def test_show_of_a_damaged_artifact_says_so_and_shows_no_traceback(say: Say) -> None:
    paths.artifact(STEP).write_text(f'{{"schema": 1, "name": "{STEP}"}}\n', "utf-8")
    said = say("show", STEP)
    assert said.code == 1
    assert f"results/scenarios/{STEP}.json" in said.err


# status and verify


def artifacts_in(data: list[dict[str, Any]]) -> dict[str, list[str]]:
    return {each["what"]: each["reasons"] for each in data if each["what"].startswith("results/")}


@pytest.mark.usefixtures("root")
def test_status_names_what_is_stale_and_why(say: Say) -> None:
    said = say("status")
    assert said.code == 1
    assert f"stale: results/scenarios/{STEP}.json\n    artifact missing" in said.out
    assert "run: snakemake all" in said.out
    say("solve", "--all")
    assert artifacts_in(say("status", "--json").data) == {}
    paths.artifact(STEP).write_text("{}", "utf-8")
    found = artifacts_in(say("status", "--json").data)
    assert list(found) == [f"results/scenarios/{STEP}.json"]
    assert "edited by hand" in found[f"results/scenarios/{STEP}.json"][0]


def test_status_names_an_artifact_that_no_scenario_makes(solved: Path, say: Say) -> None:
    orphan = solved / "results" / "scenarios" / "Gone.json"
    orphan.write_text("{}", "utf-8")
    assert artifacts_in(say("status", "--json").data) == {
        "results/scenarios/Gone.json": ["no scenario makes it; the next build removes it"]
    }


def test_verify_passes_what_is_identical_and_writes_nothing(solved: Path, say: Say) -> None:
    before = {path: path.stat().st_mtime_ns for path in solved.rglob("*")}
    said = say("verify")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [f"identical: {name}" for name in NAMES]
    assert {path: path.stat().st_mtime_ns for path in solved.rglob("*")} == before


def test_verify_names_what_differs_and_how_and_ends_with_1(solved: Path, say: Say) -> None:
    def edit(name: str, old: str, new: str) -> None:
        path = paths.artifact(name)
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")

    edit(STEP, '"value": 43.75', '"value": 43.76')
    edit(f"{STEP}A100", "\n  ", "\n    ")
    paths.artifact("DenseLLMReplica").unlink()
    paths.artifact("DenseLLMReplicaA100").write_text("{", "utf-8")
    (solved / "results" / "artifact.schema.json").write_text("{}", "utf-8")
    said = say("verify")
    assert said.code == 1
    assert said.out.splitlines() == [
        f"different: {STEP} (outputs.state_per_gpu.value)",
        f"same as printed: {STEP}A100 (the same content, laid out otherwise)",
        "missing: DenseLLMReplica",
        "different: DenseLLMReplicaA100 (not readable JSON)",
        "different: results/artifact.schema.json",
    ]
    assert {each["name"]: each["verdict"] for each in say("verify", "--json").data} == {
        STEP: "different",
        f"{STEP}A100": "same as printed",
        "DenseLLMReplica": "missing",
        "DenseLLMReplicaA100": "different",
        "results/artifact.schema.json": "different",
    }


# execute


@pytest.mark.usefixtures("root")
def test_execute_refuses_an_unknown_chapter(say: Say) -> None:
    said = say("execute", "99_nowhere")
    assert (said.code, said.out) == (1, "")
    assert "'99_nowhere' is no chapter" in said.err


# The whole process


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("list",), 0),
        (("solve", "DenseLLMReplica"), 0),
        (("show", "nonsense"), 1),
        (("show", STEP), 1),
        (("nonsense",), 2),
        ((), 2),
        (("list", "--help"), 0),
    ],
)
def test_a_process_ends_with_its_code_and_puts_errors_on_stderr_without_a_traceback(
    arguments: tuple[str, ...], code: int, root: Path, run: Run
) -> None:
    done = run(root, *arguments)
    assert done.returncode == code
    assert bool(done.stdout) == (code == 0)
    assert bool(done.stderr) == (code != 0)
    assert "Traceback" not in done.stderr


def test_two_commands_in_one_process_do_not_wait_for_each_other(root: Path) -> None:
    text = "from mlsysim.__main__ import main; "
    text += "print(main(['verify']), main(['solve', '--all']), end='')"
    text += "; print(main(['solve', '--all', '--json']))"
    environment = {k: v for k, v in os.environ.items() if k != BUILD}
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=root,
        env={**environment, "PYTHONPATH": str(paths.PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert done.stdout.endswith("]\n0\n")
    assert "waiting" not in done.stderr


def test_a_root_that_does_not_exist_is_refused_and_not_made(tmp_path: Path, run: Run) -> None:
    nowhere = tmp_path / "nowhere"
    for command in (("list",), ("solve", "--all"), ("verify",)):
        done = run(tmp_path, *command, MLSYSIM_ROOT=str(nowhere))
        assert done.returncode == 1, command
        assert str(nowhere) in done.stderr
    assert not nowhere.exists()


def test_outside_any_project_the_checkout_of_the_package_is_meant(
    tmp_path: Path, package: Path, run: Run
) -> None:
    done = run(tmp_path, "list", package=package, MLSYSIM_ROOT="")
    assert done.returncode == 1
    assert "MLSYSIM_ROOT" in done.stderr
    assert STEP in run(tmp_path, "list", MLSYSIM_ROOT="").stdout


def test_the_package_of_another_checkout_is_refused_where_it_would_mix_results(
    tmp_path: Path, package: Path, run: Run
) -> None:
    other = copy_project(tmp_path / "other")
    (other / "mlsysim").mkdir()
    (other / "mlsysim" / "__init__.py").touch()
    # As the installed command does it: the working directory is not on the path.
    done = run(other, "list", package=package, MLSYSIM_ROOT="", PYTHONSAFEPATH="1")
    assert done.returncode == 1
    assert "mlsysim runs from" in done.stderr
