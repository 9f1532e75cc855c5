"""Memory of one accelerator, in bytes: training state and the activations in flight."""

from __future__ import annotations

from mlsysim.solvers.elementwise import Number, choose, smaller

__all__ = ["layer_activation_bytes", "microbatches_in_flight", "state_bytes"]

WEIGHT_BYTES = 2.0  # ASSUME weights are kept and sent in 16 bits beside their master copy.


def state_bytes(
    parameters: Number,
    bytes_per_param: Number,
    gradient_bytes: Number,
    data: Number,
    zero_stage: Number,
) -> tuple[Number, Number, Number]:
    """Weights, gradients and optimizer state of one accelerator that holds `parameters`.

    Mixed-precision Adam keeps 16 bytes a parameter: weight 2, gradient 2, master weight and two
    moments 12. ZeRO splits the optimizer state over the `data` replicas (1), the gradients too (2),
    the weights too (3). Source: Rajbhandari et al. 2020 (arXiv 1910.02054).

    >>> state_bytes(1e9, 16.0, 2.0, 4, 0), state_bytes(1e9, 16.0, 2.0, 4, 1)
    ((2000000000.0, 2000000000.0, 12000000000.0), (2000000000.0, 2000000000.0, 3000000000.0))
    """
    optimizer = bytes_per_param - WEIGHT_BYTES - gradient_bytes
    return (
        parameters * WEIGHT_BYTES / choose(zero_stage >= 3, data, 1),
        parameters * gradient_bytes / choose(zero_stage >= 2, data, 1),
        parameters * optimizer / choose(zero_stage >= 1, data, 1),
    )


def layer_activation_bytes(
    tokens: Number,
    keys: Number,
    hidden: Number,
    ffn: Number,
    heads: Number,
    tensor: Number,
    *,
    gated: Number,
    sequence_parallel: Number,
    keeps_scores: Number,
    keeps_input_only: Number,
) -> Number:
    """Bytes per accelerator that a layer keeps of one microbatch for its backward pass, in 16 bits.

    Of 34 bytes a token and unit of width, 10 stay whole on every rank unless sequence parallelism
    splits them, 8 are the attention's and 16 those of an MLP four times as wide as the stream; a
    gated MLP keeps a third inner value. Scores that are kept (neither fused nor recomputed) add 5 a
    key and head. Full recomputation keeps the layer's input alone, 2 bytes. Source: Korthikanti et
    al. 2022 (arXiv 2205.05198), Table 2.

    >>> layer_activation_bytes(
    ...     2048,
    ...     2048,
    ...     12288,
    ...     4 * 12288,
    ...     96,
    ...     8,
    ...     gated=False,
    ...     sequence_parallel=True,
    ...     keeps_scores=False,
    ...     keeps_input_only=False,
    ... ) == 34 * 2048 * 12288 / 8
    True
    """
    whole = choose(sequence_parallel, 1.0 / tensor, 1.0)
    inner = 8.0 * hidden + choose(gated, 6.0, 4.0) * ffn
    scores = choose(keeps_scores, 5.0, 0.0) * heads * keys
    kept = 10.0 * hidden * whole + (inner + scores) / tensor
    return tokens * choose(keeps_input_only, 2.0 * hidden * whole, kept)


def microbatches_in_flight(
    stage: Number, pipeline: Number, microbatches: Number, interleaving: Number
) -> Number:
    """Microbatches whose activations stage `stage` (0 is the first) keeps at once under 1F1B.

    The first stage keeps as many as there are stages; interleaving adds (p - 1) / v to that.
    Source: Narayanan et al. 2021 (arXiv 2104.04473); Korthikanti et al. 2022 (arXiv 2205.05198),
    section 4.2.3.

    >>> microbatches_in_flight(0, 8, 96, 1), microbatches_in_flight(7, 8, 96, 1)
    (8.0, 1.0)
    """
    kept = pipeline - stage + choose(interleaving > 1, (pipeline - 1.0) / interleaving, 0.0)
    return smaller(kept, microbatches * 1.0)
