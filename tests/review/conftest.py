"""What the tests of the review share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.review.history import History


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    """A small book with one revision, which is the project of this test."""
    made = History(tmp_path / "book")
    made.commit("The book")
    monkeypatch.setenv("MLSYSIM_ROOT", str(made.path))
    return made
