"""What one accelerator holds: at any pipeline depth, and with its state sharded over replicas."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.lists import Counts
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._step_columns import alone, memory_columns, time_columns
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import LayoutError
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.distributed import solved
from mlsysim.units import Quantity
from mlsysim.units.quantities import gigabytes, seconds

__all__ = ["MemoryByDepthScenario", "ShardedStateScenario"]


@record
class MemoryByDepthScenario(Scenario):
    """Memory of the fullest accelerator of a replica, at each of several pipeline depths.

    Equation: state(p) + activations(p) of the fullest stage, from DistributedModel.solve with
    pp_size = p.

    Assumptions: one replica stands alone, with as many microbatches as a replica of the step has;
    nothing is sharded over replicas, so others would change nothing.

    Excludes: workspace, communication buffers, fragmentation, and the libraries themselves.
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step whose replica is deepened")
    depths: Counts = declared(at_least=1, description="pipeline depths")

    def check(self) -> None:
        """Refuse depths that the solver refuses."""
        self.table()

    @output("GB")
    def capacity(self) -> Quantity:
        """Memory of the accelerator. Equation: step.fleet.node.accelerator.memory_capacity."""
        return gigabytes(self._capacity_gb)

    @output("param")
    def layer_parameters(self) -> int:
        """Parameters of a layer.

        Equation: 2 h^2 + 2 h k + 2 h f (3 h f if gated) + norms and biases, with h the hidden
        size, k the key width and f the inner width of the MLP.
        """
        return self.step.replica.workload.layer_parameters

    @output("param")
    def embedding_parameters(self) -> int:
        """Parameters of the embedding, which the first stage holds besides its layers.

        Equation: vocabulary and learned positions * hidden size.
        """
        return self.step.replica.workload.embedding_parameters

    @output("GB")
    def state(self) -> dict[str, Quantity]:
        """Training state on the fullest accelerator at each depth.

        Equation: weights + gradients + optimizer state of the fullest stage / tensor degree.
        """
        return {f"p{row['depth']}": gigabytes(row["state_gb"]) for row in self.table()}

    @output("GB")
    def activations(self) -> dict[str, Quantity]:
        """Activations on the fullest accelerator at each depth.

        Equation: microbatches in flight * activations that the stage keeps of each.
        """
        return {f"p{row['depth']}": gigabytes(row["activations_gb"]) for row in self.table()}

    @output("GB")
    def total(self) -> dict[str, Quantity]:
        """State and activations on the fullest accelerator. Equation: state + activations."""
        return {f"p{row['depth']}": gigabytes(row["total_gb"]) for row in self.table()}

    @output()
    def state_fits_from(self) -> int:
        """The shallowest of the depths at which the state alone fits; 0 if there is none.

        Equation: min(p : state(p) <= capacity).
        """
        capacity = self._capacity_gb
        return min((r["depth"] for r in self.table() if r["state_gb"] <= capacity), default=0)

    @output()
    def fits_from(self) -> int:
        """The shallowest of the depths at which state and activations fit; 0 if there is none.

        Equation: min(p : state(p) + activations(p) <= capacity).
        """
        return min((row["depth"] for row in self.table() if row["fits"]), default=0)

    @output()
    def candidate_fits_from(self) -> int:
        """The same among the powers of two that divide the layers.

        Equation: min(p in 1, 2, 4, ... : layers % p = 0, state(p) + activations(p) <= capacity).
        """
        rows = [row for row in self.table() if row["fits"] and row["candidate"]]
        return min((row["depth"] for row in rows), default=0)

    @property
    def _capacity_gb(self) -> float:
        return self.step.fleet.node.accelerator.capacity_bytes / 1e9

    def table_rows(self) -> Iterator[dict[str, Any]]:
        """One row a depth: memory by kind in GB, whether it fits, and whether it may be chosen."""
        layers = self.step.replica.workload.layers
        for depth in self.depths:
            yield {
                "depth": depth,
                "divides": layers % depth == 0,
                "candidate": layers % depth == 0 and depth & (depth - 1) == 0,
                **memory_columns(alone(self.step, depth)),
            }


