"""The book through a real Slurm: the bytes of one machine, whatever happens to nodes and jobs."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pipeline.conftest import Clone

from .conftest import ROOT, SCRIPT

pytestmark = pytest.mark.cluster

PAGE = (ROOT / "profiles" / "slurm" / "README.md").read_text("utf-8")
SITE = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
COMMAND = re.search(r"^snakemake all (.*--workflow-profile.*)$", PAGE, re.MULTILINE)
# The nodes of the tests keep no accounts, and nobody waits minutes for jobs that take seconds.
OF_THE_TESTS = """\
slurm-status-command: squeue
slurm-init-seconds-before-status-checks: 3
seconds-between-status-checks: 3
"""


class Cluster:
    """What a user of a cluster types: commands of Slurm, and the one that starts the build."""

    def __init__(self, environment: dict[str, str], book: Clone, site: Path) -> None:
        self.environment, self.book, self.log = environment, book, site / "log"
        assert SITE
        assert COMMAND
        text = re.sub(r"  slurm_account: .*\n", "", SITE[1])
        text, replaced = re.subn(r"(slurm_partition:) \w+", r"\1 test", text)
        assert replaced == 1
        (site / "config.yaml").write_text(text + OF_THE_TESTS)
        self.arguments = COMMAND[1].replace("mycluster", str(site)).split()

    def ask(self, *command: str) -> list[str]:
        run = subprocess.run(
            command, env=self.environment, check=True, capture_output=True, text=True
        )
        return run.stdout.splitlines()

    def jobs(self, state: str) -> dict[int, tuple[str, str]]:
        """Node and rule of the jobs in a state, by their number."""
        told = self.ask("squeue", "--noheader", f"--states={state}", "--format=%i %N %k")
        found = {}
        for line in told:
            number, node, comment = ([*line.split(" ", 2), "", ""])[:3]
            found[int(number)] = (node, comment.removeprefix("rule_"))
        return found

    def build(
        self, target: str = "all", meanwhile: Callable[[], object] = lambda: True
    ) -> tuple[int, str]:
        """Run the build, calling `meanwhile` until it is true: its exit status and what it said."""
        environment = self.environment | {"PYTHONPATH": str(self.book.path)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with (
            self.log.open("w") as log,
            subprocess.Popen(
                [sys.executable, "-m", "snakemake", target, *self.arguments],
                cwd=self.book.path,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            ) as running,
        ):
            while running.poll() is None and not meanwhile():
                time.sleep(0.2)
        return running.returncode, self.log.read_text()


@pytest.fixture
def cluster(slurm: dict[str, str], book: Clone, tmp_path: Path) -> Cluster:
    (tmp_path / "site").mkdir()
    return Cluster(slurm, book, tmp_path / "site")


def given(said: str) -> dict[int, set[str]]:
    """The scenarios that a build gave to jobs, by the number that Slurm gave to each."""
    names = dict(re.findall(r"^Job (\d+): Solve (.*)$", said, re.MULTILINE))
    submitted = re.findall(r"^Job (\d+) .* SLURM jobid (\d+) ", said, re.MULTILINE)
    return {int(job): {*names[number].split()} for number, job in submitted if number in names}


def test_a_build_that_loses_a_node_and_a_job_ends_with_the_bytes_of_one_machine(
    cluster: Cluster,
) -> None:
    killed: list[int] = []

    def drain_a_node_and_kill_a_job() -> list[int]:
        running = cluster.jobs("running")
        batches = [job for job, (_, rule) in running.items() if rule.startswith("solve_batch")]
        for job in batches[:1]:
            cluster.ask("scontrol", "update", "nodename=n1", "state=drain", "reason=test")
            cluster.ask("scancel", str(job))
            killed.append(job)
        return killed

    status, said = cluster.build(meanwhile=drain_a_node_and_kill_a_job)
    assert status == 1, said
    assert killed, said
    assert re.search(rf"SLURM-job '{killed[0]}' failed.*CANCELLED", said), said
    last = max(cluster.jobs("all"))

    status, again = cluster.build()
    assert status == 0, again
    solved = set[str]().union(*given(again).values())
    assert solved == given(said)[killed[0]], "the scenarios of the killed job, and no others"
    nodes = {node for job, (node, _) in cluster.jobs("completed").items() if job > last}
    assert nodes == {"n2"}
    assert cluster.book.results() == Clone(ROOT).results()
    assert cluster.book.pages() == Clone(ROOT).pages()


def test_the_build_shows_the_mistake_that_a_job_told(cluster: Cluster) -> None:
    cluster.book.edit("scenarios/DenseLLMReplicaA100.toml", "base = ", "bass = ")
    status, said = cluster.build("results/scenarios/DenseLLMReplicaA100.json")
    assert status == 1
    assert re.search(
        r"^mlsysim: .*scenarios/DenseLLMReplicaA100\.toml: kind is missing", said, re.M
    )


def test_a_host_with_a_slurm_is_left_alone(slurm: dict[str, str]) -> None:
    run = subprocess.run(
        [sys.executable, SCRIPT, "true"], env=slurm, capture_output=True, text=True
    )
    assert run.returncode == 2
    assert re.fullmatch(
        r"no Slurm is started: this host has one: slurmc?t?l?d runs as process \d+\n", run.stderr
    )
    run = subprocess.run(
        [sys.executable, SCRIPT, "true"],
        env=slurm | {"SLURM_CONF": "/somewhere/slurm.conf"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 2
    assert "/somewhere/slurm.conf" in run.stderr
