"""The solver: sums, bounds and monotone behaviour on any layout, and published anchors."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mlsysim import Models, Scenarios
from mlsysim.registry.types import Fleet, TransformerModel
from mlsysim.solvers import (
    DistributedModel,
    DistributedResult,
    collectives,
    flops,
    layout,
    memory,
    pipeline,
)
from mlsysim.units import Quantity, quantity, to_si, unit
from tests.conftest import vary

# Sums of a few floats in another order may differ in their last bits, and by no more.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Case:
    """A model on a fleet, with the arguments of a layout that exists."""

    model: TransformerModel
    fleet: Fleet
    arguments: dict[str, Any]

    def solve(self, **changes: Any) -> DistributedResult:
        return DistributedModel.solve(self.model, self.fleet, **{**self.arguments, **changes})

    def with_fleet(self, **changes: Any) -> Case:
        """The case with changed hardware; each change goes to whichever part declares it."""
        accelerator = changed(self.fleet.node.accelerator, changes)
        node = changed(vary(self.fleet.node, accelerator=accelerator), changes)
        fabric = changed(self.fleet.fabric, changes)
        fleet = vary(self.fleet, node=node, fabric=fabric)
        return Case(self.model, fleet, self.arguments)


def changed(thing: Any, changes: dict[str, Any]) -> Any:
    names = {field.name for field in dataclasses.fields(thing)}
    return vary(thing, **{k: v for k, v in changes.items() if k in names})


def seconds(result: DistributedResult) -> float:
    return to_si(result.step_latency_total)


def model_of(**changes: Any) -> TransformerModel:
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


@cache
def reference_fleet() -> Fleet:
    found = Scenarios.DenseLLMPretrainingStep.fleet
    assert isinstance(found, Fleet)
    return found


def fleet_of(*, accelerators: int = 8, node_count: int = 16, **changes: Any) -> Fleet:
    reference = reference_fleet()
    node = vary(reference.node, accelerators=accelerators, nics=accelerators)
    made = vary(reference, node=node, node_count=node_count)
    return Case(model_of(), made, {}).with_fleet(**changes).fleet


@st.composite
def cases(draw: st.DrawFn, *, interleaved: bool = False) -> Case:
    """Any small layout that exists: uneven stages, idle accelerators, groups across nodes."""
    tensor = draw(st.sampled_from([1, 2, 4, 8, 16]))
    stages = draw(st.integers(2 if interleaved else 1, 6))
    parts = draw(st.integers(2, 3)) if interleaved else 1
    layers = (
        stages * parts * draw(st.integers(1, 3))
        if interleaved
        else draw(st.integers(stages, stages + 9))
    )
    microbatches = draw(st.integers(1, 9)) * (stages if interleaved else 1)
    kv_heads = tensor * draw(st.sampled_from([1, 2]))
    heads = kv_heads * draw(st.sampled_from([1, 4]))
    model = model_of(
        layers=layers,
        hidden_size=heads * draw(st.sampled_from([32, 64])),
        attention_heads=heads,
        kv_heads=kv_heads,
        ffn_hidden_size=tensor * draw(st.sampled_from([64, 300])),
        vocabulary_size=draw(st.sampled_from([1, 1000, 50257])),
        gated_mlp=draw(st.booleans()),
        tied_embeddings=draw(st.booleans()),
        biases=draw(st.booleans()),
    )
    accelerators = draw(st.sampled_from([1, 2, 4, 6, 8]))
    least = -(-tensor * stages // accelerators)
    fleet = fleet_of(
        accelerators=accelerators,
        node_count=least + draw(st.integers(0, 3 * least + 3)),
        link_efficiency=draw(st.floats(0.05, 1)),
        bandwidth_efficiency=draw(st.floats(0.05, 1)),
        oversubscription=draw(st.sampled_from([1.0, 2.5])),
    )
    data = fleet.total_accelerators // (tensor * stages)
    return Case(
        model,
        fleet,
        {
            "batch_size": data * microbatches * draw(st.integers(1, 3)),
            "seq_len": 16 * draw(st.sampled_from([8, 64, 256])),
            "precision": "bf16",
            "efficiency": draw(st.floats(0.05, 1)),
            "bytes_per_param": quantity("16 B"),
            "tp_size": tensor,
            "pp_size": stages,
            "v_stages": parts,
            "microbatch_count": microbatches,
            "sequence_parallel": draw(st.booleans()),
            "fused_attention": draw(st.booleans()),
            "activation_recomputation": draw(st.sampled_from(["none", "selective", "full"])),
            "gradient_precision": draw(st.sampled_from(["bf16", "fp32"])),
            "overlap_comm": draw(st.booleans()),
        },
    )


any_case = st.one_of(cases(), cases(interleaved=True))


# Sums and signs.


@given(any_case)
def test_the_exposed_times_are_never_negative_and_sum_to_the_step_exactly(case: Case) -> None:
    result = case.solve()
    printed = [
        result.forward,
        result.backward,
        result.recomputation,
        result.tp_communication_latency,
        result.pp_communication_latency,
        result.pipeline_bubble_latency,
        result.dp_communication_latency,
    ]
    total = 0.0
    for part in printed:
        assert math.isfinite(to_si(part))
        assert to_si(part) >= 0
        total += to_si(part)
    assert len(printed) == len(dataclasses.fields(result.ledger))
    assert seconds(result) == total > 0


@given(any_case)
def test_every_layer_is_on_one_stage_and_stages_differ_by_at_most_one(case: Case) -> None:
    stages = case.solve().layout.stage_layers
    assert len(stages) == case.arguments["pp_size"]
    assert sum(stages) == case.model.layers
    assert max(stages) - min(stages) <= 1
    assert min(stages) >= 1


@given(st.integers(1, 200), st.integers(1, 200))
def test_layers_are_split_as_evenly_as_they_go(layers: int, stages: int) -> None:
    assume(stages <= layers)
    split = layout.split_layers(layers, stages)
    assert (sum(split), len(split)) == (layers, stages)
    assert max(split) - min(split) <= 1
    assert split[-1] == min(split) or layers % stages == 0  # the last one has the output head


@given(any_case)
def test_a_group_counts_each_of_its_ranks_once(case: Case) -> None:
    found = case.solve().layout
    for group, members in ((found.tensor_group, found.tensor), (found.data_group, found.data)):
        assert group.inside * group.nodes == members
        assert group.inside <= case.fleet.node.accelerators


@given(any_case)
def test_accelerators_outside_any_replica_are_reported_and_do_not_work(case: Case) -> None:
    result = case.solve()
    replica = case.arguments["tp_size"] * case.arguments["pp_size"]
    assert result.idle_accelerators == case.fleet.total_accelerators % replica
    used = case.fleet.total_accelerators - result.idle_accelerators
    assert result.layout.data * replica == used


# Bounds.


def executed_work(case: Case) -> float:
    """FLOP of the step, added up here from the shape of the model, layer by layer."""
    model, length = case.model, case.arguments["seq_len"]
    h, f = model.hidden_size, model.ffn_hidden_size
    k = h // model.attention_heads * model.kv_heads
    matrices = 2 * length * (h * h + 2 * h * k + h * h + (3 if model.gated_mlp else 2) * h * f)
    core = 2 * 2 * length * length * h * (0.5 if case.arguments["fused_attention"] else 1)
    head = 2 * length * h * model.vocabulary_size
    again = {"none": 0.0, "selective": core, "full": matrices + core}
    per_layer = 3 * (matrices + core) + again[case.arguments["activation_recomputation"]]
    return float(case.arguments["batch_size"] * (model.layers * per_layer + 3 * head))


@given(any_case)
def test_a_step_is_never_faster_than_the_peak_of_the_accelerators_it_uses(case: Case) -> None:
    result = case.solve()
    used = case.fleet.total_accelerators - result.idle_accelerators
    reached = used * case.fleet.node.accelerator.rate("bf16") * case.arguments["efficiency"]
    assert seconds(result) >= executed_work(case) / reached * (1 - ROUNDING)
    share = result.hardware_flops_utilization.to(unit("%")).magnitude / 100
    assert share <= case.arguments["efficiency"] * (1 + ROUNDING)
    assert share == pytest.approx(
        executed_work(case) / seconds(result) / reached * case.arguments["efficiency"]
    )


@given(any_case)
def test_a_step_is_never_faster_than_any_one_link_lets_it_be(case: Case) -> None:
    """Bytes that must cross an accelerator's links and ports, over the faster of both rates."""
    result, arguments = case.solve(), case.arguments
    fastest = max(case.fleet.link_rate, case.fleet.network_rate)
    tensor, data = arguments["tp_size"], result.layout.data
    microbatch = arguments["batch_size"] // (data * arguments["microbatch_count"])
    stream = 2.0 * microbatch * arguments["seq_len"] * case.model.hidden_size
    layers = max(result.layout.stage_layers)
    reduced = 2 * (tensor - 1) / tensor * stream
    crossed = arguments["microbatch_count"] * layers * 4 * reduced
    assert seconds(result) >= crossed / fastest * (1 - ROUNDING)
    gradients = {"bf16": 2.0, "fp32": 4.0}[arguments["gradient_precision"]]
    weights = layers * case.model.layer_parameters * gradients / tensor
    assert seconds(result) >= 2 * (data - 1) / data * weights / fastest * (1 - ROUNDING)


