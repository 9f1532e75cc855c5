"""What Snakemake shows of the graph, and what it makes if asked for parts of it, in clones."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys

import pytest

from .conftest import FIRST, OTHER, Build, Clone
from .test_behaviours import (
    A100,
    A100_FILE,
    HELD,
    MEMORY,
    artifact,
    made_with,
    scenarios,
    users,
)

pytestmark = pytest.mark.pipeline

STEP = "DenseLLMPretrainingStep"
CHAIN = {
    *(("solve", f"execute_{chapter}") for chapter in (FIRST, OTHER)),
    *((f"execute_{chapter}", "book") for chapter in (FIRST, OTHER)),
    *(("solve", "book"), ("solve", "lock"), ("book", "all"), ("lock", "all")),
}


def snakemake(clone: Clone, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Snakemake, which must succeed, with its two streams apart."""
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments],
        cwd=clone.path,
        env=clone.environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def edges(clone: Clone) -> set[tuple[str, str]]:
    """The arrows of `--rulegraph`, by the names of rules."""
    drawn = snakemake(clone, "--rulegraph").stdout
    names = dict(re.findall(r'(\d+)\[label = "(\w+)"', drawn))
    return {(names[a], names[b]) for a, b in re.findall(r"(\d+) -> (\d+)", drawn)}


def stamps(clone: Clone) -> dict[str, int]:
    """When each versioned file, and the plan of the last build, was last touched."""
    listed = [*clone.git("ls-files").splitlines(), "build/plan.json", "build/book/index.html"]
    return {name: (clone.path / name).stat().st_mtime_ns for name in listed}


def built_by(clone: Clone, *arguments: str) -> Build:
    return Build(snakemake(clone, *arguments).stdout)


def test_the_whole_chain_is_shown_and_showing_it_touches_nothing_and_waits_for_nobody(
    built: Clone,
) -> None:
    with (built.path / "build/build.lock").open("a") as lock:  # as a build that is under way
        fcntl.flock(lock, fcntl.LOCK_EX)
        before, results = stamps(built), built.results()
        assert edges(built) == CHAIN
        rules = snakemake(built, "--list-rules").stdout.split()
        assert "Nothing to be done" in snakemake(built, "--dry-run").stdout
        drawn = snakemake(built, "--dag").stdout
        assert all(f"scenario: {name}" in drawn for name in scenarios(built))
        listed = snakemake(built, "--summary").stdout
        for path in (artifact(STEP), f"results/tables/{OTHER}/step.csv", "results/quotes.json"):
            assert re.search(rf"^{path}\t.*no update$", listed, re.MULTILINE)
        report = built.path / "build/report.html"
        snakemake(built, "--report", str(report))
        assert f"execute_{OTHER}" in report.read_text()
        built.edit(A100_FILE, "312 TFLOP/s", "315 TFLOP/s")
        before[A100_FILE] = stamps(built)[A100_FILE]
        assert snakemake(built, "--list-rules").stdout.split() == rules
        planned = snakemake(built, "--dry-run").stdout
        for name in users(built, A100):
            assert re.search(rf"Solve .*\b{name}\b", planned)
        assert "update pending" in snakemake(built, "--summary").stdout
        assert stamps(built) == before
        assert built.results() == results


def test_a_dry_run_believes_no_time_stamp(built: Clone) -> None:
    for moment in (1e9, 2.2e9):
        built.set_times({"": moment})
        assert "Nothing to be done" in snakemake(built, "--dry-run").stdout
        with (built.path / artifact(STEP)).open("a") as edited:
            edited.write(" ")
        os.utime(built.path / artifact(STEP), (moment, moment))
        assert f"Solve {STEP}" in snakemake(built, "--dry-run").stdout
        built.git("checkout", "--quiet", "results")


def test_what_is_asked_for_by_name_is_made_alone_and_the_same_bytes_execute_no_cell(
    built: Clone,
) -> None:
    built.edit(MEMORY, HELD, HELD.replace("4.0", "2.0 * 2.0"))  # another code, the same numbers
    stale = made_with(built, "mlsysim.solvers.memory")
    assert len(stale) > 4  # so many that a build batches them
    build = built.build(artifact(STEP))
    assert (build.solved, build.executed, build.page) == ([STEP], [], False)
    (built.path / f"results/tables/{OTHER}/step.md").unlink()
    build = built.build(f"results/tables/{OTHER}/step.md")
    assert build.solved == ["DenseLLMPretrainingStepA100"]
    assert (build.executed, build.page) == ([OTHER], False)
    build = built.build()
    assert build.solved == sorted({*stale} - {STEP, "DenseLLMPretrainingStepA100"})
    assert build.executed == []
    table = built.path / "results/scenarios/PublishedStepTimes.csv"
    before = table.read_bytes()
    table.unlink()
    assert built.build("results/scenarios/PublishedStepTimes.csv").solved == ["PublishedStepTimes"]
    assert table.read_bytes() == before
    assert built.build().nothing


def test_forcing_solves_again_and_executes_no_cell_if_the_bytes_are_the_same(built: Clone) -> None:
    every = scenarios(built)
    build = built_by(built, "--forcerun", "solve")
    assert (build.solved, build.executed, build.page) == (every, [], False)
    build = built_by(built, "-F")
    assert (build.solved, build.executed, build.page) == (every, [], True)
    assert built.changed() == []
    assert built.build().nothing


def test_touching_stopping_early_and_deleting_cost_nothing_that_a_build_does_not_put_back(
    built: Clone,
) -> None:
    snakemake(built, "--touch")
    assert built.build().nothing
    built.edit(A100_FILE, "312 TFLOP/s", "315 TFLOP/s")
    snakemake(built, "--touch")
    used = users(built, A100)
    build = built_by(built, "--until", "lock")
    assert (build.solved, build.executed, build.page) == (used, [], False)
    assert built.build().executed
    built.git("checkout", "--quiet", A100_FILE)
    built.build()
    snakemake(built, "--delete-all-output")
    gone = {line.split()[-1] for line in built.changed()}
    assert {artifact(STEP), "results/artifacts.lock"} <= gone
    assert not any((built.path / path).is_file() for path in gone)
    built.build()
    assert built.changed() == []


def test_lint_finds_nothing_but_what_is_waived(built: Clone) -> None:
    said = built.run("snakemake", "--lint").stdout
    found = set(re.findall(r"^    \* (.*?):?$", said, re.MULTILINE))
    waived = {"No log directive defined", "Specify a conda environment or container for each rule."}
    assert {each.rstrip(":") for each in found} == waived


def test_rules_have_the_same_names_if_no_result_is_there(fresh: Clone) -> None:
    rules = snakemake(fresh, "--list-rules").stdout
    shutil.rmtree(fresh.path / "results")
    assert snakemake(fresh, "--list-rules").stdout == rules
