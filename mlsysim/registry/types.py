"""What the registries hold: accelerators, nodes, fabrics, fleets and transformer models."""

from __future__ import annotations

from functools import cached_property

from mlsysim.declarations.fields import Declared, Rates, declared, record
from mlsysim.errors import InputError, LayoutError, division
from mlsysim.registry.links import Links
from mlsysim.units import Quantity, to_si

__all__ = ["KINDS", "Accelerator", "Fabric", "Fleet", "Node", "TransformerModel"]


_NOMINAL = 0.01  # by which names of models round their parameters


@record
class Accelerator(Declared):
    """One accelerator: what its memory holds and how fast it computes and moves bytes."""

    memory_capacity: Quantity = declared(
        unit="GB", above=0, description="memory that the device offers to programs"
    )
    memory_bandwidth: Quantity = declared(unit="TB/s", above=0, description="peak memory bandwidth")
    rates: Rates = declared(
        unit="TFLOP/s", above=0, description="peak dense matrix rate of each precision"
    )
    matrix_efficiency: float = declared(
        above=0, at_most=1, description="share of the peak rate that large matrix products reach"
    )
    half_work: Quantity = declared(
        unit="GFLOP",
        at_least=0,
        description="work of a layer's forward products at which half of that share is reached",
    )
    memory_efficiency: float = declared(
        above=0, at_most=1, description="share of the memory bandwidth that kernels reach"
    )
    overlap_exposure: float = declared(
        at_least=0, at_most=1, description="share of overlapped communication that stays exposed"
    )

    def rate(self, precision: str) -> float:
        """Peak dense matrix rate in FLOP/s. Raises InputError for a precision it lacks."""
        if precision not in [*self._rates]:
            raise InputError(
                f"precision {precision!r}: {self.name or 'this accelerator'} has no rate for it; "
                f"it has {', '.join(self.rates)}"
            )
        return self._rates[precision]

    @cached_property
    def _rates(self) -> dict[str, float]:
        return {precision: to_si(rate) for precision, rate in self.rates.items()}

    @cached_property
    def memory_rate(self) -> float:
        """Peak memory bandwidth in bytes per second."""
        return to_si(self.memory_bandwidth)

    @cached_property
    def half_work_flops(self) -> float:
        """Work at which half of the matrix efficiency is reached, in FLOP."""
        return to_si(self.half_work)

    @cached_property
    def capacity_bytes(self) -> float:
        """Memory capacity in bytes."""
        return to_si(self.memory_capacity)


@record
class Node(Declared):
    """One server: its accelerators, the links between them, and its network ports."""

    accelerator: Accelerator = declared(description="the accelerator of which it holds several")
    accelerators: int = declared(at_least=1, description="accelerators in the node")
    link_bandwidth: Quantity = declared(
        unit="GB/s",
        above=0,
        description="line rate of one accelerator's links in the node, one direction",
    )
    link_efficiency: float = declared(
        above=0, at_most=1, description="share of the line rate that a large collective reaches"
    )
    link_latency: Quantity = declared(
        unit="us",
        at_least=0,
        description="time of one step of a ring inside the node, beyond its bytes",
    )
    nics: int = declared(at_least=1, description="network ports for traffic between accelerators")
    nic_bandwidth: Quantity = declared(
        unit="GB/s", above=0, description="line rate of a port, one direction"
    )


@record
class Fabric(Declared):
    """The network between nodes."""

    port_bandwidth: Quantity = declared(
        unit="GB/s", above=0, description="line rate of a switch port, one direction"
    )
    bandwidth_efficiency: float = declared(
        above=0, at_most=1, description="share of the line rate that a large collective reaches"
    )
    latency: Quantity = declared(
        unit="us",
        at_least=0,
        description="time of one step of a ring between nodes, beyond its bytes",
    )
    oversubscription: float = declared(
        at_least=1, description="ports to nodes over uplinks to the core; 1 is full bisection"
    )


@record
class Fleet(Declared):
    """Equal nodes on one fabric."""

    node: Node = declared(description="the node")
    node_count: int = declared(at_least=1, description="how many nodes")
    fabric: Fabric = declared(description="the network between them")

    @property
    def total_accelerators(self) -> int:
        """Accelerators in the fleet. Equation: node_count * node.accelerators."""
        return self.node_count * self.node.accelerators

    @cached_property
    def links(self) -> Links:
        """Rates and latencies inside a node and between nodes, as collectives reach them.

        A rate is bytes per second and accelerator, one direction. Equation, inside: line rate *
        efficiency; between: min(NIC, port) * efficiency / oversubscription * NICs / accelerators.
        """
        node, fabric = self.node, self.fabric
        port = min(to_si(node.nic_bandwidth), to_si(fabric.port_bandwidth))
        reached = port * fabric.bandwidth_efficiency / fabric.oversubscription
        return Links(
            link_rate=to_si(node.link_bandwidth) * node.link_efficiency,
            link_latency=to_si(node.link_latency),
            network_rate=reached * node.nics / node.accelerators,
            network_latency=to_si(fabric.latency),
        )


