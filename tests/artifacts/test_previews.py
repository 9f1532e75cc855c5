"""What a running notebook shows of artifacts and quotes, and what it says of stale ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsysim import read
from mlsysim.building.solving import solve
from mlsysim.runtime.turns import BUILD

STEP = "DenseLLMPretrainingStep"
TIME = "step_time in ms as ,.0f"

EFFICIENCY = 'value = 0.696\nfollows = "Hardware.H100_SXM.matrix_efficiency"'


@pytest.fixture
def notebook(solved: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A solved root in which nobody builds."""
    monkeypatch.delenv(BUILD)
    return solved


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.usefixtures("notebook")
def test_an_artifact_shows_its_title_and_own_outputs_and_a_quote_its_text() -> None:
    step = read(STEP)
    for shown in (repr(step), step._repr_html_()):
        assert step.title in shown
        assert "step_time" in shown
        assert "Modeled time of one optimizer step." in shown
        assert f"mlsysim show {STEP}" in shown
        assert "STALE" not in shown
    shown = repr(step.quote(TIME))
    assert shown.startswith(f"{step.quote(TIME)}    ({STEP}.step_time = ")
    assert "STALE" not in shown


def test_a_stale_artifact_says_so_and_a_new_one_shows_without_a_restart(notebook: Path) -> None:
    step = read(STEP)
    then = str(step.quote(TIME))
    edit(notebook / f"scenarios/{STEP}.toml", EFFICIENCY, "value = 0.5")
    for shown in (repr(step), step._repr_html_(), repr(step.quote(TIME))):
        assert (
            "STALE, run snakemake artifacts: inputs changed: local_efficiency: 0.696"
            in shown.replace("&gt;", ">")
        )
    assert not solve([STEP])[0].error
    assert str(step.quote(TIME)) != then
    assert step.value("local_efficiency") == 0.5
    for shown in (repr(step), step._repr_html_(), repr(step.quote(TIME))):
        assert "STALE" not in shown


@pytest.mark.usefixtures("notebook")
def test_changed_code_is_named(registry: Path) -> None:
    step = read(STEP)
    assert "STALE" not in repr(step)
    edit(registry.parents[1] / "solvers/memory.py", "inner = 4.0 * hidden", "inner = 5.0 * hidden")
    assert "STALE, run snakemake artifacts: code changed: mlsysim.solvers.memory" in repr(step)
    assert "code changed: mlsysim.solvers.memory" in repr(step.quote(TIME))


def test_an_artifact_that_is_gone_or_damaged_leaves_what_was_read(notebook: Path) -> None:
    step = read(STEP)
    then = str(step.quote(TIME))
    path = notebook / f"results/scenarios/{STEP}.json"
    path.write_text("{}", encoding="utf-8")
    assert str(step.quote(TIME)) == then
    assert "STALE, run snakemake artifacts: artifact edited by hand" in repr(step)
    path.unlink()
    assert "STALE, run snakemake artifacts: artifact missing" in repr(step)


def test_a_build_checks_nothing_again(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = read(STEP)
    edit(notebook / f"scenarios/{STEP}.toml", EFFICIENCY, "value = 0.5")
    monkeypatch.setenv(BUILD, "1")
    assert "STALE" not in repr(step)
