"""What the tests share: roots and copies of the package to write in, and how to run them."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from mlsysim import paths
from mlsysim.artifacts.solving import solve
from mlsysim.declared import Declared
from mlsysim.documents import names
from mlsysim.turns import BUILD

# Run as scripts by `make bench`; as modules they would not find each other.
collect_ignore = ["bench.py", "bench_book.py"]

# A busy machine is no failure; the same examples each time, so that a failure can be met again.
settings.register_profile("mlsysim", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("mlsysim")

REPOSITORY = Path(__file__).resolve().parents[1]

SCENARIOS = (
    "DenseLLMPretrainingStep",
    "DenseLLMPretrainingStepA100",
    "DenseLLMReplica",
    "DenseLLMReplicaA100",
    "PublishedStepFit",
)
FIT = SCENARIOS[-1]

D = TypeVar("D", bound=Declared)
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def vary(thing: D, **changes: Any) -> D:
    """The same thing with other fields, checked again as it is made."""
    return dataclasses.replace(thing, **changes)


def copy_project(to: Path) -> Path:
    """What a root holds before anything is solved: scenarios, bibliography, pins, a Snakefile.

    Of the scenarios it holds the four that the tests name; what authors add changes nothing. The
    registry and two of them cite the fit of the published steps, so a replica that is quick to
    solve stands in its place.
    """
    (to / "scenarios").mkdir(parents=True)
    for name in SCENARIOS:
        if name != FIT:
            shutil.copy(REPOSITORY / "scenarios" / f"{name}.toml", to / "scenarios")
    (to / "scenarios" / f"{FIT}.toml").write_text(
        'base = "Scenarios.DenseLLMReplica"\ntitle = "In place of the fit"\n', encoding="utf-8"
    )
    (to / "chapters").mkdir()
    shutil.copy(REPOSITORY / "chapters" / "references.bib", to / "chapters")
    shutil.copy(REPOSITORY / "requirements.lock", to)
    (to / "Snakefile").touch()
    return to


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root of its own to write in, with the project's scenarios and nothing solved."""
    made = copy_project(tmp_path / "root")
    monkeypatch.setenv("MLSYSIM_ROOT", str(made))
    # A command holds the lock on builds until its process ends, and this process has many to run.
    monkeypatch.setenv(BUILD, "tests")
    return made


@pytest.fixture
def solved(root: Path) -> Path:
    """The same root with every scenario solved."""
    assert not [done.error for done in solve(names("Scenarios")) if done.error]
    return root


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package whose code and registry a test may change; run it as a process."""
    copy = tmp_path / "code" / "mlsysim"
    shutil.copytree(paths.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture
def registry(root: Path, package: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The registry's data files as copies that this process reads in place of its own."""
    assert paths.root() == root
    monkeypatch.setattr(paths, "PACKAGE", package)
    return package / "registry" / "data"


@pytest.fixture
def run() -> Run:
    """A command in a process of its own: ``run(root, "solve", "--all", package=copy)``."""

    def process(
        root: Path, *arguments: str, package: Path = paths.PACKAGE, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mlsysim", *arguments],
            cwd=root,
            env={
                **os.environ,
                "MLSYSIM_ROOT": str(root),
                "PYTHONPATH": str(package.parent),
                "PYTHONDONTWRITEBYTECODE": "1",
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return process
