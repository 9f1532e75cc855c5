"""Measures start-up, a no-op build and a warm solve as ratios that outlive the machine.

Each ratio compares two commands that run in turn, so that a busy moment meets both.
The time of a command is its median, once as processor time with all children, once by the clock.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bench_book  # beside this file, which is run as a script
import bench_many

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = Path(sys.executable).parent
PINT = [sys.executable, "-c", "import pint; pint.UnitRegistry()"]
STEP_TIME = "from mlsysim import Scenarios; Scenarios.DenseLLMPretrainingStep.step_time"
BUILD = [str(COMMANDS / "snakemake"), "all", "--cores", "all"]
NOTHING_TO_DO = "Nothing to be done"
BASE_SNAKEFILE = 'rule all:\n    input:\n        "made.txt",\n'
CALLS_PER_RUN = 200


@dataclass(frozen=True, kw_only=True)
class Command:
    """What is run, and the folder it runs in."""

    argv: list[str]
    folder: Path = ROOT

    def run(self) -> str:
        """Run it once and return what it printed; a failure ends the benchmark with that text."""
        return bench_book.run(self.argv, self.folder)

    def timed(self) -> tuple[float, float]:
        """Run it once; seconds of processor time, then seconds by the clock."""
        cpu, wall = children_seconds(), time.perf_counter()
        self.run()
        return children_seconds() - cpu, time.perf_counter() - wall


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the printed table; `cpu` and `wall` have the unit of `goal`."""

    what: str
    cpu: float
    wall: float
    goal: float
    unit: str = ""

    def __str__(self) -> str:
        # Both must hold: waiting is as long for an author as computing.
        verdict = "met" if max(self.cpu, self.wall) <= self.goal else "missed"
        numbers = f"{self.cpu:7.2f} {self.wall:7.2f} {self.goal:7.2f}"
        return f"{self.what:<58}{numbers} {self.unit:<3} {verdict}"


def children_seconds() -> float:
    """Processor time of all child processes so far, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def medians(commands: list[Command], runs: int) -> list[tuple[float, float]]:
    """Median processor and clock seconds of each command, the commands run in turn."""
    for command in commands:
        command.run()  # Caches are filled and byte code is written before anything counts.
    rounds = [[command.timed() for command in commands] for _ in range(runs)]
    return [
        (statistics.median(cpu for cpu, _ in times), statistics.median(wall for _, wall in times))
        for times in zip(*rounds, strict=True)
    ]


def startup_rows(runs: int) -> list[Row]:
    """A scenario from Python and from the shell, over pint with its own vocabulary."""
    step_time = Command(argv=[sys.executable, "-c", STEP_TIME])
    solve = Command(argv=[str(COMMANDS / "mlsysim"), "solve", "DenseLLMPretrainingStep"])
    (pint_cpu, pint_wall), *others = medians([Command(argv=PINT), step_time, solve], runs)
    names = ["step_time of DenseLLMPretrainingStep / pint", "mlsysim solve / pint"]
    return [
        Row(what=what, cpu=cpu / pint_cpu, wall=wall / pint_wall, goal=goal)
        for what, (cpu, wall), goal in zip(names, others, [0.8, 1.0], strict=True)
    ]


@contextmanager
def bare_snakemake() -> Iterator[Command]:
    """Snakemake with one target that exists, and the flags of a build of the book."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "profiles", folder / "profiles")
        (folder / "Snakefile").write_text(BASE_SNAKEFILE, encoding="utf-8")
        (folder / "made.txt").touch()
        base = Command(argv=BUILD, folder=folder)
        if NOTHING_TO_DO not in base.run():
            raise SystemExit("the base workflow runs a job, so it is no base")
        yield base


def noop_row(runs: int) -> Row:
    """A build with nothing to do, its whole graph included, over bare Snakemake."""
    book = Command(argv=BUILD)
    book.run()  # Whatever is stale is made here, uncounted.
    if NOTHING_TO_DO not in book.run():
        raise SystemExit("a second `snakemake all` still finds something to do")
    with bare_snakemake() as base:
        (base_cpu, base_wall), (cpu, wall) = medians([base, book], runs)
    return Row(
        what="snakemake all with nothing to do / bare snakemake",
        cpu=cpu / base_cpu,
        wall=wall / base_wall,
        goal=1.3,
    )


def many_rows(runs: int) -> list[Row]:
    """A thousand generated scenarios: all stale, none, one."""
    seconds = bench_many.measure(runs)
    with bare_snakemake() as base:
        bare = medians([base], runs)[0]
    each, none, above = (
        [part / bench_many.MANY for part in seconds["all"]],
        [part / whole for part, whole in zip(seconds["none"], bare, strict=True)],
        [one - none for one, none in zip(seconds["one"], seconds["none"], strict=True)],
    )
    return [
        Row(
            what="1,000 scenarios, all stale, each", cpu=each[0], wall=each[1], goal=0.06, unit="s"
        ),
        Row(what="1,000 scenarios, none stale / bare", cpu=none[0], wall=none[1], goal=2.3),
        Row(what="one stale of 1,000, above none", cpu=above[0], wall=above[1], goal=1.5, unit="s"),
    ]


