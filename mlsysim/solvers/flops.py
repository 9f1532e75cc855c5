"""Work of one transformer, in FLOP: what the matrix units must do for a number of tokens.

A multiplication and an addition are two FLOP. Sizes are plain counts, floats or arrays: s, b, h are
the sequence length, the sequences of a microbatch and the hidden size.
Source: Narayanan et al. 2021 (arXiv 2104.04473), appendix on FLOPs; Korthikanti et al. 2022 (arXiv
2205.05198).
"""

from __future__ import annotations

from mlsysim.solvers.elementwise import Flag, Number, choose

__all__ = ["attention_core_flops", "layer_matrix_flops", "logits_flops"]


def layer_matrix_flops(
    tokens: Number, hidden: Number, kv: Number, ffn: Number, *, gated: Flag
) -> Number:
    """Forward work of one layer's weight matrices: projections of the attention, then the MLP.

    `kv` is the width of the keys, hidden * kv_heads / attention_heads; `gated` adds the third
    matrix. With kv = h and ffn = 4 h it is the 24 b s h^2 of Narayanan et al. 2021.

    >>> layer_matrix_flops(2048, 12288, 12288, 4 * 12288, gated=False) == 24 * 2048 * 12288**2
    True
    """
    attention = 2.0 * hidden * hidden + 2.0 * hidden * kv
    mlp = choose(gated, 3.0, 2.0) * hidden * ffn
    return 2.0 * tokens * (attention + mlp)


def attention_core_flops(
    sequences: Number, seq_len: Number, hidden: Number, *, causal_half: Flag
) -> Number:
    """Forward work of scores and their product with the values, for one layer.

    The full square is 4 b s^2 h. A fused kernel skips the blocks above the causal diagonal, which
    halves it (`causal_half`); an unfused one computes all and masks.

    >>> attention_core_flops(1, 2048, 12288, causal_half=False) == 4 * 2048**2 * 12288
    True
    """
    return choose(causal_half, 2.0, 4.0) * sequences * seq_len * seq_len * hidden


def logits_flops(tokens: Number, hidden: Number, vocabulary: Number) -> Number:
    """Forward work of the output head: 2 b s h V.

    >>> logits_flops(1, 2, 5)
    20.0
    """
    return 2.0 * tokens * hidden * vocabulary
