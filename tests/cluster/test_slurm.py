"""The Slurm of the tests ends whole, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from .conftest import SCRIPT

pytestmark = pytest.mark.cluster


def processes_with(word: str) -> list[str]:
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if word in line]


@pytest.mark.parametrize("how", ["the command ends", "its parent is killed", "it is interrupted"])
def test_a_slurm_leaves_no_process_behind(how: str) -> None:
    sleep = f"sleep 9{os.getpid()}"
    submit = f"sbatch --quiet --output=/dev/null --wrap='srun {sleep}'; echo begun"
    ending = "read line" if how == "the command ends" else sleep
    command = [sys.executable, SCRIPT, "sh", "-c", f"{submit}; {ending}"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin
        assert running.stdout
        while running.stdout.readline() != "begun\n":
            pass
        late = time.monotonic() + 60
        while not processes_with(f"srun {sleep}") and time.monotonic() < late:
            time.sleep(0.1)
        if how == "it is interrupted":
            running.send_signal(signal.SIGINT)
        elif how == "its parent is killed":
            running.kill()
        running.stdin.close()
    late = time.monotonic() + 60
    while processes_with(sleep) and time.monotonic() < late:
        time.sleep(0.1)
    assert processes_with(sleep) == []