def in_process(what: str, goal: float, runs: int, calls: int, call: Callable[[], Any]) -> Row:
    """Milliseconds of one call in a running process."""
    call()
    cpu_times, wall_times = [], []
    for _ in range(runs):
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(calls):
            call()
        cpu_times.append((time.process_time() - cpu) / calls)
        wall_times.append((time.perf_counter() - wall) / calls)
    return Row(
        what=what,
        cpu=1e3 * statistics.median(cpu_times),
        wall=1e3 * statistics.median(wall_times),
        goal=goal,
        unit="ms",
    )


def solver_rows(runs: int) -> list[Row]:
    """The solver in a running process: one layout, many at once, and the search over all."""
    from mlsysim import Scenarios
    from mlsysim.solvers import DistributedModel, search

    arguments = vars(Scenarios.DenseLLMPretrainingStep.solver_arguments())
    model, fleet, batch = (arguments[name] for name in ("model", "fleet", "batch_size"))
    shared = {
        name: value
        for name, value in arguments.items()
        if name not in ("model", "fleet", "batch_size", *search.LAYOUT)
    }
    inputs, devices = (
        search.shared(model, fleet, batch, shared),
        fleet.total_accelerators,
    )
    columns, _ = search.existing_layouts(
        inputs, model.kv_heads, devices, batch, zero_stages=range(4)
    )
    columns = {name: values[:100_000] for name, values in columns.items()}
    return [
        in_process(
            "one warm DistributedModel.solve",
            0.2,
            runs,
            CALLS_PER_RUN,
            lambda: DistributedModel.solve(**arguments),
        ),
        in_process(
            "100,000 layouts of a grid, ledger and memory",
            200.0,
            runs,
            1,
            lambda: search.evaluate(inputs, columns, devices, batch),
        ),
        in_process(
            "best_layout on 1,024 accelerators",
            1000.0,
            runs,
            1,
            lambda: DistributedModel.best_layout(model, fleet, batch_size=batch, **shared),
        ),
    ]


def diff_row(runs: int) -> Row:
    """`mlsysim diff` of the last two revisions that moved what the pages print."""
    git = ["git", "log", "-2", "--format=%H", '-G"printed": ', "--", "results/quotes.json"]
    newer, older = Command(argv=git).run().split()
    # Its status says what moved; 1 alone is a failure.
    diff = Command(argv=["sh", "-c", f"{COMMANDS / 'mlsysim'} diff {older} {newer}; [ $? -ne 1 ]"])
    (base_cpu, base_wall), (cpu, wall) = medians([Command(argv=PINT), diff], runs)
    return Row(what="mlsysim diff / pint", cpu=cpu / base_cpu, wall=wall / base_wall, goal=2.0)


def check_row(runs: int) -> Row:
    """`mlsysim check` of the whole book, its libraries imported and its artifacts read."""
    from mlsysim.book.check.checking import check

    return in_process("mlsysim check of the book, warm", 2000.0, runs, 1, check)


def published_row(runs: int) -> Row:
    """Ninety-seven published steps in one process, over the reference step alone."""
    solve = [str(COMMANDS / "mlsysim"), "solve"]
    (base_cpu, base_wall), (cpu, wall) = medians(
        [
            Command(argv=[*solve, "DenseLLMPretrainingStep"]),
            Command(argv=[*solve, "PublishedStepTimes"]),
        ],
        runs,
    )
    return Row(
        what="mlsysim solve PublishedStepTimes / reference step",
        cpu=cpu / base_cpu,
        wall=wall / base_wall,
        goal=2.0,
    )


def book_rows(runs: int) -> list[Row]:
    """The whole book from nothing, and after two edits, beside executing its notebooks alone."""
    seconds = bench_book.measure(runs)

    def row(what: str, one: str, other: str, goal: float) -> Row:
        cpu, wall = (part / whole for part, whole in zip(seconds[one], seconds[other], strict=True))
        return Row(what=what, cpu=cpu, wall=wall, goal=goal)

    return [
        row("cold build, results in place / notebooks, bare Sphinx", "cold", "alone", 0.95),
        row("cold build, no results either / the same", "from nothing", "alone", 0.95),
        row("a word of prose / cold build, results in place", "prose", "cold", 0.3),
        row("a registry value / cold build, results in place", "registry", "cold", 1.0),
    ]


def main() -> None:
    """Print the table. A missed goal is said, and is no failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="runs of each command, at least 5")
    runs = max(5, parser.parse_args().runs)
    print(f"{f'medians of {runs} runs':<58}{'CPU':>7} {'wall':>7} {'goal':>7}")
    for row in startup_rows(runs):
        print(row, flush=True)
    print(noop_row(runs), flush=True)
    print(published_row(runs), flush=True)
    print(diff_row(runs), flush=True)
    for row in (*solver_rows(runs), *many_rows(3), *book_rows(3)):
        print(row, flush=True)
    print(check_row(runs), flush=True)


if __name__ == "__main__":
    main()
