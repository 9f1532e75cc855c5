"""Communication: every collective of one step, what hides it, and what stays exposed."""

from __future__ import annotations

import math
from functools import cached_property
from typing import ClassVar

from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions._exchanges import Exchange, exchanges
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import LayoutError
from mlsysim.solvers import DistributedModel, flops, kernels, pipeline
from mlsysim.solvers.inputs import Inputs
from mlsysim.solvers.layer import Parts, parts_of
from mlsysim.solvers.replicas import stage_kinds
from mlsysim.units import Quantity, to_si, unit
from mlsysim.units.quantities import gigabytes, percent, seconds

__all__ = ["StepCollectivesScenario"]


@record
class StepCollectivesScenario(Scenario):
    """What the accelerators of a training step send each other: every collective, once.

    Kinds: `tensor_parallel`, all-reduces of activations in each layer of the slowest stage;
    `point_to_point`, activations and their gradients between neighboring stages; `data_parallel`,
    the all-reduce of gradients over the replicas, of the stage with the most parameters. A kind
    whose group has one member is left out.

    Equation: count * time of one = exposed + hidden, with the times of mlsysim.solvers.collectives.

    Assumptions: an all-reduce stands for the reduce-scatter and all-gather of sequence parallelism,
    which take as long; gradients are reduced in one collective, however many parts they go in.

    Excludes: the exchange of embedding and output matrix, and the sum of tied embeddings.
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step that communicates")

    def check(self) -> None:
        """Refuse a step in which nobody has anybody to talk to."""
        if not self._found:
            raise LayoutError("the step has one accelerator, and no collective")

    @output("GB/s")
    def link_rate(self) -> dict[str, Quantity]:
        """Bytes a second that one accelerator sends in a large collective, one direction.

        Equation: line rate * efficiency of an accelerator's links, and of the node's ports over its
        accelerators.
        """
        links = self._inputs.links
        return {
            "in_node": Quantity(links.link_rate / 1e9, unit("GB/s")),
            "between_nodes": Quantity(links.network_rate / 1e9, unit("GB/s")),
        }

    @output()
    def members(self) -> dict[str, int]:
        """Accelerators that take part. Equation: the degree of parallelism; 2 of neighbors."""
        return {name: each.members for name, each in self._found.items()}

    @output()
    def nodes(self) -> dict[str, int]:
        """Nodes that they are spread over. Equation: members / members in a node."""
        return {name: int(each.group.nodes) for name, each in self._found.items()}

    @output("MB")
    def message(self) -> dict[str, Quantity]:
        """Bytes that one collective sums or sends.

        Equation: tensor parallel, 2 b s h; point to point, 2 b s h / tensor degree; data parallel,
        bytes of a gradient * parameters of the stage / tensor degree.
        """
        return {name: gigabytes(each.message / 1e9) for name, each in self._found.items()}

    @output()
    def count(self) -> dict[str, int]:
        """How many a rank takes part in in one step.

        Equation: tensor parallel, microbatches * layers of the stage * (4, or 6 if the backward
        pass repeats the forward pass); point to point, microbatches * 2 * interleaving; data
        parallel, 1.
        """
        return {name: each.times for name, each in self._found.items()}

    @output("us")
    def time_of_one(self) -> dict[str, Quantity]:
        """Time of one. Equation: collectives.all_reduce_time or point_to_point_time of message."""
        return {name: seconds(each.seconds) for name, each in self._found.items()}

    @output("%")
    def latency_share(self) -> dict[str, Quantity]:
        """Share of that time that the latency of its ring steps is. Equation: time of 0 B / it."""
        return {name: percent(each.idle / each.seconds) for name, each in self._found.items()}

    @output("s")
    def latency_total(self) -> dict[str, Quantity]:
        """What all of a kind would take without a byte. Equation: count * time of one of 0 B."""
        return {name: seconds(each.times * each.idle) for name, each in self._found.items()}

    @output("GB")
    def sent(self) -> dict[str, Quantity]:
        """Bytes that one accelerator sends in a step.

        Equation: count * message * 2 ((i - 1) / i + (n - 1) / (i n)), with i of the members in each
        of n nodes; count * message between neighbors.
        """
        return {name: gigabytes(each.times * each.sent / 1e9) for name, each in self._found.items()}

    @output("s")
    def exposed(self) -> dict[str, Quantity]:
        """Seconds of the step. Equation: the entry of the step's ledger."""
        return {name: seconds(each.exposed) for name, each in self._found.items()}

    @output("s")
    def hidden(self) -> dict[str, Quantity]:
        """Seconds behind other work. Equation: count * time_of_one - exposed."""
        return {name: seconds(each.hidden) for name, each in self._found.items()}

    @output("s")
    def exposed_total(self) -> Quantity:
        """All communication that nothing hides. Equation: sum of exposed."""
        return seconds(math.fsum(each.exposed for each in self._found.values()))

    @output("s")
    def hidden_total(self) -> Quantity:
        """All communication that other work hides. Equation: sum of hidden."""
        return seconds(math.fsum(each.hidden for each in self._found.values()))

    @output("%")
    def exposed_share(self) -> Quantity:
        """Exposed communication over the step. Equation: exposed_total / step_time."""
        return percent(to_si(self.exposed_total) / to_si(self.step.step_time))

    @output("ms")
    def layer_products(self) -> Quantity:
        """Products of a layer's weight matrices, forward, of one microbatch on one rank.

        Equation: work w of the products / (peak rate * efficiency * w / (w + half_work)).
        """
        x = self._inputs
        work = (
            flops.layer_matrix_flops(x.microbatch * x.seq_len, x.hidden, x.kv, x.ffn, gated=x.gated)
            / x.tensor
        )
        half_work = x.half_work * (x.peak / x.core_peak)
        return seconds(work / kernels.matrix_rate(x.peak, x.efficiency, work, half_work))

    @output("ms")
    def layer_exchange(self) -> Quantity:
        """The two all-reduces of that pass, if nothing hid them. Equation: 2 * time_of_one."""
        found = self._found.get("tensor_parallel")
        return seconds(2.0 * found.seconds if found else 0.0)

    @output("ms")
    def layer_backward(self) -> dict[str, Quantity]:
        """The backward pass of a layer, of one microbatch on one rank, by what it is busy with.

        Equation: products, matrix products with what is computed again; memory, memory-bound
        kernels; exchange, tensor- and context-parallel communication that nothing hides.
        """
        layer = self._parts.layer
        return {
            "products": seconds(layer.backward + layer.recomputation),
            "memory": seconds(layer.memory_backward),
            "exchange": seconds(layer.exchange_backward + layer.context_backward),
        }

    @output("ms")
    def reduction_window(self) -> Quantity:
        """Last backward pass of the first stage, the only time behind which gradients can travel.

        Equation: layers of the stage * sum of layer_backward, and the backward pass of an output
        head on it; of as many microbatches as there are stages in an interleaved schedule.
        """
        return seconds(self._window()[0])

    @output("ms")
    def reduction_hidden_at_most(self) -> Quantity:
        """What of it can hide gradients, as those of a part exist only after the part.

        Equation: reduction_window * (1 - 1 / parts), a part being a layer, or a part of the stage
        in an interleaved schedule.
        """
        window, parts = self._window()
        return seconds(window * (1.0 - 1.0 / parts))

    @output()
    def reduction_over_window(self) -> float:
        """How many such windows the reduction of gradients lasts; none without replicas.

        Equation: time_of_one.data_parallel / reduction_window.
        """
        found = self._found.get("data_parallel")
        return found.seconds / self._window()[0] if found else 0.0

    def _window(self) -> tuple[float, int]:
        """Seconds of the last backward pass of the first stage, and its parts."""
        x, parts = self._inputs, self._parts
        kinds = stage_kinds(x, pipeline.split_layers(x.layers, x.pipeline))
        layers, head = next((layers, head) for layers, count, _, head in kinds if count > 0)
        waves = min(x.pipeline, x.microbatches) if x.interleaving > 1 else 1
        back = layers * parts.layer.backward_window.whole + head * (2.0 / 3.0 * parts.head)
        return float(waves * back), int(x.interleaving if x.interleaving > 1 else layers)

    @property
    def _inputs(self) -> Inputs:
        return self.step.result.inputs

    @property
    def _parts(self) -> Parts:
        return parts_of(self._inputs)

    @cached_property
    def _found(self) -> dict[str, Exchange]:
        """The collectives by kind."""
        return exchanges(self.step.result)