@given(any_case)
def test_what_is_hidden_of_the_reduction_is_no_more_than_there_is(case: Case) -> None:
    shown, bare = case.solve(overlap_comm=True), case.solve(overlap_comm=False)
    assert to_si(shown.dp_communication_hidden) >= 0
    assert to_si(bare.dp_communication_hidden) == 0
    whole = to_si(bare.dp_communication_latency)
    assert to_si(shown.dp_communication_hidden) + to_si(
        shown.dp_communication_latency
    ) == pytest.approx(whole, rel=1e-9, abs=1e-18)


# Monotone behaviour.


@pytest.mark.parametrize(
    "name", ["link_bandwidth", "nic_bandwidth", "port_bandwidth", "rates", "efficiency"]
)
@given(case=any_case, factor=st.floats(1.0001, 100))
def test_faster_hardware_never_slows_the_step(name: str, case: Case, factor: float) -> None:
    before = seconds(case.solve())
    if name == "efficiency":
        faster = case.solve(efficiency=min(1.0, case.arguments["efficiency"] * factor))
    elif name == "rates":
        rates = case.fleet.node.accelerator.rates
        faster = case.with_fleet(rates={k: v * factor for k, v in rates.items()}).solve()
    else:
        part = case.fleet.fabric if name == "port_bandwidth" else case.fleet.node
        faster = case.with_fleet(**{name: getattr(part, name) * factor}).solve()
    assert seconds(faster) <= before * (1 + ROUNDING)


