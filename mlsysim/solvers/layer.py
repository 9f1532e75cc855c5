"""What one microbatch costs: a layer, the output head, and handing over to the next stage."""

from __future__ import annotations

from typing import NamedTuple

from mlsysim.solvers import collectives, flops, kernels
from mlsysim.solvers.elementwise import Number, choose, larger
from mlsysim.solvers.inputs import Inputs
from mlsysim.solvers.pipeline import Window

__all__ = ["Layer", "Parts", "parts_of"]

# ASSUME precision: activations travel and are kept in 16 bits, whatever the precision of the
# products.
_ACTIVATION_BYTES = 2.0


class Layer(NamedTuple):
    """Seconds of one layer and microbatch on one rank.

    Of the context-parallel ring the attention core leaves `context_forward` and `context_backward`
    exposed. The last four are the seconds of each pass in which exchanges and the ring keep the
    network, or the node's links, busy.
    """

    forward: Number
    backward: Number
    recomputation: Number
    memory_forward: Number
    memory_backward: Number
    exchange_forward: Number
    exchange_backward: Number
    exchange_hidden: Number
    context_forward: Number
    context_backward: Number
    network_forward: Number
    network_backward: Number
    links_forward: Number
    links_backward: Number

    @property
    def forward_window(self) -> Window:
        """The forward pass as a window for collectives over the replicas."""
        whole = self.forward_pass + self.context_forward
        return Window(whole, whole - self.network_forward, whole - self.links_forward)

    @property
    def backward_window(self) -> Window:
        """The backward pass as a window for collectives over the replicas."""
        whole = self.backward_pass + self.context_backward
        return Window(whole, whole - self.network_backward, whole - self.links_backward)

    @property
    def forward_pass(self) -> Number:
        """Seconds of the forward pass."""
        return self.forward + self.memory_forward + self.exchange_forward

    @property
    def backward_pass(self) -> Number:
        """Seconds of the backward pass, with what it computes again."""
        return self.backward + self.recomputation + self.memory_backward + self.exchange_backward

    @property
    def context(self) -> Number:
        """Seconds of the ring that the attention core does not hide, in both passes."""
        return self.context_forward + self.context_backward

    @property
    def total(self) -> Number:
        """Seconds of both passes and of the context-parallel ring."""
        return self.forward_pass + self.backward_pass + self.context


class Parts(NamedTuple):
    """Seconds of one microbatch: of a layer, of the output head, and of handing over."""

    layer: Layer
    head_forward: Number
    head_memory: Number
    hand_over: Number
    bandwidth: Number

    @property
    def head(self) -> Number:
        """Seconds of the output head, forward and backward as twice that, and of the loss."""
        return 3.0 * self.head_forward + self.head_memory


def parts_of(x: Inputs) -> Parts:
    """What one microbatch costs wherever it is."""
    tokens = x.microbatch * x.seq_len / x.context
    matrices = flops.layer_matrix_flops(tokens, x.hidden, x.kv, x.ffn, gated=x.gated) / x.tensor
    # ASSUME matrix products: what small products cost beyond their work is a time, in fp8 the same
    # as in bf16.
    half_work = x.half_work * (x.peak / x.core_peak)
    rate = kernels.matrix_rate(x.peak, x.efficiency, matrices, half_work)
    core_rate = rate * (x.core_peak / x.peak)
    bandwidth = x.memory_rate * x.memory_efficiency
    tensor_group = collectives.group_of(x.tensor, 1, x.node_size)
    all_reduce = collectives.all_reduce_time(
        _ACTIVATION_BYTES * tokens * x.hidden, tensor_group, x.links
    )
    head_work = flops.logits_flops(tokens, x.hidden, x.vocabulary) / x.tensor
    return Parts(
        layer=_layer(x, tokens, matrices, (rate, core_rate), bandwidth, all_reduce, tensor_group),
        head_forward=head_work / (x.core_peak * x.efficiency),
        head_memory=kernels.logits_moved_bytes(tokens, x.vocabulary, x.tensor) / bandwidth,
        hand_over=_hand_over(x, tokens),
        bandwidth=bandwidth,
    )


