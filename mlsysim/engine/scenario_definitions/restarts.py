"""Restarts: what a fleet's goodput is if going on takes one retry, a chain of them, or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._reliability_rows import at_best, largest
from mlsysim.engine.scenario_definitions.reliability import FleetReliabilityScenario
from mlsysim.errors import InputError
from mlsysim.solvers.checkpoints import Interrupted, restart_that_leaves
from mlsysim.units import Quantity, to_si
from mlsysim.units.quantities import percent, seconds

__all__ = ["RestartTimesScenario"]


@record
class RestartTimesScenario(Scenario):
    """What a fleet's goodput is for three readings of a published record of retries.

    A cluster reports the time between its automatic retries, and how many of them its chains of
    retries took. If the first one succeeds, a restart takes one interval; a chain takes its mean
    number of intervals; and a run that only goes on after a chain that succeeded waits for all the
    retries that one success took.

    Equation: restart time = retry_interval, retry_interval * attempts / chains, or retry_interval *
    attempts / recovered_chains; goodput as the fleet has it for that time.

    Assumptions: the median time between retries stands for their mean; every restart of a fleet
    takes the same time; all else is as the fleet has it.

    Excludes: recovery by hand, and the time until a failure is noticed.
    """

    fleet: FleetReliabilityScenario = declared(description="the fleet whose restarts are varied")
    retry_interval: Quantity = declared(
        unit="min", above=0, description="time from one automatic retry to the next"
    )
    attempts: int = declared(at_least=1, description="retries of all chains together")
    chains: int = declared(at_least=1, description="chains of retries, one for each interruption")
    recovered_chains: int = declared(
        at_least=1, description="chains that ended with a run that went on"
    )

    def check(self) -> None:
        """Refuse more chains than retries, and more that succeeded than there were."""
        if self.chains > self.attempts:
            raise InputError(
                f"chains = {self.chains}: expected at most attempts = {self.attempts}, since each "
                "has a retry"
            )
        if self.recovered_chains > self.chains:
            raise InputError(
                f"recovered_chains = {self.recovered_chains}: expected at most chains = "
                f"{self.chains}"
            )

    @output("min")
    def restart_time(self) -> dict[str, Quantity]:
        """From an interruption until work goes on, if it takes the first retry, a chain, a success.

        Equation: retry_interval; times attempts / chains; times attempts / recovered_chains.
        """
        return {name: seconds(restart) for name, restart in self._restarts().items()}

    @output()
    def attempts_of_a_chain(self) -> float:
        """Mean number of retries in a chain. Equation: attempts / chains."""
        return self.attempts / self.chains

    @output("%")
    def goodput(self) -> dict[str, Quantity]:
        """Share of the elapsed time that makes progress, for each of these restarts.

        Equation: progress of the fleet at its interval.
        """
        return {n: percent(self._with(r).best.progress) for n, r in self._restarts().items()}

    @output("%")
    def without_progress(self) -> dict[str, Quantity]:
        """Share of the elapsed time that makes none. Equation: 1 - goodput."""
        return {n: percent(1 - self._with(r).best.progress) for n, r in self._restarts().items()}

    @output("%")
    def restarts(self) -> dict[str, Quantity]:
        """Share of the elapsed time that restarts take.

        Equation: 1 - e^(-restart_time / M), with M the mean time between interruptions.
        """
        return {n: percent(self._with(r).best.restarts) for n, r in self._restarts().items()}

    @output()
    def largest_fleet_at_goal(self) -> dict[str, int]:
        """Most accelerators whose goodput reaches the fleet's goal, with storage that grows.

        Equation: max(n : progress of n accelerators >= fleet.goodput_goal); 0 if none does.
        """
        return {name: self._largest(restart) for name, restart in self._restarts().items()}

    @output("min")
    def longest_restart_at_goal(self) -> Quantity:
        """The restart with which the fleet's goodput is its goal; 0 if none is short enough.

        Equation: M * ln(progress without restarts / fleet.goodput_goal).
        """
        return seconds(restart_that_leaves(self.fleet.goodput_goal, self._with(0.0)))

    @property
    def feasibility(self) -> str:
        """How the longest of these restarts compares with the time between interruptions."""
        return (
            f"restarts take up to {self._restarts()['success'] / 60:.3g} min of the "
            f"{self._with(0.0).between / 3600:.3g} h between interruptions"
        )

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """Shares of the time over the fleet's size, with storage that grows, for each restart."""
        return [
            {**at_best(name, n, self._with(restart, n)), "restart_min": restart / 60}
            for name, restart in self._restarts().items()
            for n in self.fleet.sizes()
        ]

    def _restarts(self) -> dict[str, float]:
        """Seconds of a restart by what it takes."""
        interval = to_si(self.retry_interval)
        return {
            "first_retry": interval,
            "chain": interval * self.attempts / self.chains,
            "success": interval * self.attempts / self.recovered_chains,
        }

    def _largest(self, restart: float) -> int:
        goal = self.fleet.goodput_goal
        return largest(lambda n: self._with(restart, n).best.progress >= goal)

    def _with(self, restart: float, accelerators: int = 0) -> Interrupted:
        """The fleet, or one of that many accelerators, with restarts of so many seconds."""
        return self.fleet.of_size(accelerators or self.fleet.accelerators, restart)
