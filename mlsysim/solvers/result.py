"""What a solved step gives: exposed times that sum to it, memory, use of the fleet."""

from __future__ import annotations

from dataclasses import dataclass, fields

from mlsysim.outputs import output
from mlsysim.solvers.layout import Layout
from mlsysim.units import Quantity, unit

__all__ = ["DistributedResult", "Ledger"]


@dataclass(frozen=True)
class Ledger:
    """Exposed seconds of one step on its critical path; `total` is their sum in this order."""

    forward: float
    backward: float
    recomputation: float
    tensor_parallel: float
    point_to_point: float
    bubble: float
    data_parallel: float

    @property
    def total(self) -> float:
        """Seconds of the step: the entries added in the order in which they are declared."""
        total = 0.0
        for entry in fields(self):
            total += getattr(self, entry.name)
        return total


_SECOND = unit("s")


class DistributedResult:
    """One modeled optimizer step: its exposed times, its memory, and how well it uses the fleet."""

    def __init__(
        self,
        *,
        layout: Layout,
        ledger: Ledger,
        model_work: float,
        executed_work: float,
        peak_rate: float,
        tokens: int,
        hidden_data_parallel: float,
        state: float,
        activations: float,
        capacity: float,
    ) -> None:
        self.layout = layout
        self.ledger = ledger
        self._model_work = model_work
        self._executed_work = executed_work
        self._peak_rate = peak_rate
        self._tokens = tokens
        self._hidden_data_parallel = hidden_data_parallel
        self._state = state
        self._activations = activations
        self._capacity = capacity

    @output("s")
    def step_latency_total(self) -> Quantity:
        """Time of one optimizer step: the sum of the exposed times.

        Equation: forward + backward + recomputation + tensor_parallel + point_to_point + bubble +
        data_parallel.
        """
        return Quantity(self.ledger.total, _SECOND)

    @output("s")
    def forward(self) -> Quantity:
        """Matrix work of all forward passes on the slowest stage.

        Equation: microbatches * forward work of the stage / (peak rate * efficiency).
        """
        return Quantity(self.ledger.forward, _SECOND)

    @output("s")
    def backward(self) -> Quantity:
        """Matrix work of all backward passes on the slowest stage.

        Equation: 2 * forward.
        """
        return Quantity(self.ledger.backward, _SECOND)

    @output("s")
    def recomputation(self) -> Quantity:
        """Forward work that the backward passes of the slowest stage repeat.

        Equation: microbatches * repeated forward work of the stage / (peak rate * efficiency).
        """
        return Quantity(self.ledger.recomputation, _SECOND)

    @output("s")
    def tp_communication_latency(self) -> Quantity:
        """Tensor-parallel collectives of the slowest stage, none of them hidden.

        Equation: microbatches * layers of the stage * (4 + repeated 2) * all-reduce of 2 b s h
        bytes.
        """
        return Quantity(self.ledger.tensor_parallel, _SECOND)

    @output("s")
    def pp_communication_latency(self) -> Quantity:
        """Activations and their gradients passed between neighbouring stages.

        Equation: microbatches * interleaving * 2 * (latency + 2 b s h / tensor degree / link rate).
        """
        return Quantity(self.ledger.point_to_point, _SECOND)

    @output("s")
    def pipeline_bubble_latency(self) -> Quantity:
        """Time for which the slowest stage waits while the pipeline fills and drains.

        Equation: (sum of the stages' slots - slowest slot) / interleaving; (p - 1) / v slots if all
        are equal.
        """
        return Quantity(self.ledger.bubble, _SECOND)

    @output("s")
    def dp_communication_latency(self) -> Quantity:
        """Gradient reduction over the data-parallel group that nothing hides.

        Equation: max over stages of (all-reduce of the stage's gradients - window that the schedule
        leaves).
        """
        return Quantity(self.ledger.data_parallel, _SECOND)

    @output("s")
    def dp_communication_hidden(self) -> Quantity:
        """Gradient reduction that runs behind the last backward passes and is not in the step time.

        Equation: longest all-reduce of a stage's gradients - dp_communication_latency.
        """
        return Quantity(self._hidden_data_parallel, _SECOND)

    @output()
    def bubble_fraction(self) -> float:
        """Bubble's share of the step. Equation: pipeline_bubble_latency / step_latency_total."""
        return self.ledger.bubble / self.ledger.total

    @output("FLOP")
    def model_flops(self) -> Quantity:
        """Work of the step by the model's definition, whatever the kernels execute.

        Equation: 3 * (layer matrices + full attention square + logits) for every token of the
        batch.
        """
        return Quantity(self._model_work, unit("FLOP"))

    @output("%")
    def model_flops_utilization(self) -> Quantity:
        """MFU in the convention of Chowdhery et al. 2022: full attention square, no recomputation.

        Equation: model_flops / (step_latency_total * accelerators in use * peak rate).
        """
        return Quantity(100 * self._model_work / (self._peak_rate * self.ledger.total), unit("%"))

    @output("%")
    def hardware_flops_utilization(self) -> Quantity:
        """HFU: the work that is executed: recomputation, and half the square in a fused kernel.

        Equation: executed work / (step_latency_total * accelerators in use * peak rate).
        """
        return Quantity(
            100 * self._executed_work / (self._peak_rate * self.ledger.total), unit("%")
        )

    @output("tok/s")
    def effective_throughput(self) -> Quantity:
        """Tokens trained per second. Equation: batch_size * seq_len / step_latency_total."""
        return Quantity(self._tokens / self.ledger.total, unit("tok/s"))

    @output("GB")
    def state_memory(self) -> Quantity:
        """Training state of the fullest accelerator, from the architecture's own parameter count.

        Equation: max over stages of (parameters of the stage / tensor degree) * bytes_per_param.
        """
        return Quantity(self._state / 1e9, unit("GB"))

    @output("GB")
    def activation_memory(self) -> Quantity:
        """Activations in flight on the first stage, which keeps the most microbatches.

        Equation: layers of the stage * activations of a layer * microbatches in flight.
        """
        return Quantity(self._activations / 1e9, unit("GB"))

    @output("GB")
    def memory_margin(self) -> Quantity:
        """Memory left of the accelerator's capacity; negative if the step does not fit.

        Equation: memory_capacity - state_memory - activation_memory.
        """
        return Quantity((self._capacity - self._state - self._activations) / 1e9, unit("GB"))

    @property
    def feasible(self) -> bool:
        """Whether state and activations fit the accelerator. Equation: memory_margin >= 0."""
        return self._state + self._activations <= self._capacity

    @property
    def feasibility(self) -> str:
        """The reason why the step fits or does not, with the margin."""
        need, have = (self._state + self._activations) / 1e9, self._capacity / 1e9
        if self.feasible:
            return f"fits: {need:.1f} GB of state and activations in {have:.1f} GB"
        over = need - have
        return f"does not fit: {need:.1f} GB needed, {over:.1f} GB more than {have:.1f} GB"

    @output()
    def idle_accelerators(self) -> int:
        """Accelerators outside any replica. Equation: total_accelerators % (tp_size * pp_size)."""
        return self.layout.idle
