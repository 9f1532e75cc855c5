"""Kernels on one accelerator: the rate of matrix products, and bytes that others move.

The two kinds of time are added, not compared: kernels run one after the other.
"""

from __future__ import annotations

from mlsysim.solvers.elementwise import Flag, Number, choose

__all__ = ["layer_moved_bytes", "logits_moved_bytes", "matrix_rate", "optimizer_moved_bytes"]


def matrix_rate(peak: Number, efficiency: Number, work: Number, half_work: Number) -> Number:
    """FLOP/s that products reach when the products of a layer do `work` FLOP each forward pass.

    Small products reach less of the peak. Half of what large ones reach is reached at `half_work`,
    so that a layer costs as much time as if it did `half_work` more.

    >>> matrix_rate(100.0, 0.8, 3.0, 1.0)
    60.0
    """
    return peak * efficiency * (work / (work + half_work))


def layer_moved_bytes(
    tokens: Number,
    hidden: Number,
    kv: Number,
    ffn: Number,
    heads: Number,
    keys: Number,
    tensor: Number,
    *,
    gated: Flag,
    sequence_parallel: Flag,
    fused_attention: Flag,
) -> tuple[Number, Number]:
    """Bytes that one layer's forward pass moves outside its matrix products, in 16 bits.

    Two results: of all but the attention core, and of the core. Every operation reads its operands
    and writes its result once: two norms (8 h a token), two residual additions with dropout (14 h),
    which sequence parallelism splits over the tensor-parallel group; the activation of the MLP (4
    f, or 6 f if gated), and the layout of queries, keys and values (4 h + 8 k), which are split
    anyway. Scores that are written to memory cost 13 bytes each: written, scaled and masked,
    dropped out, and read again; each token of `heads` heads has `keys` of them.

    >>> layer_moved_bytes(
    ...     1,
    ...     10,
    ...     10,
    ...     40,
    ...     2,
    ...     5,
    ...     1,
    ...     gated=False,
    ...     sequence_parallel=False,
    ...     fused_attention=False,
    ... )
    (500.0, 130.0)
    """
    stream = 22.0 * hidden * choose(sequence_parallel, 1.0 / tensor, 1.0)
    inner = (choose(gated, 6.0, 4.0) * ffn + 4.0 * hidden + 8.0 * kv) / tensor
    scores = choose(fused_attention, 0.0, 13.0) * heads * keys / tensor
    return tokens * (stream + inner), tokens * scores


def logits_moved_bytes(tokens: Number, vocabulary: Number, tensor: Number) -> Number:
    """Bytes that the loss moves, forward and backward: logits of 2 bytes, read and written thrice.

    >>> logits_moved_bytes(1, 10, 1)
    120.0
    """
    return 12.0 * tokens * vocabulary / tensor


def optimizer_moved_bytes(parameters: Number, gradient_bytes: Number) -> Number:
    """Bytes that the optimizer moves for the parameters it updates.

    It reads the gradient, reads and writes the master weight and two moments in 4 bytes each, and
    writes the weight in 2.

    >>> optimizer_moved_bytes(1, 2)
    28.0
    """
    return parameters * (gradient_bytes + 26.0)
