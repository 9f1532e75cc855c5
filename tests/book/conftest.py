"""What the tests of the book share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.books import lay_out


@pytest.fixture
def book(root: Path) -> Path:
    """A root with solved scenarios and the layout of the real book, and no pages yet."""
    return lay_out(root)
