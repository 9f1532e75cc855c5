"""Commands in the environments that people have: their Python's settings, disks that are full."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mlsysim import files, paths
from mlsysim.book.execution.chapter_execution import execute_all
from tests.book.test_chapters import TABLE, write
from tests.conftest import REPOSITORY, Run

REFUSED = (
    "mlsysim: Python drops docstrings here, and artifacts and pages print them: "
    "run `unset PYTHONOPTIMIZE`, or leave -OO out\n"
)


@pytest.mark.parametrize("command", ["solve --all", "verify", "execute 01_small", "book", "live"])
def test_nothing_is_made_without_docstrings(command: str, root: Path, run: Run) -> None:
    write(root, TABLE)
    done = run(root, *command.split(), PYTHONOPTIMIZE="2")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", REFUSED)
    assert not (root / "results").exists()


def test_without_docstrings_a_build_is_refused_and_numbers_can_be_read(solved: Path) -> None:
    def python(code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-OO", "-c", code],
            env=os.environ | {"MLSYSIM_ROOT": str(solved), "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            check=False,
        )

    told = python("from mlsysim.building import plan; plan.plan()").stderr
    assert told.splitlines()[-1].endswith(REFUSED.removeprefix("mlsysim: ").strip())
    live = python("from mlsysim import Scenarios as S; print(S.DenseLLMReplica.replica_gpus)")
    assert (live.stdout, live.stderr) == ("64\n", "")


def test_warnings_that_a_person_wants_as_errors_stop_no_command(root: Path, run: Run) -> None:
    write(root, TABLE, " The step.")
    shutil.copytree(REPOSITORY / "chapters" / "_static", root / "chapters" / "_static")
    shutil.copy(REPOSITORY / "chapters" / "conf.py", root / "chapters")
    (root / "chapters/index.md").write_text("# Book\n\n```{toctree}\n01_small\n```\n", "utf-8")
    for command in ("solve --all", "execute 01_small", "book", "status"):
        done = run(root, *command.split(), PYTHONWARNINGS="error")
        assert (done.returncode, done.stderr) == (0, ""), command


@pytest.mark.usefixtures("solved")
def test_chapters_are_executed_whatever_the_length_of_the_temporary_folder(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    write(root, "1 + 1")
    assert [ran.made for _, ran in execute_all(["01_small"], 1)] == [[]]


def limited(root: Path, size: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that may write no file above a size, which fails as on a full disk."""
    return subprocess.run(
        [sys.executable, "-m", "mlsysim", *arguments],
        env=os.environ | {"MLSYSIM_ROOT": str(root), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )


def test_a_disk_without_room_is_told_in_a_line_with_the_file_and_the_cause(solved: Path) -> None:
    name = "DenseLLMReplica"
    before = paths.artifact(name).read_bytes()
    scenario = solved / f"scenarios/{name}.toml"
    text = scenario.read_text("utf-8")
    scenario.write_text(text.replace('title = "', 'title = "Once more: '), "utf-8")
    done = limited(solved, 1000, "solve", name)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == f"mlsysim: results/scenarios/{name}.json: cannot be written: File too large\n"
    )
    assert paths.artifact(name).read_bytes() == before
    assert not list((solved / "results").rglob("*.partial"))
    write(solved, TABLE.replace('as .1f")]', 'as .1f")] * 500'))
    for size, file in (
        (20, "/kernel.json: File too large"),
        (5000, "/tables/01_small/one.md: cannot be written: File too large"),
    ):
        done = limited(solved, size, "execute", "01_small")
        assert done.returncode == 1
        told = done.stderr.splitlines()[-1]  # IPython says before that it keeps no history
        assert told.startswith("mlsysim: chapters/01_small.md:")
        assert told.endswith(file)
        assert "Traceback" not in done.stderr


def test_what_the_system_refuses_is_told_without_a_file_if_none_is_known() -> None:
    assert files.unwritten(OSError(28, "No space left on device")) == "No space left on device"
