"""What a layer keeps for its backward pass, and what recomputing, splitting or fusing saves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._step_columns import alone, memory_columns, time_columns
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.distributed import solved
from mlsysim.units import Quantity, unit
from mlsysim.units.quantities import gigabytes, percent, seconds

__all__ = ["ActivationMemoryScenario"]


@record
class ActivationMemoryScenario(Scenario):
    """Activations of a step by what is recomputed, with and without the kernels that save them.

    Every recomputation is solved with and without sequence parallelism and fused attention.

    Equation: each row = DistributedModel.solve with these three options, all else as in the step;
    the bytes of a layer = those of two layers less those of one, for one microbatch.

    Assumptions: options that are not varied stay as the step has them.

    Excludes: recomputation of chosen layers only, and activations that are moved to the host.

    >>> from mlsysim import Scenarios
    >>> case = Scenarios.ReferenceActivations
    >>> case.per_width["none_split"], case.per_width["none_split_fused"]
    (114.0, 34.0)
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step that is varied")

    @output("MB")
    def layer(self) -> dict[str, Quantity]:
        """Bytes that one accelerator keeps of one layer and microbatch.

        Equation: s b h (34 + 5 a s / h) / t for a layer of GPT-3, less what is split, fused or
        recomputed.
        """
        return {_policy(row): Quantity(row["layer_mb"], unit("MB")) for row in self.table()}

    @output()
    def per_width(self) -> dict[str, float]:
        """Bytes of a layer for each token and unit of width, over the tensor-parallel group.

        Equation: layer * tensor_parallel / (s b h).
        """
        return {_policy(row): row["per_width"] for row in self.table()}

    @output("GB")
    def activations(self) -> dict[str, Quantity]:
        """Activations on the fullest accelerator.

        Equation: total memory - state, of DistributedModel.solve(...).
        """
        return {_policy(row): gigabytes(row["activations_gb"]) for row in self.table()}

    @output("GB")
    def total(self) -> dict[str, Quantity]:
        """State and activations on the fullest accelerator. Equation: state + activations."""
        return {_policy(row): gigabytes(row["total_gb"]) for row in self.table()}

    @output("s")
    def step_time(self) -> dict[str, Quantity]:
        """Step time, also where the memory does not suffice.

        Equation: DistributedModel.solve(...).step_latency_total.
        """
        return {_policy(row): seconds(row["step_time_s"]) for row in self.table()}

    @output("%")
    def slower_than_step(self) -> dict[str, Quantity]:
        """How much longer the step takes than the one that is varied.

        Equation: step_time / step time of the base - 1.
        """
        base = float(self.step.result.ledger.total)
        return {_policy(row): percent(row["step_time_s"] / base - 1) for row in self.table()}

    def table_rows(self) -> Iterator[dict[str, Any]]:
        """One row a choice: a layer in MB, memory by kind in GB, and times in seconds."""
        given, both = self.step.solver_arguments(), (False, True)
        width = (
            self.step.sequences_per_microbatch
            * self.step.context_length
            * self.step.replica.workload.hidden_size
        )
        for again, split, fused in itertools.product(("none", "selective", "full"), both, both):
            options: dict[str, Any] = {
                "activation_recomputation": again,
                "sequence_parallel": split,
                "fused_attention": fused,
            }
            found = solved(replace(given, **options))
            layer = _layer_bytes(self.step, options)
            yield {
                **options,
                "layer_mb": layer / 1e6,
                "per_width": layer * self.step.tensor_parallel / width,
                **memory_columns(found),
                **time_columns(found),
            }


def _layer_bytes(step: ReferenceTrainingStepScenario, options: Mapping[str, Any]) -> float:
    """What a second layer adds to the activations of one microbatch, whatever surrounds layers."""
    kept = []
    for layers in (1, 2):
        model = replace(step.replica.workload, layers=layers)
        batch = step.sequences_per_microbatch
        found = alone(
            step, 1, model=model, microbatch_count=1, batch_size=batch, v_stages=1, **options
        )
        memory = found.step.memory
        kept.append(memory.activations)
    return float(kept[1] - kept[0])


def _policy(row: Mapping[str, Any]) -> str:
    """The choice as part of a key: ``selective_split_fused``."""
    words = [row["activation_recomputation"]]
    words += ["split"] if row["sequence_parallel"] else []
    words += ["fused"] if row["fused_attention"] else []
    return "_".join(words)