@record
class ShardedStateScenario(Scenario):
    """Memory and time of a step whose replicas share their state, by depth and ZeRO stage.

    Equation: each row = DistributedModel.solve with pp_size and zero_stage of that row, on the
    fleet and the batch of the step.

    Assumptions: the microbatch keeps its size, so that a shallower pipeline leaves more replicas
    with fewer microbatches each.

    Excludes: rows whose layout cannot exist; the table gives the reason in place of a number.

    >>> from mlsysim import Scenarios
    >>> case = Scenarios.ReferenceShardedState
    >>> case.fits_from["zero0"], case.fits_from["zero1"]
    (8, 2)
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step whose state is sharded")
    depths: Counts = declared(at_least=1, description="pipeline depths")
    zero_stages: Counts = declared(at_least=0, description="ZeRO stages")

    def check(self) -> None:
        """Refuse a table in which nothing exists and fits."""
        if not any(row["fits"] for row in self.table()):
            raise LayoutError("no depth and ZeRO stage gives a step that exists and fits")

    @output("GB")
    def state(self) -> dict[str, Quantity]:
        """Training state on the fullest accelerator, by depth and ZeRO stage.

        Equation: weights + gradients + optimizer state, each over the replicas that share it.
        """
        return {_depth_and_stage(row): gigabytes(row["state_gb"]) for row in self._existing()}

    @output("GB")
    def total(self) -> dict[str, Quantity]:
        """State and activations on the fullest accelerator. Equation: state + activations."""
        return {_depth_and_stage(row): gigabytes(row["total_gb"]) for row in self._existing()}

    @output("s")
    def step_time(self) -> dict[str, Quantity]:
        """Step time by depth and ZeRO stage, also where the memory does not suffice.

        Equation: DistributedModel.solve(...).step_latency_total.
        """
        return {_depth_and_stage(row): seconds(row["step_time_s"]) for row in self._existing()}

    @output("s")
    def replica_exchange(self) -> dict[str, Quantity]:
        """Exposed collectives over the replicas, by depth and ZeRO stage.

        Equation: DistributedModel.solve(...).dp_communication_latency.
        """
        return {_depth_and_stage(row): seconds(row["data_parallel_s"]) for row in self._existing()}

    @output()
    def fits_from(self) -> dict[str, int]:
        """The shallowest of the depths that fits under each ZeRO stage; 0 if there is none.

        Equation: min(p : state + activations <= capacity).
        """
        stages = dict.fromkeys(row["zero_stage"] for row in self.table())
        return {
            f"zero{stage}": min(
                (r["depth"] for r in self.table() if r["fits"] and r["zero_stage"] == stage),
                default=0,
            )
            for stage in stages
        }

    def _existing(self) -> list[Mapping[str, Any]]:
        return [row for row in self.table() if not row["reason"]]

    def table_rows(self) -> Iterator[dict[str, Any]]:
        """One row a depth and ZeRO stage: replicas, memory by kind in GB, and times in seconds."""
        given = self.step.solver_arguments()
        for depth, stage in itertools.product(self.depths, self.zero_stages):
            replicas = self.step.fleet.total_accelerators // (self.step.tensor_parallel * depth)
            row = {"depth": depth, "zero_stage": stage, "replicas": replicas, "reason": ""}
            slots = max(replicas, 1) * self.step.sequences_per_microbatch
            count, left = divmod(given.batch_size, slots)
            try:
                if left:
                    raise LayoutError(f"{replicas} replicas leave no whole microbatch")
                found = solved(
                    replace(given, pp_size=depth, zero_stage=stage, microbatch_count=count)
                )
            except LayoutError as error:
                yield row | {"reason": str(error)} | _NOTHING
                continue
            yield row | memory_columns(found) | time_columns(found)


_NOTHING: dict[str, Any] = {
    **dict.fromkeys(("weights_gb", "gradients_gb", "optimizer_gb", "state_gb"), ""),
    **dict.fromkeys(("activations_gb", "total_gb"), ""),
    "fits": False,
    **dict.fromkeys(("step_time_s", "recomputation_s", "data_parallel_s"), ""),
}


def _depth_and_stage(row: Mapping[str, Any]) -> str:
    return f"p{row['depth']}_zero{row['zero_stage']}"
