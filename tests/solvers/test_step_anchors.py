"""The step at its limits, by hand arithmetic, and by what the literature publishes of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim import Models, Scenarios
from mlsysim.solvers import DistributedModel, collectives, flops, kernels, memory, pipeline
from mlsysim.solvers.collectives import Group, Links
from mlsysim.solvers.distributed import solved
from mlsysim.units import quantity, to_si
from tests.cases import ROUNDING, Case, any_case, cases, fleet_of, model_of
from tests.conftest import vary

# Limits.


@given(any_case)
def test_one_accelerator_has_no_communication_and_no_bubble(case: Case) -> None:
    one = vary(case.fleet, node_count=1)
    alone = Case(case.model, one, case.arguments).with_fleet(accelerators=1)
    split = {"tp_size": 1, "cp_size": 1, "pp_size": 1, "v_stages": 1}
    result = alone.solve(**split)
    for name in ("tp", "cp", "pp", "dp"):
        assert to_si(getattr(result, f"{name}_communication_latency")) == 0
    assert to_si(result.dp_communication_hidden) == to_si(result.tp_communication_hidden) == 0
    assert result.bubble_fraction == 0
    # Sharing with nobody shares nothing.
    assert result.ledger == alone.solve(**split, zero_stage=0).ledger


@given(cases())
def test_bytes_that_take_no_time_leave_matrix_time_only(case: Case) -> None:
    one_stage = Case(case.model, case.fleet, {**case.arguments, "pp_size": 1})
    batch = one_stage.data * case.arguments["microbatch_count"]
    ideal = Case(case.model, case.fleet, {**one_stage.arguments, "batch_size": batch}).ideal()
    used = ideal.data * ideal.replica
    reached = used * case.fleet.node.accelerator.rate("bf16") * case.arguments["efficiency"]
    assert ideal.seconds() == pytest.approx(ideal.work / reached, rel=ROUNDING)


@given(cases())
def test_one_microbatch_takes_the_stages_one_after_the_other(case: Case) -> None:
    # Every stage works once and waits for the others, so the times of all of them add up, with the
    # output head once.
    batch = case.arguments["batch_size"] // case.arguments["microbatch_count"]
    arguments = {**case.arguments, "batch_size": batch, "microbatch_count": 1}
    ideal = Case(case.model, case.fleet, arguments).ideal()
    rate = case.fleet.node.accelerator.rate("bf16") * case.arguments["efficiency"]
    ranks = case.replica / case.arguments["pp_size"]
    assert ideal.seconds() == pytest.approx(ideal.work / ideal.data / ranks / rate, rel=1e-9)


# Hand arithmetic.


def test_one_layer_on_one_accelerator_takes_what_hand_arithmetic_says() -> None:
    # Weights 12 h^2 = 12, twice per token and weight: 24 x 4 tokens = 96 FLOP; the whole attention
    # square 4 s^2 h = 64; logits 2 s h V = 8 x 10 = 80. Forward 240, with backward 720 FLOP.
    model = model_of(
        layers=1,
        hidden_size=1,
        attention_heads=1,
        kv_heads=1,
        ffn_hidden_size=4,
        vocabulary_size=10,
    )
    fleet = fleet_of(
        accelerators=1,
        node_count=1,
        rates={"bf16": "1 TFLOP/s"},
        half_work="32e-9 GFLOP",
        memory_bandwidth="1 TB/s",
        memory_efficiency=0.5,
    )
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
    # A layer's weights do 96 FLOP, and with 32 FLOP of half work three quarters of 0.5 TFLOP/s are
    # reached: 160 FLOP take 426.67 ps; the head's 80 are at 0.5 TFLOP/s, 160 ps.
    assert to_si(result.forward) == pytest.approx(160 / 0.375e12 + 80 / 0.5e12)
    assert to_si(result.backward) == pytest.approx(2 * to_si(result.forward))
    # Of a token: two norms and two residuals 22, MLP 4 x 4, layout of queries, keys and values 12,
    # and scores 13 for each of one head and four keys: 50 + 52 bytes forward, twice that backward.
    # The logits move 12 bytes each. Half of 1 TB/s is reached.
    moved = 3 * 4 * (50 + 52) + 12 * 4 * 10
    assert to_si(result.memory_bound) == pytest.approx(moved / 0.5e12)
    assert to_si(result.optimizer) == pytest.approx(28 * model.counted_parameters / 0.5e12)
    assert to_si(result.state_memory) == 16 * model.counted_parameters


def test_a_fused_kernel_computes_half_the_square_and_the_scores_twice() -> None:
    # 2 s^2 h forward; backward five products of that half to the two of the forward pass.
    model = model_of(layers=1, hidden_size=64, attention_heads=1, kv_heads=1, vocabulary_size=1)
    one = fleet_of(accelerators=1, node_count=1, rates={"bf16": "1 TFLOP/s"})
    case = Case(
        model,
        one,
        {
            "batch_size": 1,
            "seq_len": 1024,
            "precision": "bf16",
            "efficiency": 1.0,
            "bytes_per_param": quantity("16 B"),
            "fused_attention": True,
        },
    ).ideal()
    result = case.solve()
    matrices = 2 * 1024 * (4 * 64**2 + 2 * 64 * 4096)
    core, head = 2 * 1024**2 * 64, 2 * 1024 * 64
    assert to_si(result.forward) == pytest.approx((matrices + core + head) / 1e12)
    assert to_si(result.backward) == pytest.approx((2 * matrices + 2.5 * core + 2 * head) / 1e12)


def test_half_of_the_efficiency_is_reached_at_the_half_work() -> None:
    assert kernels.matrix_rate(1e15, 0.8, 5e9, 5e9) == pytest.approx(0.4e15)
    assert kernels.matrix_rate(1e15, 0.8, 15e9, 5e9) == pytest.approx(0.6e15)
    assert kernels.matrix_rate(1e15, 0.8, 5e9, 0.0) == 0.8e15


def hand_case(**changes: object) -> Case:
    """Four nodes of two accelerators; two tensor ranks in a node, two stages, two replicas."""
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
        overlap_exposure=0.25,
    )
    arguments = {
        "batch_size": 6,
        "seq_len": 64,
        "precision": "bf16",
        "efficiency": 0.5,
        "bytes_per_param": quantity("16 B"),
        "tp_size": 2,
        "pp_size": 2,
        "microbatch_count": 3,
        "overlap_comm": False,
    }
    return Case(model, fleet, {**arguments, **changes})


def test_communication_takes_what_hand_arithmetic_says() -> None:
    result = hand_case().solve()
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


def test_the_ring_of_keys_and_values_takes_what_hand_arithmetic_says() -> None:
    # Two halves of a sequence on two nodes: 32 tokens, 2 bytes each for 128 keys and 128 values,
    # over two tensor ranks. They go round once forward; they and their gradients once backward,
    # three microbatches, two layers. Accelerators as fast as here have no core to hide behind.
    slow = hand_case(cp_size=2, pp_size=1, fused_attention=True).with_fleet(
        rates={"bf16": "1e12 TFLOP/s"}, half_work="0 GFLOP"
    )
    hop = 5e-6 + 2 * 2 * 32 * 128 / 2 / 10e9
    assert to_si(slow.solve().cp_communication_latency) == pytest.approx(3 * 2 * 3 * hop)


@pytest.mark.parametrize(("fused", "backward"), [(True, 2.5), (False, 2.0)])
def test_a_ring_hides_behind_as_much_of_the_core_as_runs(*, fused: bool, backward: float) -> None:
    # The core is 2 s^2 h FLOP forward in a fused kernel and 4 s^2 h in another, on two ranks each
    # of tensor and context parallelism; backward it takes 2.5 times that in the one, twice in the
    # other. A slow network leaves most of the ring exposed.
    case = hand_case(cp_size=2, pp_size=1, fused_attention=fused, seq_len=4096)
    case = case.with_fleet(
        rates={"bf16": "20 TFLOP/s"}, half_work="0 GFLOP", nic_bandwidth="1 GB/s"
    )
    core = (2 if fused else 4) * 4096**2 * 128 / 4 / 10e12
    ring = 5e-6 + 2 * 2 * 2048 * 128 / 2 / 0.5e9
    assert ring > 1.25 * core
    exposed = ring - core + 2 * ring - backward * core
    assert to_si(case.solve().cp_communication_latency) == pytest.approx(3 * 2 * exposed)


def tiny_case(**changes: object) -> Case:
    """Layers of no size on accelerators that are nodes of their own, all on the network."""
    model = model_of(
        layers=9,
        hidden_size=32,
        attention_heads=1,
        kv_heads=1,
        ffn_hidden_size=64,
        vocabulary_size=1,
    )
    fleet = fleet_of(
        accelerators=1,
        node_count=6,
        bandwidth_efficiency=1.0,
        memory_efficiency=1.0,
        half_work="0.1 GFLOP",
    )
    arguments = {
        "batch_size": 6,
        "seq_len": 128,
        "precision": "bf16",
        "efficiency": 1.0,
        "bytes_per_param": quantity("16 B"),
        "pp_size": 3,
        "v_stages": 3,
        "microbatch_count": 3,
    }
    return Case(model, fleet, {**arguments, **changes})


@pytest.mark.parametrize("stage", range(4))
def test_the_replicas_collectives_hide_behind_no_microbatch_twice(stage: int) -> None:
    # No stage ends before the first one, which sets what is exposed, so all that hides does so
    # behind its own computing: the windows of all microbatches together are no longer than that.
    result = tiny_case(zero_stage=stage).solve()
    computing = sum(to_si(getattr(result, n)) for n in ("forward", "backward", "memory_bound"))
    assert 0 < to_si(result.dp_communication_hidden) <= computing
    faster = tiny_case(zero_stage=stage).with_fleet(half_work="0.05 GFLOP")
    assert faster.seconds() <= tiny_case(zero_stage=stage).seconds()


def test_a_longer_core_under_an_exposed_ring_never_makes_the_step_faster() -> None:
    # As many tokens in one sequence as in two of half its length; the ring takes as long.
    split = {"cp_size": 2, "pp_size": 1, "v_stages": 1, "fused_attention": True}
    shorter = tiny_case(**split, microbatch_count=1, seq_len=2048, batch_size=6)
    longer = tiny_case(**split, microbatch_count=1, seq_len=4096, batch_size=3)
    assert to_si(longer.solve().cp_communication_latency) > 0
    assert longer.seconds() >= shorter.seconds()


def test_a_collective_over_nodes_sends_each_byte_over_the_network_once_for_each_rank() -> None:
    # Two ranks in each of three nodes gather 600 bytes: each fetches the parts of its own rank from
    # two other nodes, 2 x 100 bytes at 10 B/s, then one half from its neighbour, 300 at 100 B/s.
    group, links = Group(2, 3), Links(100.0, 0.5, 10.0, 7.0)
    assert collectives.all_gather_time(600.0, group, links) == 2 * (10 + 7) + (3 + 0.5)
    assert collectives.all_reduce_time(600.0, group, links) == 2 * (34 + 3.5)


def test_a_bubble_is_the_wait_for_all_other_stages_also_where_they_are_uneven() -> None:
    # Ten layers of one second on four stages: two, three, three and two; the head takes half a
    # second on the last. The slowest stage works three of 10.5 seconds and waits for the rest.
    stages = pipeline.split_layers(10, 4)
    total, slowest, layers = pipeline.over_stages(stages, 1.0, 0.5)
    assert (total, slowest, layers) == (10.5, 3.0, 3)
    assert pipeline.bubble_time(total, slowest, 1) == 7.5
    # A head of 1.5 seconds makes the last stage the slowest, with its two layers.
    assert pipeline.over_stages(stages, 1.0, 1.5) == (11.5, 3.5, 2)


def test_a_reduction_hides_behind_its_own_last_backward_pass_and_those_of_earlier_stages() -> None:
    def exposed(reduction: float, window: float, parts: int, later: float) -> float:
        free = pipeline.Window(window, window, window)
        return float(pipeline.exposed_reduction(reduction, 0.0, free, parts, later, overlap=True))

    # The second stage: half a second of its own and two seconds of the first hide 2.5 of 5.
    assert exposed(5.0, 0.5, 2, 2.0) == 2.5
    # The first stage: three quarters of two seconds hide 1.5 of 4.
    assert exposed(4.0, 1.5, 4, 0.0) == 2.5
    # The last part comes after the window, however long that is.
    assert exposed(1.0, 100.0, 4, 0.0) == 0.25
    assert exposed(1.0, 1.5, 4, 2.0) == 0


@pytest.mark.parametrize("share", [1.0, 0.1, 0.01, 0.001])
def test_the_links_of_a_node_are_never_busy_for_longer_than_the_step(share: float) -> None:
    # Two replicas of four tensor-parallel ranks in one node: exchanges and gradients use its links.
    case = Case(
        model_of(),
        fleet_of(accelerators=8, node_count=1, link_efficiency=share, half_work="0 GFLOP"),
        {
            "batch_size": 2,
            "seq_len": 2048,
            "precision": "bf16",
            "efficiency": 0.7,
            "bytes_per_param": quantity("16 B"),
            "tp_size": 4,
            "overlap_comm": True,
        },
    )
    result = case.solve()
    exchanges = (result.tp_communication_latency, result.tp_communication_hidden)
    gradients = (result.dp_communication_latency, result.dp_communication_hidden)
    busy = sum(map(to_si, (*exchanges, *gradients)))
    assert busy <= case.seconds() * (1 + ROUNDING)


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
    assert sum(memory.state_bytes(1.5e9, 16.0, 2.0, 1, 0)) == 24e9


@pytest.mark.parametrize(("stage", "gigabytes"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.875)])
def test_the_stages_of_zero_keep_what_rajbhandari_2020_gives_for_64_accelerators(
    stage: int, gigabytes: float
) -> None:
    # The paper's example of 7.5e9 parameters on 64 accelerators, as others restate it: 120, 31.4,
    # 16.6 and 1.9 (1.875) GB for stages 0 to 3.
    kept = sum(memory.state_bytes(7.5e9, 16.0, 2.0, 64, stage))
    assert kept / 1e9 == pytest.approx(gigabytes, abs=0.05)


def layer_bytes(
    s: int, h: int, a: int, t: int, *, sequence: bool, scores: bool, whole: bool = False
) -> float:
    """Activations that a layer of four-fold MLP keeps of one sequence, by the solver."""
    given, kept, square = memory.layer_activation_bytes(
        s, s, h, h, 4 * h, a, t, gated=False, sequence_parallel=sequence
    )
    return float(given if whole else kept + (square if scores else 0.0))


@pytest.mark.parametrize("t", [1, 2, 8])
def test_the_activations_of_a_layer_are_those_of_korthikanti_2022(t: int) -> None:
    # Korthikanti et al. 2022 (arXiv 2205.05198), Table 2, as the registry facts record its formula:
    # rows tensor parallel, with sequence parallel, with selective recomputation, with full.
    s, h, a = 2048, 12288, 96
    stream, scores = s * h, 5 * a * s / h
    shape = (s, h, a, t)
    assert layer_bytes(*shape, sequence=False, scores=True) == pytest.approx(
        stream * (10 + 24 / t + scores / t)
    )
    assert layer_bytes(*shape, sequence=True, scores=True) == pytest.approx(
        stream * (34 + scores) / t
    )
    assert layer_bytes(*shape, sequence=False, scores=False) == pytest.approx(
        stream * (10 + 24 / t)
    )
    assert layer_bytes(*shape, sequence=True, scores=False) == pytest.approx(stream * 34 / t)
    assert layer_bytes(*shape, sequence=False, scores=False, whole=True) == 2 * stream


@pytest.mark.parametrize(
    ("hidden", "heads"), [(6144, 64), (12288, 96), (20480, 128), (25600, 160)], ids=str
)
def test_sequence_parallelism_and_selective_recomputation_keep_a_fifth(
    hidden: int, heads: int
) -> None:
    # The abstract of Korthikanti et al. 2022: both together reduce activation memory by 5x; their
    # models are of 22B, 175B, 530B and 1T parameters, on eight tensor-parallel ranks.
    plain = layer_bytes(2048, hidden, heads, 8, sequence=False, scores=True)
    both = layer_bytes(2048, hidden, heads, 8, sequence=True, scores=False)
    assert 4.5 < plain / both < 6.5


@given(st.integers(1, 64), st.integers(1, 512), st.integers(1, 8))
def test_the_bubble_is_that_of_narayanan_2021(stages: int, m: int, v: int) -> None:
    # Narayanan et al. 2021, section 2.2: bubble over ideal time is (p - 1) / m, and (p - 1) / (v m)
    # when each stage is interleaved in v parts.
    slot = 0.125
    bubble = pipeline.bubble_time(stages * slot, slot, v)
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
    once = to_si(result.dp_communication_latency) + to_si(result.optimizer)
    ideal = case.seconds() - bubble - once
    assert bubble / ideal == pytest.approx((8 - 1) / 24, rel=1e-3)


def test_a_stage_keeps_as_many_microbatches_as_there_are_stages_behind_it() -> None:
    # Korthikanti et al. 2022, section 4.2.3: the first stage keeps p of them, interleaving adds
    # (p - 1) / (p v) of that, and no stage keeps more than there are.
    assert [memory.microbatches_in_flight(i, 4, 100, 1) for i in range(4)] == [4, 3, 2, 1]
    assert memory.microbatches_in_flight(0, 4, 2, 1) == 2
    assert memory.microbatches_in_flight(0, 8, 96, 2) == pytest.approx(8 * (1 + 7 / 16))
    # Of six parts the last stage has started all but one of its own when the first comes back.
    assert memory.microbatches_in_flight(7, 8, 96, 6) == pytest.approx((5 * 8 + 1) / 6)


def test_two_solves_give_the_same_bits() -> None:
    step = Scenarios.DenseLLMPretrainingStep
    once, again = (solved(step.solver_arguments()) for _ in range(2))
    assert once.ledger == again.ledger
