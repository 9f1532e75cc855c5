"""The profile of a cluster builds as the default one does, but for where."""

from __future__ import annotations

import re

import yaml

from tests.conftest import REPOSITORY

PROFILES = REPOSITORY / "profiles"
ONLY_THERE = {"executor", "jobs", "latency-wait", "show-failed-logs", "slurm-requeue"}


def test_the_profile_of_a_cluster_says_what_the_default_profile_says() -> None:
    default, slurm = (
        yaml.safe_load((PROFILES / name / "config.yaml").read_text("utf-8"))
        for name in ("default", "slurm")
    )
    assert {key for key in {*default, *slurm} if default.get(key) != slurm.get(key)} == {
        "cores",  # of this machine, and of a job
        *ONLY_THERE,
    }


def test_what_the_executor_of_a_cluster_needs_is_pinned_beside_the_lock_and_once() -> None:
    main, slurm = (
        dict(re.findall(r"^([\w.-]+)==(\S+)", (REPOSITORY / name).read_text("utf-8"), re.M))
        for name in ("requirements.lock", "requirements-slurm.lock")
    )
    assert "snakemake-executor-plugin-slurm" in slurm
    assert not main.keys() & slurm.keys()
