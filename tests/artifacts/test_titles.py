"""Titles and first comments of scenarios: quotes in them, plain text wherever they are read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mlsysim.artifacts.reading import read
from mlsysim.artifacts.staleness import judge, read_lock
from mlsysim.book.check.scenario_texts import purpose
from mlsysim.building.solving import solve
from mlsysim.cli.main import main

REPLICA, STEP = "DenseLLMReplica", "DenseLLMPretrainingStep"


def retitle(root: Path, title: str, name: str = REPLICA) -> str:
    """Give a scenario a title, solve it, and return the error if there is one."""
    path = root / f"scenarios/{name}.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub("(?m)^title = .*$", f'title = "{title}"', text), encoding="utf-8")
    return solve([name])[0].error


def test_a_title_quotes_inputs_results_and_what_it_refers_to(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not retitle(root, "{quote}`replica_gpus` with {quote}`state_per_gpu in MB as ,.0f`")
    assert read(REPLICA).title == "64 with 43,750\u00a0MB"
    assert not retitle(root, "{quote}`fleet.node_count` of {quote}`replica.replica_gpus`", STEP)
    assert read(STEP).title == "128 of 64"
    assert main(["list"]) == 0
    assert "64 with 43,750\u00a0MB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("title", "error"),
    [
        ("On {quote}`replica_gpu`", "title: quote `replica_gpu`: DenseLLMReplica has no"),
        ("On {quote}`replica_gpus in s`", "the value is a plain number, so it cannot be printed"),
        ("On {quote}`replica_gpus as q`", "is no format of a number"),
        ("On {quote}replica_gpus", "title: no complete quote; write {quote}`KEY in UNIT"),
        ("On {quote}`a b`", "title: quote `a b`: expected KEY"),
    ],
)
def test_a_quote_that_a_title_cannot_print_stops_its_scenario(
    root: Path, title: str, error: str
) -> None:
    told = retitle(root, title)
    assert told.startswith("scenarios/DenseLLMReplica.toml: title: ")
    assert error in told


def test_a_stale_scenario_names_a_title_only_if_its_words_changed(root: Path) -> None:
    assert not retitle(root, "On {quote}`replica_gpus` H100")
    path = root / f"scenarios/{REPLICA}.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("16 B", "17 B"), encoding="utf-8")
    (reason,) = judge(REPLICA, read_lock()).reasons
    assert "17" in reason
    assert "title" not in reason
    path.write_text(text.replace("` H100", "` X100"), encoding="utf-8")
    assert "title: On {quote}" in "".join(judge(REPLICA, read_lock()).reasons)


def test_the_first_comment_quotes_and_hides_what_accepts(root: Path) -> None:
    path = root / f"scenarios/{REPLICA}.toml"
    text = path.read_text(encoding="utf-8").partition("\n")[2]
    path.write_text(f"# On {{quote}}`replica_gpus`\n# accept: why\n# of them.\n{text}", "utf-8")
    assert not solve([REPLICA])[0].error
    assert purpose(REPLICA) == "On 64 of them."