@pytest.mark.parametrize("name", ["link_latency", "latency"])
@given(case=any_case)
def test_a_longer_latency_never_speeds_the_step(name: str, case: Case) -> None:
    slower = case.with_fleet(**{name: quantity("1 ms")}).solve()
    assert seconds(slower) >= seconds(case.solve()) * (1 - ROUNDING)


@given(any_case)
def test_overlap_is_never_slower_than_none(case: Case) -> None:
    assert seconds(case.solve(overlap_comm=True)) <= seconds(case.solve(overlap_comm=False))


@given(any_case)
def test_computing_again_takes_longer_and_keeps_less(case: Case) -> None:
    none, core, layer = (
        case.solve(activation_recomputation=each) for each in ("none", "selective", "full")
    )
    assert seconds(none) < seconds(core) < seconds(layer)
    kept = [to_si(each.activation_memory) for each in (none, core, layer)]
    assert kept[0] >= kept[1] >= kept[2] > 0


@given(cases(interleaved=True))
def test_more_interleaving_never_has_a_larger_bubble(case: Case) -> None:
    plain, parts = case.solve(v_stages=1), case.solve()
    least, most = to_si(parts.pipeline_bubble_latency), to_si(plain.pipeline_bubble_latency)
    assert least <= most * (1 + ROUNDING)


@given(st.lists(st.floats(1e-6, 10), min_size=1, max_size=20), st.integers(1, 8))
def test_at_equal_slots_interleaving_divides_the_bubble(times: list[float], parts: int) -> None:
    assert pipeline.bubble_time(times, parts) == pytest.approx(
        pipeline.bubble_time(times, 1) / parts
    )


@given(cases())
def test_attention_work_grows_with_the_sequence_at_equal_tokens(case: Case) -> None:
    longer = case.solve(
        seq_len=case.arguments["seq_len"] * 2, batch_size=case.arguments["batch_size"]
    )
    half = case.solve(batch_size=case.arguments["batch_size"] * 2)  # as many tokens, shorter
    assert to_si(longer.model_flops) > to_si(half.model_flops)
    assert seconds(longer) > seconds(half) * (1 - ROUNDING)


# Limits.


@given(any_case)
def test_one_accelerator_has_no_communication_and_no_bubble(case: Case) -> None:
    one = vary(case.fleet, node_count=1)
    alone = Case(case.model, one, case.arguments).with_fleet(accelerators=1)
    result = alone.solve(tp_size=1, pp_size=1, v_stages=1)
    matrices = to_si(result.forward) + to_si(result.backward) + to_si(result.recomputation)
    assert seconds(result) == matrices
    assert result.bubble_fraction == 0


