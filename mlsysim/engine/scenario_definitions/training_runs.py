"""Training runs: a step repeated to a token budget, with days, energy, emissions and price."""

from __future__ import annotations

from typing import ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions.reliability import FleetReliabilityScenario
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import InputError
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.checkpoints import Shares
from mlsysim.units import Quantity, to_si, unit
from mlsysim.units.quantities import percent, seconds

__all__ = ["TrainingRunScenario"]


@record
class TrainingRunScenario(Scenario):
    """A training step repeated to a token budget on a fleet that is interrupted now and then.

    Equation: elapsed time = steps * step time / goodput; energy = elapsed time * nodes * node_power
    * power_share * pue.

    Assumptions: every step takes as long as the first; the fleet draws the same power and is paid
    for the whole elapsed time, also while it writes checkpoints and starts again.

    Excludes: trials, failed runs and evaluations, storage and network beside the nodes, the making
    of the hardware and of its building, staff; greenhouse gases other than carbon dioxide.
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step that is repeated")
    reliability: FleetReliabilityScenario = declared(
        description="how often the fleet is interrupted, and what that costs"
    )
    token_budget: float = declared(
        unit="tok", above=0, at_most=1e18, description="tokens of the whole run"
    )
    node_power: Quantity = declared(
        unit="kW", above=0, description="most power that a node draws, as its maker rates it"
    )
    power_share: float = declared(
        above=0, at_most=1, description="share of that power that a training node draws on average"
    )
    pue: float = declared(
        at_least=1, description="power of the site over the power of its computers"
    )
    carbon_intensity: Quantity = declared(
        unit="kgCO2/kWh", at_least=0, description="carbon dioxide of the grid for a unit of energy"
    )
    price: Quantity = declared(
        unit="USD/h", at_least=0, description="price of an accelerator for an hour, all included"
    )

    def check(self) -> None:
        """Refuse a fleet or a model that is not the step's, and a budget of less than a step."""
        accelerators = self.step.fleet.total_accelerators
        if self.reliability.accelerators != accelerators:
            raise InputError(
                f"the step runs on {accelerators} accelerators, and reliability is that of "
                f"{self.reliability.accelerators}"
            )
        if self.reliability.workload != self.step.replica.workload:
            raise InputError(
                f"the step trains {self.step.replica.workload.name or 'a model'}, and reliability "
                f"writes checkpoints of {self.reliability.workload.name or 'another one'}"
            )
        if self.token_budget < self.step.global_batch_tokens:
            raise InputError(
                f"token_budget = {self.token_budget:g} tok is less than the "
                f"{self.step.global_batch_tokens} of one step"
            )

    @output()
    def steps(self) -> int:
        """Steps of the run, the last one started included.

        Equation: ceil(token_budget / step.global_batch_tokens).
        """
        whole, left = divmod(self.token_budget, self.step.global_batch_tokens)
        return int(whole) + bool(left)

    @output()
    def accelerators(self) -> int:
        """Accelerators of the fleet. Equation: step.fleet.total_accelerators."""
        return self.step.fleet.total_accelerators

    @output("d")
    def productive_time(self) -> Quantity:
        """Time of the steps alone. Equation: steps * step.step_time."""
        return seconds(self._productive())

    @output("d")
    def time_at_peak(self) -> Quantity:
        """Time of the model's work if every accelerator reached its peak rate.

        Equation: productive_time * step.result.model_flops_utilization.
        """
        return seconds(self._productive() * self._utilization())

    @output()
    def steps_between_checkpoints(self) -> int:
        """Whole steps between two checkpoints: those nearest to the interval, at least one.

        Equation: max(1, round(reliability.daly_interval / step.step_time)).
        """
        steps = to_si(self.reliability.daly_interval) / to_si(self.step.step_time)
        return max(1, int(steps + 0.5))

    @output("min")
    def checkpoint_interval(self) -> Quantity:
        """Time of progress between two checkpoints.

        Equation: steps_between_checkpoints * step.step_time.
        """
        return seconds(self.steps_between_checkpoints * to_si(self.step.step_time))

    @output("%")
    def goodput(self) -> Quantity:
        """Share of the elapsed time that makes progress, with whole steps between checkpoints.

        Equation: progress of the fleet at checkpoint_interval.
        """
        return percent(self._shares().progress)

    @output("d")
    def elapsed_time(self) -> Quantity:
        """Time from the first step to the last. Equation: productive_time / goodput."""
        return seconds(self._elapsed())

    @output("d")
    def time_without_progress(self) -> Quantity:
        """Time that makes no progress. Equation: elapsed_time - productive_time."""
        return seconds(self._elapsed() - self._productive())

    @output()
    def interruptions(self) -> float:
        """Interruptions to expect. Equation: elapsed_time / reliability.mean_time_between."""
        return self._elapsed() / to_si(self.reliability.mean_time_between)

    @output()
    def checkpoints(self) -> int:
        """Checkpoints that are kept. Equation: steps // steps_between_checkpoints."""
        return self.steps // self.steps_between_checkpoints

    @output("%")
    def utilization(self) -> Quantity:
        """Model FLOPs utilization of the whole run.

        Equation: step.result.model_flops_utilization * goodput.
        """
        return percent(self._utilization() * self._shares().progress)

    @output("d")
    def days(self) -> dict[str, Quantity]:
        """Where the elapsed time goes, which the parts add up to.

        Equation: steps * the step's ledger; elapsed_time * the shares of checkpoints, lost work and
        restarts.
        """
        ledger, found = self.step.result.ledger, self._shares()
        products = ledger.forward + ledger.backward + ledger.recomputation
        memory = ledger.memory_bound + ledger.optimizer
        parts = {
            "matrix_products": products,
            "memory_bound": memory,
            "communication": ledger.total - products - memory - ledger.bubble,
            "bubble": ledger.bubble,
        }
        return {name: seconds(self.steps * float(part)) for name, part in parts.items()} | {
            name: seconds(self._elapsed() * getattr(found, name))
            for name in ("checkpoints", "lost_work", "restarts")
        }

    @output("h")
    def accelerator_time(self) -> Quantity:
        """Hours of accelerators that the run takes. Equation: elapsed_time * accelerators."""
        return seconds(self._accelerator_seconds())

    @output("W")
    def accelerator_power(self) -> Quantity:
        """Power of an accelerator with its share of the node and of the site.

        Equation: node_power * power_share * pue / accelerators of a node.
        """
        return Quantity(self._watts(), unit("W"))

    @output("MW")
    def site_power(self) -> Quantity:
        """Power that the site draws for the run. Equation: accelerator_power * accelerators."""
        return Quantity(self._watts() * self.accelerators, unit("W"))

    @output("MWh")
    def energy(self) -> Quantity:
        """Energy of the run. Equation: accelerator_power * accelerator_time."""
        return Quantity(self._watts() * self._accelerator_seconds(), unit("J"))

    @output("MWh")
    def energy_without_progress(self) -> Quantity:
        """Energy of the time that makes no progress.

        Equation: site_power * time_without_progress.
        """
        lost = self._elapsed() - self._productive()
        return Quantity(self._watts() * self.accelerators * lost, unit("J"))

    @output("J/tok")
    def energy_per_token(self) -> Quantity:
        """Energy for each token of the run.

        Equation: energy / (steps * step.global_batch_tokens).
        """
        joules = self._watts() * self._accelerator_seconds()
        return Quantity(joules / self.steps / self.step.global_batch_tokens, unit("J/tok"))

    @output("tCO2")
    def carbon(self) -> Quantity:
        """Carbon dioxide emitted for the energy, in metric tons.

        Equation: energy * carbon_intensity.
        """
        made: Quantity = self.energy * self.carbon_intensity
        return made

    @output("USD")
    def cost(self) -> Quantity:
        """Price of the accelerators. Equation: accelerator_time * price."""
        made: Quantity = self.accelerator_time * self.price
        return made

    @output("USD")
    def cost_without_progress(self) -> Quantity:
        """Price of the time that makes no progress.

        Equation: time_without_progress * accelerators * price.
        """
        made: Quantity = self.time_without_progress * self.accelerators * self.price
        return made

    @output("USD")
    def cost_of_step(self) -> Quantity:
        """Price of one step. Equation: step.step_time * accelerators * price."""
        made: Quantity = self.step.step_time * self.accelerators * self.price
        return made

    @property
    def feasible(self) -> bool:
        """Whether the step fits the accelerators that repeat it."""
        return self.step.feasible

    @property
    def feasibility(self) -> str:
        """What the step says of itself."""
        return self.step.feasibility

    def _shares(self) -> Shares:
        return self.reliability.shares_at(to_si(self.checkpoint_interval))

    def _utilization(self) -> float:
        return float(self.step.result.model_flops_utilization.to("%").magnitude) / 100

    def _productive(self) -> float:
        return self.steps * to_si(self.step.step_time)

    def _elapsed(self) -> float:
        return self._productive() / self._shares().progress

    def _accelerator_seconds(self) -> float:
        return self._elapsed() * self.accelerators

    def _watts(self) -> float:
        rated = float(self.node_power.to(unit("W")).magnitude)
        return rated * self.power_share * self.pue / self.step.fleet.node.accelerators
