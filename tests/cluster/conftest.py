"""A Slurm of two nodes, and a copy of the book with nothing made in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.conftest import Clone

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("slurm.py")


@pytest.fixture(scope="module")
def slurm() -> Iterator[dict[str, str]]:
    """The environment of commands that reach a Slurm; it ends with these tests, or with pytest."""
    command = [sys.executable, SCRIPT, "sh", "-c", 'echo "$PATH"; cat']
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin
        assert running.stdout
        path = running.stdout.readline().strip()
        if not path:
            pytest.fail("there is no Slurm, as the line above says")
        yield {**os.environ, "PATH": path}
        running.stdin.close()
    assert running.returncode == 0
    assert not Path(path.partition(os.pathsep)[0]).exists()


@pytest.fixture
def book(tmp_path: Path) -> Clone:
    """A copy of the project without results and without a build."""
    made = tmp_path / "book"
    left_out = (".git", ".venv", ".snakemake", "build", "results", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, made, ignore=shutil.ignore_patterns(*left_out))
    return Clone(made)
