"""What a build does and does not do, in clones: content decides, never time."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time

import pytest

from .conftest import FIRST, OTHER, Clone

pytestmark = pytest.mark.pipeline

FOUR = [
    "DenseLLMPretrainingStep",
    "DenseLLMPretrainingStepA100",
    "DenseLLMReplica",
    "DenseLLMReplicaA100",
]
A100 = "Hardware.A100_SXM_80GB"
A100_FILE = "mlsysim/registry/data/hardware/A100_SXM_80GB.toml"
FLOPS = "mlsysim/solvers/flops.py"
# A constant of the solver that moves what a step holds in memory, not the fit to measured times.
MEMORY = "mlsysim/solvers/memory.py"
HELD, HOLDS_MORE = "inner = 4.0 * hidden", "inner = 9.0 * hidden"


def scenarios(clone: Clone) -> list[str]:
    return sorted(path.stem for path in (clone.path / "scenarios").glob("*.toml"))


def chapters(clone: Clone) -> list[str]:
    return sorted(path.stem for path in (clone.path / "chapters").glob("[0-9][0-9]_*.md"))


def users(clone: Clone, reference: str) -> list[str]:
    """Scenarios whose artifact lists an input of `reference`."""
    found = []
    for name in scenarios(clone):
        inputs = json.loads((clone.path / artifact(name)).read_text())["inputs"]
        if any(key.startswith(f"{reference}.") for key in inputs):
            found.append(name)
    return found


def made_with(clone: Clone, module: str) -> list[str]:
    """Scenarios whose artifact is stale once this module is another."""
    said = clone.mlsysim("status").stdout
    told = re.findall(r"stale: results/scenarios/(\w+)\.json\n    code changed: (.*)", said)
    return sorted(name for name, modules in told if module in modules.split(", "))


def readers(clone: Clone, names: list[str]) -> list[str]:
    """Chapters whose cells read one of these artifacts."""
    return [
        chapter
        for chapter in chapters(clone)
        if any(
            f'read("{name}")' in (clone.path / f"chapters/{chapter}.md").read_text()
            for name in names
        )
    ]


def artifact(name: str) -> str:
    return f"results/scenarios/{name}.json"


PAST, NOW, FUTURE = 1e9, time.time(), 2.2e9
TIMES = {
    "all in the past": {"": PAST},
    "all in the future": {"": FUTURE},
    "results checked out first": {"": NOW, "results": PAST},
    "results checked out last": {"": PAST, "results": FUTURE},
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_a_fresh_clone_solves_nothing_whatever_the_time_stamps(fresh: Clone, times) -> None:
    before = fresh.results()
    fresh.set_times(times)
    first = fresh.build()
    assert first.solved == []
    assert first.executed == chapters(fresh)
    assert fresh.results() == before
    assert fresh.changed() == []
    assert fresh.build().nothing


def test_touching_and_commenting_everything_solves_nothing(built: Clone) -> None:
    built.set_times({"": time.time()})
    notebook_editors = (
        *(f"chapters/.ipynb_checkpoints/{OTHER}-checkpoint.md", f"chapters/.~{OTHER}.md"),
        *(f"chapters/{OTHER}.ipynb", "chapters/Untitled.ipynb"),
        f".virtual_documents/chapters/{OTHER}.md",
    )
    for litter in notebook_editors:
        (built.path / litter).parent.mkdir(parents=True, exist_ok=True)
        (built.path / litter).write_text("litter")
    assert built.changed() == []
    for litter in (
        *(f"chapters/.{OTHER}.md.swp", f"chapters/{OTHER}.md~"),
        *("chapters/.DS_Store", "chapters/_static/.book.css.swp", "chapters/_static/book.css~"),
        *("results/scenarios/.DS_Store", f"results/figures/{FIRST}/.DS_Store", "scenarios/a.toml~"),
    ):
        (built.path / litter).write_text("litter")
    (built.path / f"chapters/.#{OTHER}.md").symlink_to("somebody@somewhere")  # an open buffer
    assert built.build().nothing
    for name in scenarios(built):
        path = built.path / f"scenarios/{name}.toml"
        path.write_text("# Another comment.\n\n" + path.read_text().replace(" = ", "   =  "))
    built.edit("mlsysim/solvers/flops.py", '"""Work of one', '"""Reworded work of one')
    built.edit("mlsysim/solvers/flops.py", "def logits_flops(", "# Why.\n\n\ndef logits_flops(")
    built.edit("mlsysim/units/vocabulary.txt", "minute =", "# sixty\nminute  =")
    build = built.build()
    assert build.solved == []
    assert build.executed == []
    assert not any(line.split()[-1].startswith("results/") for line in built.changed())


def test_one_number_of_one_accelerator_moves_exactly_what_uses_it(built: Clone) -> None:
    used, then = users(built, A100), built.results()
    assert 2 <= len(used) < len(scenarios(built))
    built.edit(A100_FILE, "312 TFLOP/s", "315 TFLOP/s")
    build = built.build()
    assert build.solved == used
    assert build.executed == readers(built, used)
    now = built.results()
    moved = {path for path in then if then[path] != now[path]}
    assert {path for path in moved if path.startswith("scenarios/") and path.endswith(".json")} == {
        f"scenarios/{name}.json" for name in used
    }
    assert {f"tables/{OTHER}/step.{kind}" for kind in ("csv", "md", "tex")} <= moved
    built.git("checkout", "--quiet", A100_FILE)
    assert built.build().solved == used
    assert built.changed() == []


def test_a_constant_behind_the_solver_solves_every_scenario_it_can_move(built: Clone) -> None:
    built.edit(MEMORY, HELD, HOLDS_MORE)
    assert "code changed: mlsysim.solvers.memory" in built.mlsysim("status").stdout
    moved = made_with(built, "mlsysim.solvers.memory")
    # Some kinds know nothing of memory, and a replica nothing of activations.
    steps = {name for name in FOUR if "Step" in name}
    assert steps <= set(moved) < set(scenarios(built)) - {*FOUR} | steps
    assert built.build().solved == moved
    assert artifact("DenseLLMPretrainingStep") in "".join(built.changed())
    built.git("checkout", "--quiet", "mlsysim")
    assert built.build().solved == moved
    assert built.changed() == []


def test_a_damaged_or_outdated_artifact_is_noticed_by_name_and_made_again(built: Clone) -> None:
    edited, truncated, deleted, outdated = FOUR
    built.edit(artifact(edited), '"unit": "s"', '"unit": "min"')
    path = built.path / artifact(truncated)
    path.write_bytes(path.read_bytes()[:500])
    (built.path / artifact(deleted)).unlink()
    for name in (edited, truncated):  # as old, and as new, as a file can be
        os.utime(built.path / artifact(name), (2.2e9, 2.2e9))
    said = built.mlsysim("status").stdout
    assert f"{artifact(edited)}\n    artifact edited by hand" in said
    assert f"{artifact(truncated)}\n    artifact truncated" in said
    assert f"{artifact(deleted)}\n    artifact missing" in said
    assert artifact(outdated) not in said
    verified = built.mlsysim("verify")
    assert verified.returncode == 1
    assert f"different: {edited} (outputs." in verified.stdout
    assert f"missing: {deleted}" in verified.stdout
    assert f"identical: {outdated}" in verified.stdout
    assert built.build().solved == sorted([edited, truncated, deleted])
    assert built.changed() == []
    assert built.mlsysim("status").stdout == "everything is fresh\n"


def test_an_artifact_older_than_a_committed_input_is_noticed_on_a_fresh_clone(
    fresh: Clone,
) -> None:
    fresh.edit(A100_FILE, "312 TFLOP/s", "315 TFLOP/s")
    fresh.git("commit", "--quiet", "--all", "--message", "A faster accelerator, and no build")
    fresh.set_times({"results": 2.2e9})
    said = fresh.mlsysim("status").stdout
    assert "Hardware.A100_SXM_80GB.rates.bf16: 312.0 TFLOP/s -> 315.0 TFLOP/s" in said
    assert fresh.mlsysim("verify").returncode == 1
    assert fresh.build("artifacts").solved == users(fresh, A100)


@pytest.mark.parametrize("damage", ["edited", "deleted", "added"])
def test_a_damaged_table_figure_or_record_of_quotes_is_made_again(
    built: Clone, damage: str
) -> None:
    products = [
        *built.path.glob(f"results/tables/{FIRST}/*"),
        *built.path.glob(f"results/figures/{FIRST}/*"),
        built.path / "results/quotes.json",
    ]
    assert len(products) > 5
    for path in products:
        if damage == "edited":
            path.write_bytes(path.read_bytes() + b" ")
        elif damage == "deleted":
            path.unlink()
        else:
            path.with_name("stray" + path.suffix).write_text("made by no cell")
    if damage == "added":
        (built.path / "results/stray.json").unlink()
    named = products[0].relative_to(built.path)
    if damage == "added":
        named = named.with_name("stray" + named.suffix)
    assert str(named) in built.mlsysim("status").stdout
    build = built.build()
    assert build.solved == []
    assert build.executed == [FIRST]
    assert built.changed() == []


def test_a_page_that_lost_a_file_is_built_again(built: Clone) -> None:
    page = built.path / f"build/book/{FIRST}.html"
    page.unlink()
    assert built.build().page
    assert page.is_file()


def test_an_edit_is_on_the_page_whatever_its_time_stamp(built: Clone) -> None:
    built.edit(f"chapters/{OTHER}.md", "One step takes", "An edited step takes")
    os.utime(built.path / f"chapters/{OTHER}.md", (1e9, 1e9))
    built.build()
    assert "An edited step takes" in (built.path / f"build/book/{OTHER}.html").read_text()


def test_a_stale_cache_of_a_module_is_not_what_solves(built: Clone) -> None:
    path = built.path / MEMORY
    os.utime(path, (1.5e9, 1.5e9))
    assert built.mlsysim("solve", "DenseLLMPretrainingStep").returncode == 0
    built.edit(MEMORY, HELD, HOLDS_MORE)
    os.utime(path, (1.5e9, 1.5e9))
    before = (built.path / artifact("DenseLLMPretrainingStep")).read_bytes()
    built.build("artifacts")
    assert (built.path / artifact("DenseLLMPretrainingStep")).read_bytes() != before


def test_what_no_scenario_makes_any_more_is_removed_by_the_build(built: Clone) -> None:
    (built.path / "scenarios/NetworkRateSweep.toml").unlink()
    build = built.build()
    assert "removed results/scenarios/NetworkRateSweep.json" in build.said
    assert "NetworkRateSweep" not in (built.path / "results/artifacts.lock").read_text()
    assert not (built.path / "results/scenarios/NetworkRateSweep.csv").exists()
    assert built.build().nothing


def test_a_fresh_file_can_be_asked_for_by_name(built: Clone) -> None:
    assert built.build(artifact("DenseLLMReplica")).nothing
    assert built.build("build/book/index.html").nothing


def test_deleting_what_snakemake_remembers_solves_and_executes_nothing(built: Clone) -> None:
    shutil.rmtree(built.path / ".snakemake")
    assert built.build().nothing
    shutil.rmtree(built.path / "build")
    build = built.build()
    assert build.solved == []
    assert build.executed == chapters(built)
    assert built.changed() == []


@pytest.mark.parametrize("moment", ["solved ", "executed "])
def test_a_killed_build_is_followed_by_a_plain_one(fresh: Clone, moment: str) -> None:
    fresh.edit(MEMORY, HELD, HOLDS_MORE)
    killed = fresh.start("snakemake", "all", start_new_session=True)
    for line in killed.stdout:
        if line.startswith(moment):
            break
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    fresh.git("checkout", "--quiet", "mlsysim")
    fresh.build()
    assert fresh.changed() == []
    assert fresh.build().nothing
    assert fresh.mlsysim("verify").returncode == 0


def test_a_build_whose_main_process_alone_is_killed_leaves_no_late_job(fresh: Clone) -> None:
    killed = fresh.start("snakemake", "all")
    for line in killed.stdout:
        if "execute_" in line:
            break
    killed.kill()
    fresh.edit(A100_FILE, "312 TFLOP/s", "315 TFLOP/s")
    fresh.build()  # waits for the orphaned job
    killed.communicate()
    assert fresh.build().nothing
    assert "315.0" in (fresh.path / artifact("DenseLLMPretrainingStepA100")).read_text()


def test_of_two_builds_at_once_the_second_waits(built: Clone) -> None:
    built.edit(A100_FILE, "312 TFLOP/s", "315 TFLOP/s")
    first = built.start("snakemake", "all")
    second = built.start("snakemake", "all")
    said = [first.communicate()[0], second.communicate()[0]]
    assert (first.returncode, second.returncode) == (0, 0), said
    assert sum("waiting for another build" in each for each in said) == 1
    assert sorted("Nothing to be done" in each for each in said) == [False, True]
    assert built.mlsysim("verify").returncode == 0


def test_keys_in_another_order_solve_nothing(built: Clone) -> None:
    for name in scenarios(built):
        path = built.path / f"scenarios/{name}.toml"
        head, *tables = path.read_text().split("\n[")
        lines = [
            "\n".join([first, *reversed([line for line in rest if line])])
            for first, *rest in (table.split("\n") for table in tables)
        ]
        path.write_text("\n\n[".join([head.rstrip(), *reversed(lines)]) + "\n")
    build = built.build()
    assert build.solved == []
    assert build.executed == []


def test_switching_branches_to_and_fro_leaves_a_clean_tree(built: Clone) -> None:
    built.git("switch", "--quiet", "--create", "faster")
    built.edit(A100_FILE, "312 TFLOP/s", "315 TFLOP/s")
    built.build()
    built.git("commit", "--quiet", "--all", "--message", "A faster accelerator")
    for branch in ("main", "faster", "main"):
        built.git("switch", "--quiet", branch)
        assert built.build().solved == []
        assert built.changed() == []


def test_a_prose_edit_executes_nothing_and_a_code_edit_one_chapter(built: Clone) -> None:
    built.edit(f"chapters/{OTHER}.md", "One step takes", "A step takes")
    build = built.build()
    assert (build.solved, build.executed, build.page) == ([], [], True)
    built.edit(f"chapters/{OTHER}.md", '["step"]', '["one step"]')
    assert built.build().executed == [OTHER]


def test_a_page_built_again_has_the_bytes_of_a_first_build(built: Clone) -> None:
    first = built.pages()
    built.edit(
        f"chapters/{OTHER}.md", "One step takes", "![](one.svg) {download}`one.svg` A step takes"
    )
    built.edit("chapters/conf.py", "by the Numbers", "in Numbers")
    picture = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
    for added in ("chapters/one.svg", "chapters/_static/more/one.svg"):
        (built.path / added).parent.mkdir(exist_ok=True)
        (built.path / added).write_text(picture)
    built.build()
    assert {"_images/one.svg", "_static/more/one.svg"} <= set(built.pages())
    (built.path / "chapters/one.svg").write_text(picture.replace("9", "8"))
    assert built.build().page
    (built.path / "chapters/one.svg").unlink()
    shutil.rmtree(built.path / "chapters/_static/more")
    assert built.pages() != first
    built.git("checkout", "--quiet", "chapters")
    built.build()
    again = built.pages()
    assert {path for path in {*first, *again} if first.get(path) != again.get(path)} == set()


def test_a_wrong_scenario_file_is_named_and_costs_no_artifact(built: Clone) -> None:
    before = built.results()
    built.edit("scenarios/DenseLLMPretrainingStep.toml", "value = 512", "value = -512")
    run = built.run("snakemake", "all")
    assert run.returncode != 0
    assert "scenarios/DenseLLMPretrainingStep.toml: batch_divisor = -512" in run.stdout
    assert built.results() == before
