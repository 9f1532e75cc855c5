"""The solver: sums, hardware limits and monotone behaviour on any layout."""

from __future__ import annotations

import inspect
import math
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mlsysim.canonical import rounded
from mlsysim.solvers import DistributedModel, DistributedResult, pipeline
from mlsysim.solvers.arguments import StepArguments
from mlsysim.solvers.collectives import group_of
from mlsysim.solvers.step import stage_ledgers
from mlsysim.units import is_quantity, quantity, to_si, unit
from tests.cases import (
    ROUNDING,
    Case,
    any_case,
    case_of,
    cases,
    fleet_of,
    model_of,
    reference_fleet,
)
from tests.conftest import vary

GRADIENT = {"bf16": 2.0, "fp32": 4.0}
LEDGER = (
    "forward",
    "backward",
    "recomputation",
    "memory_bound",
    "tp_communication_latency",
    "cp_communication_latency",
    "pp_communication_latency",
    "pipeline_bubble_latency",
    "dp_communication_latency",
    "optimizer",
)

# Its first stage is the fullest, or its last one, by what is computed again.
FULL_AT_EITHER_END = case_of(
    layers=3,
    heads=16,
    kv_heads=4,
    head_size=32,
    ffn=256,
    vocabulary=50257,
    gated=False,
    tied=False,
    biases=False,
    accelerators=1,
    node_count=8,
    hardware={
        "link_efficiency": 1.0,
        "bandwidth_efficiency": 1.0,
        "oversubscription": 1.0,
        "half_work": 0.0,
        "memory_efficiency": 1.0,
        "overlap_exposure": 0.0,
    },
    microbatch_size=1,
    seq_len=128,
    efficiency=1.0,
    tp_size=4,
    cp_size=1,
    pp_size=2,
    v_stages=1,
    microbatch_count=2,
    sequence_parallel=False,
    fused_attention=False,
    activation_recomputation="none",
    gradient_precision="bf16",
    zero_stage=0,
    stage_split="layers",
    overlap_comm=False,
    overlap_tp_comm=False,
)

# The entry that is added after all others.
BUBBLE = "pipeline_bubble_latency"


def bytes_of(result: DistributedResult) -> float:
    return to_si(result.state_memory) + to_si(result.activation_memory)


def stages_of(case: Case) -> pipeline.Stages:
    slots = case.arguments["stage_split"] == "slots"
    return pipeline.split_layers(case.model.layers, case.arguments["pp_size"], slots_for_ends=slots)


def layers_in_order(stages: pipeline.Stages) -> list[int]:
    """Layers of every stage, from the first to the last."""
    return [
        *[stages.first] * stages.n_first,
        *[stages.more] * stages.n_more,
        *[stages.base] * stages.n_base,
        stages.last,
    ]


# Sums and signs.


@given(any_case)
def test_the_exposed_times_are_never_negative_and_sum_to_the_step_exactly(case: Case) -> None:
    result = case.solve()
    total = 0.0
    for name in (*(each for each in LEDGER if each != BUBBLE), BUBBLE):
        part = to_si(getattr(result, name))
        assert math.isfinite(part)
        assert part >= 0, name
        total += part
    assert len(LEDGER) == len(result.ledger)
    assert to_si(result.step_latency_total) == total > 0


@given(any_case)
def test_the_ledger_of_every_stage_adds_up_to_the_same_step_in_all_but_the_last_bit(
    case: Case,
) -> None:
    result = case.solve()
    ledgers, end = stage_ledgers(result.inputs), result.ledger.total
    assert ledgers
    for kind, ledger in ledgers.items():
        # What is at most half of the step is the exact rest of it.
        off = math.ulp(end) if ledger.bubble > end / 2 else 0.0
        assert abs(ledger.total - end) <= off, kind
        # The slowest stage waits least, and every other one for what it is less busy.
        assert ledger.bubble >= result.ledger.bubble * (1 - ROUNDING), kind


