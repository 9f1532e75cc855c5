"""Columns that tables share: the memory and the times of a step, and of a replica alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.solvers import DistributedResult
from mlsysim.solvers.distributed import solved

__all__ = ["alone", "memory_columns", "time_columns"]


def alone(step: ReferenceTrainingStepScenario, depth: int, **changes: Any) -> DistributedResult:
    """The step of one replica of `depth` stages, with the microbatches of a replica of the step.

    `changes` replace arguments of DistributedModel.solve.
    """
    given, count = step.solver_arguments(), step.microbatches_per_replica
    one = replace(
        given,
        fleet=replace(step.fleet, node_count=depth),
        pp_size=depth,
        microbatch_count=count,
        batch_size=count * step.sequences_per_microbatch,
    )
    return solved(replace(one, **changes))


def memory_columns(result: DistributedResult) -> dict[str, Any]:
    """Columns of a table: memory of the fullest accelerator by kind in GB, and whether it fits.

    What is no training state counts as activations.
    """
    kept = result.step.memory
    state = kept.weights + kept.gradients + kept.optimizer
    return {
        "weights_gb": kept.weights / 1e9,
        "gradients_gb": kept.gradients / 1e9,
        "optimizer_gb": kept.optimizer / 1e9,
        "state_gb": state / 1e9,
        "activations_gb": (kept.total - state) / 1e9,
        "total_gb": kept.total / 1e9,
        "fits": result.feasible,
    }


def time_columns(result: DistributedResult) -> dict[str, float]:
    """Columns of a table: the step, what is computed again, and the exposed exchange."""
    spent = result.ledger
    return {
        "step_time_s": float(spent.total),
        "recomputation_s": float(spent.recomputation),
        "data_parallel_s": float(spent.data_parallel),
    }
