"""Layouts for tests: the reference step, and any small one that exists on a fleet of any speed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hypothesis import strategies as st

from mlsysim import Scenarios
from mlsysim.engine.scenario_types import ReferenceTrainingStepScenario
from mlsysim.registry.types import Fleet, TransformerModel
from mlsysim.solvers import DistributedModel, DistributedResult
from mlsysim.units import Quantity, quantity, to_si, unit
from tests.conftest import vary

__all__ = [
    "ROUNDING",
    "Case",
    "any_case",
    "case_of",
    "cases",
    "fleet_of",
    "model_of",
    "reference_fleet",
    "step",
]

# Sums of a few floats in another order may differ in their last bits, and by no more.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Case:
    """A model on a fleet, with the arguments of a layout that exists."""

    model: TransformerModel
    fleet: Fleet
    arguments: dict[str, Any]
    written: str = field(default="", compare=False)  # the call that makes it

    def __repr__(self) -> str:
        return self.written or f"Case({self.model!r}, {self.fleet!r}, {self.arguments!r})"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(repr(self))  # Hypothesis takes dataclasses apart otherwise

    def solve(self, **changes: Any) -> DistributedResult:
        return DistributedModel.solve(self.model, self.fleet, **{**self.arguments, **changes})

    def seconds(self, **changes: Any) -> float:
        return to_si(self.solve(**changes).step_latency_total)

    def with_fleet(self, **changes: Any) -> Case:
        """The case with changed hardware; each change goes to whichever part declares it."""
        accelerator = changed(self.fleet.node.accelerator, changes)
        node = changed(vary(self.fleet.node, accelerator=accelerator), changes)
        fabric = changed(self.fleet.fabric, changes)
        fleet = vary(self.fleet, node=node, fabric=fabric)
        return Case(self.model, fleet, self.arguments)

    def ideal(self) -> Case:
        """The case where bytes take no time and products of any size reach the same rate."""
        endless = Quantity(1e290, unit("GB/s"))
        return self.with_fleet(
            link_bandwidth=endless,
            nic_bandwidth=endless,
            port_bandwidth=endless,
            memory_bandwidth=endless,
            link_latency="0 s",
            latency="0 s",
            half_work="0 GFLOP",
        )

    @property
    def replica(self) -> int:
        """Accelerators of one replica."""
        degrees = (self.arguments[f"{name}_size"] for name in ("tp", "cp", "pp"))
        tensor, context, pipeline = degrees
        return int(tensor * context * pipeline)

    @property
    def data(self) -> int:
        """Whole replicas on the fleet."""
        return self.fleet.total_accelerators // self.replica

    @property
    def tokens(self) -> float:
        """Tokens of one microbatch on one rank."""
        sequences = self.arguments["batch_size"] / (self.data * self.arguments["microbatch_count"])
        return float(sequences * self.arguments["seq_len"] / self.arguments["cp_size"])

    @property
    def work(self) -> float:
        """FLOP that the step executes, added up here from the shape of the model."""
        model, length = self.model, self.arguments["seq_len"]
        h, f = model.hidden_size, model.ffn_hidden_size
        k = h // model.attention_heads * model.kv_heads
        fused = self.arguments["fused_attention"]
        matrices = 2 * length * (h * h + 2 * h * k + h * h + (3 if model.gated_mlp else 2) * h * f)
        # Scores and their product with the values: 2 s^2 h each; a fused kernel skips half of both.
        core = (2 if fused else 4) * length * length * h
        head = 2 * length * h * model.vocabulary_size
        again = {"none": 0.0, "selective": core, "full": matrices + core}
        # A product has two in its backward pass. The core is two products, and a fused kernel
        # computes the first of them again: five halves, not two.
        layer = 3 * matrices + (3.5 if fused else 3) * core
        layer += again[self.arguments["activation_recomputation"]]
        return float(self.arguments["batch_size"] * (model.layers * layer + 3 * head))


def changed(thing: Any, changes: dict[str, Any]) -> Any:
    names = {field.name for field in dataclasses.fields(thing)}
    return vary(thing, **{k: v for k, v in changes.items() if k in names})


def model_of(**changes: Any) -> TransformerModel:
    """A transformer of one billion parameters, or what the changes make of it."""
    shape: dict[str, Any] = {
        "parameters": quantity("1e9 param"),
        "layers": 8,
        "hidden_size": 1024,
        "attention_heads": 16,
        "kv_heads": 16,
        "ffn_hidden_size": 4096,
        "gated_mlp": False,
        "vocabulary_size": 50257,
        "context_length": 4096,
        "tied_embeddings": True,
        "learned_positions": False,
        "biases": True,
    }
    return TransformerModel(**{**shape, **changes})


def step() -> ReferenceTrainingStepScenario:
    """The reference step."""
    found = Scenarios.DenseLLMPretrainingStep
    assert isinstance(found, ReferenceTrainingStepScenario)
    return found


@cache
def reference_fleet() -> Fleet:
    return step().fleet


def fleet_of(*, accelerators: int = 8, node_count: int = 16, **changes: Any) -> Fleet:
    """The fleet of the reference step with other counts, speeds and efficiencies."""
    reference = reference_fleet()
    node = vary(reference.node, accelerators=accelerators, nics=accelerators)
    made = vary(reference, node=node, node_count=node_count)
    return Case(model_of(), made, {}).with_fleet(**changes).fleet


def case_of(
    *,
    layers: int,
    heads: int,
    kv_heads: int,
    head_size: int,
    ffn: int,
    vocabulary: int,
    gated: bool,
    tied: bool,
    biases: bool,
    accelerators: int,
    node_count: int,
    hardware: dict[str, Any],
    microbatch_size: int,
    **arguments: Any,
) -> Case:
    """The case that these plain numbers describe; its repr is this call, to be pasted in a test."""
    written = {name: value for name, value in locals().items() if name != "arguments"} | arguments
    half_work = {"half_work": Quantity(hardware["half_work"], unit("GFLOP"))}
    case = Case(
        model_of(
            layers=layers,
            hidden_size=heads * head_size,
            attention_heads=heads,
            kv_heads=kv_heads,
            ffn_hidden_size=ffn,
            vocabulary_size=vocabulary,
            gated_mlp=gated,
            tied_embeddings=tied,
            biases=biases,
        ),
        fleet_of(accelerators=accelerators, node_count=node_count, **{**hardware, **half_work}),
        {"precision": "bf16", "bytes_per_param": quantity("16 B"), **arguments},
        written=f"case_of({', '.join(f'{name}={value!r}' for name, value in written.items())})",
    )
    case.arguments["batch_size"] = case.data * arguments["microbatch_count"] * microbatch_size
    return case


@st.composite
def cases(draw: st.DrawFn, *, interleaved: bool = False) -> Case:
    """Any small layout that exists: uneven stages, idle accelerators, groups across nodes."""
    tensor = draw(st.sampled_from([1, 2, 4, 8, 16]))
    context = draw(st.sampled_from([1, 1, 2, 4]))
    stages = draw(st.integers(2 if interleaved else 1, 6))
    parts = draw(st.integers(2, 3)) if interleaved else 1
    layers = (
        stages * parts * draw(st.integers(1, 3))
        if interleaved
        else draw(st.integers(stages, stages + 9))
    )
    # Embedding and head take no stage for themselves, and interleaved parts are equal.
    slots = not interleaved and layers + 2 >= 2 * stages
    microbatches = draw(st.integers(1, 9)) * (stages if interleaved else 1)
    kv_heads = tensor * draw(st.sampled_from([1, 2]))
    accelerators = draw(st.sampled_from([1, 2, 4, 6, 8]))
    least = -(-tensor * context * stages // accelerators)
    return case_of(
        layers=layers,
        heads=kv_heads * draw(st.sampled_from([1, 4])),
        kv_heads=kv_heads,
        head_size=draw(st.sampled_from([32, 64])),
        ffn=tensor * draw(st.sampled_from([64, 300])),
        vocabulary=draw(st.sampled_from([1, 1000, 50257])),
        gated=draw(st.booleans()),
        tied=draw(st.booleans()),
        biases=draw(st.booleans()),
        accelerators=accelerators,
        node_count=least + draw(st.integers(0, 3 * least + 3)),
        hardware={
            "link_efficiency": draw(st.floats(0.05, 1)),
            "bandwidth_efficiency": draw(st.floats(0.05, 1)),
            "oversubscription": draw(st.sampled_from([1.0, 2.5])),
            "half_work": draw(st.sampled_from([0.0, 0.1, 100.0])),
            "memory_efficiency": draw(st.floats(0.05, 1)),
            "overlap_exposure": draw(st.floats(0, 1)),
        },
        microbatch_size=draw(st.integers(1, 3)),
        seq_len=16 * draw(st.sampled_from([8, 64, 256])),
        efficiency=draw(st.floats(0.05, 1)),
        tp_size=tensor,
        cp_size=context,
        pp_size=stages,
        v_stages=parts,
        microbatch_count=microbatches,
        sequence_parallel=draw(st.booleans()),
        fused_attention=draw(st.booleans()),
        activation_recomputation=draw(st.sampled_from(["none", "selective", "full"])),
        gradient_precision=draw(st.sampled_from(["bf16", "fp32"])),
        zero_stage=draw(st.integers(0, 3)),
        stage_split=draw(st.sampled_from(["layers", "slots"])) if slots else "layers",
        overlap_comm=draw(st.booleans()),
        overlap_tp_comm=draw(st.booleans()),
    )


any_case = st.one_of(cases(), cases(interleaved=True))
