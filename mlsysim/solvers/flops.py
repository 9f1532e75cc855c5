"""Work of one transformer, in FLOP: what the matrix units must do for a number of tokens.

A multiplication and an addition are two FLOP. Sizes are plain counts; s, b, h are the sequence
length, the sequences of a microbatch and the hidden size. Source: Narayanan et al. 2021 (arXiv
2104.04473), appendix on FLOPs; Korthikanti et al. 2022 (arXiv 2205.05198).
"""

from __future__ import annotations

from dataclasses import dataclass

from mlsysim.registry.types import TransformerModel

__all__ = [
    "ForwardWork",
    "attention_core_flops",
    "forward_work",
    "layer_matrix_flops",
    "logits_flops",
]


def layer_matrix_flops(tokens: int, hidden: int, kv: int, ffn: int, *, gated: bool) -> float:
    """Forward work of one layer's weight matrices: projections of the attention, then the MLP.

    `kv` is the width of the keys, hidden * kv_heads / attention_heads; `gated` adds the third
    matrix. With kv = h and ffn = 4 h it is the 24 b s h^2 of Narayanan et al. 2021.

    >>> layer_matrix_flops(2048, 12288, 12288, 4 * 12288, gated=False) == 24 * 2048 * 12288**2
    True
    """
    attention = 2 * hidden * hidden + 2 * hidden * kv
    mlp = (3 if gated else 2) * hidden * ffn
    return 2.0 * tokens * (attention + mlp)


def attention_core_flops(sequences: int, seq_len: int, hidden: int, *, causal_half: bool) -> float:
    """Forward work of scores and their product with the values, for one layer.

    The full square is 4 b s^2 h. A fused kernel skips the blocks above the causal diagonal, which
    halves it (`causal_half`); an unfused one computes all and masks.

    >>> attention_core_flops(1, 2048, 12288, causal_half=False) == 4 * 2048**2 * 12288
    True
    """
    square = 4.0 * sequences * seq_len * seq_len * hidden
    return square / 2 if causal_half else square


def logits_flops(tokens: int, hidden: int, vocabulary: int) -> float:
    """Forward work of the output head: 2 b s h V.

    >>> logits_flops(1, 2, 5)
    20.0
    """
    return 2.0 * tokens * hidden * vocabulary


@dataclass(frozen=True)
class ForwardWork:
    """Forward work of one sequence, in FLOP: a layer, its attention core, the logits, and in all.

    `executed` counts what the kernels do, `by_definition` the full attention square.
    """

    layer: float
    core: float
    logits: float
    executed: float
    by_definition: float

    def repeated(self, recomputation: str) -> float:
        """Work of a layer's forward pass that its backward pass repeats: none, core or all."""
        return {"none": 0.0, "selective": self.core, "full": self.layer}[recomputation]


def forward_work(model: TransformerModel, seq_len: int, *, fused_attention: bool) -> ForwardWork:
    """The work of one sequence of `seq_len` tokens in every part of the model."""
    matrices = layer_matrix_flops(
        seq_len, model.hidden_size, model.kv_size, model.ffn_hidden_size, gated=model.gated_mlp
    )
    core = attention_core_flops(1, seq_len, model.hidden_size, causal_half=fused_attention)
    square = attention_core_flops(1, seq_len, model.hidden_size, causal_half=False)
    logits = logits_flops(seq_len, model.hidden_size, model.vocabulary_size)
    return ForwardWork(
        layer=matrices + core,
        core=core,
        logits=logits,
        executed=model.layers * (matrices + core) + logits,
        by_definition=model.layers * (matrices + square) + logits,
    )