@given(any_case)
def test_the_exposed_times_sum_to_the_step_in_the_digits_of_an_artifact(case: Case) -> None:
    result = case.solve()
    printed = [rounded(to_si(getattr(result, name))) for name in LEDGER]
    assert math.fsum(printed) == pytest.approx(
        rounded(to_si(result.step_latency_total)), rel=1e-11, abs=0
    )


@given(any_case)
def test_memory_by_kind_is_never_negative_and_sums_to_what_the_margin_leaves(case: Case) -> None:
    result = case.solve()
    kinds = [result.weight_memory, result.gradient_memory, result.optimizer_memory]
    assert all(to_si(kind) >= 0 for kind in (*kinds, result.activation_memory))
    assert math.fsum(map(to_si, kinds)) == pytest.approx(to_si(result.state_memory), rel=1e-12)
    used = to_si(result.state_memory) + to_si(result.activation_memory)
    capacity = case.fleet.node.accelerator.capacity_bytes
    assert used + to_si(result.memory_margin) == pytest.approx(capacity, rel=1e-12)
    assert result.feasible == (used <= capacity)


@given(any_case)
def test_accelerators_outside_any_replica_are_reported_and_do_not_work(case: Case) -> None:
    result = case.solve()
    assert result.idle_accelerators == case.fleet.total_accelerators % case.replica
    used = case.fleet.total_accelerators - result.idle_accelerators
    assert result.inputs.data * case.replica == used
    tokens = case.arguments["batch_size"] * case.arguments["seq_len"]
    rate = result.effective_throughput.to(unit("tok/s")).magnitude
    assert rate * case.seconds() == pytest.approx(tokens)


# The split of layers over stages.


@given(st.integers(1, 200), st.integers(1, 200), st.booleans())
def test_any_split_puts_every_layer_on_one_stage_as_evenly_as_it_goes(
    layers: int, stages: int, slots: bool
) -> None:
    assume(stages <= layers)
    split = layers_in_order(pipeline.split_layers(layers, stages, slots_for_ends=slots))
    assert (sum(split), len(split)) == (layers, stages)
    assert min(split) >= 0
    load = list(split)
    if slots and stages > 1:  # embedding and head each take the place of a layer
        load[0] += 1
        load[-1] += 1
    assert max(load) - min(load) <= 1
    assert load[-1] == min(load)  # the last one has the output head besides


def test_what_is_left_over_goes_between_the_ends_and_then_to_the_first_stage() -> None:
    assert layers_in_order(pipeline.split_layers(10, 4)) == [2, 3, 3, 2]
    assert layers_in_order(pipeline.split_layers(11, 4)) == [3, 3, 3, 2]
    assert layers_in_order(pipeline.split_layers(3, 2)) == [2, 1]
    assert layers_in_order(pipeline.split_layers(7, 1)) == [7]
    # 70 layers, embedding and head are six slots on each of twelve stages.
    with_ends = layers_in_order(pipeline.split_layers(70, 12, slots_for_ends=True))
    assert with_ends == [5, *[6] * 10, 5]


@given(cases())
def test_slots_for_the_ends_change_the_split_and_not_the_work(case: Case) -> None:
    assume(case.model.layers + 2 >= 2 * case.arguments["pp_size"])
    layers, slots = (case.solve(stage_split=split) for split in ("layers", "slots"))
    assert layers.model_flops == slots.model_flops
    if case.arguments["pp_size"] == 1:
        assert layers.ledger == slots.ledger


def test_a_large_head_makes_slots_for_the_ends_the_faster_split() -> None:
    model = model_of(layers=16, vocabulary_size=256000)
    arguments: dict[str, Any] = {
        "batch_size": 16 * 16,
        "seq_len": 2048,
        "precision": "bf16",
        "efficiency": 0.7,
        "bytes_per_param": quantity("16 B"),
        "pp_size": 8,
        "microbatch_count": 16,
    }
    case = Case(model, fleet_of(node_count=16), arguments)
    assert case.seconds(stage_split="slots") < case.seconds(stage_split="layers")


