"""Memory of one accelerator, in bytes: training state and the activations in flight."""

from __future__ import annotations

from mlsysim.solvers.elementwise import Flag, Number, choose, smaller

__all__ = [
    "WEIGHT_BYTES",
    "embedding_activation_bytes",
    "head_activation_bytes",
    "layer_activation_bytes",
    "microbatches_in_flight",
    "state_bytes",
]

# ASSUME precision: weights are kept and sent in 16 bits beside their master copy.
WEIGHT_BYTES = 2.0


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
    kv: Number,
    ffn: Number,
    heads: Number,
    tensor: Number,
    *,
    gated: Flag,
    sequence_parallel: Flag,
) -> tuple[Number, Number, Number]:
    """Bytes per accelerator of one layer's activations of a microbatch, in 16 bits.

    Three results: the layer's input; all that its backward pass needs but the attention scores, the
    input included; and the scores. Of 34 bytes a token and unit of width, 10 stay whole on every
    rank unless sequence parallelism splits them (2 of them the input), 8 are queries, keys, values
    and the attention's result, and 16 those of an MLP four times as wide as the stream; keys and
    values are `kv` wide, and a gated MLP keeps a third inner value. Scores take 5 a key and head.
    Source: Korthikanti et al. 2022 (arXiv 2205.05198), Table 2, which counts dropout masks too.

    >>> sizes = (2048, 2048, 12288, 12288, 4 * 12288, 96, 8)
    >>> found = layer_activation_bytes(*sizes, gated=False, sequence_parallel=True)
    >>> found[1] == 34 * 2048 * 12288 / 8
    True
    """
    whole = choose(sequence_parallel, 1.0 / tensor, 1.0)
    inner = 4.0 * hidden + 4.0 * kv + choose(gated, 6.0, 4.0) * ffn
    return (
        tokens * (2.0 * hidden * whole),
        tokens * (10.0 * hidden * whole + inner / tensor),
        tokens * (5.0 * heads * keys / tensor),
    )


def embedding_activation_bytes(
    tokens: Number, hidden: Number, tensor: Number, *, sequence_parallel: Flag
) -> Number:
    """Bytes that the embedding keeps of one microbatch: the mask of its dropout, a byte each.

    Source: Korthikanti et al. 2022 (arXiv 2205.05198), section 4.3.

    >>> embedding_activation_bytes(10, 4, 2, sequence_parallel=True)
    20.0
    """
    return tokens * (hidden * choose(sequence_parallel, 1.0 / tensor, 1.0))


def head_activation_bytes(
    tokens: Number, hidden: Number, vocabulary: Number, tensor: Number, *, sequence_parallel: Flag
) -> Number:
    """Bytes that the output head keeps of one microbatch until its backward pass.

    The inputs of the last normalisation and of the output matrix in 2 bytes each, and the logits in
    4: 4 s b h (1 + V / h) / t. Source: Korthikanti et al. 2022 (arXiv 2205.05198), section 4.3.

    >>> head_activation_bytes(1, 10, 30, 2, sequence_parallel=True)
    80.0
    """
    whole = choose(sequence_parallel, 1.0 / tensor, 1.0)
    return tokens * (4.0 * hidden * whole + 4.0 * vocabulary / tensor)


def microbatches_in_flight(
    stage: Number, pipeline: Number, microbatches: Number, interleaving: Number
) -> Number:
    """Microbatches whose activations stage `stage` (0 is the first) keeps at once under 1F1B.

    The first stage keeps as many as there are stages, and each later one keeps one less. With v
    interleaved parts the first keeps (p - 1) / v more, and each later stage 2 / v less than the one
    before it, as it starts two parts later. Source: Narayanan et al. 2021 (arXiv 2104.04473);
    Korthikanti et al. 2022 (arXiv 2205.05198), section 4.2.3, for the first stage.

    >>> microbatches_in_flight(0, 8, 96, 1), microbatches_in_flight(7, 8, 96, 1)
    (8.0, 1.0)
    """
    parts = pipeline + (pipeline - 1.0 - 2.0 * stage) / interleaving
    kept = choose(interleaving > 1, parts, pipeline - stage * 1.0)
    return smaller(kept, microbatches * 1.0)
