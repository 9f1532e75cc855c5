"""The built book in a folder of its own, and JupyterLab at work there, seen by a browser."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import DESKTOP, launched
from tests.pipeline.conftest import Clone

ROOT = Path(__file__).resolve().parents[2]
# These lie beside the book, so that nobody's settings count and none are left.
HOMES = ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    """The project with all that is built, as the one commit of a repository."""
    made = Clone(tmp_path / "book")
    left_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, made.path, ignore=left_out)
    made.git("init", "--quiet", "--initial-branch", "main")
    made.git("config", "user.name", "Test")
    made.git("config", "user.email", "test@example.invalid")
    made.git("add", "--all")
    made.git("commit", "--quiet", "--message", "The book")
    for name in HOMES:
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(made.path))
    return made


@pytest.fixture
def lab(book: Clone) -> Iterator[Page]:
    """The first page of JupyterLab, which the command of `make notebook` starts in the book."""
    dry = subprocess.run(
        ["make", "--dry-run", "--old-file", ".venv/notebook.stamp", "notebook", "PORT=0"],
        cwd=book.path,
        check=True,
        capture_output=True,
        text=True,
    )
    server = subprocess.Popen(
        dry.stdout,
        shell=True,
        cwd=book.path,
        env=book.environment() | {"BROWSER": "true"},  # `true` opens nothing
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert server.stderr
        address = next(filter(None, map(re.compile(r"http://127\S+").search, server.stderr)), None)
        assert address, "JupyterLab ended before it told its address"
        with launched() as browser:
            page = browser.new_page(viewport=DESKTOP)
            page.goto(address[0])
            expect.set_options(timeout=30_000)  # as all else in a page, on a busy machine too
            yield page
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.communicate()
