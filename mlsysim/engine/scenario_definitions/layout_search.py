"""The search over layouts: the fastest of all that exist on a fleet and fit its memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._layout_space import shared_arguments
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.solvers import DistributedModel
from mlsysim.units import Quantity
from mlsysim.units.quantities import percent, seconds

if TYPE_CHECKING:
    from mlsysim.solvers.search import LayoutSearch

__all__ = ["LayoutSearchScenario"]


@record
class LayoutSearchScenario(Scenario):
    """The fastest layouts of a training step, of all that exist on its fleet and fit its memory.

    Every tensor, context and pipeline degree, interleaving, microbatch, recomputation and ZeRO
    stage up to `most_sharding` is looked at; data parallelism takes what is left of the fleet.

    Equation: best = arg min step time over layouts that exist and fit.

    Assumptions: all layouts share the step's efficiency, overlap and kernels.

    Excludes: the work of moving to another layout, and how well a framework runs it.

    Derivation: mlsysim.solvers.DistributedModel.best_layout solves every layout by the formulas of
    DistributedModel.solve, whose docstring states equations and sources.

    >>> from mlsysim import Scenarios
    >>> case = Scenarios.ReferenceLayoutSearch
    >>> case.best_step_time < case.step.step_time
    True
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step whose layout is searched")
    most_sharding: int = declared(
        at_least=0, at_most=3, description="highest ZeRO stage that is looked at"
    )
    kept: int = declared(at_least=1, description="how many of the fastest the table lists")

    @output()
    def looked_at(self) -> int:
        """Layouts that were looked at. Equation: those that exist and those that cannot."""
        return int(self._search.looked_at)

    @output()
    def fallen(self) -> dict[str, int]:
        """Layouts that cannot exist or do not fit, by reason. Equation: count of each reason."""
        return {_slug(why): count for why, count in sorted(self._search.fallen.items())}

    @output("s")
    def best_step_time(self) -> Quantity:
        """Step time of the fastest layout that fits. Equation: min over layouts."""
        return seconds(self._search.best[0]["step_time"])

    @output()
    def best(self) -> dict[str, Any]:
        """The fastest layout that fits. Equation: arg min over layouts."""
        return {
            name: value
            for name, value in self._search.best[0].items()
            if isinstance(value, (int, str))
        }

    @output("%")
    def gain(self) -> Quantity:
        """Share of the step's time that the fastest layout saves. Equation: 1 - best / step."""
        base = float(self.step.result.ledger.total)
        return percent(1 - self._search.best[0]["step_time"] / base)

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """The fastest layouts: degrees, step, ledger in seconds, memory in GB."""
        return [
            {
                name if isinstance(value, (int, str)) else _column(name): (
                    value / 1e9 if name == "memory" else value
                )
                for name, value in row.items()
            }
            for row in self._search.best
        ]

    @cached_property
    def _search(self) -> LayoutSearch:
        return DistributedModel.best_layout(
            **shared_arguments(self.step),
            count=self.kept,
            zero_stages=range(self.most_sharding + 1),
        )


def _column(name: str) -> str:
    return "memory_gb" if name == "memory" else f"{name}_s"


def _slug(reason: str) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in reason.lower()).split())
