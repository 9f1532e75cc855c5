"""Branches that meet, by real merges: what git asks of a person, and what a build then makes."""

from __future__ import annotations

import re
import subprocess

import pytest

from .conftest import FIRST, OTHER, Clone

pytestmark = pytest.mark.pipeline

STEP = "results/scenarios/DenseLLMPretrainingStep.json"
A100_FILE = "mlsysim/registry/data/hardware/A100_SXM_80GB.toml"
MEMORY = "mlsysim/solvers/memory.py"
# The same product, written otherwise: every artifact that it makes is the same.
REFACTORED = "inner = hidden * 4.0"


def branch(clone: Clone, name: str, *edits: tuple[str, str, str]) -> None:
    """A branch from main with these edits, built and committed."""
    clone.git("switch", "--quiet", "--create", name, "main")
    for path, old, new in edits:
        clone.edit(path, old, new)
    commit(clone, name)


def commit(clone: Clone, message: str) -> None:
    clone.build()
    clone.git("add", "--all")
    clone.git("commit", "--quiet", "--message", message)


def merge(clone: Clone, other: str) -> list[str]:
    """Merge a branch; the files that git asks a person about."""
    subprocess.run(
        ["git", "merge", "--quiet", "--no-edit", other], cwd=clone.path, capture_output=True
    )
    return clone.git("diff", "--name-only", "--diff-filter=U").split()


def moved(clone: Clone) -> list[str]:
    """The files under results/ that the last commit changed."""
    return clone.git("diff", "--name-only", "HEAD~1", "--", "results").splitlines()


def test_a_refactor_moves_its_own_lines_and_is_named_where_it_meets_what_is_new(
    built: Clone,
) -> None:
    same = ("formats = columns or {}", "formats = dict(columns or {})")
    tables = "mlsysim/book/products/tables.py"
    branch(built, "refactor", (MEMORY, "inner = 4.0 * hidden", REFACTORED), (tables, *same))
    assert moved(built) == ["results/artifacts.lock"]
    diff = built.git("diff", "HEAD~1", "--unified=0", "--", "results/artifacts.lock")
    added = re.findall(r"^\+(\w+) (\S+)", diff, re.MULTILINE)
    modules = [name for word, name in added if word == "module"]
    assert modules == ["mlsysim.book.products.tables", "mlsysim.solvers.memory"]
    assert {"scenario", "chapter"} <= {word for word, _ in added}
    assert "BLOOMInterruptions" not in dict(map(reversed, added))  # it knows nothing of memory
    lines = (built.path / "results/artifacts.lock").read_text().splitlines()
    assert max(map(len, lines)) <= 200
    built.git("switch", "--quiet", "--create", "new", "main")
    assert built.mlsysim("new", "scenario", "Wide").returncode == 0
    chapter = (built.path / f"chapters/{OTHER}.md").read_text()
    (built.path / "chapters/91_more.md").write_text(chapter.replace(OTHER, "91_more"))
    commit(built, "new")
    assert merge(built, "refactor") == []
    said = built.mlsysim("status").stdout
    assert "results/scenarios/Wide.json\n    code changed: mlsysim.solvers.memory\n" in said
    assert "edited by hand" not in said
    told = "different: chapters/91_more.md (changed: mlsysim.book.products.tables)"
    assert told in built.mlsysim("verify").stdout
    build = built.build()
    assert build.solved == ["Wide"]
    assert "91_more" in build.executed
    assert built.changed() == [" M results/artifacts.lock"]


