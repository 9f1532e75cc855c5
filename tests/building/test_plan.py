"""What a plan puts together, and what it knows of scenario classes without loading them."""

from __future__ import annotations

import pytest

from mlsysim.building.plan import batches
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_types import KINDS, WITH_TABLE


@pytest.mark.parametrize("stale", [0, 4, 5, 64, 1000])
def test_a_thousand_scenarios_are_at_most_twenty_jobs_whose_names_depend_on_the_book(
    stale: int,
) -> None:
    names = [f"Case{number}" for number in range(stale)]
    made = batches(names, 1000)
    assert len(made) == len(batches([], 1000)) <= 8  # beside those of chapters, lock and page
    dealt = sorted(name for batch in made for name in batch)
    assert dealt == (sorted(names) if stale > 4 else [])
    sizes = [len(batch) for batch in made if batch]
    assert not sizes or max(sizes) - min(sizes) <= 1


def test_the_graph_knows_which_scenarios_publish_a_table() -> None:
    assert {
        kind for kind in KINDS if KINDS[kind].table_rows is not Scenario.table_rows
    } == WITH_TABLE
