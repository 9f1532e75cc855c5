"""Reliability of a fleet: what interruptions, checkpoints and restarts leave of its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._reliability_rows import at_best, largest, over_interval
from mlsysim.engine.scenario_definitions.published_runs import PublishedInterruptionsScenario
from mlsysim.errors import InputError
from mlsysim.registry.types import TransformerModel
from mlsysim.solvers.checkpoints import Interrupted, Shares
from mlsysim.units import Quantity, to_si, unit
from mlsysim.units.quantities import percent, seconds

__all__ = ["FleetReliabilityScenario"]

_BEYOND = 2**48  # accelerators: no fleet is as large


@record
class FleetReliabilityScenario(Scenario):
    """How much of a fleet's time makes progress when it is interrupted at a published rate.

    The run writes its state to storage at regular intervals, and goes back to the last checkpoint
    after each interruption. The interval is that of Daly 2006.

    Equation: progress = interval / M * e^(-restart / M) / (e^((interval + checkpoint) / M) - 1),
    with M the mean time between interruptions.

    Assumptions: interruptions are memoryless; nothing is computed while a checkpoint is written;
    every restart takes the same time, and may be interrupted itself; the rate at which storage
    takes data grows with the fleet, except where an output says that the fleet shares it.

    Excludes: planned stops, loss spikes and other reasons to go back, slow accelerators that do not
    stop, checkpoints that are lost, and a wait for spare nodes.
    """

    workload: TransformerModel = declared(description="the model whose state is written")
    accelerators: int = declared(at_least=1, description="accelerators of the fleet")
    observed: PublishedInterruptionsScenario = declared(
        description="the run whose rate of interruptions is taken over"
    )
    checkpoint_bytes_per_param: Quantity = declared(
        unit="B", above=0, description="bytes of a checkpoint for each parameter"
    )
    storage_rate: Quantity = declared(
        unit="GB/s", above=0, description="rate at which the storage of a fleet takes data"
    )
    storage_accelerators: int = declared(
        at_least=1, description="accelerators of the fleet that has this storage"
    )
    restart_time: Quantity = declared(
        unit="min", above=0, description="from an interruption until work goes on again"
    )
    goodput_goal: float = declared(
        above=0, at_most=1, description="share of the time that a published run says made progress"
    )
    smallest_fleet: int = declared(at_least=1, description="fewest accelerators in the table")
    largest_fleet: int = declared(
        at_least=1, at_most=2**24, description="most accelerators in the table, by doubling"
    )
    interval_doublings: int = declared(
        at_least=1, at_most=16, description="doublings of the interval in the table, either way"
    )

    def check(self) -> None:
        """Refuse an empty table, and a fleet that is interrupted before it wrote its state."""
        if self.smallest_fleet > self.largest_fleet:
            raise InputError(
                f"smallest_fleet = {self.smallest_fleet} is larger than largest_fleet = "
                f"{self.largest_fleet}"
            )
        write, between = self._fleet.write, self._fleet.between
        if write >= between:
            raise InputError(
                f"a checkpoint takes {write:.4g} s, and {self.accelerators} accelerators are "
                f"interrupted every {between:.4g} s: the run would hardly ever finish one"
            )
        restart = to_si(self.restart_time)
        if restart >= between:
            raise InputError(
                f"restart_time = {restart:.4g} s, and {self.accelerators} accelerators are "
                f"interrupted every {between:.4g} s: the run would hardly ever go on"
            )
        if self._of_size(_BEYOND, _BEYOND).best.progress >= self.goodput_goal:
            raise InputError(
                f"goodput_goal = {self.goodput_goal:g} is reached by fleets of any size with "
                f"restart_time = {restart:.4g} s"
            )

    @output("h")
    def mean_time_between(self) -> Quantity:
        """Mean time between interruptions of the fleet.

        Equation: observed.period / observed.interruptions * observed.accelerators / accelerators.
        """
        return seconds(self._fleet.between)

    @output("TB")
    def checkpoint_size(self) -> Quantity:
        """What a checkpoint holds. Equation: workload.parameters * checkpoint_bytes_per_param."""
        return Quantity(self._checkpoint_bytes(), unit("B"))

    @output("GB/s")
    def fleet_storage_rate(self) -> Quantity:
        """Rate at which the fleet's own storage takes data.

        Equation: storage_rate * accelerators / storage_accelerators.
        """
        return Quantity(
            to_si(self.storage_rate) * self.accelerators / self.storage_accelerators, unit("B/s")
        )

    @output("s")
    def checkpoint_time(self) -> Quantity:
        """Time to write a checkpoint. Equation: checkpoint_size / fleet_storage_rate."""
        return seconds(self._fleet.write)

    @output("min")
    def young_interval(self) -> Quantity:
        """Time of progress between checkpoints after Young 1974.

        Equation: sqrt(2 * checkpoint_time * mean_time_between).
        """
        return seconds(self._fleet.young_interval)

    @output("min")
    def daly_interval(self) -> Quantity:
        """Time of progress between checkpoints after Daly 2006, which the fleet uses.

        Equation: young_interval * (1 + sqrt(checkpoint_time / (2 M)) / 3 + checkpoint_time /
        (18 M)) - checkpoint_time, with M = mean_time_between.
        """
        return seconds(self._fleet.daly_interval)

    @output("%")
    def first_order_waste(self) -> Quantity:
        """Share of the time without progress at Young's interval, to first order.

        Equation: checkpoint_time / young_interval + (young_interval / 2 + restart_time) /
        mean_time_between.
        """
        return percent(self._fleet.waste(self._fleet.young_interval))

    @output("%")
    def share(self) -> dict[str, Quantity]:
        """Shares of the elapsed time at the fleet's interval, which add up to all of it.

        Equation: progress as the class says; checkpoints = progress * checkpoint_time / interval;
        restarts = 1 - e^(-restart_time / M); lost work = the rest.
        """
        found = self.shares_at(to_si(self.daly_interval))
        return {name: percent(value) for name, value in found._asdict().items()}

    @output("%")
    def goodput(self) -> Quantity:
        """Share of the elapsed time that makes progress. Equation: share.progress."""
        return self.share["progress"]

    @output("%")
    def without_progress(self) -> Quantity:
        """Share of the elapsed time that makes no progress. Equation: 1 - goodput."""
        return percent(1 - self.shares_at(to_si(self.daly_interval)).progress)

    @output("%")
    def without_progress_at(self) -> dict[str, Quantity]:
        """Share without progress if the interval is a multiple of the fleet's own.

        Equation: 1 - progress at interval * factor.
        """
        factors = {"quarter": 0.25, "half": 0.5, "twice": 2.0, "four_times": 4.0}
        interval = to_si(self.daly_interval)
        return {
            name: percent(1 - self.shares_at(interval * factor).progress)
            for name, factor in factors.items()
        }

    @output("min")
    def loss_allowed(self) -> Quantity:
        """Time that each interruption may cost in all if the goal is to be reached.

        Equation: (1 - goodput_goal) * mean_time_between.
        """
        return seconds((1 - self.goodput_goal) * self._fleet.between)

    @output("%")
    def goodput_of(self) -> dict[str, Quantity]:
        """Goodput of each fleet size in the table, whose storage grows with the fleet.

        Equation: progress at the interval of Daly 2006 for that size.
        """
        return {str(n): percent(self._of_size(n, n).best.progress) for n in self.sizes()}

    @output("%")
    def goodput_on_shared_storage_of(self) -> dict[str, Quantity]:
        """Goodput of each fleet size in the table, on storage as fast as this fleet's.

        Equation: progress at the interval of Daly 2006 for that size.
        """
        return {
            str(n): percent(self._of_size(n, self.accelerators).best.progress) for n in self.sizes()
        }

    @output("%")
    def first_order_waste_of(self) -> dict[str, Quantity]:
        """Share of the time without progress to first order, of each fleet size in the table.

        Equation: sqrt(2 * checkpoint_time / M) + restart_time / M, with the storage and M of that
        size.
        """
        wasted = {}
        for n in self.sizes():
            fleet = self._of_size(n, n)
            wasted[str(n)] = percent(fleet.waste(fleet.young_interval))
        return wasted

    @output()
    def largest_fleet_at_goal(self) -> int:
        """Most accelerators whose goodput reaches the goal, with storage that grows.

        Equation: max(n : progress of n accelerators >= goodput_goal); 0 if none does.
        """
        return self._largest(0)

    @output()
    def largest_fleet_at_goal_on_shared_storage(self) -> int:
        """Most accelerators whose goodput reaches the goal, on storage as fast as this fleet's.

        Equation: max(n : progress of n accelerators >= goodput_goal); 0 if none does.
        """
        return self._largest(self.accelerators)

    @property
    def feasibility(self) -> str:
        """How a checkpoint compares with the time between interruptions."""
        return (
            f"a checkpoint takes {self._fleet.write:.3g} s of the "
            f"{self._fleet.between / 3600:.3g} h between interruptions"
        )

    def shares_at(self, interval: float) -> Shares:
        """Where the fleet's time goes with `interval` seconds of progress between checkpoints."""
        return self._fleet.shares(interval)

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """Shares of the time: over the interval, and over the fleet's size for two storages."""
        series = {"storage grows": 0, "storage shared": self.accelerators}
        return [
            *over_interval(self.accelerators, self._fleet, self.interval_doublings),
            *(
                at_best(name, n, self._of_size(n, storage or n))
                for name, storage in series.items()
                for n in self.sizes()
            ),
        ]

    def sizes(self) -> list[int]:
        """Accelerators of the fleets in the table."""
        sizes = [self.smallest_fleet]
        while sizes[-1] * 2 <= self.largest_fleet:
            sizes.append(sizes[-1] * 2)
        return sizes

    def of_size(self, accelerators: int, restart: float) -> Interrupted:
        """A fleet of that many accelerators on storage that grew with it, and its restart in s."""
        return self._of_size(accelerators, accelerators)._replace(restart=restart)

    def _largest(self, storage_of: int) -> int:
        """The largest size that reaches the goal.

        Storage is that of a fleet of `storage_of` accelerators, or the fleet's own for 0.
        """
        goal = self.goodput_goal
        return largest(lambda n: self._of_size(n, storage_of or n).best.progress >= goal)

    @cached_property
    def _fleet(self) -> Interrupted:
        return self._of_size(self.accelerators, self.accelerators)

    def _of_size(self, accelerators: int, storage_of: int) -> Interrupted:
        """A fleet of that many accelerators, on the storage of a fleet of `storage_of`."""
        rate = to_si(self.storage_rate) * storage_of / self.storage_accelerators
        return Interrupted(
            write=self._checkpoint_bytes() / rate,
            restart=to_si(self.restart_time),
            between=self.observed.between(accelerators),
        )

    def _checkpoint_bytes(self) -> float:
        return to_si(self.workload.parameters) * to_si(self.checkpoint_bytes_per_param)