def test_branches_that_move_different_numbers_meet_in_results_without_a_conflict(
    built: Clone,
) -> None:
    branch(built, "slower", (A100_FILE, "312 TFLOP/s", "300 TFLOP/s"))
    branch(built, "denser", (MEMORY, "inner = 4.0 * hidden", "inner = 9.0 * hidden"))
    assert {STEP, "results/artifacts.lock"} <= {*moved(built)}
    assert merge(built, "slower") == []
    said = built.mlsysim("status").stdout
    assert "merged from two branches" in said
    assert "edited by hand" not in said
    assert said.endswith("run: snakemake all\n")
    built.build()
    then = built.results()
    assert built.mlsysim("status").stdout == "everything is fresh\n"
    for path in then:
        if path != "artifact.schema.json":
            (built.path / "results" / path).unlink()
    built.build()
    assert built.results() == then  # as if nothing had ever been merged


def test_what_two_branches_made_of_one_product_is_made_again(built: Clone) -> None:
    branch(built, "words", (f"chapters/{OTHER}.md", '["step"]', '["one step"]'))
    branch(built, "format", (f"chapters/{OTHER}.md", 's as .2f")]}', 's as .3f")]}'))
    conflicts = merge(built, "words")
    assert conflicts in ([], [f"chapters/{OTHER}.md"])  # the same line of the source
    built.git("checkout", "--quiet", "--ours", f"chapters/{OTHER}.md")
    said = built.mlsysim("status").stdout
    assert f"results/tables/{OTHER}/step.md merged from two branches" in said
    assert built.build().executed == [OTHER]
    assert built.mlsysim("status").stdout == "everything is fresh\n"


EDITED = (
    *("results/quotes.json", "results/claims.json", "results/scenarios/PublishedStepTimes.csv"),
    f"results/tables/{FIRST}/step.md",
    f"results/figures/{FIRST}/runs.csv",
    f"results/figures/{FIRST}/runs.svg",
)


def test_a_fresh_clone_names_each_result_that_was_edited_by_hand(fresh: Clone) -> None:
    before = fresh.results()
    for path in EDITED:
        (fresh.path / path).write_bytes((fresh.path / path).read_bytes() + b" ")
    status, verify = fresh.mlsysim("status").stdout, fresh.mlsysim("verify").stdout
    assert not (fresh.path / "build/executed").exists()
    for path in EDITED:
        assert path in status
        assert path in verify
    assert status.count("edited by hand") == len(EDITED)
    assert "mlsysim solve PublishedStepTimes && snakemake all" in verify
    fresh.git("checkout", "--quiet", "results")
    fresh.edit(f"chapters/{FIRST}.md", "One step takes", "{quote}`step.accelerators` take")
    assert (
        "different: results/quotes.json (not what the pages print)"
        in fresh.mlsysim("verify").stdout
    )
    fresh.git("checkout", "--quiet", "chapters")
    fresh.build()
    assert fresh.results() == before


def test_stale_results_and_a_branch_behind_main_end_in_one_line_of_what_to_do(
    fresh: Clone,
) -> None:
    def said(*command: str) -> str:
        run = subprocess.run(
            ["env", "--unset=GITHUB_ACTIONS", *command],
            cwd=fresh.path,
            capture_output=True,
            text=True,
        )
        assert run.returncode == bool(run.stderr)
        return run.stderr

    assert said(".ci/settled", "make") == ""
    assert said(".ci/up_to_date", "main") == ""
    fresh.edit("results/quotes.json", "7.", "8.")
    assert said(".ci/settled", "make").splitlines()[-1] == (
        "results/ is not what its sources make. Run: make; "
        "then commit: git add results && git commit -m 'Make results again'"
    )
    fresh.git("checkout", "--quiet", "results")
    (fresh.path / "stray.txt").write_text("stray")
    assert "make test changed or left: stray.txt." in said(".ci/settled", "make test")
    fresh.git("switch", "--quiet", "--create", "old", "main")
    fresh.git("switch", "--quiet", "main")
    fresh.git("commit", "--quiet", "--allow-empty", "--message", "Another")
    fresh.git("switch", "--quiet", "old")
    (line,) = said(".ci/up_to_date", "main").splitlines()
    assert line.startswith("This branch lacks 1 commits of main. Run: git merge main && make;")