@given(cases())
def test_infinite_links_and_one_stage_leave_matrix_time_only(case: Case) -> None:
    instant = quantity("0 s")
    endless = Quantity(1e290, unit("GB/s"))
    ideal = case.with_fleet(
        link_bandwidth=endless,
        nic_bandwidth=endless,
        port_bandwidth=endless,
        link_latency=instant,
        latency=instant,
    )
    data = case.fleet.total_accelerators // case.arguments["tp_size"]
    batch = data * case.arguments["microbatch_count"]
    arguments = {**case.arguments, "pp_size": 1, "batch_size": batch}
    ideal = Case(ideal.model, ideal.fleet, arguments)
    result = ideal.solve()
    used = data * case.arguments["tp_size"]
    reached = used * case.fleet.node.accelerator.rate("bf16") * case.arguments["efficiency"]
    assert seconds(result) == pytest.approx(executed_work(ideal) / reached, rel=ROUNDING)


@given(cases())
def test_one_microbatch_with_endless_links_takes_its_stages_one_after_the_other(case: Case) -> None:
    # Every stage works once and waits for the others, so the times of all of them add up, with the
    # output head once.
    endless = Quantity(1e290, unit("GB/s"))
    ideal = case.with_fleet(
        link_bandwidth=endless,
        nic_bandwidth=endless,
        port_bandwidth=endless,
        link_latency="0 s",
        latency="0 s",
    )
    batch = case.arguments["batch_size"] // case.arguments["microbatch_count"]
    ideal = Case(ideal.model, ideal.fleet, {**case.arguments, "batch_size": batch})
    result = ideal.solve(microbatch_count=1)
    rate = case.fleet.node.accelerator.rate("bf16") * case.arguments["efficiency"]
    replica = executed_work(ideal) / result.layout.data
    assert seconds(result) == pytest.approx(replica / case.arguments["tp_size"] / rate, rel=1e-9)


def test_one_layer_on_one_accelerator_takes_what_hand_arithmetic_says() -> None:
    # Weights 12 h^2 = 12, twice per token and weight: 24 x 4 tokens = 96 FLOP; the whole attention
    # square 4 s^2 h = 64; logits 2 s h V = 8 x 10 = 80. Forward 240, with backward 720 FLOP.
    # At half of 1 TFLOP/s that is 1.44 ns.
    model = model_of(
        layers=1,
        hidden_size=1,
        attention_heads=1,
        kv_heads=1,
        ffn_hidden_size=4,
        vocabulary_size=10,
    )
    fleet = fleet_of(accelerators=1, node_count=1, rates={"bf16": "1 TFLOP/s"})
    result = DistributedModel.solve(
        model,
        fleet,
        batch_size=1,
        seq_len=4,
        precision="bf16",
        efficiency=0.5,
        bytes_per_param=quantity("16 B"),
    )
    assert to_si(result.model_flops) == 720
    assert seconds(result) == pytest.approx(1.44e-9, rel=1e-12)
    assert to_si(result.state_memory) == 16 * model.counted_parameters


def test_communication_takes_what_hand_arithmetic_says() -> None:
    # Four nodes of two accelerators; two tensor ranks in a node, two stages, two replicas.
    model = model_of(
        layers=2,
        hidden_size=128,
        attention_heads=2,
        kv_heads=2,
        ffn_hidden_size=512,
        vocabulary_size=1,
        tied_embeddings=True,
    )
    fleet = fleet_of(
        accelerators=2,
        node_count=4,
        link_bandwidth="100 GB/s",
        link_efficiency=0.5,
        link_latency="1 us",
        nic_bandwidth="20 GB/s",
        port_bandwidth="40 GB/s",
        bandwidth_efficiency=0.5,
        latency="5 us",
    )
    result = DistributedModel.solve(
        model,
        fleet,
        batch_size=6,
        seq_len=64,
        precision="bf16",
        efficiency=0.5,
        bytes_per_param=quantity("16 B"),
        tp_size=2,
        pp_size=2,
        microbatch_count=3,
        overlap_comm=False,
    )
    stream = 2 * 64 * 128  # bytes of one microbatch of one sequence between layers
    link, network = 50e9, 10e9
    all_reduce = 2 * (stream / 2 / link + 1e-6)
    assert to_si(result.tp_communication_latency) == pytest.approx(3 * 1 * 4 * all_reduce)
    send = stream / 2 / network + 5e-6
    assert to_si(result.pp_communication_latency) == pytest.approx(3 * 2 * send)
    # A layer, and on the last stage the final normalisation and a copy of the one-word embedding.
    layer = 12 * 128**2 + 13 * 128
    gradients = 2 * (layer + 2 * 128 + 128) / 2
    assert to_si(result.dp_communication_latency) == pytest.approx(
        2 * (gradients / 2 / network + 5e-6)
    )


