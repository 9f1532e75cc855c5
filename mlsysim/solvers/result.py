"""What a solved step gives: exposed times that sum to it, memory, use of the fleet."""

from __future__ import annotations

from mlsysim.declarations.outputs import output
from mlsysim.solvers.step import Inputs, Ledger, Step, stage_ledgers
from mlsysim.units import Quantity, unit
from mlsysim.units.quantities import gigabytes, percent, seconds

__all__ = ["DistributedResult", "Ledger"]


class DistributedResult:
    """One modeled optimizer step: its exposed times, its memory, and how well it uses the fleet."""

    def __init__(self, inputs: Inputs, step: Step, *, idle: int) -> None:
        self.inputs = inputs
        self.step = step
        self._idle = idle

    @property
    def ledger(self) -> Ledger:
        """The exposed times in seconds; they add up to the step in their order."""
        return self.step.ledger

    @property
    def _seconds(self) -> float:
        return float(self.ledger.total)

    @output("s")
    def step_latency_total(self) -> Quantity:
        """Time of one optimizer step: the sum of the exposed times.

        Equation: forward + backward + recomputation + memory_bound + tp_communication_latency +
        cp_communication_latency + pp_communication_latency + dp_communication_latency + optimizer +
        pipeline_bubble_latency.
        """
        return seconds(self.ledger.total)

    @output("s")
    def forward(self) -> Quantity:
        """Matrix work of all forward passes on the slowest stage.

        Equation: microbatches * (work of the stage's layers / (peak rate * efficiency * w / (w +
        half_work)) + work of its output head / (peak rate * efficiency)), with w the forward work
        of a layer's weight matrices on one accelerator.
        """
        return seconds(self.ledger.forward)

    @output("s")
    def backward(self) -> Quantity:
        """Matrix work of all backward passes on the slowest stage.

        Equation: twice forward; 2.5 times its attention core where a fused kernel computes the
        scores again.
        """
        return seconds(self.ledger.backward)

    @output("s")
    def recomputation(self) -> Quantity:
        """Matrix work of the forward pass that the backward passes of the slowest stage repeat.

        Equation: microbatches * repeated forward work of the stage's layers / (peak rate *
        efficiency * w / (w + half_work)).
        """
        return seconds(self.ledger.recomputation)

    @output("s")
    def memory_bound(self) -> Quantity:
        """Kernels that memory bandwidth bounds: norms, residuals, activation functions, scores.

        Equation: microbatches * bytes moved outside matrix products / (memory bandwidth *
        memory_efficiency).
        """
        return seconds(self.ledger.memory_bound)

    @output("s")
    def tp_communication_latency(self) -> Quantity:
        """Tensor-parallel collectives of the slowest stage that nothing hides.

        Equation: microbatches * layers of the stage * (4 + repeated 2) * all-reduce of 2 b s h
        bytes * exposed share.
        """
        return seconds(self.ledger.tensor_parallel)

    @output("s")
    def cp_communication_latency(self) -> Quantity:
        """Keys and values passed round the context-parallel ring, beyond the attention core.

        Equation: microbatches * layers of the stage * max(0, ring - attention core).
        """
        return seconds(self.ledger.context_parallel)

    @output("s")
    def pp_communication_latency(self) -> Quantity:
        """Activations and their gradients passed between neighboring stages.

        Equation: microbatches * interleaving * 2 * (latency + 2 b s h / tensor degree / rate).
        """
        return seconds(self.ledger.point_to_point)

    @output("s")
    def pipeline_bubble_latency(self) -> Quantity:
        """Time for which the slowest stage waits while the pipeline fills and drains.

        Equation: (sum of the stages' slots - slowest slot) / interleaving; (p - 1) / v slots if all
        are equal.
        """
        return seconds(self.ledger.bubble)

    @output("s")
    def dp_communication_latency(self) -> Quantity:
        """Collectives over the replicas, once per step, that nothing hides.

        Equation: max over stages of (collective of the stage - window that the schedule leaves).
        """
        return seconds(self.ledger.data_parallel)

    @output("s")
    def optimizer(self) -> Quantity:
        """The optimizer's pass over the state of the fullest stage.

        Equation: parameters of the stage / tensor degree * (gradient + 26 bytes) / (memory
        bandwidth * memory_efficiency), over the replicas from ZeRO stage 1 on.
        """
        return seconds(self.ledger.optimizer)

    @output("s")
    def dp_communication_hidden(self) -> Quantity:
        """Collectives over the replicas that run behind computing and are not in the step time.

        Equation: longest collective of a stage - dp_communication_latency.
        """
        return seconds(self.step.hidden_data_parallel)

    @output("s")
    def tp_communication_hidden(self) -> Quantity:
        """Tensor-parallel collectives of the slowest stage that run behind matrix products.

        Equation: all its collectives - tp_communication_latency.
        """
        return seconds(self.step.hidden_tensor_parallel)

    @output("s")
    def stage_ledger(self) -> dict[str, Quantity]:
        """What a stage of each kind is busy with; its bubble is what it waits. Sums to the step.

        Equation: the entries of the ledger for the layers of that stage; bubble = step - the rest.
        """
        return {
            f"{kind}.{name}": seconds(spent)
            for kind, ledger in stage_ledgers(self.inputs).items()
            for name, spent in ledger._asdict().items()
        }

    @output()
    def bubble_fraction(self) -> float:
        """Bubble's share of the step. Equation: pipeline_bubble_latency / step_latency_total."""
        return float(self.ledger.bubble / self.ledger.total)

    @output()
    def binding_resource(self) -> str:
        """What the step spends most of its time on.

        Equation: the largest of matrix units (forward + backward + recomputation), memory
        (memory_bound + optimizer), communication (tensor, context, pipeline and data parallel) and
        pipeline bubble.
        """
        spent = self.ledger
        kinds = {
            "matrix units": spent.forward + spent.backward + spent.recomputation,
            "memory": spent.memory_bound + spent.optimizer,
            "communication": spent.tensor_parallel
            + spent.context_parallel
            + spent.point_to_point
            + spent.data_parallel,
            "pipeline bubble": spent.bubble,
        }
        return max(kinds, key=kinds.__getitem__)

    @output("FLOP")
    def model_flops(self) -> Quantity:
        """Work of the step by the model's definition, whatever the kernels execute.

        Equation: 3 * (layer matrices + full attention square + logits) for every token of the
        batch.
        """
        return Quantity(self.step.work.model, unit("FLOP"))

    @output("%")
    def model_flops_utilization(self) -> Quantity:
        """MFU in the convention of Chowdhery et al. 2022: full attention square, no recomputation.

        Equation: model_flops / (step_latency_total * accelerators in use * peak rate).
        """
        return self._share_of_peak(self.step.work.model)

    @output("%")
    def hardware_flops_utilization(self) -> Quantity:
        """HFU: the executed work, with recomputation, and half the square in a fused kernel.

        Equation: executed work / (step_latency_total * accelerators in use * peak rate).
        """
        return self._share_of_peak(self.step.work.executed)

    def _share_of_peak(self, work: float) -> Quantity:
        x = self.inputs
        used = x.tensor * x.context * x.pipeline * x.data
        return percent(work / (used * x.peak * self._seconds))

    @output("tok/s")
    def effective_throughput(self) -> Quantity:
        """Tokens trained per second. Equation: batch_size * seq_len / step_latency_total."""
        x = self.inputs
        tokens = x.data * x.microbatches * x.microbatch * x.seq_len
        return Quantity(tokens / self._seconds, unit("tok/s"))

    @output("GB")
    def weight_memory(self) -> Quantity:
        """Weights on the fullest accelerator, from the architecture's own parameter count.

        Equation: 2 bytes * parameters of the stage / tensor degree.
        """
        return gigabytes(self.step.memory.weights / 1e9)

    @output("GB")
    def gradient_memory(self) -> Quantity:
        """Gradients on the fullest accelerator.

        Equation: bytes of a gradient * parameters of the stage / tensor degree.
        """
        return gigabytes(self.step.memory.gradients / 1e9)

    @output("GB")
    def optimizer_memory(self) -> Quantity:
        """Master weights and moments on the fullest accelerator.

        Equation: (bytes_per_param - weight - gradient) * parameters of the stage / tensor degree.
        """
        return gigabytes(self.step.memory.optimizer / 1e9)

    @output("GB")
    def state_memory(self) -> Quantity:
        """Training state of the fullest accelerator, counted and not spread evenly over stages.

        Equation: weight_memory + gradient_memory + optimizer_memory.
        """
        kept = self.step.memory
        return gigabytes((kept.weights + kept.gradients + kept.optimizer) / 1e9)

    @output("GB")
    def activation_memory(self) -> Quantity:
        """Activations in flight on the fullest accelerator.

        Equation: microbatches in flight * layers of the stage * activations of a layer + those of
        embedding or output head + what is computed again for the layer that runs backward.
        """
        return gigabytes(self.step.memory.activations / 1e9)

    @output("GB")
    def memory_margin(self) -> Quantity:
        """Memory left of the accelerator's capacity; negative if the step does not fit.

        Equation: memory_capacity - state_memory - activation_memory.
        """
        return gigabytes((self.inputs.capacity - self.step.memory.total) / 1e9)

    @property
    def feasible(self) -> bool:
        """Whether state and activations fit the accelerator. Equation: memory_margin >= 0."""
        return bool(self.step.memory.total <= self.inputs.capacity)

    @property
    def feasibility(self) -> str:
        """The reason why the step fits or does not, with the margin."""
        need, have = self.step.memory.total / 1e9, self.inputs.capacity / 1e9
        if self.feasible:
            return f"fits: {need:.1f} GB of state and activations in {have:.1f} GB"
        return f"does not fit: {need:.1f} GB needed, {need - have:.1f} GB more than {have:.1f} GB"

    @output()
    def idle_accelerators(self) -> int:
        """Accelerators outside any replica. Equation: total_accelerators % replica accelerators."""
        return self._idle
