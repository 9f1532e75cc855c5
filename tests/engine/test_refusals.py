"""What cannot be is refused when it is made: one bad file, and one bad argument, per mistake.

Each file in tests/bad is named for the one mistake in it. The message must hold every fragment
given here, and the place: the file as seen from the root.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest

import mlsysim
from mlsysim import Fleets, Hardware, Models, Scenarios
from mlsysim.artifacts.staleness import verdicts
from mlsysim.building.solving import solve, verify
from mlsysim.cli.main import main
from mlsysim.declarations.documents import names
from mlsysim.errors import MlsysimError
from mlsysim.solvers import DistributedModel
from mlsysim.units import quantity
from tests.conftest import REPOSITORY, copy_project, vary

BAD = REPOSITORY / "tests" / "bad" / "scenarios"

REFUSED: dict[str, tuple[str, ...]] = {
    # Layouts and batches that cannot be, with the arithmetic.
    "batch_leaves_no_whole_microbatch": ("16 replicas", "5 sequences", "1536 / 80 = 19.2"),
    "batch_smaller_than_its_divisor": ("3200000 / 2048 = 1562.5", "4096"),
    "batch_too_large_for_a_float": ("batch_tokens", "1e+300"),
    "state_that_no_depth_fits": ("1.75e+11", "16000 B", "8 x 32", "1.094e+04 GB", "85.52 GB"),
    "interleaving_that_does_not_divide": ("pp_size 8 x v_stages 5", "96 / 40 = 2.4"),
    "replica_for_another_accelerator": ("A100_SXM_80GB", "H100_SXM"),
    "precision_without_rate": ("'fp8'", "A100_SXM_80GB", "bf16"),
    "bubble_of_no_layout": ("no depth and interleaving",),
    "schedule_without_whole_groups": ("groups of pp_size", "6 / 4 = 1.5"),
    "schedule_of_too_many_passes": ("microbatches = 1000000", "8000000 passes", "at most 100000"),
    "split_of_empty_stages": ("96 layers", "64 stages"),
    "layout_map_with_a_word_for_a_degree": ("tensor_degrees", "'two'", "whole numbers"),
    "layout_map_whose_degrees_fall": ("tensor_degrees", "2 after 4"),
    "depth_beyond_the_layers": ("pp_size 128", "96 layers"),
    # Numbers out of their range.
    "efficiency_zero": ("local_efficiency = 0", "more than 0"),
    "efficiency_above_one": ("local_efficiency = 1.5", "at most 1"),
    "efficiency_negative": ("local_efficiency = -0.7", "more than 0"),
    "efficiency_as_text": ("local_efficiency = '0.7'", "expected a number"),
    "efficiency_nan": ("local_efficiency = nan", "finite"),
    "efficiency_infinite": ("local_efficiency = inf", "finite"),
    "schedule_without_stages": ("stages = 0", "at least 1"),
    "count_zero": ("sequences_per_microbatch = 0", "at least 1"),
    "count_negative": ("batch_divisor = -512", "at least 1"),
    "tokens_negative": ("batch_tokens = -3.2e+06", "more than 0"),
    # Units.
    "wrong_dimension": ("bytes_per_param = 16 GB/s", "wrong dimension", "like B"),
    "unit_missing": ("bytes_per_param", "'16'", "no unit"),
    "unit_misspelt": ("bytes_per_param", "'KB'", "kB (1,000 bytes) or KiB (1,024 bytes)"),
    "unit_too_large_for_a_float": ("bytes_per_param", "1e+308 kB"),
    "number_for_quantity": ("bytes_per_param = 16", "expected a quantity", '"1 B"'),
    "quantity_negative": ("bytes_per_param = -16 B", "more than 0 B"),
    "quantity_for_number": ("local_efficiency = '70 s'", "expected a number"),
    # Lists of numbers.
    "list_for_a_count": ("batch_divisor = [512]", "a whole number"),
    "list_for_a_reference": ("fleet = ['Fleets.DGX_H100_1024']", "expected a Fleet"),
    "list_of_lists": ("depths.value = [[8]]", "a list of these"),
    "interleavings_twice": ("interleavings: 1 after 2", "rise"),
    "depths_in_a_text": ("depths = '4, 8'", "a list of whole numbers", "[1, 2, 4]"),
    "zero_stage_unknown": ("zero_stage = 4", "0, 1, 2, 3"),
    # Types.
    "int_for_bool": ("overlap_comm = 1", "true or false"),
    "text_for_bool": ("overlap_comm = 'yes'", "true or false"),
    "bool_for_int": ("batch_divisor = True", "whole number"),
    "bool_for_float": ("batch_tokens = True", "a number"),
    "float_for_int": ("batch_divisor = 512.0", "whole number"),
    "text_for_int": ("batch_divisor = '512'", "whole number"),
    "number_for_text": ("precision = 16", "a text"),
    "value_is_a_date": ("batch_divisor", "2026", "expected a"),
    "value_is_a_list": ("precision", "['bf16']", "expected a"),
    "table_for_a_value": ("batch_divisor", "one value and one source"),
    "word_outside_the_choices": ("activation_recomputation = 'some'", "none, selective, full"),
    # Keys.
    "unknown_key": ("local_eficiency", "unknown key", "'local_efficiency'"),
    "unknown_key_of_a_value": ("precision.unit", "unknown key", "value and source"),
    "key_missing": ("node is missing", "SelfContainedReplicaScenario", "Node"),
    "kind_missing": ("kind is missing",),
    "kind_unknown": ("'ReferenceTrainingScenario'", "'ReferenceTrainingStepScenario'"),
    "title_missing": ("title is missing",),
    "title_is_a_number": ("title = 3", "expected a text"),
    "value_missing": ("precision: value is missing",),
    "value_without_table": ("precision = 'bf16'", "[precision]", "value and source"),
    # Sources.
    "source_missing": ("precision: source is missing",),
    "source_empty": ("precision.source", "assumption: reason"),
    "source_is_a_number": ("precision.source = 2020", "assumption: reason"),
    "source_cites_nothing": ("precision.source", "'brown2021'", "'brown2020'", "references.bib"),
    "second_source_cites_nothing": ("precision.source", "'kaplan2002'", "references.bib"),
    "source_without_a_place": ("precision.source", "brown2020", "KEY, place in it"),
    "source_that_only_begins_like_an_assumption": ("precision.source", "'assumptions2020'"),
    "source_is_another_value": ("batch_divisor.source", "follows = 'Scenarios.NAME.OUTPUT'"),
    "source_as_in_another": ("batch_divisor.source", "follows = 'Hardware.DGX_H100.batch_divisor'"),
    # What a value follows; what must be computed for it is in test_following.py.
    "follows_no_full_name": ("batch_divisor.follows = 'DenseLLMReplica.replica_gpus'", "full name"),
    "follows_a_whole_entry": ("batch_divisor.follows = 'Hardware.H100_SXM'", "full name"),
    "follows_a_number": ("batch_divisor.follows = '512'", "full name"),
    "scale_of_zero": ("batch_divisor.scale = '0'", "a scale of zero"),
    "scale_that_is_no_product": ("batch_divisor.scale = '4 + 4'", "joined by * and /"),
    "scale_without_follows": ("batch_divisor.follows is missing",),
    "digits_beyond_those_of_an_artifact": ("batch_divisor.digits = 13", "from 1 to 12"),
    "assumption_empty": ("precision.source", "no reason"),
    "assumption_blank": ("precision.source", "no reason"),
    # Names.
    "name_unknown": ("'DGX_H100_1042'", "'DGX_H100_1024'"),
    "base_unknown": ("'DenseLLMPretrainingStp'", "'DenseLLMPretrainingStep'"),
    "formerly_no_name": ("formerly = 'Old name'", "the name that it had"),
    "formerly_in_use": ("formerly = 'DenseLLMReplica'", "scenarios/DenseLLMReplica.toml exists"),
    "base_not_a_scenario": ("base = 'Fleets.DGX_H100_1024'", "Scenarios.NAME"),
    "base_of_another_kind": ("'ReferenceTrainingStepScenario'", "SelfContainedReplicaScenario"),
    "base_in_a_circle": ("circle", "Scenarios.base_in_a_circle_too -> Scenarios.base_in_a_circle"),
    "base_in_a_circle_too": ("circle", "Scenarios.base_in_a_circle -> "),
    "replica_in_a_circle": ("circle", "Scenarios.replica_in_a_circle"),
    "reference_to_another_kind": ("fleet = ", "expected a Fleet"),
    "reference_for_a_number": ("batch_divisor = 'Hardware.DGX_H100'", "expected int"),
    "word_for_a_reference": ("fleet = 'DGX_H100_1024'", "expected a Fleet"),
    # Collectives, links and fleets of other sizes.
    "collective_beyond_the_fleet": ("16 members, 128 ranks apart", "rank 1920", "1024"),
    "collective_of_one": ("members = 1", "at least 2"),
    "collective_of_half_a_byte": ("smallest = 0.5 B", "whole bytes"),
    "link_rates_none": ("rates has no values", "a list of values"),
    "link_rate_twice": ("rates: '450 GB/s' stands there twice",),
    "collective_of_all_bytes": ("smallest = 1e+300 B", "at most 1 PiB"),
    "link_rate_without_unit": ("rates: '450'", "unit"),
    "fleet_sizes_none": ("sizes has no values", "whole numbers"),
    "fleet_sizes_out_of_order": ("sizes: 64 after 128", "rise"),
    "fleet_size_of_no_whole_nodes": ("sizes: 100 accelerators", "100 / 8 = 12.5"),
    "fleet_size_in_words": ("sizes: 'many'", "whole number"),
    "fleet_sizes_that_all_fail": ("no size works", "1536 / 1024 = 1.5"),
    "sharding_without_a_search": ("most_sharding = 1", "expected 0"),
    "efficiency_to_keep_above_one": ("least_efficiency = 1.2", "at most 1"),
    # Runs and the reliability of fleets.
    "run_on_another_fleet": ("1024 accelerators", "16384"),
    "run_of_another_model": ("trains GPT3_175B", "checkpoints of Llama31_405B"),
    "run_of_less_than_a_step": ("token_budget = 3e+06", "3145728"),
    "pue_below_one": ("pue = 0.9", "at least 1"),
    "price_in_another_dimension": ("price = 3 USD", "wrong dimension", "USD/h"),
    "carbon_intensity_of_all_gases": ("0.37 kgCO2e/kWh", "wrong dimension", "kgCO2/kWh"),
    "chains_without_a_retry": ("chains = 74", "at most attempts = 73"),
    "chains_that_never_were": ("recovered_chains = 13", "at most chains = 12"),
    "fleet_that_never_writes_its_state": ("2.01e+05 s", "1024", "1.782e+05 s"),
    "restart_longer_than_between_interruptions": ("restart_time = 6e+10 s", "every 1.782e+05 s"),
    "restart_of_no_time": ("goodput_goal = 0.9", "any size", "restart_time"),
    "fleets_in_the_wrong_order": ("smallest_fleet = 524288", "largest_fleet = 262144"),
    "interruptions_zero": ("interruptions = 0", "more than 0"),
    "goodput_goal_in_percent": ("goodput_goal = 90", "at most 1"),
    # Files.
    "toml_invalid": ("not valid TOML", "line 5"),
    "toml_key_twice": ("not valid TOML", "line 4"),
}
# Files that only help another one to be wrong.
HELPERS = {"FleetOfAnotherModel", "InterleavedByFive"}
# Good scenarios that bad files start from, beside those that every root holds.
BASES = (
    "DenseLLMFleetReliability",
    "DenseLLMRestartTimes",
    "DenseLLMTrainingRun",
    "Llama31FleetReliability",
    "Llama31Interruptions",
)


@pytest.fixture(scope="module")
def bad_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root that holds the bad scenarios beside the good ones."""
    made = copy_project(tmp_path_factory.mktemp("bad") / "root")
    for path in (*BAD.glob("*.toml"), *(REPOSITORY / "scenarios" / f"{b}.toml" for b in BASES)):
        shutil.copy(path, made / "scenarios")
    return made


