"""Taking turns: who is waited for is said, and no worker outlives the process that forked it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlsysim import paths
from tests.conftest import copy_project

LEFT = "import multiprocessing, os, sys, time\nfrom mlsysim.runtime import turns, workers\n"
HOLD = f"{LEFT}turns.wait_for_other_builds()\nprint('held', flush=True)\ntime.sleep(600)\n"
# What a worker of Sphinx does whose parent is gone: it tells a long answer to nobody, for ever.
FORKING = f"""{LEFT}
from sphinx.util.parallel import ParallelTasks

def work(_):
    print(os.getpid(), flush=True)
    time.sleep({{seconds}})
    return "x" * 10_000_000

turns.wait_for_other_builds()
with turns.at_work(), workers.bound_to_this_process():
    tasks = ParallelTasks(3)
    for number in range(2):
        tasks.add_task(work, number)
    time.sleep(600)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return copy_project(tmp_path / "root")


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def start(root: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "MLSYSIM_BUILD"}
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=root,
        env=environment | {"MLSYSIM_ROOT": str(root), "PYTHONPATH": str(paths.PACKAGE.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout
    return [process.stdout.readline().strip() for _ in range(count)]


def test_a_command_that_waits_says_for_whom(
    place: Path, processes: list[subprocess.Popen[str]]
) -> None:
    holder = start(place, "-c", HOLD, "--all")
    processes.append(holder)
    assert lines(holder, 1) == ["held"]
    waiting = start(place, "-m", "mlsysim", "solve", "DenseLLMReplica")
    processes.append(waiting)
    assert waiting.stderr
    said = waiting.stderr.readline()
    assert re.fullmatch(
        rf"waiting for another build in this folder: -c --all \(process {holder.pid}, since "
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\)\n",
        said,
    )
    holder.kill()
    assert waiting.communicate()[1] == ""
    assert waiting.returncode == 0
    assert "mlsysim solve DenseLLMReplica" in (place / "build/build.lock").read_text()
    assert str(holder.pid) not in (place / "build/build.lock").read_text()


def test_a_command_that_waits_for_no_time_says_nothing(place: Path) -> None:
    done = start(place, "-m", "mlsysim", "solve", "DenseLLMReplica")
    assert done.communicate()[1] == ""


def gone(process: int) -> bool:
    """Whether a process has ended; one that nobody asked for is a zombie."""
    if sys.platform == "linux":
        status = Path(f"/proc/{process}/stat")
        try:
            return ") Z " in status.read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("seconds", [0, 600], ids=["telling", "working"])
def test_workers_end_with_their_parent_and_the_next_build_goes_on(
    seconds: int, place: Path, processes: list[subprocess.Popen[str]]
) -> None:
    parent = start(place, "-c", FORKING.format(seconds=seconds))
    processes.append(parent)
    forks = [int(each) for each in lines(parent, 2)]
    time.sleep(0.2)
    parent.send_signal(signal.SIGKILL)
    after = start(place, "-m", "mlsysim", "solve", "DenseLLMReplica")
    processes.append(after)
    assert after.wait(timeout=60) == 0
    assert all(gone(each) for each in forks)


WATCHED = f"""{LEFT}
def work():
    {{bind}}
    print(os.getpid(), flush=True)
    time.sleep(600)

here = os.getpid()
fork = multiprocessing.get_context("fork").Process(target=work)
fork.start()
time.sleep(600)
"""


@pytest.mark.parametrize("bind", ["workers.end_with_parent()", "workers.killed_with_parent(here)"])
def test_either_way_alone_ends_a_fork(
    bind: str, place: Path, processes: list[subprocess.Popen[str]]
) -> None:
    if "killed" in bind and sys.platform != "linux":
        pytest.skip("a service of Linux")
    parent = start(place, "-c", WATCHED.format(bind=bind))
    processes.append(parent)
    [fork] = map(int, lines(parent, 1))
    assert not gone(fork)
    parent.kill()
    last = time.monotonic() + 60
    while not gone(fork):
        assert time.monotonic() < last
        time.sleep(0.02)


def test_a_fork_keeps_no_build_waiting(place: Path, processes: list[subprocess.Popen[str]]) -> None:
    parent = start(
        place,
        "-c",
        f"from mlsysim.runtime import turns\n{WATCHED.format(bind='pass')}".replace(
            "here = os", "turns.wait_for_other_builds()\nhere = os"
        ),
    )
    processes.append(parent)
    [fork] = map(int, lines(parent, 1))
    parent.kill()
    try:
        after = start(place, "-m", "mlsysim", "solve", "DenseLLMReplica")
        processes.append(after)
        assert after.wait(timeout=60) == 0
        assert not gone(fork)
    finally:
        os.kill(fork, signal.SIGKILL)


def test_a_build_knows_whether_another_came_between_without_waiting_for_it(
    place: Path, processes: list[subprocess.Popen[str]]
) -> None:
    ask = "from mlsysim.runtime import turns\nprint(turns.quiet_since())"

    def quiet_since() -> str:
        return start(place, "-c", ask).communicate(timeout=60)[0]

    then = quiet_since()
    assert int(then)
    assert quiet_since() == then  # who only asks is no build
    processes.append(start(place, "-c", HOLD))
    assert processes[-1].stdout.readline() == "held\n"
    assert quiet_since() == "0\n"
    processes[-1].kill()
    processes[-1].wait()
    assert int(quiet_since()) > int(then)
    again = f"{ask}\nprint(turns.wait_for_other_builds())"
    first, second = start(place, "-c", again).communicate(timeout=60)[0].splitlines()
    assert first == second


def test_where_a_file_system_has_no_locks_that_is_said_once_and_nothing_waits(
    place: Path,
) -> None:
    refused = "import errno, fcntl\ndef flock(*_):\n    raise OSError(errno.ENOLCK, 'no locks')\n"
    work = "with turns.job():\n    print(turns.quiet_since() > 0)\n"
    run = start(place, "-c", f"{refused}fcntl.flock = flock\n{LEFT}{work}")
    said, told = run.communicate(timeout=60)
    assert said == "True\n"
    assert told == "this file system has no locks: see that one build runs at a time\n"


def test_a_job_of_a_cluster_locks_no_file_and_waits_for_nobody(place: Path) -> None:
    work = "os.environ[turns.BUILD] = turns.ELSEWHERE\nwith turns.job():\n    print(end='done')\n"
    run = start(place, "-c", f"import fcntl\nfcntl.flock = None\n{LEFT}{work}")
    assert run.communicate(timeout=60) == ("done", "")
    assert not (place / "build").exists()
