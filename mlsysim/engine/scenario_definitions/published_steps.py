"""Published steps: runs that others measured, against what the model gives for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._published_rows import Run, layout_in_words, run_of
from mlsysim.errors import InputError
from mlsysim.registry.types import Fleet
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.statistics import mean, median, rank_correlation
from mlsysim.units import Quantity
from mlsysim.units.quantities import percent, seconds

__all__ = ["PublishedStepTimesScenario"]

# A table of named fleets, and the rows of a CSV file.
FleetTable = dict[str, Fleet]
Rows = tuple[dict[str, str], ...]


@record
class PublishedStepTimesScenario(Scenario):
    """Published, measured training steps, and what the model gives for the same layout.

    Every run is solved with the efficiencies of its accelerator's registry entry; nothing is set
    for a run, a model or a publication.

    Equation: error of a run = predicted / measured - 1.

    Assumptions: a run's accelerators fill whole nodes of the named machine; a vocabulary that a
    source does not give is 51,200; runs on H100 used fused attention; an optimizer of which nothing
    was read keeps the 12 bytes a parameter of mixed-precision Adam.

    Excludes: the scatter between two measurements of one layout, which the table shows.

    Derivation: each row gives the arguments of mlsysim.solvers.DistributedModel.solve, whose
    docstring states equations and sources; errors are those of mlsysim.solvers.statistics.

    >>> from mlsysim import Scenarios
    >>> case = Scenarios.PublishedStepTimes
    >>> case.run_count["narayanan2021"]
    10
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    runs: Rows = declared(description="one row for each run: model, layout, options and time")
    machines: FleetTable = declared(description="the machine of each name in the table")

    def check(self) -> None:
        """Refuse a table without rows, and a row that is no run, by run and column."""
        if not self.runs:
            raise InputError("runs: the table has no rows")
        names = [row.get("run") for row in self.runs]
        twice = [name for name in names if names.count(name) > 1 and name is not None]
        if twice:
            raise InputError(f"run {twice[0]} stands in the table twice")
        self.solved  # noqa: B018  each run is solved, and refused, when the scenario is made

    @output("%")
    def mean_error(self) -> Quantity:
        """Mean absolute error over all runs. Equation: mean(|predicted / measured - 1|)."""
        return percent(mean(self._absolute(self.solved)))

    @output("%")
    def median_error(self) -> Quantity:
        """Median absolute error over all runs. Equation: median(|predicted / measured - 1|)."""
        return percent(median(self._absolute(self.solved)))

    @output("%")
    def worst_error(self) -> Quantity:
        """Largest absolute error of any run. Equation: max(|predicted / measured - 1|)."""
        return percent(max(self._absolute(self.solved)))

    @output()
    def rank_correlation(self) -> float:
        """Spearman's rank correlation of predicted and measured times.

        Equation: covariance of the ranks / product of their standard deviations.
        """
        return rank_correlation(
            [run.predicted for run in self.solved], [run.measured for run in self.solved]
        )

    @output()
    def run_count(self) -> dict[str, int]:
        """Runs, in all and of each source. Equation: rows of the table."""
        return {"all": len(self.solved), **{k: len(v) for k, v in self.by_source().items()}}

    @output()
    def unfused_runs(self) -> dict[str, int]:
        """Runs on each accelerator that keep the scores of attention in memory.

        Equation: rows with fused_attention = false.
        """
        found = {run.accelerator: 0 for run in self.solved}
        for run in self.solved:
            found[run.accelerator] += not run.arguments["fused_attention"]
        return found

    @output("%")
    def mean_error_of(self) -> dict[str, Quantity]:
        """Mean absolute error of the runs of a source or an accelerator.

        Equation: mean(|predicted / measured - 1|) over these runs.
        """
        return {k: percent(mean(self._absolute(v))) for k, v in self._groups().items()}

    @output("%")
    def worst_error_of(self) -> dict[str, Quantity]:
        """Largest absolute error among the runs of a source or an accelerator.

        Equation: max(|predicted / measured - 1|) over these runs.
        """
        return {k: percent(max(self._absolute(v))) for k, v in self._groups().items()}

    @output("%")
    def bias_of(self) -> dict[str, Quantity]:
        """Mean signed error of the runs of a source or an accelerator; negative is too fast.

        Equation: mean(predicted / measured - 1) over these runs.
        """
        return {k: percent(mean([r.error for r in v])) for k, v in self._groups().items()}

    @output("s")
    def predicted(self) -> dict[str, Quantity]:
        """Modeled step time of each run. Equation: DistributedModel.solve(...)."""
        return {run.name: seconds(run.predicted) for run in self.solved}

    @output("s")
    def measured(self) -> dict[str, Quantity]:
        """Measured step time of each run, as published. Equation: as published."""
        return {run.name: seconds(run.measured) for run in self.solved}

    @output()
    def fitting_runs(self) -> int:
        """Runs whose state and activations fit the accelerator; each of them ran, so all should.

        Equation: count of runs with memory_margin >= 0.
        """
        return len([run for run in self.solved if run.result.feasible])

    @output("GB")
    def state_memory(self) -> dict[str, Quantity]:
        """Training state on the fullest accelerator of each run.

        Equation: (weight + gradient + optimizer bytes, split as ZeRO does) * parameters of the
        stage / tensor degree.
        """
        return {run.name: run.result.state_memory for run in self.solved}

    @output("GB")
    def smallest_margin(self) -> Quantity:
        """Memory that the fullest accelerator of any run has left. Equation: min(memory_margin)."""
        return min((run.result.memory_margin for run in self.solved), key=lambda q: q.magnitude)

    @output()
    def activation_saving(self) -> dict[str, float]:
        """Activations without sequence parallelism and recomputation over those of the run.

        For runs that use sequence parallelism and selective recomputation with scores in memory.
        Equation: activations with both off / activations of the run.
        """
        return {
            run.name: _without_savings(run) / run.result.step.memory.activations
            for run in self.solved
            if _saves_activations(run.arguments)
        }

    @cached_property
    def solved(self) -> list[Run]:
        """Every run with its result, in the order of the table."""
        return [run_of(row, self.machines) for row in self.runs]

    def by_source(self) -> dict[str, list[Run]]:
        """The runs of each source, in the order of the table."""
        groups: dict[str, list[Run]] = {}
        for run in self.solved:
            groups.setdefault(run.source, []).append(run)
        return groups

    def _groups(self) -> dict[str, list[Run]]:
        groups = self.by_source()
        for run in self.solved:
            groups.setdefault(run.accelerator, []).append(run)
        groups["bloom"] = [r for r in self.solved if r.source.startswith("bloom")]
        groups["fitted"] = [r for r in self.solved if not r.source.startswith("bloom")]
        return {name: runs for name, runs in groups.items() if runs}

    @staticmethod
    def _absolute(runs: Sequence[Run]) -> list[float]:
        return [abs(run.error) for run in runs]

    def table_rows(self) -> list[dict[str, Any]]:
        """One row a run: who measured it, on what, both times, the error, ledger and memory."""
        return [
            {
                "run": run.name,
                "source": run.source,
                "accelerator": run.accelerator,
                "accelerators": row["accelerators"],
                "model": row["model"],
                "layout": layout_in_words(row),
                "measured_s": run.measured,
                "predicted_s": run.predicted,
                "error": run.error,
                **{f"{name}_s": float(part) for name, part in run.result.ledger._asdict().items()},
                "state_gb": run.result.state_memory.magnitude,
                "activations_gb": run.result.activation_memory.magnitude,
                "margin_gb": run.result.memory_margin.magnitude,
            }
            for run, row in zip(self.solved, self.runs, strict=True)
        ]


def _saves_activations(arguments: Mapping[str, Any]) -> bool:
    selective = arguments["activation_recomputation"] == "selective"
    return selective and arguments["sequence_parallel"] and not arguments["fused_attention"]


def _without_savings(run: Run) -> float:
    """Bytes of activations of the run's layout if nothing is split or computed again for them."""
    plain = {"sequence_parallel": False, "activation_recomputation": "none"}
    result = DistributedModel.solve(**{**run.arguments, **plain})
    return float(result.step.memory.activations)