def test_a_collective_over_nodes_sends_each_byte_over_the_network_once_for_each_rank() -> None:
    # Two ranks in each of three nodes gather 600 bytes: each fetches the parts of its own rank from
    # two other nodes, 2 x 100 bytes at 10 B/s, then one half from its neighbour, 300 at 100 B/s.
    group = collectives.Group(2, 3, 100.0, 0.5, 10.0, 7.0)
    assert collectives.all_gather_time(600.0, group) == 2 * (10 + 7) + (3 + 0.5)
    assert collectives.all_reduce_time(600.0, group) == 2 * (34 + 3.5)


def test_a_reduction_hides_behind_its_own_last_backward_pass_and_those_of_earlier_stages() -> None:
    # The second stage: half of its own second and the two seconds of the first hide 2.5 of 5.
    exposed = pipeline.exposed_reduction([1.0, 5.0], [2.0, 1.0], [4, 2], overlap=True)
    assert exposed == 2.5
    # The first stage: three quarters of two seconds hide 1.5 of 4.
    exposed = pipeline.exposed_reduction([4.0, 1.0], [2.0, 1.0], [4, 2], overlap=True)
    assert exposed == 2.5
    assert pipeline.exposed_reduction([1.0, 1.0], [2.0, 1.0], [4, 2], overlap=True) == 0


@given(cases())
def test_a_repeated_forward_pass_repeats_its_collectives(case: Case) -> None:
    none, core, layer = (
        to_si(case.solve(activation_recomputation=each).tp_communication_latency)
        for each in ("none", "selective", "full")
    )
    # Four all-reduces a layer; the attention core has none of its own, the whole layer two.
    assert core == none
    assert layer == pytest.approx(none * 6 / 4)


@given(cases())
def test_scores_are_kept_unless_fused_or_computed_again(case: Case) -> None:
    def kept(*, fused: bool, again: str) -> float:
        solved = case.solve(fused_attention=fused, activation_recomputation=again)
        return to_si(solved.activation_memory)

    fused = kept(fused=True, again="none")
    assert kept(fused=False, again="selective") == kept(fused=True, again="selective") == fused
    assert kept(fused=False, again="none") > fused


