"""What others publish about whole training runs: their interruptions, and their bills."""

from __future__ import annotations

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.units import Quantity, to_si
from mlsysim.units.quantities import seconds

__all__ = ["PublishedInterruptionsScenario", "PublishedTrainingRunScenario"]


@record
class PublishedInterruptionsScenario(Scenario):
    """How often a published training run was interrupted against its will.

    Equation: mean time between interruptions = time that was observed / interruptions.

    Assumptions: accelerators are interrupted independently and at a constant rate, so a fleet of
    another size sees a rate in proportion to its accelerators.

    Excludes: planned maintenance, and what each interruption cost.
    """

    accelerators: int = declared(at_least=1, description="accelerators of the run")
    interruptions: float = declared(above=0, description="unexpected interruptions in that time")
    period: Quantity = declared(unit="d", above=0, description="the time that was observed")

    @output("h")
    def mean_time_between(self) -> Quantity:
        """Mean time between interruptions of the run. Equation: period / interruptions."""
        return seconds(to_si(self.period) / self.interruptions)

    @output("h")
    def mean_time_between_of_1024(self) -> Quantity:
        """The same for 1,024 accelerators. Equation: mean_time_between * accelerators / 1024."""
        return seconds(self.between(1024))

    @output("d")
    def accelerator_time_between(self) -> Quantity:
        """Time on one accelerator for each interruption.

        Equation: mean_time_between * accelerators.
        """
        return seconds(self.between(1))

    @property
    def feasibility(self) -> str:
        """A record of what happened needs no hardware to fit."""
        return "this run took place"

    def between(self, accelerators: int) -> float:
        """Seconds between interruptions of a fleet of that size."""
        # ASSUME interruptions: the rate of interruptions grows in proportion to the accelerators of
        # a fleet.
        return to_si(self.period) / self.interruptions * self.accelerators / accelerators


@record
class PublishedTrainingRunScenario(Scenario):
    """The bill of a training run as its maker or an observer published it.

    Equation: mean power = energy / time of accelerators; carbon intensity = emissions / energy.

    Assumptions: energy and emissions belong to the stated time of accelerators and to nothing else.

    Excludes: whatever the publication left out.
    """

    accelerator_time: Quantity = declared(
        unit="h", above=0, description="hours of accelerators that the run took"
    )
    energy: Quantity = declared(unit="MWh", above=0, description="energy of the run")
    carbon: Quantity = declared(unit="tCO2e", at_least=0, description="emissions of the run")

    @output("W")
    def accelerator_power(self) -> Quantity:
        """Power of an accelerator with its share of all that was counted.

        Equation: energy / accelerator_time.
        """
        made: Quantity = self.energy / self.accelerator_time
        return made

    @output("kgCO2e/kWh")
    def carbon_intensity(self) -> Quantity:
        """Emissions for each unit of energy. Equation: carbon / energy."""
        made: Quantity = self.carbon / self.energy
        return made

    @property
    def feasibility(self) -> str:
        """A record of what happened needs no hardware to fit."""
        return "this run took place"
