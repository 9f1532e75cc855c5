"""What a step is computed from, and what it gives: plain numbers, or arrays of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mlsysim.registry.links import Links
from mlsysim.solvers.elementwise import Count, Flag, Number

__all__ = ["Inputs", "Ledger", "Memory", "Work", "stacked"]


class Inputs(NamedTuple):
    """All numbers of a step, in base units: model, hardware, layout and its options."""

    layers: Count
    hidden: Count
    heads: Count
    kv: Count
    ffn: Count
    vocabulary: Count
    gated: Flag
    layer_parameters: Number
    embedding_parameters: Number
    head_parameters: Number
    tied_parameters: Number
    seq_len: Count
    node_size: Count
    links: Links
    peak: Number
    core_peak: Number
    memory_rate: Number
    capacity: Number
    efficiency: Number
    half_work: Number
    memory_efficiency: Number
    overlap_exposure: Number
    tensor: Count
    context: Count
    pipeline: Count
    data: Count
    interleaving: Count
    microbatch: Count
    microbatches: Count
    sequence_parallel: Flag
    fused_attention: Flag
    repeats_core: Flag
    repeats_all: Flag
    slots_for_ends: Flag
    overlap_data: Flag
    overlap_tensor: Flag
    zero_stage: Count
    bytes_per_param: Number
    gradient_bytes: Number


def stacked(all_inputs: Sequence[Inputs]) -> Inputs:
    """Many inputs as one, every number an array over them."""
    import numpy as np

    def column(values: Sequence[Any]) -> Any:
        return np.array(values, dtype=bool if isinstance(values[0], bool) else float)

    links = Links(*map(column, zip(*(each.links for each in all_inputs), strict=True)))
    columns = {
        name: column([getattr(each, name) for each in all_inputs])
        for name in Inputs._fields
        if name != "links"
    }
    return Inputs(**columns, links=links)


class Ledger(NamedTuple):
    """Exposed seconds of one step on its critical path; they add up to it in a fixed order."""

    forward: Number
    backward: Number
    recomputation: Number
    memory_bound: Number
    tensor_parallel: Number
    context_parallel: Number
    point_to_point: Number
    bubble: Number
    data_parallel: Number
    optimizer: Number

    @property
    def total(self) -> Number:
        """Seconds of the step: the entries added in their order, the bubble after all others."""
        return self.busy + self.bubble

    @property
    def busy(self) -> Number:
        """Seconds of all entries but the bubble, added in the order in which they are declared."""
        busy: Number = 0.0
        for name, entry in zip(self._fields, self, strict=True):
            if name != "bubble":
                busy = busy + entry
        return busy

    def waiting_until(self, end: float) -> Ledger:
        """The ledger with what is left until `end`, rounded once, as its bubble.

        It adds up to `end` to the last bit where at most half of `end` is bubble, because the
        difference is then exact (Sterbenz's lemma), and elsewhere to one unit in the last place.
        """
        return self._replace(bubble=end - self.busy)


class Memory(NamedTuple):
    """Bytes on the fullest accelerator, by kind."""

    weights: Number
    gradients: Number
    optimizer: Number
    activations: Number

    @property
    def total(self) -> Number:
        """Bytes in all."""
        return self.weights + self.gradients + self.optimizer + self.activations


class Work(NamedTuple):
    """FLOP of the whole step over all accelerators: by the model's definition, and as executed."""

    model: Number
    executed: Number
