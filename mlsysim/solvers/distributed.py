"""DistributedModel: one optimizer step of a dense transformer, composed of the parts beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlsysim.registry.types import Fleet, TransformerModel
from mlsysim.solvers.arguments import StepArguments, inputs_of
from mlsysim.solvers.result import DistributedResult
from mlsysim.solvers.step import step
from mlsysim.units import Quantity

if TYPE_CHECKING:
    import pandas as pd

    from mlsysim.solvers.search import LayoutSearch

__all__ = ["DistributedModel", "DistributedResult", "StepArguments", "solved"]


def solved(arguments: StepArguments) -> DistributedResult:
    """The step of these arguments; raises what `DistributedModel.solve` does."""
    inputs, layout = inputs_of(arguments)
    return DistributedResult(inputs, step(inputs), idle=layout.idle)


class DistributedModel:
    """Time and memory of one optimizer step under tensor, context, pipeline and data parallelism.

    Matrix work, memory-bound kernels, communication inside and between nodes, the pipeline bubble
    and the optimizer's pass over its state, after Narayanan et al. 2021 (arXiv 2104.04473),
    Korthikanti et al. 2022 (arXiv 2205.05198), Rajbhandari et al. 2020 (arXiv 1910.02054) and Dao
    et al. 2022 (arXiv 2205.14135). Dense transformers only.

    Excludes: the tensor-parallel exchange of embedding and logits, the reduction of tied embeddings
    between first and last stage, launch gaps, stragglers, and input from storage.
    """

    @staticmethod
    def solve(
        model: TransformerModel,
        fleet: Fleet,
        *,
        batch_size: int,
        seq_len: int,
        precision: str,
        efficiency: float,
        bytes_per_param: Quantity,
        tp_size: int = 1,
        cp_size: int = 1,
        pp_size: int = 1,
        v_stages: int = 1,
        microbatch_count: int = 1,
        sequence_parallel: bool = False,
        fused_attention: bool = False,
        activation_recomputation: str = "none",
        gradient_precision: str = "bf16",
        zero_stage: int = 0,
        stage_split: str = "layers",
        overlap_comm: bool = True,
        overlap_tp_comm: bool = False,
    ) -> DistributedResult:
        """Time, memory and utilization of one step.

        Args:
            model: shape of the transformer.
            fleet: nodes, links and fabric, filled by whole replicas.
            batch_size: sequences of the global batch.
            seq_len: tokens of a sequence.
            precision: of the matrix products; the accelerator must have a rate for it.
            efficiency: share of the peak dense rate that large matrix products reach, in (0, 1]. It
                is not a whole-job MFU: all other time is charged on top.
            bytes_per_param: training state of a parameter, as a quantity in bytes.
            tp_size: tensor-parallel degree.
            cp_size: context-parallel degree; the tokens of a sequence are split over it.
            pp_size: pipeline stages.
            v_stages: parts of each stage in an interleaved schedule; 1 is plain 1F1B.
            microbatch_count: microbatches of a replica in one step.
            sequence_parallel: norms and residuals are split over the tensor-parallel group too.
            fused_attention: scores are never written to memory, and the blocks above the causal
                diagonal are skipped.
            activation_recomputation: "none", "selective" (the attention core) or "full".
            gradient_precision: of the reduced gradients: "bf16", "fp16" or "fp32".
            zero_stage: what the replicas share: 0 nothing, 1 optimizer state, 2 gradients too,
                3 weights too.
            stage_split: "layers", or "slots" if embedding and head each take a layer's place.
            overlap_comm: the collectives over the replicas run behind the last backward pass, and
                those of gathered weights behind the first forward pass, as far as these last.
            overlap_tp_comm: tensor-parallel collectives run behind matrix products, but for the
                accelerator's overlap_exposure.

        Raises:
            InputError: an argument out of its range, or a precision without a rate.
            LayoutError: degrees, batch and fleet that do not fit each other, with the arithmetic.
        """
        return solved(
            StepArguments(
                model=model,
                fleet=fleet,
                batch_size=batch_size,
                seq_len=seq_len,
                precision=precision,
                efficiency=efficiency,
                bytes_per_param=bytes_per_param,
                tp_size=tp_size,
                cp_size=cp_size,
                pp_size=pp_size,
                v_stages=v_stages,
                microbatch_count=microbatch_count,
                sequence_parallel=sequence_parallel,
                fused_attention=fused_attention,
                activation_recomputation=activation_recomputation,
                gradient_precision=gradient_precision,
                zero_stage=zero_stage,
                stage_split=stage_split,
                overlap_comm=overlap_comm,
                overlap_tp_comm=overlap_tp_comm,
            )
        )

    @staticmethod
    def solve_grid(
        model: TransformerModel,
        fleet: Fleet,
        *,
        batch_size: int,
        axes: Mapping[str, Sequence[Any]],
        **options: Any,
    ) -> pd.DataFrame:
        """Every combination of the axes, solved by the formulas of `solve`: one row a layout.

        Args:
            model: shape of the transformer.
            fleet: as for `solve`.
            batch_size: sequences of the global batch.
            axes: values of tp_size, cp_size, pp_size, v_stages, microbatch_size,
                activation_recomputation and zero_stage; what is not given is 1, "none" or 0.
            options: the other arguments of `solve`, the same for all rows.

        Returns:
            A frame with the axes, dp_size, step_time and ledger in seconds, memory in bytes,
            `feasible`, and `reason`, which is empty where the layout exists and fits. A layout that
            cannot exist has no times.

        Raises:
            InputError: an axis or option that `solve` does not take, or a value out of range.
        """
        from mlsysim.solvers import search

        return search.solved_grid(model, fleet, batch_size, axes, options)

    @staticmethod
    def best_layout(
        model: TransformerModel,
        fleet: Fleet,
        *,
        batch_size: int,
        count: int = 10,
        zero_stages: Sequence[int] = (0, 1, 2, 3),
        **options: Any,
    ) -> LayoutSearch:
        """The fastest layouts that exist on the fleet and fit its memory, of all there are.

        Looks at every tensor, context and pipeline degree, interleaving, microbatch size,
        recomputation and ZeRO stage; data parallelism takes what is left of the fleet.

        Args:
            model: shape of the transformer.
            fleet: as for `solve`.
            batch_size: sequences of the global batch.
            count: how many of the fastest to return.
            zero_stages: ZeRO stages to look at.
            options: the other arguments of `solve`.

        Raises:
            InputError: an option that `solve` does not take, or no layout at all.
        """
        from mlsysim.solvers import search

        return search.search(
            model,
            fleet,
            batch_size,
            options,
            count=count,
            zero_stages=zero_stages,
        )