def test_accelerators_share_the_ports_of_their_node() -> None:
    fleet = reference_fleet()
    half = vary(fleet, node=vary(fleet.node, nics=fleet.node.nics // 2))
    assert half.network_rate == fleet.network_rate / 2
    slow_switch = vary(fleet, fabric=vary(fleet.fabric, port_bandwidth="100 Gb/s"))
    assert slow_switch.network_rate == fleet.network_rate / 4


# Published anchors.


@given(st.integers(1, 4), st.sampled_from([512, 2048, 8192]), st.sampled_from([1024, 12288]))
def test_the_work_of_a_layer_is_that_of_narayanan_2021(b: int, s: int, h: int) -> None:
    # Narayanan et al. 2021 (arXiv 2104.04473), appendix: 24 b s h^2 + 4 b s^2 h forward, of which
    # 24 b s h^2 is the weights' part.
    assert flops.layer_matrix_flops(b * s, h, h, 4 * h, gated=False) == 24 * b * s * h**2
    assert flops.attention_core_flops(b, s, h, causal_half=False) == 4 * b * s**2 * h


def test_a_step_of_gpt3_is_the_formula_of_narayanan_2021() -> None:
    # The same paper's formula for a step, without the repeated forward pass that makes 96 of 72:
    # 72 b s l h^2 (1 + s / 6h + V / 12 l h), with V the vocabulary.
    model = Models.GPT3_175B
    b, s, layers, h, vocabulary = 1536, 2048, 96, 12288, 50257
    formula = 72 * b * s * layers * h**2 * (1 + s / (6 * h) + vocabulary / (12 * layers * h))
    step = Scenarios.DenseLLMPretrainingStep
    assert to_si(step.result.model_flops) == pytest.approx(formula, rel=1e-12)
    assert model.layers == layers


def test_pretraining_gpt3_takes_the_work_that_its_paper_states() -> None:
    # Brown et al. 2020: 3.14e23 FLOP for 300e9 tokens, as the registry facts record it, section 5.
    # That is 6 FLOP per parameter and token, without the attention square, which adds 2.8 %.
    step = Scenarios.DenseLLMPretrainingStep
    per_token = to_si(step.result.model_flops) / step.global_batch_tokens
    assert per_token * 300e9 == pytest.approx(3.14e23, rel=0.03)


def test_mixed_precision_adam_keeps_16_bytes_a_parameter() -> None:
    # Rajbhandari et al. 2020 (arXiv 1910.02054): weight 2, gradient 2, master weight 4, momentum 4,
    # variance 4; the paper's example of 1.5e9 parameters needs 24 GB.
    assert to_si(Scenarios.DenseLLMReplica.bytes_per_param) == 2 + 2 + 4 + 4 + 4
    assert memory.state_bytes(1.5e9, 16, 1) == 24e9


@pytest.mark.parametrize("t", [1, 2, 8])
def test_the_activations_of_a_layer_are_those_of_korthikanti_2022(t: int) -> None:
    # Korthikanti et al. 2022 (arXiv 2205.05198), Table 2, as the registry facts record its formula:
    # rows tensor parallel, with sequence parallel, with selective recomputation, with full.
    b, s, h, a = 1, 2048, 12288, 96
    stream = s * b * h

    def kept(*, sequence: bool, scores: bool, whole: bool = False) -> float:
        return memory.layer_activation_bytes(
            b, s, h, a, t, sequence_parallel=sequence, keeps_scores=scores, keeps_input_only=whole
        )

    scores = 5 * a * s / h
    assert kept(sequence=False, scores=True) == pytest.approx(stream * (10 + 24 / t + scores / t))
    assert kept(sequence=True, scores=True) == pytest.approx(stream * (34 + scores) / t)
    assert kept(sequence=False, scores=False) == pytest.approx(stream * (10 + 24 / t))
    assert kept(sequence=True, scores=False) == pytest.approx(stream * 34 / t)
    assert kept(sequence=False, scores=False, whole=True) == 2 * stream


@given(st.integers(1, 64), st.integers(1, 512), st.integers(1, 8))
def test_the_bubble_is_that_of_narayanan_2021(stages: int, m: int, v: int) -> None:
    # Narayanan et al. 2021, section 2.2: bubble over ideal time is (p - 1) / m, and (p - 1) / (v m)
    # when each stage is interleaved in v parts.
    slot = 0.125
    bubble = pipeline.bubble_time([slot] * stages, v)
    assert bubble / (m * slot) == pytest.approx((stages - 1) / (v * m))


def test_a_solved_step_with_equal_stages_has_the_published_bubble() -> None:
    # One word of vocabulary, so that the output head does not make the last stage longer.
    case = Case(
        model_of(vocabulary_size=1, layers=16),
        fleet_of(),
        {
            "batch_size": 16 * 24,
            "seq_len": 2048,
            "precision": "bf16",
            "efficiency": 0.5,
            "bytes_per_param": quantity("16 B"),
            "pp_size": 8,
            "microbatch_count": 24,
            "overlap_comm": False,
        },
    )
    result = case.solve()
    bubble = to_si(result.pipeline_bubble_latency)
    ideal = seconds(result) - bubble - to_si(result.dp_communication_latency)
    assert bubble / ideal == pytest.approx((8 - 1) / 24, rel=1e-4)


def test_a_stage_keeps_as_many_microbatches_as_there_are_stages_behind_it() -> None:
    # Korthikanti et al. 2022, section 4.2.3: the first stage keeps p of them, interleaving adds
    # (p - 1) / (p v) of that, and no stage keeps more than there are.
    assert [memory.microbatches_in_flight(i, 4, 100, 1) for i in range(4)] == [4, 3, 2, 1]
    assert memory.microbatches_in_flight(0, 4, 2, 1) == 2
    assert memory.microbatches_in_flight(0, 8, 96, 2) == pytest.approx(8 * (1 + 7 / 16))


def test_two_solves_give_the_same_bits() -> None:
    step = Scenarios.DenseLLMPretrainingStep
    once, again = (DistributedModel.solve(**step.solver_arguments()) for _ in range(2))
    assert once.ledger == again.ledger
