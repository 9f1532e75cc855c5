"""Clones of the project as it is in the working tree, with real git and real Snakemake."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from mlsysim.book.source.front_matter import skeleton
from tests import working_tree

# A book of two short chapters, so that a test pays for what a build decides and not for long pages:
# one reads the reference step, the other the A100 step alone, so that tests can tell them apart.
FIRST = "01_reference_step"
FIRST_CHAPTER = f"""\
{skeleton({"step": "DenseLLMPretrainingStep"})}
# The step

```{{code-cell}} ipython3
import pandas as pd

from mlsysim import read
from mlsysim.book import new_figure, save_figure, save_table

step = read("DenseLLMPretrainingStep")
runs = read("PublishedStepTimes").table()
save_table("{FIRST}/step", pd.DataFrame({{"time": [step.quote("step_time in s as .2f")]}}))
figure, axes = new_figure()
axes.plot(runs["measured_s"], runs["predicted_s"], "o")
save_figure("{FIRST}/runs", figure, data=runs[["measured_s", "predicted_s"]])
```

One step takes {{quote}}`step.step_time in s as .2f`.
That is {{claim}}`under a minute if step.step_time < 60 s`.

:::{{figure}} ../results/figures/{FIRST}/runs.svg
:name: fig-runs

Predicted against measured times.
:::
"""
OTHER = "90_previous_generation"
ORPHAN = skeleton().replace("---\n", "---\norphan: true\n", 1)
OTHER_CHAPTER = f"""\
{ORPHAN}
# The previous generation

```{{code-cell}} ipython3
import pandas as pd

from mlsysim import read
from mlsysim.book import save_table

old = read("DenseLLMPretrainingStepA100")
frame = pd.DataFrame({{"part": ["step"], "time": [old.quote("step_time in s as .2f")]}})
save_table("{OTHER}/step", frame)
```

One step takes {{quote}}`DenseLLMPretrainingStepA100.step_time in s as .1f`.
"""


INDEX = f"""\
# A small book

```{{toctree}}
:numbered:

{FIRST}
```

```{{toctree}}
bibliography
```
"""

# Its scenarios: steps and replicas, a table of runs, a sweep, and one that knows nothing of memory.
KEPT = (
    *("BLOOMInterruptions", "DenseLLMPretrainingStep", "DenseLLMPretrainingStepA100"),
    *("DenseLLMReplica", "DenseLLMReplicaA100", "NetworkRateSweep"),
    *("PublishedStepFit", "PublishedStepTimes"),  # constants of the registry cite the fit
)


class Clone:
    """A clone with the few verbs that the tests are written in."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def git(self, *arguments: str) -> str:
        run = subprocess.run(
            ["git", *arguments], cwd=self.path, check=True, capture_output=True, text=True
        )
        return run.stdout

    def changed(self) -> list[str]:
        """What `git status` names."""
        return self.git("status", "--porcelain").splitlines()

    def environment(self) -> dict[str, str]:
        found = os.environ | {"PYTHONPATH": str(self.path)}
        found.pop("PYTHONDONTWRITEBYTECODE", None)  # as for a person
        return found

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=self.path,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # Whoever starts the tests in the background has them ignore what ends a server.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
            **options,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self.path,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def build(self, target: str = "all") -> Build:
        """`snakemake all`, which must succeed."""
        run = self.run("snakemake", target)
        assert run.returncode == 0, run.stdout
        return Build(run.stdout)

    def mlsysim(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("mlsysim", *arguments)

    def edit(self, path: str, old: str, new: str) -> None:
        file = self.path / path
        text = file.read_text()
        assert old in text, f"{path} does not hold {old!r}"
        file.write_text(text.replace(old, new, 1))

    def results(self) -> dict[str, bytes]:
        """Every byte under results/."""
        folder = self.path / "results"
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    def pages(self) -> dict[str, bytes]:
        """Every byte under build/book."""
        folder = self.path / "build/book"
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and ".doctrees" not in path.parts
        }

    def set_times(self, folders: dict[str, float]) -> None:
        """Give every file of each folder ('' for all) one time stamp, in that order."""
        for folder, moment in folders.items():
            for path in (self.path / folder).rglob("*"):
                if ".git" not in path.parts and path.is_file():
                    os.utime(path, (moment, moment))


class Build:
    """What a build said it did."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.solved = sorted(re.findall(r"^solved (\w+) ->", said, re.MULTILINE))
        self.executed = sorted(re.findall(r"^executed (\w+)", said, re.MULTILINE))
        self.page = "built build/book" in said
        self.nothing = "Nothing to be done" in said


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit: the working tree as it is, with a small book in it."""
    folder = tmp_path_factory.mktemp("source") / "book"
    working_tree.copy_to(folder, _left_out)
    for page, text in ((FIRST, FIRST_CHAPTER), (OTHER, OTHER_CHAPTER), ("index", INDEX)):
        (folder / f"chapters/{page}.md").write_text(text)
    made = Clone(folder)
    made.git("init", "--quiet", "--initial-branch", "main")
    made.git("config", "user.name", "Test")
    made.git("config", "user.email", "test@example.invalid")
    made.build()
    made.git("add", "--all")
    made.git("commit", "--quiet", "--message", "The book")
    return folder


def _left_out(name: str) -> bool:
    """Whether a file of the project is no part of the small book."""
    folder, _, rest = name.partition("/")
    if folder == "scenarios":
        return rest.partition(".")[0] not in KEPT
    return folder == "results" or re.fullmatch(r"chapters/\d\d_\w+\.md", name) is not None


def cloned(source: Path, path: Path) -> Clone:
    subprocess.run(["git", "clone", "--quiet", str(source), str(path)], check=True)
    made = Clone(path)
    made.git("config", "user.name", "Test")
    made.git("config", "user.email", "test@example.invalid")
    return made


@pytest.fixture
def fresh(source: Path, tmp_path: Path) -> Clone:
    """A clone in which nothing was built yet."""
    return cloned(source, tmp_path / "clone")


@pytest.fixture(scope="session")
def built_once(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("built") / "clone"
    made = cloned(source, path)
    built = made.build()
    assert built.solved == []
    assert made.changed() == []
    return path


@pytest.fixture
def built(built_once: Path, tmp_path: Path) -> Clone:
    """A clone in which `snakemake all` ran once."""
    path = tmp_path / "clone"
    shutil.copytree(built_once, path, symlinks=True)
    return Clone(path)