@record
class TransformerModel(Declared):
    """A dense decoder-only transformer: its shape, and the parameter count it is known by."""

    parameters: Quantity = declared(
        unit="param", above=0, description="nominal parameter count, as the model is named"
    )
    layers: int = declared(at_least=1, description="transformer layers")
    hidden_size: int = declared(at_least=1, description="width of the residual stream")
    attention_heads: int = declared(at_least=1, description="query heads")
    kv_heads: int = declared(at_least=1, description="key and value heads")
    ffn_hidden_size: int = declared(at_least=1, description="inner width of the MLP")
    gated_mlp: bool = declared(
        description="three matrices in the MLP (gate, up, down) instead of two"
    )
    vocabulary_size: int = declared(at_least=1, description="tokens in the vocabulary")
    context_length: int = declared(
        at_least=1, unit="tok", description="tokens of one sequence in pre-training"
    )
    tied_embeddings: bool = declared(description="input and output embeddings are one matrix")
    learned_positions: bool = declared(
        description="a learned vector for each position of the context"
    )
    biases: bool = declared(description="linear layers and normalisations carry biases")

    def check(self) -> None:
        """Refuse widths that heads do not divide."""
        if self.hidden_size % self.attention_heads:
            raise LayoutError(
                "attention_heads does not divide hidden_size: "
                f"{division(self.hidden_size, self.attention_heads)}"
            )
        if self.attention_heads % self.kv_heads:
            raise LayoutError(
                "kv_heads does not divide attention_heads: "
                f"{division(self.attention_heads, self.kv_heads)}"
            )

    def check_entry(self) -> None:
        """Refuse a nominal count that is not that of the shape: one of them has a slip."""
        nominal, counted = to_si(self.parameters), self.counted_parameters
        if not abs(counted - nominal) <= _NOMINAL * counted:
            raise InputError(
                f"parameters = {nominal:g} param, but layers, widths and vocabulary count "
                f"{counted:.4g}: expected within {_NOMINAL:.0%}, or one of them has a slip; give a "
                "model whose name rounds more the count itself"
            )

    @cached_property
    def kv_size(self) -> int:
        """Width of keys and values. Equation: hidden_size * kv_heads / attention_heads."""
        return self.hidden_size // self.attention_heads * self.kv_heads

    @cached_property
    def layer_parameters(self) -> int:
        """Parameters of one transformer layer, counted from the architecture.

        Equation: 2 h^2 + 2 h k + (3 if gated else 2) h f + norms and biases, with h the hidden
        size, k the key width and f the inner width of the MLP.
        """
        h, k, f = self.hidden_size, self.kv_size, self.ffn_hidden_size
        matrices = 2 * h * h + 2 * h * k + (3 if self.gated_mlp else 2) * h * f
        norms = 2 * h * (2 if self.biases else 1)
        biases = (h + 2 * k + h) + (2 * f if self.gated_mlp else f) + h if self.biases else 0
        return matrices + norms + biases

    @cached_property
    def embedding_parameters(self) -> int:
        """Parameters of the token embedding and of the positions on the first stage."""
        rows = self.vocabulary_size + (self.context_length if self.learned_positions else 0)
        return rows * self.hidden_size

    @cached_property
    def tied_parameters(self) -> int:
        """Parameters of the copy of a tied embedding that the last of several stages keeps."""
        return self.vocabulary_size * self.hidden_size if self.tied_embeddings else 0

    @cached_property
    def head_parameters(self) -> int:
        """Parameters of the final normalisation and of an output matrix that is not tied."""
        norm = self.hidden_size * (2 if self.biases else 1)
        return norm + (0 if self.tied_embeddings else self.vocabulary_size * self.hidden_size)

    @cached_property
    def counted_parameters(self) -> int:
        """Parameters counted from the architecture, as against the nominal `parameters`."""
        return (
            self.layers * self.layer_parameters + self.embedding_parameters + self.head_parameters
        )


# The types that a registry file may name as its kind.
KINDS: dict[str, type[Declared]] = {
    each.__name__: each for each in (Accelerator, Fabric, Fleet, Node, TransformerModel)
}
