"""The fit: the few constants that no data sheet gives, from the published steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._published_rows import Run
from mlsysim.engine.scenario_definitions.published_steps import PublishedStepTimesScenario
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.fitting import least_squares
from mlsysim.solvers.statistics import mean
from mlsysim.solvers.step import Inputs, stacked, times
from mlsysim.units import Quantity, unit
from mlsysim.units.quantities import percent

__all__ = ["PublishedStepFitScenario"]

# The fitted constants: name, where the fit starts, its bounds, the decimal or unit it is rounded
# to.
_CONSTANTS = (
    ("matrix_efficiency", 0.7, 0.3, 1.0, 0.001),
    ("half_work", 100e9, 1e8, 1e13, 1e9),
    ("memory_efficiency", 0.7, 0.1, 1.0, 0.001),
    ("overlap_exposure", 0.5, 0.01, 1.0, 0.001),
)


class _Runs:
    """Runs on one accelerator as arrays, so that a set of constants is tried on all at once."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = list(runs)
        self._inputs = stacked([run.result.inputs for run in runs])
        # Without a run that overlaps its communication there is nothing to fit that share to.
        self.count = 4 if any(run.result.inputs.overlap_tensor for run in runs) else 3

    def fitted(self, start: Sequence[float] = ()) -> list[float]:
        """The constants of least squared error, rounded as the registry holds them."""
        _names, starts, lower, upper, digits = zip(*_CONSTANTS[: self.count], strict=True)
        begin = start[: self.count] if len(start) >= self.count else starts
        exact = least_squares(self.errors_under, begin, lower, upper)
        return [
            round(value / digit) * digit if digit >= 1 else round(value, 3)
            for value, digit in zip(exact, digits, strict=True)
        ]

    def errors(self, constants: Sequence[float]) -> list[float]:
        """The error of each run under these constants, predicted / measured - 1."""
        [found] = self.errors_under([constants])
        return found

    def errors_under(self, sets: Sequence[Sequence[float]]) -> list[list[float]]:
        """The errors of all runs under each of several sets of constants, evaluated at once."""
        import numpy as np

        # A row a set; the runs are the columns.
        columns: list[Any] = [np.array(each)[:, None] for each in zip(*sets, strict=True)]
        efficiency, half_work, memory_efficiency, *exposure = columns
        changed: Inputs = self._inputs._replace(
            efficiency=efficiency,
            half_work=half_work,
            memory_efficiency=memory_efficiency,
            overlap_exposure=exposure[0] if exposure else 1.0,
        )
        seconds: Any = times(changed)[0].total
        return [
            [float(each) / run.measured - 1 for each, run in zip(row, self.runs, strict=True)]
            for row in seconds
        ]