@given(any_case)
def test_a_group_counts_each_of_its_ranks_once(case: Case) -> None:
    size = case.fleet.node.accelerators
    tensor, context = case.arguments["tp_size"], case.arguments["cp_size"]
    for members, stride in ((tensor, 1), (context, tensor), (case.data * context, tensor)):
        group = group_of(members, stride, size)
        assert group.inside * group.nodes == members
        assert 1 <= group.inside <= size


# Hardware limits.


@given(any_case)
def test_a_step_is_never_faster_than_the_peak_of_the_accelerators_it_uses(case: Case) -> None:
    result = case.solve()
    reached = case.data * case.replica * case.fleet.node.accelerator.rate("bf16")
    share = result.hardware_flops_utilization.to(unit("%")).magnitude / 100
    assert share == pytest.approx(case.work / case.seconds() / reached)
    assert share <= case.arguments["efficiency"] * (1 + ROUNDING)


@given(any_case)
def test_a_step_is_never_faster_than_memory_lets_it_be(case: Case) -> None:
    """Bytes that some accelerator must read or write, over the peak of its memory."""
    arguments, model = case.arguments, case.model
    layers = max(layers_in_order(stages_of(case)))
    # The activation of the MLP is read and written in two bytes, and in its backward pass twice.
    activations = 3 * 4.0 * case.tokens * model.ffn_hidden_size / arguments["tp_size"]
    moved = arguments["microbatch_count"] * layers * activations
    # Master weight and two moments, read and written in four bytes.
    parameters = layers * model.layer_parameters / arguments["tp_size"]
    if arguments["zero_stage"]:
        parameters /= case.data * arguments["cp_size"]
    moved += 24 * parameters
    peak = to_si(case.fleet.node.accelerator.memory_bandwidth)
    assert case.seconds() >= moved / peak * (1 - ROUNDING)


def least_time(case: Case, crossed: float, steps: float) -> float:
    """Seconds that bytes and steps of a ring take on the better of both kinds of link."""
    links = case.fleet.links
    latency = min(links.link_latency, links.network_latency)
    found = crossed / max(links.link_rate, links.network_rate) + steps * latency
    return float(found * (1 - ROUNDING))


@given(any_case)
def test_a_step_is_never_faster_than_its_tensor_parallel_bytes_cross_the_links(case: Case) -> None:
    arguments = case.arguments
    tensor, layers = arguments["tp_size"], max(layers_in_order(stages_of(case)))
    reduced = 2 * (tensor - 1) / tensor * 2.0 * case.tokens * case.model.hidden_size
    times = 6 if arguments["activation_recomputation"] == "full" else 4
    # A node's ranks first, then those of equal place in other nodes: at least one step each way.
    steps = 2 if tensor > 1 else 0
    rings = arguments["microbatch_count"] * layers * times
    assert case.seconds() >= least_time(case, rings * reduced, rings * steps)


@given(any_case)
def test_a_step_is_never_faster_than_keys_and_values_go_round_the_ring(case: Case) -> None:
    arguments, model = case.arguments, case.model
    ring = arguments["cp_size"] - 1
    key_size = model.hidden_size // model.attention_heads * model.kv_heads
    sent = ring * 2.0 * 2 * case.tokens * key_size / arguments["tp_size"]
    # Once round forward; backward once more, and their gradients.
    rings = arguments["microbatch_count"] * max(layers_in_order(stages_of(case))) * 3
    assert case.seconds() >= least_time(case, rings * sent, rings * ring)


@given(any_case)
def test_a_step_is_never_faster_than_its_gradients_cross_the_links(case: Case) -> None:
    arguments = case.arguments
    replicas = case.data * arguments["cp_size"]
    gradients = GRADIENT[arguments["gradient_precision"]]
    # A reduction crosses twice; where replicas update their share, the weights cross in its place.
    each = gradients + (2.0 if arguments["zero_stage"] else gradients)
    weights = max(layers_in_order(stages_of(case))) * case.model.layer_parameters
    crossed = (replicas - 1) / replicas * each * weights / arguments["tp_size"]
    assert case.seconds() >= least_time(case, crossed, 0)


