"""Measured scaling: published runs that differ in their number of replicas alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._published_rows import Run
from mlsysim.engine.scenario_definitions.published_steps import PublishedStepTimesScenario
from mlsysim.errors import InputError
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.statistics import mean
from mlsysim.units import Quantity
from mlsysim.units.quantities import percent

__all__ = ["MeasuredScalingScenario"]


@record
class MeasuredScalingScenario(Scenario):
    """How much longer published steps take on more replicas with the same work for each.

    A series are runs of one source, one after the other in its table, that have the same model,
    layout, options and microbatches of a replica, on ascending numbers of accelerators. It bears
    the name of its first run. A second release of the same software begins a series of its own.

    Equation: growth = step time / step time of the series' first run - 1.

    Assumptions: nothing but the number of replicas changed within a series.

    Excludes: series of fewer runs than `least_runs`.
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    published: PublishedStepTimesScenario = declared(description="the measured runs")
    least_runs: int = declared(at_least=2, description="runs that a series has at least")

    def check(self) -> None:
        """Refuse runs among which there is no series."""
        if not self._series:
            raise InputError(f"least_runs = {self.least_runs}: no series has as many runs")
        if not self._doublings:
            raise InputError("no run of a series has twice the accelerators of the one before")

    @output()
    def series_count(self) -> int:
        """Series that were found. Equation: those of at least least_runs runs."""
        return len(self._series)

    @output()
    def smallest(self) -> dict[str, int]:
        """Accelerators of the first run of each series. Equation: as published."""
        return {runs[0].name: _accelerators(runs[0]) for runs in self._series}

    @output()
    def largest(self) -> dict[str, int]:
        """Accelerators of the last run of each series. Equation: as published."""
        return {runs[0].name: _accelerators(runs[-1]) for runs in self._series}

    @output("%")
    def mean_measured_growth(self) -> Quantity:
        """Mean over the series. Equation: mean(last / first - 1), measured."""
        return percent(mean([_measured(runs, runs[-1]) for runs in self._series]))

    @output("%")
    def mean_predicted_growth(self) -> Quantity:
        """Mean over the series. Equation: mean(last / first - 1), modeled."""
        return percent(mean([_predicted(runs, runs[-1]) for runs in self._series]))

    @output("%")
    def most_measured_growth(self) -> Quantity:
        """The series that grows most. Equation: max(last / first - 1), measured."""
        return percent(max(_measured(runs, runs[-1]) for runs in self._series))

    @output("%")
    def least_measured_growth(self) -> Quantity:
        """The series that grows least. Equation: min(last / first - 1), measured."""
        return percent(min(_measured(runs, runs[-1]) for runs in self._series))

    @output("%")
    def most_predicted_growth(self) -> Quantity:
        """The series that the model lets grow most. Equation: max(last / first - 1), modeled."""
        return percent(max(_predicted(runs, runs[-1]) for runs in self._series))

    @output("%")
    def growth_a_doubling(self) -> Quantity:
        """Mean growth of the measured step from one run to the next of twice the accelerators.

        Equation: mean(step time of the run / step time of the one before - 1) over all series.
        """
        return percent(
            mean([run.measured / before.measured - 1 for before, run in self._doublings])
        )

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """One row a run of a series: its size, and percent of growth since the first run."""
        return [
            {
                "series": runs[0].name,
                "source": run.source,
                "run": run.name,
                "accelerators": _accelerators(run),
                "times_smallest": _accelerators(run) / _accelerators(runs[0]),
                "measured_growth_percent": 100 * _measured(runs, run),
                "predicted_growth_percent": 100 * _predicted(runs, run),
            }
            for runs in self._series
            for run in runs
        ]

    @property
    def _doublings(self) -> list[tuple[Run, Run]]:
        """Neighbors in a series of which the second has twice the accelerators."""
        return [
            (before, run)
            for runs in self._series
            for before, run in itertools.pairwise(runs)
            if _accelerators(run) == 2 * _accelerators(before)
        ]

    @cached_property
    def _series(self) -> list[list[Run]]:
        series = _series_of(self.published.solved)
        return [runs for runs in series if len(runs) >= self.least_runs]


def _series_of(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """The runs, cut where anything but the number of replicas changes."""
    series: list[Run] = []
    for run in runs:
        if series and not _continues(series[-1], run):
            yield series
            series = []
        series.append(run)
    yield series


def _continues(before: Run, run: Run) -> bool:
    """Whether a run is the one before it on more accelerators."""
    same = all(
        before.arguments[name] == run.arguments[name]
        for name in before.arguments
        if name not in ("fleet", "batch_size")
    )
    kept = before.arguments["fleet"].node == run.arguments["fleet"].node
    work = before.result.inputs.microbatch == run.result.inputs.microbatch
    larger = _accelerators(run) > _accelerators(before)
    return before.source == run.source and same and kept and work and larger


def _accelerators(run: Run) -> int:
    return int(run.arguments["fleet"].total_accelerators)


def _measured(runs: Sequence[Run], run: Run) -> float:
    return run.measured / runs[0].measured - 1


def _predicted(runs: Sequence[Run], run: Run) -> float:
    return run.predicted / runs[0].predicted - 1
