"""Which artifacts are stale, by content alone: damage, inputs, code and the lines of the lock."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from mlsysim import paths
from mlsysim.artifacts.lock import read_lock
from mlsysim.artifacts.staleness import housekeeping, judge, orphans, stale
from mlsysim.building import plan
from mlsysim.building.solving import solve, verify
from tests.conftest import REPOSITORY, SCENARIOS, Run

STEP = "DenseLLMPretrainingStep"
REPLICA = "DenseLLMReplica"
ALL = sorted(SCENARIOS)
# The efficiency of the step as its file has it; the A100 step has one of its own.
with (REPOSITORY / "scenarios" / f"{STEP}.toml").open("rb") as _file:
    GIVEN = tomllib.load(_file)["local_efficiency"]["value"]


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
    # A replica is laid out without the activations that the formula counts.
    for name in (STEP, f"{STEP}A100"):
        reasons = ["code changed: mlsysim.solvers.memory"]
        assert {"what": f"results/scenarios/{name}.json", "reasons": reasons} in found
    assert not [each for each in found if "Replica" in each["what"]]


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


def test_a_part_of_a_file_is_left_behind_only_when_its_process_is_gone(solved: Path) -> None:
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True
    )
    folder, node = solved / "results/scenarios", os.uname().nodename
    ours, theirs, other = (
        folder / f".{STEP}.json.{name}.partial"
        for name in (f"{node}.{os.getpid()}", f"{node}.{int(gone.stdout)}", "elsewhere.1")
    )
    for path in (ours, theirs, other):
        path.write_text("{")
    assert orphans() == [paths.shown(theirs)]
    (removed,) = [each for each in solve([STEP]) if each.removed]
    assert removed.name == paths.shown(theirs)
    assert [each.is_file() for each in (ours, theirs, other)] == [True, False, True]
