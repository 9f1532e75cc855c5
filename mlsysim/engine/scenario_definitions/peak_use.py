"""What becomes of the peak rate of a fleet in one step: the work, and each loss in seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.solvers import DistributedModel, flops, kernels
from mlsysim.solvers.inputs import Inputs
from mlsysim.solvers.layer import Parts, parts_of
from mlsysim.units import Quantity, to_si, unit
from mlsysim.units.quantities import percent, seconds

__all__ = ["PeakUseScenario"]


@record
class PeakUseScenario(Scenario):
    """What becomes of the peak rate of a fleet in one step.

    From the time that the work of the model would take at the peak of all accelerators, each loss
    leads on to the time of the step: matrix products below the peak, stages that wait for a slower
    one, kernels that memory bounds, exposed communication, and the bubble.

    Equation: step_time = time_at_peak + sum of lost.

    Assumptions: the work is that of the convention of Chowdhery et al. 2022, with the full square
    of attention and without what is computed again; what a kernel skips or repeats counts as a loss
    of the products, negative or positive.

    Excludes: what the step excludes.
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step that is taken apart")

    @output("FLOP")
    def work(self) -> dict[str, Quantity]:
        """Work of the batch, forward and backward, by the operation that needs it.

        Equation: matrices, 3 * layers * work of a layer's weight matrices; attention, 3 * layers *
        4 s^2 h; head, 3 * 2 s h V; each for every sequence.
        """
        return {name: Quantity(work, unit("FLOP")) for name, work in self._work.items()}

    @output("%")
    def work_share(self) -> dict[str, Quantity]:
        """Share of the work. Equation: work / model_flops."""
        whole = math.fsum(self._work.values())
        return {name: percent(work / whole) for name, work in self._work.items()}

    @output("GFLOP")
    def layer_work(self) -> Quantity:
        """Work w of a layer's weight matrices, for a forward pass of a microbatch on one rank.

        Equation: 24 b s h^2 / tensor degree, where keys are as wide as queries and the MLP four
        times as wide as the stream.
        """
        return Quantity(self._layer_work / 1e9, unit("GFLOP"))

    @output("TFLOP/s")
    def reached_rate(self) -> Quantity:
        """Rate of these products. Equation: peak rate * efficiency * w / (w + half_work)."""
        return Quantity(self._reached / 1e12, unit("TFLOP/s"))

    @output("%")
    def reached_share(self) -> Quantity:
        """That rate against the peak. Equation: reached_rate / peak rate."""
        return percent(self._reached / self._inputs.peak)

    @output("s")
    def time_at_peak(self) -> Quantity:
        """The step, if every accelerator did nothing but the model's work, at its peak rate.

        Equation: model_flops / (accelerators in use * peak rate).
        """
        return seconds(self._at_peak)

    @output("B")
    def moved_by_layer(self) -> Quantity:
        """What the memory-bound kernels of a layer move for each token and unit of its width.

        Equation: bytes of the forward and the backward pass of a layer, over all tensor-parallel
        ranks / (tokens * hidden size).
        """
        x, layer = self._inputs, self._parts.layer
        tokens = x.microbatch * x.seq_len / x.context
        moved = self._bytes(layer.memory_forward + layer.memory_backward)
        return Quantity(moved * x.tensor / (tokens * x.hidden), unit("B"))

    @output("B")
    def moved_by_loss(self) -> Quantity:
        """What the loss moves for each token and entry of the vocabulary.

        Equation: logits_moved_bytes, over all tensor-parallel ranks / (tokens * vocabulary).
        """
        x = self._inputs
        tokens = x.microbatch * x.seq_len / x.context
        moved = self._bytes(self._parts.head_memory)
        return Quantity(moved * x.tensor / (tokens * x.vocabulary), unit("B"))

    @output("GB")
    def moved(self) -> Quantity:
        """What the memory-bound kernels of the slowest stage move in a step, on one accelerator.

        Equation: memory_bound * memory bandwidth * share of it that kernels reach.
        """
        return Quantity(self._bytes(self.step.result.ledger.memory_bound) / 1e9, unit("GB"))

    @output("B")
    def moved_by_optimizer(self) -> Quantity:
        """What the optimizer moves for each parameter whose state it updates.

        It reads the gradient, reads and writes the master weight and two moments in 4 bytes each,
        and writes the weight in 2. Equation: bytes of a gradient + 2 * 12 + 2.
        """
        return Quantity(kernels.optimizer_moved_bytes(1, self._inputs.gradient_bytes), unit("B"))

    @output("s")
    def spent(self) -> dict[str, Quantity]:
        """Seconds of the slowest stage by what it is busy with or waits for; they add up.

        Equation: products = forward + backward + recomputation; memory = memory_bound + optimizer;
        communication = tensor, context, pipeline and data parallel; bubble.
        """
        return {name: seconds(value) for name, value in self._spent.items()}

    @output("%")
    def spent_share(self) -> dict[str, Quantity]:
        """Shares of the step. Equation: spent / step_time."""
        whole = to_si(self.step.step_time)
        return {name: percent(value / whole) for name, value in self._spent.items()}

    @output("s")
    def lost(self) -> dict[str, Quantity]:
        """Seconds that the step lasts longer than time_at_peak, by cause.

        Equation: products = products of the mean stage - time_at_peak; uneven = products of the
        slowest stage - those of the mean stage; memory, communication and bubble as in spent.
        """
        return {name: seconds(value) for name, value in self._lost.items()}

    @output("%")
    def bubble_by_formula(self) -> Quantity:
        """The bubble's share of a schedule of equal stages that does nothing else.

        Equation: (p - 1) / (m + p - 1).
        """
        fill = self.step.pipeline_depth - 1
        return percent(fill / (self.step.microbatches_per_replica + fill))

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """One row a part, from the time at peak to the step: where it begins, and its seconds."""
        rows, begin = [], 0.0
        for name, value in {"time_at_peak": self._at_peak, **self._lost}.items():
            rows.append({"part": name, "begin_s": begin, "seconds": value})
            begin += value
        return rows

    @property
    def _inputs(self) -> Inputs:
        return self.step.result.inputs

    @property
    def _parts(self) -> Parts:
        return parts_of(self._inputs)

    def _bytes(self, seconds: float) -> float:
        """What memory-bound kernels move in so many seconds."""
        return float(seconds * self._inputs.memory_rate * self._inputs.memory_efficiency)

    @property
    def _layer_work(self) -> float:
        x = self._inputs
        tokens = x.microbatch * x.seq_len / x.context
        work = flops.layer_matrix_flops(tokens, x.hidden, x.kv, x.ffn, gated=x.gated)
        return float(work / x.tensor)

    @property
    def _reached(self) -> float:
        x = self._inputs
        half_work = x.half_work * (x.peak / x.core_peak)
        return float(kernels.matrix_rate(x.peak, x.efficiency, self._layer_work, half_work))

    @property
    def _work(self) -> dict[str, float]:
        x = self._inputs
        sequences = x.data * x.microbatches * x.microbatch
        matrices = flops.layer_matrix_flops(x.seq_len, x.hidden, x.kv, x.ffn, gated=x.gated)
        square = flops.attention_core_flops(1, x.seq_len, x.hidden, causal_half=False)
        head = flops.logits_flops(x.seq_len, x.hidden, x.vocabulary)
        return {
            "matrices": 3.0 * sequences * x.layers * matrices,
            "attention": 3.0 * sequences * x.layers * square,
            "head": 3.0 * sequences * head,
        }

    @property
    def _at_peak(self) -> float:
        x = self._inputs
        used = x.tensor * x.context * x.pipeline * x.data
        return float(self.step.result.step.work.model / (used * x.peak))

    @property
    def _spent(self) -> dict[str, float]:
        spent = self.step.result.ledger
        return {
            "products": math.fsum((spent.forward, spent.backward, spent.recomputation)),
            "memory": math.fsum((spent.memory_bound, spent.optimizer)),
            "communication": math.fsum(
                (
                    spent.tensor_parallel,
                    spent.context_parallel,
                    spent.point_to_point,
                    spent.data_parallel,
                )
            ),
            "bubble": float(spent.bubble),
        }

    @property
    def _lost(self) -> dict[str, float]:
        x, parts, spent = self._inputs, self._parts, self._spent
        layer = parts.layer
        layers = x.layers * math.fsum((layer.forward, layer.backward, layer.recomputation))
        mean = x.microbatches * (layers + 3.0 * parts.head_forward) / x.pipeline
        return {
            "products": mean - self._at_peak,
            "memory": spent["memory"],
            "communication": spent["communication"],
            "uneven": spent["products"] - mean,
            "bubble": spent["bubble"],
        }
