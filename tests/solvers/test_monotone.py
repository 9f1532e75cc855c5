"""Layouts by the ten thousand, as arrays: on better hardware no step is slower."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mlsysim.registry.links import Links
from mlsysim.solvers.step import Inputs, times
from tests.cases import ROUNDING

COUNT = 20_000
# Each seed is as many layouts as a property elsewhere tries in hundreds of runs.
SEEDS = math.ceil(settings.default.max_examples / 60)


def layouts(random: np.random.Generator) -> Inputs:
    """Any small layouts on hardware of any speed, as arrays, without the checks of `solve`."""

    def one_of(*values: float) -> Any:
        return random.choice(np.array(values, dtype=float), COUNT)

    def yes(share: float = 0.5) -> Any:
        return random.random(COUNT) < share

    def between(least: float, most: float) -> Any:
        return np.exp(random.uniform(math.log(least), math.log(most), COUNT))

    def or_zero(values: Any) -> Any:
        return np.where(yes(0.3), 0.0, values)

    tensor, pipeline = one_of(1, 2, 4, 8, 16), one_of(1, 2, 3, 4, 5, 6, 12)
    parts = np.where((pipeline > 1) & yes(0.4), one_of(2, 3, 4), 1)
    layers = np.where(parts > 1, pipeline * parts * one_of(1, 2, 3), pipeline + one_of(*range(10)))
    heads, kv_heads = tensor * one_of(1, 2, 4, 8), tensor
    hidden, kv = heads * 64.0, kv_heads * 64.0
    ffn, gated, tied = tensor * one_of(64, 300, 1024), yes(), yes()
    vocabulary = one_of(1, 1000, 50257, 256000) * hidden
    peak, repeats_all = between(1e12, 1e16), yes(0.3)
    return Inputs(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv=kv,
        ffn=ffn,
        vocabulary=vocabulary / hidden,
        gated=gated,
        layer_parameters=2 * hidden * (hidden + kv) + np.where(gated, 3, 2) * hidden * ffn,
        embedding_parameters=vocabulary,
        head_parameters=np.where(tied, 0, vocabulary),
        tied_parameters=np.where(tied, vocabulary, 0),
        seq_len=one_of(128, 1024, 4096, 32768),
        node_size=one_of(1, 2, 4, 6, 8, 16),
        links=Links(
            link_rate=between(1e9, 1e12),
            link_latency=or_zero(between(1e-7, 1e-3)),
            network_rate=between(1e8, 1e11),
            network_latency=or_zero(between(1e-7, 1e-3)),
        ),
        peak=peak,
        core_peak=peak / one_of(1, 1, 2),
        memory_rate=between(1e10, 1e14),
        capacity=np.full(COUNT, 8e10),
        efficiency=between(0.05, 1),
        half_work=or_zero(between(1e6, 1e12)),
        memory_efficiency=between(0.05, 1),
        overlap_exposure=or_zero(random.random(COUNT)),
        tensor=tensor,
        context=one_of(1, 1, 2, 4, 8),
        pipeline=pipeline,
        data=one_of(*range(1, 65)),
        interleaving=parts,
        microbatch=one_of(1, 2, 3),
        microbatches=one_of(*range(1, 17)) * np.where(parts > 1, pipeline, 1),
        sequence_parallel=yes(),
        fused_attention=yes(),
        repeats_core=repeats_all | yes(),
        repeats_all=repeats_all,
        slots_for_ends=(parts == 1) & (layers + 2 >= 2 * pipeline) & yes(),
        overlap_data=yes(0.8),
        overlap_tensor=yes(0.8),
        zero_stage=one_of(0, 1, 2, 3),
        bytes_per_param=np.full(COUNT, 16.0),
        gradient_bytes=one_of(2, 4),
    )


def link(name: str) -> Callable[[Inputs, Any], Inputs]:
    def better(x: Inputs, by: Any) -> Inputs:
        factor = 1 / by if name.endswith("latency") else by
        return x._replace(links=x.links._replace(**{name: getattr(x.links, name) * factor}))

    return better


BETTER: dict[str, Callable[[Inputs, Any], Inputs]] = {
    "rates": lambda x, by: x._replace(peak=x.peak * by, core_peak=x.core_peak * by),
    "efficiency": lambda x, by: x._replace(efficiency=np.minimum(x.efficiency * by, 1)),
    "memory_rate": lambda x, by: x._replace(memory_rate=x.memory_rate * by),
    "half_work": lambda x, by: x._replace(half_work=x.half_work / by),
    "overlap_exposure": lambda x, by: x._replace(overlap_exposure=x.overlap_exposure / by),
    "overlap_data": lambda x, by: x._replace(overlap_data=by > 0),
    "overlap_tensor": lambda x, by: x._replace(overlap_tensor=by > 0),
    "fused_attention": lambda x, by: x._replace(fused_attention=by > 0),
    "no_recomputation": lambda x, by: x._replace(repeats_core=by < 0, repeats_all=by < 0),
    **{name: link(name) for name in Links._fields},
}


def slower(x: Inputs, y: Inputs) -> Iterator[tuple[float, dict[str, Any]]]:
    """By how much, and which layouts of `x`, take longer as those of `y`."""
    longer = times(y)[0].total / times(x)[0].total - 1
    for i in np.flatnonzero(longer > ROUNDING)[:1]:
        one = {name: value[i] for name, value in x._asdict().items() if name != "links"}
        yield longer[i], one | {name: value[i] for name, value in x.links._asdict().items()}


@pytest.mark.parametrize("name", BETTER)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=SEEDS, phases=[Phase.explicit, Phase.generate])  # a seed is not shrunk
def test_of_many_layouts_none_is_slower_if_one_thing_is_better(name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    x = layouts(random)
    assert [*slower(x, BETTER[name](x, 1 + random.exponential(2.0, COUNT)))] == []
