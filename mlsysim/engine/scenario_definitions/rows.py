"""Rows of a scenario's table: a replica alone, its memory and times, and lists of counts."""

from __future__ import annotations

import dataclasses
from typing import Any

from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import InputError
from mlsysim.solvers import DistributedModel, DistributedResult
from mlsysim.units import Quantity, unit

__all__ = ["alone", "counts", "gigabytes", "memory_columns", "percent", "seconds", "time_columns"]


def alone(step: ReferenceTrainingStepScenario, depth: int, **changes: Any) -> DistributedResult:
    """The step of one replica of `depth` stages, with the microbatches of a replica of the step.

    `changes` replace arguments of DistributedModel.solve.
    """
    given, count = step.solver_arguments(), step.microbatches_per_replica
    one = {
        "fleet": dataclasses.replace(step.fleet, node_count=depth),
        "pp_size": depth,
        "microbatch_count": count,
        "batch_size": count * step.sequences_per_microbatch,
    }
    return DistributedModel.solve(**{**given, **one, **changes})


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


def counts(name: str, text: str, *, least: int) -> list[int]:
    """The whole numbers in a text, separated by commas. Raises InputError by name and part."""
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdigit() and len(part) < 16 and int(part) >= least):
            raise InputError(
                f"{name}: {part!r}: expected whole numbers of at least {least}, with commas between"
            )
    found = [int(part) for part in parts]
    twice = [number for number in found if found.count(number) > 1]
    if twice:
        raise InputError(f"{name}: {twice[0]} stands there twice")
    return found


def gigabytes(value: float) -> Quantity:
    """A number of GB as a quantity."""
    return Quantity(value, unit("GB"))


def seconds(value: float) -> Quantity:
    """A number of seconds as a quantity."""
    return Quantity(value, unit("s"))


def percent(share: float) -> Quantity:
    """A share as a quantity in percent."""
    return Quantity(100 * share, unit("%"))
