"""The registries: every entry loads, every value is cited, and the values are plausible."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mlsysim import Fleets, Hardware, Models, paths
from mlsysim.errors import UnknownName
from mlsysim.registry.collections import Collection
from mlsysim.units import quantity, to_si, unit_text
from tests.conftest import REPOSITORY

DATA = paths.PACKAGE / "registry" / "data"
FILES = sorted(DATA.rglob("*.toml"))
COLLECTIONS = (Hardware, Models, Fleets)
BIBLIOGRAPHY = REPOSITORY / "chapters" / "references.bib"


def test_each_collection_loads_all_its_files() -> None:
    assert sum(map(len, COLLECTIONS)) == len(FILES) > 0
    for collection in COLLECTIONS:
        for name in collection:
            assert collection[name].name == name


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


def test_the_accelerators_of_a_node_share_its_ports_at_the_efficiency_of_the_fabric() -> None:
    for name in Fleets:
        node, fabric = Fleets[name].node, Fleets[name].fabric
        port = min(to_si(node.nic_bandwidth), to_si(fabric.port_bandwidth))
        reached = port * fabric.bandwidth_efficiency
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


def test_the_fleets_of_the_reference_step_have_as_many_accelerators_as_their_names_say() -> None:
    for name in ("DGX_A100_1024", "DGX_H100_1024", "DGX_H200_1024"):
        assert Fleets[name].total_accelerators == 1024


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
