"""Times of the whole book, in a copy of the project: part of `make bench`.

The baseline is what an author would do without this project: `jupytext --execute` of each chapter,
as many at a time as the build may run, then one Sphinx build of the executed notebooks with the
same theme and nothing of ours.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import working_tree  # beside this file, which is run as a script

CORES = 2
CAPACITY = "mlsysim/registry/data/hardware/H100_SXM.toml", "81559 MiB", "81558 MiB"
BARE = """\
project = "Bare"
extensions = ["myst_nb", "sphinxcontrib.bibtex"]
nb_execution_mode = "off"
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
numfig = True
bibtex_bibfiles = ["references.bib"]
html_theme = "sphinx_book_theme"
"""
INDEX = "# Bare\n\n```{toctree}\n:numbered:\n\n"

Times = tuple[float, float]


def run(argv: list[str], folder: Path, **variables: str) -> str:
    """What a command prints that runs in a folder; a failure ends the benchmark with it."""
    # The commands of the environment first, as `make` runs them, and bytecode kept as usual.
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, **variables, "PATH": commands}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        argv,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)} failed:\n{done.stdout}")
    return done.stdout


class Book:
    """A copy of the working tree, with the commands that are timed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "book"
        working_tree.copy_to(self.folder)
        self.chapters = sorted(p.stem for p in self.folder.glob("chapters/[0-9][0-9]_*.md"))
        self.bare = folder / "bare"

    def run(self, *command: str) -> str:
        """What a command prints; a failure ends the benchmark with it."""
        ours = {"MLSYSIM_ROOT": str(self.folder), "PYTHONPATH": str(self.folder)}
        return run([sys.executable, "-m", *command], self.folder, **ours)

    def build(self) -> str:
        """`snakemake -c2 all`."""
        return self.run("snakemake", f"-c{CORES}", "all")

    def forget(self) -> None:
        """As a fresh clone: nothing built, results as they were committed."""
        for name in ("build", ".snakemake"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def forget_figures(self) -> None:
        """No figure for print: one that is there is not drawn again."""
        shutil.rmtree(self.folder / "build" / "figures", ignore_errors=True)

    def forget_results(self) -> None:
        """As nothing ever made: not even results."""
        self.forget()
        shutil.rmtree(self.folder / "results")

    def turn(self, path: str, one: str, other: str) -> None:
        """Put one text in the place of the other, whichever is there."""
        file = self.folder / path
        text = file.read_text(encoding="utf-8")
        if one not in text:
            one, other = other, one
        file.write_text(text.replace(one, other, 1), encoding="utf-8")

    def execute_alone(self) -> None:
        """The chapters by `jupytext --execute`, two at a time, then a bare Sphinx build."""
        shutil.rmtree(self.bare, ignore_errors=True)
        sources = self.bare / "chapters"
        sources.mkdir(parents=True)
        shutil.copytree(self.folder / "results", self.bare / "results")
        shutil.copy(self.folder / "chapters/references.bib", sources)
        (sources / "conf.py").write_text(BARE, encoding="utf-8")
        listed = "\n".join(self.chapters)
        (sources / "index.md").write_text(f"{INDEX}{listed}\n```\n", encoding="utf-8")

        def execute(chapter: str) -> None:
            out = str(sources / f"{chapter}.ipynb")
            source = f"chapters/{chapter}.md"
            self.run("jupytext", "--quiet", "--execute", "--to", "ipynb", "--output", out, source)

        with ThreadPoolExecutor(CORES) as pool:
            list(pool.map(execute, self.chapters))
        self.run("sphinx", "-q", "-b", "html", str(sources), str(self.bare / "html"))


@contextmanager
def book() -> Iterator[Book]:
    """A book in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        yield Book(Path(folder))


def timed(prepare: Callable[[], object], work: Callable[[], object], runs: int) -> Times:
    """Median seconds of processor time with all children, and by the clock."""
    rounds = []
    for _ in range(runs):
        prepare()
        before, wall = _children(), time.perf_counter()
        work()
        rounds.append((_children() - before, time.perf_counter() - wall))
    return median(cpu for cpu, _ in rounds), median(wall for _, wall in rounds)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(runs: int) -> dict[str, Times]:
    """Seconds of the baseline, of a cold build with and without results, and after two edits."""
    with book() as copy:
        first = f"chapters/{copy.chapters[1]}.md"
        copy.build()  # caches of fonts and byte code, and results that are not committed yet
        text = (copy.folder / first).read_text(encoding="utf-8")
        sentence = next(
            line for line in reversed(text.splitlines()) if line.endswith(".") and "`" not in line
        )
        said: list[str] = []

        def build() -> None:
            said.append(copy.build())

        found = {
            "alone": timed(copy.forget_figures, copy.execute_alone, runs),
            "cold": timed(copy.forget, build, runs),
            "prose": timed(
                lambda: copy.turn(first, sentence, sentence[:-1] + " indeed."), build, runs
            ),
        }
        if any(line.startswith("executed ") for line in said[-1].splitlines()):
            raise SystemExit(f"a word of prose executed a chapter:\n{said[-1]}")
        found["registry"] = timed(lambda: copy.turn(*CAPACITY), build, runs)
        executed = [line for line in said[-1].splitlines() if line.startswith("executed ")]
        if len(executed) != len(copy.chapters):
            raise SystemExit(f"a registry value left a chapter as it was:\n{said[-1]}")
        copy.build()
        found["from nothing"] = timed(copy.forget_results, build, runs)
    return found


if __name__ == "__main__":
    for what, (cpu, wall) in measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1).items():
        print(f"{what:14}{cpu:8.2f} s CPU{wall:8.2f} s")