@pytest.fixture
def with_bad_files(bad_root: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same one in place of the test's own: bad files leave nothing behind in it."""
    assert root != bad_root
    monkeypatch.setenv("MLSYSIM_ROOT", str(bad_root))
    return bad_root


def shown(part: object) -> str | None:
    """A test's name for its changed arguments; the fragments need none."""
    return ",".join(f"{k}={v!s:.20}" for k, v in part.items()) if isinstance(part, dict) else "-"


def test_every_bad_file_is_refused_by_a_test_of_its_own() -> None:
    assert {path.stem for path in BAD.glob("*.toml")} == {*REFUSED, *HELPERS}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_file_is_refused_with_place_finding_and_choices(
    name: str, with_bad_files: Path
) -> None:
    assert (with_bad_files / "scenarios" / f"{name}.toml").is_file()
    with pytest.raises(MlsysimError) as refused:
        Scenarios[name]
    message = str(refused.value)
    for fragment in REFUSED[name]:
        assert fragment in message
    assert f"scenarios/{name}.toml" in message or f"Scenarios.{name}" in message
    assert "\n" not in message
    assert str(with_bad_files) not in message


@pytest.mark.parametrize("name", REFUSED)
def test_solving_a_bad_file_is_an_error_of_one_line_and_never_a_traceback(
    name: str, with_bad_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", name]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith(f"mlsysim: {name}: ")
    assert printed.err.count("\n") == 1
    assert not printed.out
    assert not (with_bad_files / "results" / "scenarios" / f"{name}.json").exists()


def test_bad_files_spoil_neither_the_good_ones_nor_the_commands(
    with_bad_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {done.name: done for done in solve(names("Scenarios"))}
    assert {name for name, done in found.items() if done.error} >= {*REFUSED}
    assert not found["DenseLLMPretrainingStep"].error
    fresh = {verdict.name for verdict in verdicts() if verdict.fresh}
    assert "DenseLLMPretrainingStep" in fresh
    assert fresh.isdisjoint(REFUSED)
    assert {done.name for done in verify(names("Scenarios")) if done.verdict == "error"} >= {
        *REFUSED
    }
    assert main(["list"]) == 0
    assert "DenseLLMReplica " in capsys.readouterr().out
    assert not list((with_bad_files / "results" / "scenarios").glob("*_*.json"))


def test_a_file_that_is_no_text_is_refused_by_name(root: Path) -> None:
    (root / "scenarios" / "binary.toml").write_bytes(b'title = "\xff"\n')
    with pytest.raises(MlsysimError, match=r"scenarios/binary\.toml.*UTF-8"):
        Scenarios["binary"]


def test_a_name_that_the_lock_could_not_hold_is_refused(root: Path) -> None:
    copy = root / "scenarios" / "two words.toml"
    shutil.copy(root / "scenarios" / "DenseLLMReplica.toml", copy)
    with pytest.raises(MlsysimError, match="two words"):
        Scenarios["two words"]


# The same mistakes in the registry, which is copied for it.
@pytest.mark.parametrize(
    ("path", "old", "new", "fragments"),
    [
        ("hardware/H100_SXM", '"81559 MiB"', '"81559 MB/s"', ("wrong dimension", "like GB")),
        ("hardware/H100_SXM", '"81559 MiB"', '"0 MiB"', ("memory_capacity", "more than 0")),
        ("hardware/H100_SXM", "[half_work]", "[half_works]", ("half_works", "'half_work'")),
        ("hardware/H100_SXM", '"179 GFLOP"', '"-1 GFLOP"', ("half_work", "at least 0 GFLOP")),
        ("hardware/H100_SXM", '"179 GFLOP"', '"177 GFLOP/s"', ("half_work", "wrong dimension")),
        ("hardware/H100_SXM", "value = 0.389", "value = 0.0", ("memory_efficiency", "more than 0")),
        ("hardware/H100_SXM", "value = 0.573", "value = 1.1", ("overlap_exposure", "at most 1")),
        ("hardware/H100_SXM", "[rates.fp8]", "[ratings.fp8]", ("ratings", "'rates'")),
        ("hardware/H100_SXM", '"989.4 TFLOP/s"', '"989.4 TFLOPS"', ("rates", "write TFLOP/s")),
        ("hardware/DGX_H100", "value = 0.82", "value = 82", ("link_efficiency", "at most 1")),
        ("hardware/DGX_H100", '"3.4 us"', '"-3.4 us"', ("link_latency", "at least 0")),
        ("hardware/DGX_H100", "[nics]\nvalue = 8", "[nics]\nvalue = 0", ("nics", "at least 1")),
        ("fleets/DGX_H100_1024", "Hardware.DGX_H100", "Hardware.DGX_H1000", ("'DGX_H100'",)),
        ("fleets/DGX_H100_1024", '"Fleet"', '"Flet"', ("kind", "'Fleet'")),
        ("fleets/DGX_H100_1024", "Hardware.InfiniBandNDR", "Hardware.DGX_H100", ("a Fabric",)),
        ("models/GPT3_175B", "value = 96", "value = 0", ("layers", "at least 1")),
        ("models/GPT3_175B", "value = 12288", "value = 12289", ("12289 / 96 = 128.01",)),
        ("models/GPT3_175B", '"175e9 param"', '"175e9"', ("parameters", "no unit")),
        ("models/GPT3_175B", '"175e9 param"', '"177e9 param"', ("1.77e+11", "1.746e+11", "1%")),
        (
            "models/GPT3_175B",
            "value = 49152",
            "value = 45056",
            ("parameters", "expected within 1%"),
        ),
        ("models/GPT3_175B", '"175e9 param"', '"175e9 tok"', ("parameters", "like param")),
    ],
)
def test_a_bad_registry_entry_is_refused_by_file_and_field(
    path: str, old: str, new: str, fragments: tuple[str, ...], registry: Path
) -> None:
    file = registry / f"{path}.toml"
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(MlsysimError) as refused:
        {"hardware": Hardware, "models": Models, "fleets": Fleets}[file.parent.name][file.stem]
    for fragment in fragments:
        assert fragment in str(refused.value)
    assert file.stem in str(refused.value)
    with pytest.raises(MlsysimError):
        Scenarios["DenseLLMPretrainingStep"]


@pytest.mark.parametrize(
    ("path", "old", "new", "fragments"),
    [
        # One node, and a replica needs eight.
        ("fleets/DGX_H100_1024", "value = 128", "value = 1", ("8 accelerators", "8 x 8 = 64")),
        # Seven accelerators do not divide 96 heads.
        (
            "hardware/DGX_H100",
            "value = 8",
            "value = 7",
            ("attention_heads", "96 / 7 = 13.7142857143"),
        ),
    ],
)
def test_registry_entries_that_are_right_alone_and_wrong_together_are_refused(
    path: str, old: str, new: str, fragments: tuple[str, ...], registry: Path
) -> None:
    file = registry / f"{path}.toml"
    file.write_text(file.read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(MlsysimError) as refused:
        Scenarios["DenseLLMPretrainingStep"]
    for fragment in ("scenarios/DenseLLM", *fragments):
        assert fragment in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        ({"local_efficiency": 0.0}, ("local_efficiency = 0", "more than 0")),
        ({"local_efficiency": 1.5}, ("local_efficiency = 1.5", "at most 1")),
        ({"local_efficiency": "0.7"}, ("local_efficiency = '0.7'", "a number")),
        ({"local_efficiency": math.nan}, ("local_efficiency = nan", "finite")),
        ({"local_efficiency": True}, ("local_efficiency = True", "a number")),
        ({"precision": "fp4"}, ("'fp4'", "bf16, fp16, fp8")),
        ({"overlap_comm": 1}, ("overlap_comm = 1", "true or false")),
        ({"batch_divisor": True}, ("batch_divisor = True", "whole number")),
        ({"batch_divisor": 0}, ("batch_divisor = 0", "at least 1")),
        ({"batch_tokens": 2048 * 511.0}, ("511", "512")),
        ({"batch_divisor": 24}, ("1560 / 16 = 97.5",)),
        ({"sequences_per_microbatch": 1000}, ("1536 / 16000 = 0.096",)),
        ({"fleet": "Fleets.DGX_H100_1024"}, ("expected a Fleet",)),
        ({"fleet": None}, ("expected a Fleet",)),
    ],
    ids=shown,
)
def test_a_bad_scenario_argument_is_refused_by_field(
    changes: dict[str, Any], fragments: tuple[str, ...]
) -> None:
    with pytest.raises(MlsysimError) as refused:
        vary(Scenarios.DenseLLMPretrainingStep, **changes)
    for fragment in fragments:
        assert fragment in str(refused.value)


def test_a_fleet_smaller_than_one_replica_is_refused_with_the_arithmetic() -> None:
    step = Scenarios.DenseLLMPretrainingStep
    small = vary(step.fleet, node_count=7)
    with pytest.raises(MlsysimError, match="56 accelerators hold no replica: 8 x 8 = 64"):
        vary(step, fleet=small)


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        ({"bytes_per_param": "16 kB"}, ("8 x 32", "1.094e+04 GB", "85.52 GB")),
        ({"bytes_per_param": quantity("16 s")}, ("bytes_per_param = 16 s", "like B")),
        ({"bytes_per_param": 16}, ("bytes_per_param = 16", '"1 B"')),
        ({"interleaving": 0}, ("interleaving = 0", "at least 1")),
        ({"activation_recomputation": "some"}, ("'some'", "none, selective, full")),
    ],
    ids=shown,
)
def test_a_bad_replica_argument_is_refused_by_field(
    changes: dict[str, Any], fragments: tuple[str, ...]
) -> None:
    with pytest.raises(MlsysimError) as refused:
        vary(Scenarios.DenseLLMReplica, **changes)
    for fragment in fragments:
        assert fragment in str(refused.value)


