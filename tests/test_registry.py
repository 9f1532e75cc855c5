"""The registries: every entry loads, every value is cited, and the values are plausible."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlsysim import Fleets, Hardware, Models, paths
from mlsysim.errors import UnknownName
from mlsysim.registry.collections import Collection
from mlsysim.registry.types import Accelerator
from mlsysim.units import quantity, to_si, unit_text
from tests.conftest import REPOSITORY

DATA = paths.PACKAGE / "registry" / "data"
FILES = sorted(DATA.rglob("*.toml"))
COLLECTIONS = (Hardware, Models, Fleets)
BIBLIOGRAPHY = REPOSITORY / "chapters" / "references.bib"


def leaves(table: dict[str, Any], key: str = "") -> Iterator[tuple[str, Any, str]]:
    """Key, value and source of every value in a file, read without the package."""
    for name, part in table.items():
        if isinstance(part, dict) and "value" in part:
            yield f"{key}{name}", part["value"], part["source"]
        elif isinstance(part, dict):
            yield from leaves(part, f"{key}{name}.")


def test_each_collection_loads_all_its_files() -> None:
    assert sum(map(len, COLLECTIONS)) == len(FILES) > 0
    for collection in COLLECTIONS:
        for name in collection:
            assert collection[name].name == name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_value_has_a_source_that_the_bibliography_holds_or_a_reason(path: Path) -> None:
    known = set(re.findall(r"^@\w+\{([^,\s]+),", BIBLIOGRAPHY.read_text("utf-8"), re.MULTILINE))
    found = list(leaves(tomllib.loads(path.read_text("utf-8"))))
    assert found
    for key, _value, source in found:
        word, colon, reason = source.partition(":")
        if word == "assumption":
            assert colon, key
            assert len(reason.split()) > 2, f"{key}: no reason"
            continue
        if source.startswith("Scenarios."):  # which test_published.py compares with its output
            scenario = source.removeprefix("Scenarios.").partition(",")[0]
            assert (REPOSITORY / "scenarios" / f"{scenario}.toml").is_file(), key
            continue
        for part in source.split(";"):
            cited, comma, place = part.strip().partition(",")
            assert cited in known, f"{key} cites {cited!r}"
            assert comma, f"{key}: no place in {cited}"
            assert place.strip(), f"{key}: no place in {cited}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_measured_has_a_unit_and_what_is_counted_has_none(path: Path) -> None:
    dimensioned = re.compile(r"capacity|bandwidth|latency|rates\.|^parameters$|half_work")
    for key, value, _source in leaves(tomllib.loads(path.read_text("utf-8"))):
        if "efficiency" not in key and dimensioned.search(key):
            assert unit_text(quantity(value)), key
        elif isinstance(value, str):
            assert re.fullmatch(r"(Hardware|Models|Fleets)\.\w+", value), key


@pytest.mark.parametrize("name", list(Models))
def test_the_architecture_gives_the_nominal_parameters_within_one_percent(name: str) -> None:
    model = Models[name]
    assert model.counted_parameters == pytest.approx(to_si(model.parameters), rel=0.01)


def test_the_architecture_of_gpt3_gives_the_published_count() -> None:
    # To the unit in the registry facts, section 8, and as 174.6e9 after Narayanan et al. 2021 in
    # section 7; both leave out the final normalisation, a weight and a bias of hidden_size.
    final_normalisation = 2 * 12288
    assert Models.GPT3_175B.counted_parameters - final_normalisation == 174_604_234_752
    assert to_si(Models.GPT3_175B.parameters) == 175e9


# Half of what the vendor prints for a GPU's links, which is sent and received together: NVLink 3,
# 4 and 5 at 600, 900 and 1800 GB/s. A port of InfiniBand HDR or NDR moves 200 or 400 Gb/s each way.
@pytest.mark.parametrize(
    ("node", "both_ways", "port"),
    [
        ("DGX_A100", "600 GB/s", "200 Gb/s"),
        ("DGX_H100", "900 GB/s", "400 Gb/s"),
        ("DGX_H200", "900 GB/s", "400 Gb/s"),
        ("DGX_B200", "1800 GB/s", "400 Gb/s"),
    ],
)
def test_bandwidths_count_one_direction(node: str, both_ways: str, port: str) -> None:
    assert Hardware[node].link_bandwidth == quantity(both_ways) / 2
    assert Hardware[node].nic_bandwidth == quantity(port)


def test_a_fabric_is_as_fast_as_the_ports_of_the_nodes_on_it() -> None:
    for name in Fleets:
        node, fabric = Fleets[name].node, Fleets[name].fabric
        assert fabric.port_bandwidth == node.nic_bandwidth
        # The accelerators of a node share its ports, which reach the efficiency of the fabric.
        reached = to_si(node.nic_bandwidth) * fabric.bandwidth_efficiency
        share = reached / fabric.oversubscription * node.nics / node.accelerators
        assert Fleets[name].links.network_rate == pytest.approx(share)


# The label on the box in decimal GB; the device offers 1 to 7 % more, since the label counts GiB
# or a round number below it.
@pytest.mark.parametrize(
    ("part", "label"),
    [("A100_SXM_80GB", 80), ("H100_SXM", 80), ("H200_SXM", 141), ("B200", 180)],
)
def test_capacity_is_what_the_device_offers_and_not_the_label(part: str, label: float) -> None:
    offered = to_si(Hardware[part].memory_capacity) / 1e9
    assert 1.01 * label < offered <= 1.075 * label


def test_rates_are_dense_and_a_narrower_format_is_faster() -> None:
    # NVIDIA prints 1979 TFLOP/s of bf16 for H100 with sparsity; dense is half of it.
    assert Hardware.H100_SXM.rate("bf16") == pytest.approx(1979e12 / 2, rel=1e-3)
    assert "fp8" not in Hardware.A100_SXM_80GB.rates
    for name in ("H100_SXM", "H200_SXM", "B200"):
        assert Hardware[name].rate("fp8") == pytest.approx(2 * Hardware[name].rate("bf16"), 1e-3)


def test_an_accelerator_reads_its_whole_memory_in_tens_of_milliseconds() -> None:
    # A slipped prefix in capacity or bandwidth (GB for TB) would be off by a thousand.
    for name in ("A100_SXM_80GB", "H100_SXM", "H200_SXM", "B200"):
        part = Hardware[name]
        assert 0.01 < (part.memory_capacity / part.memory_bandwidth).to("s").magnitude < 0.1


def test_a_fleet_has_as_many_accelerators_as_its_name_says() -> None:
    for name in Fleets:
        if re.search(r"_\d+$", name):
            assert Fleets[name].total_accelerators == int(name.rpartition("_")[2]), name
    for name in ("DGX_A100_1024", "DGX_H100_1024", "DGX_H200_1024"):
        assert Fleets[name].total_accelerators == 1024


def test_an_accelerator_has_efficiencies_that_a_kernel_can_reach() -> None:
    for name in Hardware:
        part = Hardware[name]
        if isinstance(part, Accelerator):
            assert 0.5 < part.matrix_efficiency < 0.95, name
            assert 0.2 < part.memory_efficiency <= 1, name
            assert 0 <= part.overlap_exposure <= 1, name
            assert 1e9 < part.half_work_flops < 1e12, (
                name
            )  # a layer of 7B at 2,048 tokens does 1e12


@pytest.mark.parametrize("part", ["H200_SXM", "B200"])
def test_constants_borrowed_from_h100_follow_it(part: str) -> None:
    # H100's are fitted anew when a published step or the model changes; nothing moves the copies.
    borrowed, h100 = Hardware[part], Hardware.H100_SXM
    for constant in ("matrix_efficiency", "memory_efficiency", "overlap_exposure"):
        assert getattr(borrowed, constant) == getattr(h100, constant), constant
    # Equal times beyond the work of a layer; the ratio of the rates is 1 for H200.
    scaled = h100.half_work.magnitude * borrowed.rate("bf16") / h100.rate("bf16")
    assert unit_text(borrowed.half_work) == unit_text(h100.half_work) == "GFLOP"
    assert borrowed.half_work.magnitude == round(scaled)
    # Where the reason prints H100's value, it is the value of today.
    sources = {key: source for key, _, source in leaves(_toml(part))}
    printed = re.search(r"([\d.]+ \w+) on H100", sources["half_work"])
    assert not printed or quantity(printed[1]) == h100.half_work


def _toml(part: str) -> dict[str, Any]:
    return tomllib.loads((DATA / "hardware" / f"{part}.toml").read_text("utf-8"))


def test_what_is_assumed_to_be_as_in_another_entry_is_as_there() -> None:
    copied = []
    for path in FILES:
        for key, value, source in leaves(tomllib.loads(path.read_text("utf-8"))):
            if other := re.match(r"assumption: as in (\w+)", source):
                pattern = path.with_name(f"{other[1]}.toml")
                if pattern.is_file():  # the name of a file; "a DGX A100" is prose
                    values = dict(each[:2] for each in leaves(tomllib.loads(pattern.read_text())))
                    assert value == values[key], f"{path.stem}.{key}"
                    copied.append(f"{path.stem}.{key}")
    assert copied == ["DGX_H200.link_efficiency", "DGX_H200.link_latency"]


@pytest.mark.parametrize("collection", COLLECTIONS, ids=repr)
def test_a_collection_lists_its_names_and_refuses_others_with_the_nearest(
    collection: Collection,
) -> None:
    names = list(collection)
    assert names == sorted(dir(collection))
    assert names[0] in collection
    with pytest.raises(UnknownName, match=re.escape(names[0])):
        getattr(collection, names[0] + "x")
    with pytest.raises(UnknownName, match=re.escape(names[0])):
        collection[names[0][:-1]]
    assert not hasattr(collection, "Nonsense")


def test_a_changed_value_is_seen_at_the_next_access(registry: Path) -> None:
    path = registry / "hardware" / "H100_SXM.toml"
    path.write_text(path.read_text("utf-8").replace("81559 MiB", "80 GB"), "utf-8")
    assert to_si(Hardware.H100_SXM.memory_capacity) == 80e9
    assert to_si(Hardware.DGX_H100.accelerator.memory_capacity) == 80e9


def test_a_quantity_keeps_the_number_and_the_unit_of_its_file() -> None:
    capacity, rate = Hardware.H100_SXM.memory_capacity, Hardware.H100_SXM.rates["bf16"]
    assert (capacity.magnitude, unit_text(capacity)) == (81559.0, "MiB")
    assert (rate.magnitude, unit_text(rate)) == (989.4, "TFLOP/s")
    assert unit_text(Hardware.InfiniBandNDR.port_bandwidth) == "Gb/s"
    assert unit_text(Models.GPT3_175B.parameters) == "param"