@given(any_case)
def test_a_step_is_never_faster_than_its_stages_hand_over(case: Case) -> None:
    arguments = case.arguments
    if arguments["pp_size"] == 1:
        assert to_si(case.solve().pp_communication_latency) == 0
        return
    size = 2.0 * case.tokens * case.model.hidden_size / arguments["tp_size"]
    sent = arguments["microbatch_count"] * arguments["v_stages"] * 2
    assert case.seconds() >= least_time(case, sent * size, sent)


@given(any_case)
def test_what_is_hidden_of_the_reduction_is_no_more_than_there_is(case: Case) -> None:
    shown, bare = case.solve(overlap_comm=True), case.solve(overlap_comm=False)
    assert to_si(shown.dp_communication_hidden) >= 0
    whole = to_si(bare.dp_communication_latency)
    assert to_si(bare.dp_communication_hidden) <= whole * ROUNDING
    assert to_si(shown.dp_communication_hidden) + to_si(
        shown.dp_communication_latency
    ) == pytest.approx(whole, rel=1e-9, abs=1e-18)


@given(any_case)
def test_what_is_hidden_of_tensor_parallelism_is_no_more_than_there_is_to_hide_behind(
    case: Case,
) -> None:
    shown, bare = case.solve(overlap_tp_comm=True), case.solve(overlap_tp_comm=False)
    assert to_si(bare.tp_communication_hidden) == 0
    hidden = to_si(shown.tp_communication_hidden)
    assert hidden >= 0
    if shown.inputs.pipeline == 1:  # the same stage sets the pace with overlap and without
        exposed = to_si(shown.tp_communication_latency)
        assert hidden + exposed == pytest.approx(
            to_si(bare.tp_communication_latency), rel=1e-9, abs=1e-18
        )
    computing = sum(
        to_si(getattr(shown, name))
        for name in ("forward", "backward", "recomputation", "memory_bound")
    )
    assert hidden <= computing * (1 + ROUNDING)


# Monotone behaviour.


def faster_by(case: Case, name: str, factor: float) -> Case:
    """The case on hardware that is faster in one thing."""
    fleet = case.fleet
    accelerator, node = fleet.node.accelerator, fleet.node
    if name == "efficiency":
        given_efficiency = min(1.0, case.arguments["efficiency"] * factor)
        return Case(case.model, fleet, {**case.arguments, "efficiency": given_efficiency})
    if name == "rates":
        return case.with_fleet(rates={k: v * factor for k, v in accelerator.rates.items()})
    if name == "half_work":
        return case.with_fleet(half_work=accelerator.half_work / factor)
    if name == "overlap_exposure":
        return case.with_fleet(overlap_exposure=accelerator.overlap_exposure / factor)
    part: Any = next(p for p in (accelerator, node, fleet.fabric) if hasattr(p, name))
    value = getattr(part, name) * factor
    return case.with_fleet(**{name: value if is_quantity(value) else min(1.0, value)})


@pytest.mark.parametrize(
    "name",
    [
        "link_bandwidth",
        "link_efficiency",
        "nic_bandwidth",
        "port_bandwidth",
        "bandwidth_efficiency",
        "memory_bandwidth",
        "memory_efficiency",
        "rates",
        "efficiency",
        "half_work",
        "overlap_exposure",
    ],
)
@given(case=any_case, factor=st.floats(1.0001, 100))
def test_faster_hardware_never_slows_the_step(name: str, case: Case, factor: float) -> None:
    assert faster_by(case, name, factor).seconds() <= case.seconds() * (1 + ROUNDING)


@pytest.mark.parametrize("name", ["link_latency", "latency"])
@given(case=any_case)
def test_a_longer_latency_never_speeds_the_step(name: str, case: Case) -> None:
    slower = case.with_fleet(**{name: quantity("1 ms")})
    assert slower.seconds() >= case.seconds() * (1 - ROUNDING)


