"""Training scenarios: the self-contained replica, and the reference step that repeats it."""

from __future__ import annotations

from typing import ClassVar

from mlsysim import units
from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.errors import LayoutError, division
from mlsysim.registry.types import Fleet, Node, TransformerModel
from mlsysim.solvers import DistributedModel, DistributedResult
from mlsysim.solvers.distributed import StepArguments, solved
from mlsysim.units import Quantity, to_si

__all__ = ["ReferenceTrainingStepScenario", "SelfContainedReplicaScenario"]


@record
class SelfContainedReplicaScenario(Scenario):
    """The fewest accelerators that hold a model's whole training state and can train it alone.

    Tensor parallelism spans one node, so that its collectives stay on the links inside; the
    pipeline is the shallowest that makes the unsharded training state fit.

    Equation: replica accelerators = accelerators of a node * pipeline depth.

    Assumptions: training state is spread evenly over the replica's accelerators.

    Excludes: activations and workspace in the choice of the depth; the step that uses the replica
    checks them.

    Derivation: counts of the model and the node; memory per parameter after Rajbhandari et al.
    2020.

    >>> from mlsysim import Scenarios
    >>> Scenarios.DenseLLMReplica.replica_gpus
    64
    """

    workload: TransformerModel = declared(description="the model that is trained")
    node: Node = declared(description="the node that the replica is made of")
    bytes_per_param: Quantity = declared(
        unit="B", above=0, description="training state kept for each parameter"
    )
    sequence_parallel: bool = declared(
        description="norms and residuals are split over the tensor-parallel group too"
    )
    fused_attention: bool = declared(description="attention scores are never written to memory")
    activation_recomputation: str = declared(
        choices=("none", "selective", "full"), description="what the backward pass computes again"
    )
    state_sharding: str = declared(
        choices=("none",),
        description="training state split over the data-parallel group; only none is modeled",
    )
    interleaving: int = declared(
        at_least=1, description="parts of each pipeline stage; 1 is plain 1F1B"
    )
    gradient_precision: str = declared(
        choices=("bf16", "fp16", "fp32"), description="number format of the reduced gradients"
    )

    def check(self) -> None:
        """Refuse heads that the node does not divide, and a state that no depth fits."""
        for name in ("attention_heads", "kv_heads"):
            heads = getattr(self.workload, name)
            if heads % self.tensor_parallel:
                raise LayoutError(
                    "tensor parallelism over all accelerators of a node: their number does not "
                    f"divide {name}: {division(heads, self.tensor_parallel)}"
                )
        if not self.pipeline_depth:
            raise LayoutError(self._no_depth_fits())

    @output()
    def tensor_parallel(self) -> int:
        """Tensor-parallel degree: every accelerator of one node.

        Equation: node.accelerators.
        """
        return self.node.accelerators

    @output()
    def pipeline_depth(self) -> int:
        """Pipeline stages: the smallest power of two that divides the layers and fits the state.

        Equation: min(p in 1, 2, 4, ... : layers % p = 0, parameters * bytes_per_param /
        (tensor_parallel * p) <= memory_capacity).
        """
        # ASSUME layout: pipeline depths are powers of two that divide the layers; other depths may
        # fit as well.
        depth = 1
        while depth <= self.workload.layers:
            if self.workload.layers % depth == 0 and self._state_bytes(depth) <= self._capacity:
                return depth
            depth *= 2
        return 0

    @output()
    def replica_gpus(self) -> int:
        """Accelerators of the replica.

        Equation: tensor_parallel * pipeline_depth.
        """
        return self.tensor_parallel * self.pipeline_depth

    @output("GB")
    def state_per_gpu(self) -> Quantity:
        """Unsharded training state of one accelerator, without activations and workspace.

        Equation: workload.parameters.magnitude * bytes_per_param / replica_gpus.
        """
        state: Quantity = (
            self.workload.parameters.magnitude * self.bytes_per_param / self.replica_gpus
        )
        return state

    @output("param")
    def counted_parameters(self) -> int:
        """Parameters counted from the architecture, as against the model's nominal count.

        Equation: layers * parameters of a layer + embeddings + final normalisation.
        """
        return self.workload.counted_parameters

    @property
    def feasibility(self) -> str:
        """The reason why the depth is what it is."""
        needed, have = self._state_bytes(self.pipeline_depth) / 1e9, self._capacity / 1e9
        return (
            f"training state fits: {needed:g} GB in {have:.1f} GB at {self.pipeline_depth} stages"
        )

    @property
    def _capacity(self) -> float:
        return self.node.accelerator.capacity_bytes

    def _state_bytes(self, depth: int) -> float:
        parameters = to_si(self.workload.parameters)
        return parameters * to_si(self.bytes_per_param) / (self.tensor_parallel * depth)

    def _no_depth_fits(self) -> str:
        layers, parameters = self.workload.layers, to_si(self.workload.parameters)
        deepest = max(2**i for i in range(layers.bit_length()) if layers % 2**i == 0)
        total = parameters * to_si(self.bytes_per_param) / 1e9
        return (
            f"no pipeline depth fits the training state: {parameters:g} parameters x "
            f"{to_si(self.bytes_per_param):g} B = {total:g} GB, "
            f"over {self.tensor_parallel} x {deepest} "
            f"accelerators (the largest power of two that divides {layers} layers) is "
            f"{total / self.tensor_parallel / deepest:.4g} GB each, more than "
            f"{self._capacity / 1e9:.4g} GB"
        )