@record
class PublishedStepFitScenario(Scenario):
    """Constants of each accelerator, fitted to all published steps on it at once.

    At most four an accelerator: the share of the peak that large matrix products reach, the work at
    which half of it is reached, the share of the memory bandwidth that kernels reach, and the share
    of overlapped communication that stays exposed. None belongs to a run, a model or a publication.

    Equation: constants = arg min sum over runs of (predicted / measured - 1)^2.

    Assumptions: both releases of a page, and all runs of a publication, share what the model does
    not know, so they leave the fit together when a source is left out.

    Excludes: the runs that `aside` names, which stay a check.

    Derivation: mlsysim.solvers.fitting.least_squares over the published steps, each solved by
    mlsysim.solvers.DistributedModel, whose docstring states equations and sources.

    >>> from mlsysim import Scenarios
    >>> case = Scenarios.PublishedStepFit
    >>> sorted(case.matrix_efficiency)
    ['A100_SXM_80GB', 'H100_SXM']
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    steps: PublishedStepTimesScenario = declared(description="the published steps")
    aside: str = declared(description="sources that begin with this stay out of the fit")
    halves: int = declared(at_least=1, description="random halves on which the fit is tried")

    @output()
    def matrix_efficiency(self) -> dict[str, float]:
        """Share of the dense peak that large matrix products reach. Equation: least squares."""
        return {name: fit[0] for name, fit in self._fits().items()}

    @output("GFLOP")
    def half_work(self) -> dict[str, Quantity]:
        """Work of a layer at which products reach half of it. Equation: least squares."""
        return {name: Quantity(fit[1] / 1e9, unit("GFLOP")) for name, fit in self._fits().items()}

    @output()
    def memory_efficiency(self) -> dict[str, float]:
        """Share of the memory bandwidth that kernels reach. Equation: least squares."""
        return {name: fit[2] for name, fit in self._fits().items()}

    @output()
    def overlap_exposure(self) -> dict[str, float]:
        """Share of overlapped communication that stays exposed; none where no run overlaps it.

        Equation: least squares.
        """
        return {name: fit[3] for name, fit in self._fits().items() if len(fit) > 3}

    @output("%")
    def fitted_error(self) -> dict[str, Quantity]:
        """Mean absolute error of the runs that were fitted, of each accelerator and in all.

        Equation: mean(|predicted / measured - 1|).
        """
        found = {
            name: [abs(e) for e in runs.errors(self._fits()[name])]
            for name, runs in self._sets().items()
        }
        return self._with_all(found)

    @output("%")
    def other_half_error(self) -> dict[str, Quantity]:
        """Mean absolute error on the half that was not fitted, over many random halves.

        Equation: mean over halves of mean(|predicted / measured - 1|) of the runs left out.
        """
        found: dict[str, list[float]] = {}
        for name, runs in self._sets().items():
            for kept, left in _halves(runs.runs, self.halves):
                constants = _Runs(kept).fitted(self._fits()[name])
                found.setdefault(name, []).extend(_absolute(left, constants))
        return self._with_all(found)

    @output("%")
    def left_out_error(self) -> dict[str, Quantity]:
        """Mean absolute error on a source that the fit has not seen.

        Equation: mean(|predicted / measured - 1|) of its runs, with constants from all other
        sources.
        """
        return {source: percent(mean(_absolute(*each))) for source, each in self._left_out()}

    def _sets(self) -> dict[str, _Runs]:
        """The runs to fit, by accelerator."""
        if "_by_accelerator" not in self.__dict__:
            groups: dict[str, list[Run]] = {}
            for run in self.steps.solved:
                if not run.source.startswith(self.aside):
                    groups.setdefault(run.accelerator, []).append(run)
            self.__dict__["_by_accelerator"] = {k: _Runs(v) for k, v in groups.items()}
        found: dict[str, _Runs] = self.__dict__["_by_accelerator"]
        return found

    def _fits(self) -> dict[str, list[float]]:
        if "_constants" not in self.__dict__:
            self.__dict__["_constants"] = {k: v.fitted() for k, v in self._sets().items()}
        found: dict[str, list[float]] = self.__dict__["_constants"]
        return found

    def _left_out(self) -> Iterator[tuple[str, tuple[list[Run], list[float]]]]:
        """Each source with its runs and the constants that all other sources give."""
        for runs in self._sets().values():
            for source in dict.fromkeys(run.source for run in runs.runs):
                kept = [run for run in runs.runs if run.source != source]
                left = [run for run in runs.runs if run.source == source]
                if kept:
                    yield source, (left, _Runs(kept).fitted())

    @staticmethod
    def _with_all(found: dict[str, list[float]]) -> dict[str, Quantity]:
        everything = [error for errors in found.values() for error in errors]
        return {name: percent(mean(errors)) for name, errors in found.items()} | {
            "all": percent(mean(everything))
        }


def _absolute(runs: Sequence[Run], constants: Sequence[float]) -> list[float]:
    return [abs(error) for error in _Runs(runs).errors(constants)]


def _halves(runs: Sequence[Run], count: int) -> Iterator[tuple[list[Run], list[Run]]]:
    """`count` random splits into halves, the same on every machine."""
    import random  # every start would pay for it

    draw = random.Random(2026)
    for _ in range(count):
        order = sorted(runs, key=lambda _: draw.random())
        middle = len(order) // 2
        yield order[:middle], order[middle:]
