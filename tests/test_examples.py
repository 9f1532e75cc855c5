"""The examples of property tests: the same in any company, and printed as lines to keep."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import Case, any_case, case_of


def drawn() -> list[tuple[int, float]]:
    """What a property is tried with."""
    found = []

    @given(st.integers(0, 2**40), st.floats(0, 1e9))
    def keep(whole: int, share: float) -> None:
        found.append((whole, share))

    keep()
    return found


def test_what_else_is_imported_moves_no_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = drawn()
    assert len(set(alone)) > 50
    numbers = ", ".join(f"{1_000_003 * i}, {1_000_003 * i}.25" for i in range(1, 200))
    (tmp_path / "in_company.py").write_text(f"NUMBERS = ({numbers})\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.import_module("in_company").NUMBERS
    assert drawn() == alone


@given(any_case)
def test_a_case_is_printed_as_the_call_that_makes_it_again(case: Case) -> None:
    again = eval(repr(case), {"case_of": case_of})
    assert again == case
    assert again.arguments == case.arguments
