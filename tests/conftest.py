"""What the tests share: roots and copies of the package to write in, and how to run them."""

from __future__ import annotations

import ast
import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from mlsysim import paths
from mlsysim.building.solving import solve
from mlsysim.declarations.documents import names
from mlsysim.declarations.fields import Declared
from mlsysim.runtime.turns import BUILD

# Run as scripts by `make bench`; as modules they would not find each other.
collect_ignore = ["bench.py", "bench_book.py", "bench_many.py"]

# Hypothesis draws one value in twenty from the constants of the local modules that are imported, so
# what else runs in the process would choose the examples. It draws from its own list alone.
providers._get_local_constants = lambda: providers._local_constants

# A busy machine is no failure. `make test` draws the same examples each time, so that a failure can
# be met again; `make test-long` draws others by its seed.
settings.register_profile(
    "mlsysim",
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long",
    settings.get_profile("mlsysim"),
    derandomize=False,
    max_examples=int(os.environ.get("EXAMPLES", "600")),
)
settings.load_profile("mlsysim")

REPOSITORY = Path(__file__).resolve().parents[1]

SCENARIOS = (
    "DenseLLMPretrainingStep",
    "DenseLLMPretrainingStepA100",
    "DenseLLMReplica",
    "DenseLLMReplicaA100",
)

# What executes a chapter, lays out pages or starts a process takes seconds, and `make quick` leaves
# it out.
SLOW_CALLS = {"build", "command", "execute", "execute_all", "lay_out", "run_sphinx", "subprocess"}

D = TypeVar("D", bound=Declared)
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test that calls such a function, by itself, a fixture or a function of the tests."""
    if isinstance(item, pytest.Function):
        fixtures = item._fixtureinfo.name2fixturedefs.values()
        if any(map(_is_slow, (item.function, *(made[-1].func for made in fixtures)))):
            item.add_marker("slow")


@cache
def _is_slow(function: Any) -> bool:
    """Whether a function, or one of the tests that it leads to, calls what is slow."""
    todo, seen = [function], set[int]()
    while todo:
        code = getattr(each := todo.pop(), "__code__", None)
        if code is None or id(code) in seen:
            continue
        seen.add(id(code))
        inner = [part for part in code.co_consts if hasattr(part, "co_names")]
        names = {name for part in (code, *inner) for name in part.co_names}
        if names & SLOW_CALLS:
            return True
        called = [each.__globals__.get(name) for name in names]
        todo += [f for f in called if str(getattr(f, "__module__", "")).startswith("tests.")]
    return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    """Beside examples that fail, the lines that make them examples of every run."""
    report = yield
    if report.failed and (found := getattr(item, "_hypothesis_failing_examples", None)):
        params = item.callspec.params if hasattr(item, "callspec") else {}
        lines = "\n".join(fixed_example(each, {*params}) for each in found)
        report.sections.append(("to keep, above @given", lines))
    return report


def fixed_example(call: str, not_given: AbstractSet[str]) -> str:
    """The call of a test that Hypothesis prints as a decorator of it, without pytest's parameters.

    Arguments whose repr is no Python leave it as it is.

    >>> fixed_example("test_it(name='rates', case=case_of(layers=2), factor=2.0)", {"name"})
    '@example(case=case_of(layers=2), factor=2.0)'
    """
    try:
        made = ast.parse(call.partition("\nExplanation:")[0].strip(), mode="eval").body
    except SyntaxError:  # an argument whose repr is no Python
        return call
    assert isinstance(made, ast.Call)
    kept = [each for each in made.keywords if each.arg not in not_given]
    return f"@{ast.unparse(ast.Call(ast.Name('example'), made.args, kept))}"


def vary(thing: D, **changes: Any) -> D:
    """The same thing with other fields, checked again as it is made."""
    return dataclasses.replace(thing, **changes)


def copy_project(to: Path) -> Path:
    """What a root holds before anything is solved: scenarios, bibliography, pins, a Snakefile.

    Of the scenarios it holds the four that the tests name; what authors add changes nothing.
    """
    (to / "scenarios").mkdir(parents=True)
    for name in SCENARIOS:
        shutil.copy(REPOSITORY / "scenarios" / f"{name}.toml", to / "scenarios")
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


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a solve of such a root makes, to be copied."""
    made = copy_project(tmp_path_factory.mktemp("solved") / "root")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLSYSIM_ROOT", str(made))
        patch.setenv(BUILD, "tests")
        assert not [done.error for done in solve(names("Scenarios")) if done.error]
    return made / "results"


@pytest.fixture
def solved(results: Path, root: Path) -> Path:
    """The same root with every scenario solved."""
    shutil.copytree(results, root / "results")
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