@pytest.mark.parametrize("overlap", ["overlap_comm", "overlap_tp_comm"])
@given(case=any_case)
def test_overlap_is_never_slower_than_none(overlap: str, case: Case) -> None:
    with_overlap, without = (case.seconds(**{overlap: flag}) for flag in (True, False))
    assert with_overlap <= without * (1 + ROUNDING)


@example(case=FULL_AT_EITHER_END)
@given(any_case)
def test_computing_again_takes_longer_and_keeps_less(case: Case) -> None:
    ways = [case.solve(activation_recomputation=each) for each in ("none", "selective", "full")]
    times = [to_si(each.step_latency_total) for each in ways]
    assert times[0] < times[1] < times[2]
    # In all: activations alone may be more if the fullest stage is another one.
    kept = [bytes_of(each) for each in ways]
    assert kept[0] >= kept[1] * (1 - ROUNDING)
    assert kept[1] >= kept[2] * (1 - ROUNDING)


@given(any_case)
def test_a_fused_kernel_is_never_slower_for_the_same_work(case: Case) -> None:
    fused, unfused = (case.solve(fused_attention=each) for each in (True, False))
    assert to_si(fused.step_latency_total) <= to_si(unfused.step_latency_total) * (1 + ROUNDING)
    assert fused.model_flops == unfused.model_flops


@given(cases(interleaved=True))
def test_more_interleaving_never_has_a_larger_bubble(case: Case) -> None:
    plain, parts = case.solve(v_stages=1), case.solve()
    least, most = to_si(parts.pipeline_bubble_latency), to_si(plain.pipeline_bubble_latency)
    assert least <= most * (1 + ROUNDING)
    # Every part hands over in its turn, and its activations wait for those of the others.
    v = case.arguments["v_stages"]
    assert to_si(parts.pp_communication_latency) == pytest.approx(
        v * to_si(plain.pp_communication_latency)
    )
    assert bytes_of(parts) >= bytes_of(plain) * (1 - ROUNDING)


@given(cases())
def test_attention_work_grows_with_the_sequence_at_equal_tokens(case: Case) -> None:
    batch = case.arguments["batch_size"]
    longer = Case(case.model, case.fleet, {**case.arguments, "seq_len": 32 * 128})
    shorter = Case(
        case.model, case.fleet, {**case.arguments, "seq_len": 16 * 128, "batch_size": batch * 2}
    )
    assert to_si(longer.solve().model_flops) > to_si(shorter.solve().model_flops)
    assert longer.work > shorter.work
    assert longer.seconds() > shorter.seconds() * (1 - ROUNDING)


# Memory.


@given(any_case, st.integers(2, 5))
def test_memory_grows_with_the_microbatch_and_never_falls_as_microbatches_grow(
    case: Case, times: int
) -> None:
    batch, count = case.arguments["batch_size"], case.arguments["microbatch_count"]
    larger = case.solve(batch_size=batch * times)
    more = case.solve(batch_size=batch * times, microbatch_count=count * times)
    assert bytes_of(larger) > bytes_of(case.solve())
    assert bytes_of(more) >= bytes_of(case.solve()) * (1 - ROUNDING)


@given(any_case)
def test_each_stage_of_zero_shares_one_more_kind_of_state_over_the_replicas(case: Case) -> None:
    found = [case.solve(zero_stage=stage) for stage in range(4)]
    states = [to_si(each.state_memory) for each in found]
    replicas = case.data * case.arguments["cp_size"]
    if replicas == 1:
        assert len(set(states)) == 1
        return
    assert states[0] > states[1] > states[2] > states[3]
    if case.arguments["pp_size"] > 1:  # the fullest stage may be another one as state shrinks
        return
    names = ("optimizer_memory", "gradient_memory", "weight_memory")
    for stage in range(4):
        for i, name in enumerate(names):
            whole, here = to_si(getattr(found[0], name)), to_si(getattr(found[stage], name))
            assert here == pytest.approx(whole / (replicas if i < stage else 1))


