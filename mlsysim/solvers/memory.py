"""Memory of one accelerator, in bytes: training state and the activations in flight."""

from __future__ import annotations

__all__ = ["layer_activation_bytes", "microbatches_in_flight", "state_bytes"]


def state_bytes(parameters: float, bytes_per_param: float, shards: int) -> float:
    """Training state of `parameters` weights spread evenly over `shards` accelerators.

    Mixed-precision Adam keeps 16 bytes a parameter: weight 2, gradient 2, master weight 4, two
    moments 8. Source: Rajbhandari et al. 2020 (arXiv 1910.02054).

    >>> state_bytes(175e9, 16.0, 64) / 1e9
    43.75
    """
    return parameters * bytes_per_param / shards


def layer_activation_bytes(
    sequences: int,
    seq_len: int,
    hidden: int,
    heads: int,
    tensor: int,
    *,
    sequence_parallel: bool,
    keeps_scores: bool,
    keeps_input_only: bool,
) -> float:
    """Bytes per accelerator that a layer keeps of one microbatch for its backward pass.

    Sequence parallelism divides all of 34 s b h by the tensor-parallel degree, otherwise 10 s b h
    stay whole; scores that are kept (neither fused nor recomputed) add 5 a s^2 b. Full
    recomputation keeps the layer's input alone, 2 s b h. Source: Korthikanti et al. 2022 (arXiv
    2205.05198), Table 2.

    >>> layer_activation_bytes(
    ...     1,
    ...     2048,
    ...     12288,
    ...     96,
    ...     8,
    ...     sequence_parallel=True,
    ...     keeps_scores=False,
    ...     keeps_input_only=False,
    ... ) == 34 * 2048 * 12288 / 8
    True
    """
    stream = float(sequences) * seq_len * hidden
    whole = 1 / tensor if sequence_parallel else 1.0
    if keeps_input_only:
        return 2 * stream * whole
    scores = 5.0 * heads * seq_len * seq_len * sequences / tensor if keeps_scores else 0.0
    return stream * (10 * whole + 24 / tensor) + scores


def microbatches_in_flight(
    stage: int, pipeline: int, microbatches: int, interleaving: int
) -> float:
    """Microbatches whose activations stage `stage` (0 is the first) keeps at once under 1F1B.

    The first stage keeps as many as there are stages; interleaving adds (p - 1) / (p v) of that.
    Source: Narayanan et al. 2021 (arXiv 2104.04473); Korthikanti et al. 2022 (arXiv 2205.05198),
    section 4.2.3.

    >>> microbatches_in_flight(0, 8, 96, 1), microbatches_in_flight(7, 8, 96, 1)
    (8.0, 1.0)
    """
    kept = float(pipeline - stage)
    if interleaving > 1:
        kept += (pipeline - 1) / interleaving
    return min(kept, float(microbatches))