def _layer(
    x: Inputs,
    tokens: Number,
    matrices: Number,
    rates: tuple[Number, Number],
    bandwidth: Number,
    all_reduce: Number,
    tensor_group: collectives.Group,
) -> Layer:
    """One layer: a layer all-reduces twice forward and twice backward (Shoeybi et al. 2019).

    A repeated forward pass repeats its two. Reduce-scatter and all-gather of sequence parallelism
    take as long as an all-reduce.
    """
    # ASSUME sequence parallelism: the extra all-gather of sequence parallelism in the backward pass
    # hides behind the weight gradients, as Korthikanti et al. 2022 arrange it.
    core = flops.attention_core_flops(
        x.microbatch, x.seq_len, x.hidden, causal_half=x.fused_attention
    ) / (x.tensor * x.context)
    moved, core_moved = kernels.layer_moved_bytes(
        tokens,
        x.hidden,
        x.kv,
        x.ffn,
        x.heads,
        x.seq_len,
        x.tensor,
        gated=x.gated,
        sequence_parallel=x.sequence_parallel,
        fused_attention=x.fused_attention,
    )
    rate, core_rate = rates
    products, core_forward = matrices / rate, core / core_rate
    # A fused kernel computes the scores again in its backward pass: five products to two
    # (Dao et al. 2022), not four.
    core_backward = choose(x.fused_attention, 2.5, 2.0) * core_forward
    forward = products + core_forward
    memory_forward = (moved + core_moved) / bandwidth
    again = choose(x.repeats_all, forward, choose(x.repeats_core, core_forward, 0.0))
    memory_again = choose(
        x.repeats_all, memory_forward, choose(x.repeats_core, core_moved / bandwidth, 0.0)
    )
    ahead = 2.0 * all_reduce
    back = choose(x.repeats_all, 4.0, 2.0) * all_reduce
    # Exchanges run behind matrix products, the context-parallel ring behind the attention core.
    ahead_exposed = _exposed(x, ahead, products)
    back_exposed = _exposed(x, back, choose(x.repeats_all, 3.0, 2.0) * products)
    ring, ring_group = _ring(x, tokens)
    # Whatever computes the attention core again needs the keys and values of the others again.
    rings_back = choose(x.repeats_core, 3.0, 2.0) * ring
    core_back = core_backward + choose(x.repeats_core, core_forward, 0.0)
    ring_across = choose(ring_group.nodes > 1, 1.0, 0.0)
    exchange_across = choose(tensor_group.nodes > 1, 1.0, 0.0)
    return Layer(
        forward=forward,
        backward=2.0 * products + core_backward,
        recomputation=again,
        memory_forward=memory_forward,
        memory_backward=2.0 * memory_forward + memory_again,
        exchange_forward=ahead_exposed,
        exchange_backward=back_exposed,
        exchange_hidden=(ahead - ahead_exposed) + (back - back_exposed),
        context_forward=larger(ring - core_forward, 0.0),
        context_backward=larger(rings_back - core_back, 0.0),
        network_forward=ring_across * ring + exchange_across * ahead,
        network_backward=ring_across * rings_back + exchange_across * back,
        links_forward=(1.0 - ring_across) * ring + ahead,
        links_backward=(1.0 - ring_across) * rings_back + back,
    )


def _exposed(x: Inputs, exchange: Number, products: Number) -> Number:
    """Seconds of an exchange that stay exposed: a share, or what outlasts the products."""
    left = larger(x.overlap_exposure * exchange, exchange - products)
    return choose(x.overlap_tensor, left, exchange)


def _ring(x: Inputs, tokens: Number) -> tuple[Number, collectives.Group]:
    """Seconds in which keys and values go round the context-parallel ring once, and the ring.

    They do so forward; backward they and their gradients do.
    """
    size = _ACTIVATION_BYTES * 2.0 * tokens * x.kv / x.tensor
    group = collectives.group_of(x.context, x.tensor, x.node_size)
    return (x.context - 1) * collectives.point_to_point_time(size, group, x.links), group


def _hand_over(x: Inputs, tokens: Number) -> Number:
    """Seconds in which a microbatch is sent on and its gradient sent back, for one stage.

    Every rank of the tensor-parallel group sends its own part (Narayanan et al. 2021, section 4.1).
    """
    size = _ACTIVATION_BYTES * tokens * x.hidden / x.tensor
    group = collectives.group_of(x.pipeline, x.tensor * x.context * x.data, x.node_size)
    # ASSUME pipeline: what stages hand over hides behind nothing; the published runs with many
    # parts a stage come out too fast if it does.
    sent = 2.0 * x.interleaving * collectives.point_to_point_time(size, group, x.links)
    return choose(x.pipeline > 1, sent, 0.0)