@given(any_case)
def test_zero_shares_the_optimizers_pass_and_gathers_weights_in_place_of_gradients(
    case: Case,
) -> None:
    plain, shared = (case.solve(zero_stage=stage, overlap_comm=False) for stage in (0, 1))
    replicas = case.data * case.arguments["cp_size"]
    assert to_si(shared.optimizer) == pytest.approx(to_si(plain.optimizer) / replicas)
    # A reduce-scatter and an all-gather, as an all-reduce is, the latter in the weights' 16 bits.
    if case.arguments["gradient_precision"] == "bf16":
        assert to_si(shared.dp_communication_latency) == pytest.approx(
            to_si(plain.dp_communication_latency)
        )
    else:
        assert to_si(shared.dp_communication_latency) <= to_si(plain.dp_communication_latency)


@given(cases(), st.sampled_from([2, 4]))
def test_context_parallelism_splits_the_tokens_of_a_rank_and_none_of_its_weights(
    case: Case, degree: int
) -> None:
    alone = {"cp_size": 1, "pp_size": 1, "zero_stage": 0}
    one = Case(case.model, case.fleet, {**case.arguments, **alone})
    # As many replicas on a fleet that is larger by the degree.
    fleet = vary(one.fleet, node_count=one.fleet.node_count * degree)
    batch = fleet.total_accelerators // (one.replica * degree) * one.arguments["microbatch_count"]
    base = one.solve(batch_size=one.data * one.arguments["microbatch_count"])
    split = Case(one.model, fleet, {**one.arguments, "cp_size": degree, "batch_size": batch})
    result = split.solve()
    assert to_si(result.weight_memory) == pytest.approx(to_si(base.weight_memory))
    assert to_si(result.activation_memory) == pytest.approx(
        to_si(base.activation_memory) / degree, rel=1e-9
    )
    assert to_si(result.memory_bound) == pytest.approx(to_si(base.memory_bound) / degree)
    assert to_si(base.cp_communication_latency) == 0


@example(case=FULL_AT_EITHER_END)
@given(cases())
def test_scores_are_kept_unless_fused_or_computed_again(case: Case) -> None:
    def kept(*, fused: bool, again: str) -> float:
        # In all, as the fullest stage may be another one.
        return bytes_of(case.solve(fused_attention=fused, activation_recomputation=again))

    fused = kept(fused=True, again="none")
    assert kept(fused=True, again="selective") == fused
    # Computed again, the scores of one layer are there while it runs backward.
    scores = 5.0 * case.tokens * case.arguments["seq_len"] * case.model.attention_heads
    again, square = kept(fused=False, again="selective"), scores / case.arguments["tp_size"]
    assert fused < again <= (fused + square) * (1 + ROUNDING)
    assert kept(fused=False, again="none") >= again * (1 - ROUNDING)


@given(cases())
def test_a_repeated_forward_pass_repeats_its_collectives(case: Case) -> None:
    # One stage, so that the same one sets the pace each time.
    batch = case.fleet.total_accelerators // (case.replica // case.arguments["pp_size"])
    none, core, layer = (
        to_si(
            case.solve(
                activation_recomputation=each,
                pp_size=1,
                batch_size=batch * case.arguments["microbatch_count"],
                overlap_tp_comm=False,
            ).tp_communication_latency
        )
        for each in ("none", "selective", "full")
    )
    # Four all-reduces a layer; the attention core has none of its own, the whole layer two.
    assert core == none
    assert layer == pytest.approx(none * 6 / 4)


def test_accelerators_share_the_ports_of_their_node() -> None:
    fleet = reference_fleet()
    half = vary(fleet, node=vary(fleet.node, nics=fleet.node.nics // 2))
    assert half.links.network_rate == fleet.links.network_rate / 2
    slow_switch = vary(fleet, fabric=vary(fleet.fabric, port_bandwidth="100 Gb/s"))
    assert slow_switch.links.network_rate == fleet.links.network_rate / 4


def test_the_record_of_arguments_is_the_signature_of_solve() -> None:
    solve, record = (
        [(each.name, each.default) for each in inspect.signature(call).parameters.values()]
        for call in (DistributedModel.solve, StepArguments)
    )
    assert solve == record
