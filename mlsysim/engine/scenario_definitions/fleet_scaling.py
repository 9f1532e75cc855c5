"""Scaling: one training step on fleets of many sizes, with a batch that is fixed or grows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.lists import Counts
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._scaled_steps import scaled_steps
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import InputError, LayoutError, division
from mlsysim.solvers import DistributedModel
from mlsysim.units import Quantity
from mlsysim.units.quantities import percent, seconds

__all__ = ["FleetScalingScenario"]


@record
class FleetScalingScenario(Scenario):
    """A training step on fleets of other sizes, its replica repeated as often as each has room.

    With a fixed batch the replicas share what the step trains on (strong scaling); with one that
    grows every accelerator keeps its part of it (weak scaling). With the layout `fastest` each size
    has the fastest layout of all that exist and fit, in place of the step's replica.

    Equation: efficiency at a size = tokens a second and accelerator there / at the smallest size
    that works.

    Assumptions: fleets differ in their number of nodes alone.

    Excludes: what a batch of another size does to the training; failures; networks whose links
    thin out towards the core.

    >>> from mlsysim import Scenarios
    >>> case = Scenarios.StrongScaling
    >>> case.smallest_fleet, case.efficient_fleet
    (64, 4096)
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step that is scaled")
    sizes: Counts = declared(at_least=1, description="accelerators of each fleet")
    batch: str = declared(
        choices=("fixed", "grows"), description="whether the batch grows with the fleet"
    )
    layout: str = declared(
        choices=("repeated", "fastest"), description="the step's replica, or a search at each size"
    )
    most_sharding: int = declared(
        at_least=0, at_most=3, description="highest ZeRO stage of a search; 0 without one"
    )
    least_efficiency: float = declared(
        above=0, at_most=1, description="efficiency below which a fleet counts as too large"
    )

    def check(self) -> None:
        """Refuse sizes that fill no whole nodes, and a study in which no size works."""
        if self.layout == "repeated" and self.most_sharding:
            raise InputError(
                f"most_sharding = {self.most_sharding}: the step's replica is repeated as it is, "
                "so expected 0"
            )
        for size in self.sizes:
            if size % self.step.fleet.node.accelerators:
                raise InputError(
                    f"sizes: {size} accelerators fill no whole nodes: "
                    f"{division(size, self.step.fleet.node.accelerators)}"
                )
        if not self._working():
            raise LayoutError(f"no size works: {self.table()[-1]['reason']}")

    @output()
    def largest_fleet(self) -> int:
        """The largest size that works. Equation: max(size : a layout fits)."""
        return int(self._working()[-1]["accelerators"])

    @output()
    def smallest_fleet(self) -> int:
        """The smallest size that works, to which the others are compared.

        Equation: min(size : a layout fits).
        """
        return int(self._working()[0]["accelerators"])

    @output()
    def fastest_fleet(self) -> int:
        """The size with the shortest step. Equation: arg min step time over sizes that work."""
        return int(min(self._working(), key=lambda row: row["step_time_s"])["accelerators"])

    @output()
    def efficient_fleet(self) -> int:
        """The largest size whose efficiency is at least least_efficiency.

        Equation: max(size : efficiency_at >= least_efficiency).
        """
        return max(
            int(row["accelerators"])
            for row in self._working()
            if row["efficiency"] >= self.least_efficiency
        )

    @output("seq")
    def batch_at(self) -> dict[str, int]:
        """Sequences of the batch. Equation: those of the step, times size / its own if it grows."""
        return {key: int(row["batch_seq"]) for key, row in self._by_size()}

    @output()
    def replicas_at(self) -> dict[str, int]:
        """Replicas, the data-parallel degree. Equation: accelerators // those of a replica."""
        return {key: int(row["replicas"]) for key, row in self._by_size()}

    @output()
    def tensor_parallel_at(self) -> dict[str, int]:
        """Tensor-parallel degree. Equation: the step's, or that of the fastest layout."""
        return {key: int(row["tensor"]) for key, row in self._by_size()}

    @output()
    def context_parallel_at(self) -> dict[str, int]:
        """Context-parallel degree. Equation: the step's, or that of the fastest layout."""
        return {key: int(row["context"]) for key, row in self._by_size()}

    @output()
    def pipeline_depth_at(self) -> dict[str, int]:
        """Pipeline stages. Equation: the step's, or those of the fastest layout."""
        return {key: int(row["pipeline"]) for key, row in self._by_size()}

    @output()
    def microbatches_at(self) -> dict[str, int]:
        """Microbatches of a replica. Equation: batch / (replicas * sequences of a microbatch)."""
        return {key: int(row["microbatches"]) for key, row in self._by_size()}

    @output("s")
    def step_time_at(self) -> dict[str, Quantity]:
        """Step time of each size. Equation: DistributedModel.solve(...).step_latency_total."""
        return {key: seconds(row["step_time_s"]) for key, row in self._by_size()}

    @output()
    def speed_up_at(self) -> dict[str, float]:
        """Tokens a second over those of the smallest fleet. Equation: ratio of throughputs."""
        return {key: float(row["speed_up"]) for key, row in self._by_size()}

    @output("%")
    def efficiency_at(self) -> dict[str, Quantity]:
        """Speed-up over the ideal one. Equation: speed_up_at / (size / smallest_fleet)."""
        return {key: percent(row["efficiency"]) for key, row in self._by_size()}

    @output("%")
    def utilization_at(self) -> dict[str, Quantity]:
        """Model FLOPs utilization of all accelerators of the fleet.

        Equation: model FLOP of the batch / (step time * accelerators * peak rate).
        """
        return {key: percent(row["utilization"]) for key, row in self._by_size()}

    @output("%")
    def share_at(self) -> dict[str, Quantity]:
        """Parts of the step, by size and part; they add up to 100 %.

        Equation: matrix products (forward, backward, recomputation), memory (memory_bound,
        optimizer), exposed communication in a replica (tensor, context, point to point), exposed
        communication between replicas (data parallel), and bubble, each over the step time.
        """
        return {
            f"{key}.{part}": percent(value)
            for key, row in self._by_size()
            for part, value in _shares(row).items()
        }

    @output("s")
    def fixed_time_at(self) -> dict[str, Quantity]:
        """What no further replica shortens. Equation: bubble + data parallel + optimizer."""
        return {key: seconds(_fixed(row)) for key, row in self._by_size()}

    @output("ms")
    def slot_at(self) -> dict[str, Quantity]:
        """What a step takes for each microbatch, on the slowest stage.

        Equation: (step_time_at - fixed_time_at) / microbatches_at.
        """
        return {key: seconds(_slot(row)) for key, row in self._by_size()}

    @output()
    def fixed_microbatches_at(self) -> dict[str, float]:
        """That time in microbatches, c of an efficiency of about m / (m + c).

        Equation: fixed_time_at / slot_at.
        """
        return {key: _fixed(row) / _slot(row) for key, row in self._by_size()}

    @output("%")
    def fixed_efficiency_at(self) -> dict[str, Quantity]:
        """Efficiency if nothing but that time were lost. Equation: m / (m + c)."""
        return {
            key: percent(1.0 - _fixed(row) / row["step_time_s"]) for key, row in self._by_size()
        }

    @output("h")
    def accelerator_time_at(self) -> dict[str, Quantity]:
        """Accelerator-hours that one step costs. Equation: accelerators * step time."""
        return {
            key: seconds(row["accelerators"] * row["step_time_s"]) for key, row in self._by_size()
        }

    @property
    def feasibility(self) -> str:
        """How many of the sizes work."""
        return f"{len(self._working())} of {len(self.table())} sizes have a layout that fits"

    def table_rows(self) -> list[dict[str, Any]]:
        """One row a size: layout, batch, step and ledger in seconds, or why there is none."""
        return [
            *scaled_steps(
                self.step,
                self.sizes,
                grows=self.batch == "grows",
                searched=self.layout == "fastest",
                most_sharding=self.most_sharding,
            )
        ]

    def _working(self) -> list[Mapping[str, Any]]:
        return [row for row in self.table() if row["feasible"]]

    def _by_size(self) -> list[tuple[str, Mapping[str, Any]]]:
        return [(str(row["accelerators"]), row) for row in self._working()]


def _slot(row: Mapping[str, Any]) -> float:
    """Seconds of a step that each microbatch costs."""
    return float((row["step_time_s"] - _fixed(row)) / row["microbatches"])


def _fixed(row: Mapping[str, Any]) -> float:
    return float(row["bubble_s"] + row["data_parallel_s"] + row["optimizer_s"])


def _shares(row: Mapping[str, Any]) -> dict[str, float]:
    """The parts of a step as shares of it."""
    spent = {
        "matrix": row["forward_s"] + row["backward_s"] + row["recomputation_s"],
        "memory": row["memory_bound_s"] + row["optimizer_s"],
        "in_replica": row["tensor_parallel_s"]
        + row["context_parallel_s"]
        + row["point_to_point_s"],
        "between_replicas": row["data_parallel_s"],
        "bubble": row["bubble_s"],
    }
    return {part: value / row["step_time_s"] for part, value in spent.items()}
