"""What `mlsysim new` writes builds at once, in a clone."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from .conftest import OTHER, Clone

pytestmark = pytest.mark.pipeline

_OF_OUTER_MAKE = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}  # by which an inner one says where it is


def test_new_scenarios_of_every_kind_and_a_new_chapter_build_at_once(built: Clone) -> None:
    listed = json.loads(built.mlsysim("list", "--json").stdout)
    kinds = sorted({each["kind"] for each in listed})
    for number, kind in enumerate(kinds):
        run = built.mlsysim("new", "scenario", f"New{number}", "--kind", kind)
        assert run.returncode == 0, run.stdout
    assert built.mlsysim("new", "scenario", "Variant").returncode == 0
    assert built.mlsysim("new", "chapter", "89_new_ideas").returncode == 0
    build = built.build()
    assert build.solved == sorted([*(f"New{number}" for number in range(len(kinds))), "Variant"])
    assert build.executed == ["89_new_ideas"]
    page = (built.path / "build/book/89_new_ideas.html").read_text()
    assert "parts.svg" in page
    assert 'class="quote"' in page
    assert "TODO: what the table lists." in page
    assert built.build().nothing


def test_the_live_page_follows_what_is_saved_and_survives_a_mistake(built: Clone) -> None:
    process = built.start("mlsysim", "live", "--port", "0")
    try:
        port = int(re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())[1])
        reader = threading.Thread(target=process.stdout.read)  # it must not block
        reader.start()
        news = urllib.request.urlopen(f"http://127.0.0.1:{port}/live-news", timeout=300)

        def told(version: int) -> str:
            """The error with the first news of this version, or of an error after it."""
            for line in news:
                if line.startswith(b"data: "):
                    found = json.loads(line.removeprefix(b"data: "))
                    if found["version"] >= version or found["error"]:
                        return found["error"]
            raise AssertionError("no more news")

        def page() -> str:
            address = f"http://127.0.0.1:{port}/{OTHER}.html"
            return urllib.request.urlopen(address, timeout=30).read().decode()

        assert told(1) == ""
        assert "One step takes" in page()
        built.edit(f"chapters/{OTHER}.md", "One step takes", "An edited step takes")
        assert told(2) == ""
        assert "An edited step takes" in page()
        built.edit("scenarios/DenseLLMPretrainingStepA100.toml", "value = 0.", "value = 1.")
        error = told(3)
        assert "scenarios/DenseLLMPretrainingStepA100.toml:14: local_efficiency = 1." in error
        assert "An edited step takes" in page()
        built.edit("scenarios/DenseLLMPretrainingStepA100.toml", "value = 1.", "value = 0.")
        assert told(3) == ""
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        reader.join()
        process.stdout.close()
        news.close()
    assert process.returncode == 0


def test_the_last_words_of_a_build_that_failed_are_what_was_wrong(built: Clone) -> None:
    built.edit(f"chapters/{OTHER}.md", "step_time in s as .1f`", "step_tim`")
    line = (built.path / f"chapters/{OTHER}.md").read_text().split("step_tim`")[0].count("\n") + 1
    wrong = f"mlsysim: chapters/{OTHER}.md:{line}: quote `DenseLLMPretrainingStepA100.step_tim`: "
    run = built.run("snakemake", "all")
    assert run.returncode == 1
    assert run.stdout.splitlines()[-1].startswith(wrong)
    (built.path / ".venv").symlink_to(Path(sys.prefix), target_is_directory=True)
    for handler in (signal.SIG_DFL, signal.SIG_IGN):  # as of a job in the background
        said = subprocess.run(
            ["make", "--old-file", ".venv/project.stamp", "all"],
            cwd=built.path,
            env={k: v for k, v in built.environment().items() if k not in _OF_OUTER_MAKE},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=partial(signal.signal, signal.SIGQUIT, handler),
        )
        assert said.returncode
        words = [line for line in said.stdout.splitlines() if not line.startswith("make: ***")]
        assert words[-1].startswith(wrong)
        assert handler is signal.SIG_IGN or words == said.stdout.splitlines()
    built.edit(f"chapters/{OTHER}.md", "step_tim`", "step_time in s as .1f`")
    mended = built.build()
    assert "mlsysim check: " in mended.said
    built.edit("scenarios/DenseLLMPretrainingStepA100.toml", "[", "[[")
    run = built.run("snakemake", "all")
    assert run.returncode == 1
    assert run.stdout.splitlines()[-1].startswith("mlsysim: ")
    assert "Traceback" not in run.stdout