def test_heads_that_a_node_does_not_divide_are_refused_with_the_arithmetic() -> None:
    node = vary(Hardware.DGX_H100, accelerators=5)
    with pytest.raises(MlsysimError, match=r"attention_heads: 96 / 5 = 19\.2"):
        vary(Scenarios.DenseLLMReplica, node=node)
    grouped = Models.Llama31_8B  # 32 heads share 8 key-value heads
    node = vary(Hardware.DGX_H100, accelerators=16)
    with pytest.raises(MlsysimError, match=r"kv_heads: 8 / 16 = 0\.5"):
        vary(Scenarios.DenseLLMReplica, workload=grouped, node=node)


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        # Degrees, batch and fleet that do not fit each other.
        ({"batch_size": 1537}, ("16 replicas x 96 microbatches = 1536", "1537 / 1536")),
        ({"batch_size": 768}, ("768 / 1536 = 0.5",)),
        ({"tp_size": 5}, ("attention_heads", "96 / 5 = 19.2")),
        (
            {"tp_size": 32, "pp_size": 96},
            ("1024 accelerators", "tp_size 32 x cp_size 1 x pp_size 96 = 3072"),
        ),
        ({"pp_size": 97}, ("97", "96 layers")),
        ({"v_stages": 5}, ("96 / 40 = 2.4",)),
        ({"v_stages": 2, "pp_size": 1}, ("v_stages 2 with pp_size 1",)),
        ({"v_stages": 2, "microbatch_count": 12, "batch_size": 192}, ("12 / 8 = 1.5",)),
        ({"seq_len": 2049, "sequence_parallel": False}, ("2049", "2048 positions")),
        ({"seq_len": 1023}, ("tokens of a rank", "1023 / 8 = 127.875")),
        ({"cp_size": 3}, ("cp_size does not divide seq_len", "2048 / 3 = 682.666666667")),
        ({"cp_size": 512}, ("tokens of a rank", "4 / 8 = 0.5")),
        ({"cp_size": 32}, ("1024 accelerators", "8 x cp_size 32 x pp_size 8 = 2048")),
        ({"cp_size": 2, "batch_size": 770}, ("8 replicas x 96 microbatches = 768", "770 / 768")),
        # Values out of range or of the wrong type.
        ({"tp_size": 0}, ("tp_size = 0", "at least 1")),
        ({"pp_size": -8}, ("pp_size = -8", "at least 1")),
        ({"cp_size": 0}, ("cp_size = 0", "at least 1")),
        ({"cp_size": 2.0}, ("cp_size = 2.0", "whole number")),
        ({"cp_size": True}, ("cp_size = True", "whole number")),
        ({"zero_stage": 4}, ("zero_stage = 4", "0, 1, 2, 3")),
        ({"zero_stage": -1}, ("zero_stage = -1", "0, 1, 2, 3")),
        ({"zero_stage": True}, ("zero_stage = True", "0, 1, 2, 3")),
        ({"zero_stage": 1.0}, ("zero_stage = 1.0", "0, 1, 2, 3")),
        ({"zero_stage": "1"}, ("zero_stage = '1'", "0, 1, 2, 3")),
        ({"stage_split": "halves"}, ("stage_split = 'halves'", "layers, slots")),
        ({"stage_split": ["layers"]}, ("stage_split = ['layers']", "layers, slots")),
        ({"stage_split": None}, ("stage_split = None", "layers, slots")),
        ({"stage_split": "slots", "v_stages": 2}, ("v_stages 2", "slots")),
        ({"microbatch_count": 96.0}, ("microbatch_count = 96.0", "whole number")),
        ({"batch_size": True}, ("batch_size = True", "whole number")),
        ({"seq_len": "2048"}, ("seq_len = '2048'", "whole number")),
        ({"efficiency": 0}, ("efficiency = 0", "(0, 1]")),
        ({"efficiency": 1.5}, ("efficiency = 1.5", "(0, 1]")),
        ({"efficiency": math.nan}, ("efficiency = nan", "(0, 1]")),
        ({"efficiency": "0.7"}, ("efficiency = '0.7'", "(0, 1]")),
        ({"efficiency": None}, ("efficiency = None", "(0, 1]")),
        ({"efficiency": True}, ("efficiency = True", "(0, 1]")),
        ({"precision": "fp4"}, ("'fp4'", "bf16, fp16, fp8")),
        ({"gradient_precision": "fp8"}, ("gradient_precision = 'fp8'", "bf16, fp16, fp32")),
        ({"activation_recomputation": "all"}, ("'all'", "none, selective, full")),
        ({"bytes_per_param": 16}, ("bytes_per_param", "quantity")),
        ({"bytes_per_param": quantity("16 s")}, ("bytes_per_param", "16 s", "B")),
        ({"bytes_per_param": quantity("-16 B")}, ("bytes_per_param", "-16")),
        ({"bytes_per_param": quantity("3 B")}, ("bytes_per_param = 3 B", "at least 4 B")),
        (
            {"bytes_per_param": quantity("5 B"), "gradient_precision": "fp32"},
            ("bytes_per_param = 5 B", "at least 6 B"),
        ),
        ({"overlap_comm": "no"}, ("overlap_comm = 'no'", "true or false")),
        ({"overlap_tp_comm": 1}, ("overlap_tp_comm = 1", "true or false")),
        ({"sequence_parallel": 1}, ("sequence_parallel = 1", "true or false")),
        ({"fused_attention": "no"}, ("fused_attention = 'no'", "true or false")),
        ({"model": "Models.GPT3_175B"}, ("model", "TransformerModel")),
        ({"fleet": Hardware.DGX_H100}, ("fleet", "Fleet")),
    ],
    ids=shown,
)
def test_a_bad_solver_argument_is_refused_by_name(
    changes: dict[str, Any], fragments: tuple[str, ...]
) -> None:
    arguments = Scenarios.DenseLLMPretrainingStep.solver_arguments()
    with pytest.raises(MlsysimError) as refused:
        DistributedModel.solve(**{**vars(arguments), **changes})
    for fragment in fragments:
        assert fragment in str(refused.value)


def test_a_name_that_nothing_carries_is_refused_with_the_nearest() -> None:
    with pytest.raises(MlsysimError, match="DenseLLMPretrainingStep"):
        Scenarios.DenseLLMPretrainingSteps  # noqa: B018
    with pytest.raises(AttributeError, match="Scenarios"):
        mlsysim.Scenario  # noqa: B018
