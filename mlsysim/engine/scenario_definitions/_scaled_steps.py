"""A training step on fleets of other sizes: its replica repeated, or the fastest layout of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlsysim.engine.scenario_definitions._layout_space import shared_arguments
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import LayoutError, division
from mlsysim.registry.types import Fleet
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.distributed import solved
from mlsysim.solvers.inputs import Ledger

__all__ = ["scaled_steps"]


def scaled_steps(
    step: ReferenceTrainingStepScenario,
    sizes: Sequence[int],
    *,
    grows: bool,
    searched: bool,
    most_sharding: int,
) -> Iterator[dict[str, Any]]:
    """One row a size: layout, batch, step and ledger in seconds, or why there is none.

    The batch `grows` with the fleet or is that of the step. The layout is `searched`, with ZeRO
    stages up to `most_sharding`, or the step's own. `speed_up` and `efficiency` compare with the
    smallest size that works.
    """
    work = step.result.step.work.model / step.global_batch_sequences
    smallest: tuple[int, float] | None = None
    for size in sizes:
        row: dict[str, Any] = {"accelerators": size}
        try:
            batch = _batch(step, size) if grows else step.global_batch_sequences
            fleet = replace(step.fleet, node_count=size // step.fleet.node.accelerators)
            if searched:
                found = _fastest(step, fleet, batch, most_sharding)
            else:
                found = _repeated(step, fleet, batch)
        except LayoutError as error:
            yield row | {"feasible": False, "reason": str(error)} | _NOTHING
            continue
        rate = batch / found["step_time_s"]
        least, base = smallest = smallest or (size, rate / size)
        yield row | {
            "feasible": True,
            "reason": "",
            "batch_seq": batch,
            **found,
            "speed_up": rate / (base * least),
            "efficiency": rate / size / base,
            "utilization": rate * work / (size * step.result.inputs.peak),
        }


def _batch(step: ReferenceTrainingStepScenario, size: int) -> int:
    """Sequences of a batch that grows with the fleet."""
    batch, own = step.global_batch_sequences, step.fleet.total_accelerators
    if batch * size % own:
        raise LayoutError(
            f"no whole sequences: {batch} x {size} / {own} accelerators = "
            f"{division(batch * size, own)}"
        )
    return batch * size // own


def _repeated(step: ReferenceTrainingStepScenario, fleet: Fleet, batch: int) -> dict[str, Any]:
    """The step's own replica, as often as it fits."""
    replica, own = step.replica.replica_gpus, step.sequences_per_microbatch
    replicas = fleet.total_accelerators // replica
    if not replicas:
        raise LayoutError(f"fewer than one replica of {replica}")
    if batch % (replicas * own):
        raise LayoutError(
            f"the batch has no whole shares for all replicas: {division(batch, replicas * own)}"
        )
    count = batch // (replicas * own)
    own_arguments = step.solver_arguments()
    result = solved(replace(own_arguments, fleet=fleet, batch_size=batch, microbatch_count=count))
    if not result.feasible:
        raise LayoutError(result.feasibility)
    ledger = result.ledger
    return {
        "layout": f"t{step.tensor_parallel} p{step.pipeline_depth}",
        "tensor": step.tensor_parallel,
        "context": 1,
        "pipeline": step.pipeline_depth,
        "replicas": replicas,
        "microbatches": count,
        "step_time_s": float(ledger.total),
        **{f"{name}_s": float(part) for name, part in ledger._asdict().items()},
        "memory_gb": result.step.memory.total / 1e9,
    }


def _fastest(
    step: ReferenceTrainingStepScenario, fleet: Fleet, batch: int, most_sharding: int
) -> dict[str, Any]:
    """The fastest layout that exists on the fleet and fits."""
    found = DistributedModel.best_layout(
        **{**shared_arguments(step), "fleet": fleet, "batch_size": batch},
        count=1,
        zero_stages=range(most_sharding + 1),
    ).best[0]
    return {
        "layout": _described(found),
        "tensor": found["tp_size"],
        "context": found["cp_size"],
        "pipeline": found["pp_size"],
        "replicas": found["dp_size"],
        "microbatches": batch // (found["dp_size"] * found["microbatch_size"]),
        "step_time_s": found["step_time"],
        **{f"{name}_s": found[name] for name in Ledger._fields},
        "memory_gb": found["memory"] / 1e9,
    }


_NOTHING: dict[str, Any] = dict.fromkeys(
    (
        *("batch_seq", "layout", "tensor", "context", "pipeline"),
        *("replicas", "microbatches", "step_time_s"),
        *(f"{name}_s" for name in Ledger._fields),
        *("memory_gb", "speed_up", "efficiency", "utilization"),
    ),
    "",
)


def _described(found: Mapping[str, Any]) -> str:
    """A layout by its degrees: ``t8 c2 p4 v24 b3 z1``, what is 1 or none left out."""
    letters = {"t": "tp_size", "c": "cp_size", "p": "pp_size", "v": "v_stages"}
    words = [f"{letter}{found[name]}" for letter, name in letters.items() if found[name] > 1]
    words += [f"b{found['microbatch_size']}"]
    words += [f"z{found['zero_stage']}"] if found["zero_stage"] else []
    again = found["activation_recomputation"]
    return " ".join([*words, *([] if again == "none" else [again])])
