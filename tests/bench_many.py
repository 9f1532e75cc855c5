"""Times of a book with a thousand more scenarios, in a copy of it: part of `make bench`."""

from __future__ import annotations

import sys
from statistics import median

import bench_book  # beside this file, which is run as a script
from bench_book import Times, timed

MANY = 1000
# The reference step with one value of its own.
CASE = """\
# A generated case.
title = "Case {number}"
base = "Scenarios.DenseLLMPretrainingStep"

[local_efficiency]
value = {value:.4f}
source = "assumption: generated"
"""


def measure(runs: int) -> dict[str, Times]:
    """Seconds of all that are stale, of none, and of one; `none` and `one` as medians."""
    with bench_book.book() as copy:

        def write(number: int, value: float) -> None:
            path = copy.folder / f"scenarios/Case{number:04}.toml"
            path.write_text(CASE.format(number=number, value=value), encoding="utf-8")

        def build() -> str:
            return copy.run("snakemake", f"-c{bench_book.CORES}", "artifacts")

        build()  # what the project itself has stale
        for number in range(MANY):
            write(number, 0.5 + number / 10 / MANY)
        found = {"all": timed(lambda: None, build, 1)}
        if "Nothing to be done" not in build():
            raise SystemExit("a second `snakemake artifacts` still finds something to do")
        # In turn, so that a busy moment meets both.
        rounds = []
        for number in range(runs):
            none = timed(lambda: None, build, 1)
            rounds.append((none, timed(lambda n=number: write(n, 0.6), build, 1)))
        for what, times in zip(("none", "one"), zip(*rounds, strict=True), strict=True):
            found[what] = median(cpu for cpu, _ in times), median(wall for _, wall in times)
        return found


if __name__ == "__main__":
    for what, (cpu, wall) in measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1).items():
        print(f"{what:14}{cpu:8.2f} s CPU{wall:8.2f} s")