@record
class ReferenceTrainingStepScenario(Scenario):
    """One optimizer step of a reference pretraining job, fixed once for all chapters.

    The replica's layout is repeated across the fleet for data parallelism. One step is one
    optimizer update over the global batch; its microbatches have `sequences_per_microbatch`
    sequences, so gradients are reduced over the data-parallel group once per step. The global batch
    is the cited token batch over the context length, rounded down to a multiple of `batch_divisor`,
    so that every data-parallel degree with which the book makes a step divides the batch.

    Equation: global sequences = rounded token batch / context; data degree = fleet devices /
    replica devices; step time = DistributedModel.solve(...).

    Assumptions: the declared layout and batch give whole microbatches; local efficiency and
    communication overlap are inputs.

    Excludes: a measured step time, a prediction of convergence, and incomplete replicas or
    microbatches.

    Derivation: the declared inputs go to mlsysim.solvers.DistributedModel.solve, whose docstring
    states equations and sources.

    >>> from mlsysim import Scenarios
    >>> case = Scenarios.DenseLLMPretrainingStep
    >>> round(float(case.tensor_parallel), 3)
    8.0
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    replica: SelfContainedReplicaScenario = declared(description="the layout of one replica")
    fleet: Fleet = declared(description="the accelerators that the replicas fill")
    batch_tokens: float = declared(
        unit="tok", above=0, at_most=1e15, description="tokens of a step as cited, before rounding"
    )
    batch_divisor: int = declared(
        unit="seq", at_least=1, description="the global batch is a multiple of this many sequences"
    )
    sequences_per_microbatch: int = declared(
        unit="seq", at_least=1, description="sequences of a microbatch"
    )
    precision: str = declared(
        choices=("bf16", "fp16", "fp8"), description="number format of the matrix products"
    )
    local_efficiency: float = declared(
        above=0, at_most=1, description="share of the dense peak rate that matrix products reach"
    )
    overlap_comm: bool = declared(
        description="gradient reduction and tensor-parallel collectives run behind computing"
    )

    def check(self) -> None:
        """Refuse a fleet, a precision or a batch that admits no whole replica and microbatch."""
        if any(
            getattr(self.fleet.node, each) != getattr(self.replica.node, each)
            for each in ("accelerator", "accelerators", "link_bandwidth", "link_efficiency")
        ):
            fleet, replica = (
                f"{node.accelerators} {node.accelerator.name or 'accelerators'} "
                f"on {units.shown(node.link_bandwidth)} links"
                for node in (self.fleet.node, self.replica.node)
            )
            raise LayoutError(
                f"the fleet's nodes have {fleet}, but the replica is laid out for {replica}"
            )
        self.fleet.node.accelerator.rate(self.precision)
        if not self.data_parallel:
            raise LayoutError(
                f"the fleet's {self.fleet.total_accelerators} accelerators hold no replica: "
                f"{self.tensor_parallel} x {self.pipeline_depth} = {self.replica.replica_gpus}"
            )
        whole = self.data_parallel * self.sequences_per_microbatch
        sequences = self.global_batch_sequences
        if not sequences:
            raise LayoutError(
                "the batch is smaller than its divisor: tokens / context length "
                f"{division(self.batch_tokens, self.context_length)} sequences, "
                f"fewer than {self.batch_divisor}"
            )
        if sequences % whole:
            raise LayoutError(
                f"the batch leaves no whole microbatch: {self.data_parallel} replicas x "
                f"{self.sequences_per_microbatch} sequences a microbatch = {whole}, and "
                f"{division(sequences, whole)} microbatches a replica"
            )
        self.result  # noqa: B018  a layout that the solver refuses must not exist either

    @output()
    def accelerators(self) -> int:
        """Accelerators of the fleet.

        Equation: fleet.node_count * fleet.node.accelerators.
        """
        return self.fleet.total_accelerators

    @output()
    def tensor_parallel(self) -> int:
        """Tensor-parallel degree inherited from the replica.

        Equation: replica.tensor_parallel.
        """
        return self.replica.tensor_parallel

    @output()
    def pipeline_depth(self) -> int:
        """Pipeline stages inherited from the replica.

        Equation: replica.pipeline_depth.
        """
        return self.replica.pipeline_depth

    @output()
    def data_parallel(self) -> int:
        """Whole replicas that fit in the fleet; what is left over stays idle.

        Equation: fleet.total_accelerators // replica.replica_gpus.
        """
        return self.fleet.total_accelerators // self.replica.replica_gpus

    @output("tok")
    def context_length(self) -> int:
        """Tokens of a sequence, from the replica's model.

        Equation: replica.workload.context_length.
        """
        return self.replica.workload.context_length

    @output("seq")
    def global_batch_sequences(self) -> int:
        """Sequences of the global batch, rounded down to a multiple of batch_divisor.

        Equation: int(batch_tokens / context_length) // batch_divisor * batch_divisor.
        """
        return (
            int(self.batch_tokens / self.context_length) // self.batch_divisor * self.batch_divisor
        )

    @output("tok")
    def global_batch_tokens(self) -> int:
        """Tokens of one optimizer step after the sequences are rounded.

        Equation: global_batch_sequences * context_length.
        """
        return self.global_batch_sequences * self.context_length

    @output()
    def microbatches_per_replica(self) -> int:
        """Whole microbatches of one replica in a step.

        Equation: global_batch_sequences // (data_parallel * sequences_per_microbatch).
        """
        return self.global_batch_sequences // (self.data_parallel * self.sequences_per_microbatch)

    @output("GB")
    def state_per_gpu(self) -> Quantity:
        """Unsharded training state of one accelerator, without activations and workspace.

        Equation: replica.workload.parameters.magnitude * replica.bytes_per_param /
        replica.replica_gpus.
        """
        replica = self.replica
        state: Quantity = (
            replica.workload.parameters.magnitude * replica.bytes_per_param / replica.replica_gpus
        )
        return state

    @output("s")
    def step_time(self) -> Quantity:
        """Modeled time of one optimizer step.

        Equation: result.step_latency_total.
        """
        return self.result.step_latency_total

    @output()
    def result(self) -> DistributedResult:
        """All that DistributedModel.solve gives for these inputs; see there for units and limits.

        Equation: DistributedModel.solve(**solver_arguments).
        """
        return solved(self.solver_arguments())

    @property
    def feasible(self) -> bool:
        """Whether state and activations fit. Equation: result.memory_margin >= 0."""
        return self.result.feasible

    @property
    def feasibility(self) -> str:
        """The reason, with the margin."""
        return self.result.feasibility

    def solver_arguments(self) -> StepArguments:
        """The arguments with which this scenario calls DistributedModel.solve."""
        return StepArguments(
            model=self.replica.workload,
            fleet=self.fleet,
            batch_size=self.global_batch_sequences,
            seq_len=self.context_length,
            precision=self.precision,
            efficiency=self.local_efficiency,
            bytes_per_param=self.replica.bytes_per_param,
            tp_size=self.tensor_parallel,
            pp_size=self.pipeline_depth,
            v_stages=self.replica.interleaving,
            microbatch_count=self.microbatches_per_replica,
            sequence_parallel=self.replica.sequence_parallel,
            fused_attention=self.replica.fused_attention,
            activation_recomputation=self.replica.activation_recomputation,
            gradient_precision=self.replica.gradient_precision,
            overlap_comm=self.overlap_comm,
            overlap_tp_comm=self.overlap_comm,
        )
