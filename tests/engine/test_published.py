"""Published steps: how close the model comes, where its constants are from, which rows it takes."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlsysim import Scenarios, paths, read
from mlsysim.artifacts.lock import read_lock
from mlsysim.artifacts.staleness import judge, stale
from mlsysim.building.solving import solve, verify
from mlsysim.canonical import digest
from mlsysim.cli.main import main
from mlsysim.engine.scenario_types import PublishedStepTimesScenario
from mlsysim.errors import InputError, MlsysimError
from mlsysim.solvers.step import stacked, times
from mlsysim.units import to_si, unit
from tests.conftest import REPOSITORY, SCENARIOS

STEPS = "PublishedStepTimes"
ASIDE = "bloom"  # its sources begin so; they stay out of the fit


@pytest.fixture(scope="module")
def steps() -> PublishedStepTimesScenario:
    found = Scenarios[STEPS]
    assert isinstance(found, PublishedStepTimesScenario)
    return found


def published_rows() -> list[dict[str, str]]:
    with (REPOSITORY / "results" / "scenarios" / f"{STEPS}.csv").open(encoding="utf-8") as file:
        return [*csv.DictReader(file)]


def errors_of(rows: list[dict[str, str]]) -> list[float]:
    return [abs(float(row["predicted_s"]) / float(row["measured_s"]) - 1) for row in rows]


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


# How close the model comes.


def test_the_fitted_runs_come_out_within_two_percent_and_none_is_seven_off() -> None:
    rows = [row for row in published_rows() if not row["source"].startswith(ASIDE)]
    assert len(rows) >= 84
    assert mean(errors_of(rows)) <= 0.02
    assert max(errors_of(rows)) <= 0.07
    published = read(STEPS)
    assert to_si(published.value("mean_error_of.fitted")) == pytest.approx(mean(errors_of(rows)))
    assert to_si(published.value("worst_error_of.fitted")) == pytest.approx(max(errors_of(rows)))


def test_every_source_on_h100_that_the_fit_has_not_seen_comes_out_within_four_percent() -> None:
    sources = {row["source"] for row in published_rows() if row["accelerator"] == "H100_SXM"}
    fit = read(FIT)
    assert len(sources) > 5
    for source in sources:
        assert to_si(fit.value(f"left_out_error.{source}")) <= 0.04, source


def test_runs_that_no_one_fitted_come_out_nearly_as_close_as_those_that_were() -> None:
    fit = read(FIT)
    seen, unseen = (to_si(fit.value(f"{name}_error.all")) for name in ("fitted", "other_half"))
    assert seen < unseen < 1.5 * seen


def test_the_errors_of_a_group_are_those_of_its_rows() -> None:
    published, rows = read(STEPS), published_rows()
    for column in ("source", "accelerator"):
        for group in {row[column] for row in rows}:
            found = errors_of([row for row in rows if row[column] == group])
            assert to_si(published.value(f"mean_error_of.{group}")) == pytest.approx(mean(found))
            assert to_si(published.value(f"worst_error_of.{group}")) == pytest.approx(max(found))
    assert to_si(published.value("mean_error")) == pytest.approx(mean(errors_of(rows)))
    assert published.value("run_count.all") == len(rows)
    order = [[float(row[name]) for row in rows] for name in ("predicted_s", "measured_s")]
    ranks = [
        [sorted(values).index(v) + (values.count(v) - 1) / 2 for v in values] for values in order
    ]
    away = [[rank - mean(each) for rank in each] for each in ranks]
    shared = math.fsum(a * b for a, b in zip(*away, strict=True))
    spread = math.sqrt(math.prod(math.fsum(a * a for a in each) for each in away))
    assert published.value("rank_correlation") == pytest.approx(shared / spread)


def test_the_ledger_of_each_row_sums_to_its_step_in_the_digits_of_the_table() -> None:
    rows = published_rows()
    ledger = [name for name in rows[0] if name.endswith("_s")][2:]
    assert len(ledger) == 10
    for row in rows:
        parts = [float(row[name]) for name in ledger]
        assert min(parts) >= 0
        assert math.fsum(parts) == pytest.approx(float(row["predicted_s"]), rel=1e-11, abs=0)


def test_nothing_but_the_accelerator_sets_the_constants_of_a_run(
    steps: PublishedStepTimesScenario,
) -> None:
    names = ("peak", "efficiency", "half_work", "memory_efficiency", "overlap_exposure")
    found: dict[tuple[str, str], set[tuple[Any, ...]]] = {}
    for run in steps.solved:
        key = run.accelerator, run.arguments["precision"]
        inputs = run.result.inputs
        found.setdefault(key, set()).add(tuple(getattr(inputs, name) for name in names))
    assert all(len(constants) == 1 for constants in found.values())


# Where its constants are from.

FIT = "PublishedStepFit"


def test_an_accelerator_with_published_steps_has_four_fitted_constants_at_most() -> None:
    fit = read(FIT)
    fitted = {key.partition(".")[2] for key in fit.keys() if key.startswith("half_work.")}  # noqa: SIM118
    assert fitted == {row["accelerator"] for row in published_rows()} & fitted
    assert fitted >= {"H100_SXM", "A100_SXM_80GB"}
    names = [key for key in fit.outputs if key.split(".")[0] in CONSTANTS]
    assert max(sum(key.endswith(f".{name}") for key in names) for name in fitted) <= 4


CONSTANTS = ("matrix_efficiency", "half_work", "memory_efficiency", "overlap_exposure")


@pytest.mark.parametrize("name", ["H100_SXM", "A100_SXM_80GB"])
def test_no_constant_moved_a_little_brings_the_fitted_runs_closer(
    name: str, steps: PublishedStepTimesScenario
) -> None:
    runs = [
        run for run in steps.solved if run.accelerator == name and not run.source.startswith(ASIDE)
    ]
    inputs = stacked([run.result.inputs for run in runs])

    def cost(**moved: float) -> float:
        constants = {key: getattr(inputs, key) * factor for key, factor in moved.items()}
        seconds: Any = times(inputs._replace(**constants))[0].total
        return math.fsum(
            (each / run.measured - 1) ** 2 for each, run in zip(seconds, runs, strict=True)
        )

    best = cost()
    for constant in ("efficiency", "half_work", "memory_efficiency", "overlap_exposure"):
        for factor in (0.97, 1.03):
            assert cost(**{constant: factor}) >= best, constant


# Which rows it takes.


@pytest.fixture
def with_steps(root: Path) -> Path:
    """A root with the published steps too, cut to four rows."""
    shutil.copy(REPOSITORY / "scenarios" / f"{STEPS}.toml", root / "scenarios")
    lines = (REPOSITORY / "scenarios" / f"{STEPS}.csv").read_text("utf-8").splitlines(True)
    (root / "scenarios" / f"{STEPS}.csv").write_text("".join(lines[:5]), "utf-8")
    return root


Rows = list[dict[str, str]]


def edit(root: Path, change: Callable[[Rows], Rows]) -> None:
    path = root / "scenarios" / f"{STEPS}.csv"
    rows = change([*csv.DictReader(io.StringIO(path.read_text("utf-8")))])
    text = io.StringIO()
    writer = csv.DictWriter(text, [*rows[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), "utf-8")


def second(**cells: str) -> Callable[[Rows], Rows]:
    """The second run with other cells."""
    return lambda rows: [rows[0], {**rows[1], **cells}, *rows[2:]]


def without(column: str) -> Callable[[Rows], Rows]:
    return lambda rows: [{k: v for k, v in row.items() if k != column} for row in rows]


SECOND = "korthikanti2022-02"


@pytest.mark.parametrize(
    ("change", "fragments"),
    [
        (without("tp_size"), ("'tp_size'", "missing")),
        (without("source"), ("'source'", "missing")),
        (without("run"), ("'run'", "missing")),
        (without("step_time_s"), ("'step_time_s'", "missing")),
        (second(machine="selen"), (SECOND, "'selen'", "'selene'")),
        (second(accelerators="9"), (SECOND, "9 accelerators", "whole nodes")),
        (second(accelerators="0"), (SECOND, "at least 1")),
        (second(batch_size="7"), (SECOND, "7", "whole microbatch")),
        (second(microbatch_size="0"), (SECOND, "microbatch_size")),
        (second(tp_size="0"), (SECOND, "tp_size")),
        (second(tp_size="-8"), (SECOND, "tp_size = -8", "at least 1")),
        (second(tp_size="eight"), (SECOND, "tp_size", "'eight'")),
        (second(tp_size="8.0"), (SECOND, "tp_size", "'8.0'")),
        (second(layers=""), (SECOND, "layers", "''")),
        (second(cp_size="3"), (SECOND, "8 accelerators", "24")),
        (second(sequence_parallel="yes"), (SECOND, "sequence_parallel = 'yes'", "true or false")),
        (second(zero_stage="4"), (SECOND, "zero_stage = 4", "0, 1, 2, 3")),
        (second(stage_split="halves"), (SECOND, "stage_split = 'halves'", "layers, slots")),
        (second(activation_recomputation="some"), (SECOND, "'some'", "none, selective, full")),
        (second(precision="fp4"), (SECOND, "'fp4'", "bf16, fp16")),
        (second(kv_heads="5"), (SECOND, "64 / 5 = 12.8")),
        (second(step_time_s="0"), (SECOND, "step_time_s = 0", "more than 0")),
        (second(step_time_s="nan"), (SECOND, "step_time_s = nan")),
        (second(step_time_s="fast"), (SECOND, "step_time_s", "'fast'")),
        (second(run="korthikanti2022-01"), ("korthikanti2022-01",)),
    ],
    ids=lambda part: "-" if callable(part) else " ".join(part[-2:]),
)
def test_a_bad_row_is_refused_by_run_and_column_with_the_choices(
    change: Callable[[Rows], Rows],
    fragments: tuple[str, ...],
    with_steps: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    edit(with_steps, change)
    assert main(["solve", STEPS]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"mlsysim: {STEPS}: ")
    for fragment in fragments:
        assert fragment in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("row", ["short,narayanan2021", "long" + "," * 40])
def test_a_row_with_too_few_or_too_many_cells_is_refused_by_run(
    row: str, with_steps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = with_steps / "scenarios" / f"{STEPS}.csv"
    path.write_text(path.read_text("utf-8") + row + "\n", "utf-8")
    assert main(["solve", STEPS]) == 1
    assert f"run {row.partition(',')[0]}" in capsys.readouterr().err


def test_a_bad_row_is_refused_when_the_scenario_is_made_and_by_its_file(with_steps: Path) -> None:
    edit(with_steps, second(machine="selen"))
    with pytest.raises(InputError, match=rf"scenarios/{STEPS}\.(toml|csv).*{SECOND}"):
        Scenarios[STEPS]


def test_a_table_that_is_not_there_or_empty_is_refused_by_name(with_steps: Path) -> None:
    table = with_steps / "scenarios" / f"{STEPS}.csv"
    header = table.read_text("utf-8").splitlines(keepends=True)[0]
    for content in ("", header):
        table.write_text(content, "utf-8")
        with pytest.raises(MlsysimError, match=STEPS):
            Scenarios[STEPS]
    table.write_bytes(b"run\n\xff\n")
    with pytest.raises(MlsysimError, match=rf"{STEPS}\.csv.*UTF-8"):
        Scenarios[STEPS]
    table.unlink()
    with pytest.raises(MlsysimError, match=rf"runs: there is no file '{STEPS}\.csv'"):
        Scenarios[STEPS]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (f'"{STEPS}.csv"', '"steps"', r"runs = 'steps': expected a CSV file"),
        (f'"{STEPS}.csv"', '"../away.csv"', "away"),
        ("[machines.selene]", "[machines]", "machines.*expected a table of named references"),
        ('"Fleets.DGX_A100_1024"', '"Hardware.DGX_A100"', r"machines\.selene.*expected a Fleet"),
        ('"Fleets.DGX_A100_1024"', '"DGX_A100_1024"', r"machines\.selene.*expected a Fleet"),
        ('"Fleets.DGX_A100_1024"', '"Fleets.DGX_A100_1042"', "'DGX_A100_1024'"),
    ],
)
def test_a_bad_table_of_rows_or_references_is_refused_by_field(
    old: str, new: str, message: str, with_steps: Path
) -> None:
    path = with_steps / "scenarios" / f"{STEPS}.toml"
    text = path.read_text("utf-8")
    assert old in text
    if new == "[machines]":
        text = text[: text.index("[machines.")]
        text += '\n[machines]\nvalue = "Fleets.DGX_A100_1024"\nsource = "assumption: one for all"\n'
    path.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(InputError if "1042" not in new else MlsysimError, match=message):
        Scenarios[STEPS]


# The table beside its artifact.


def test_the_artifact_gives_the_digest_of_its_table_and_verify_guards_both(
    with_steps: Path,
) -> None:
    assert not [done.error for done in solve([STEPS]) if done.error]
    table = paths.table(STEPS)
    about = read(STEPS).content["table"]
    assert about == {"file": f"{STEPS}.csv", "rows": 4, "digest": digest(table.read_text("utf-8"))}
    assert [*read(STEPS).table()["run"]] == [f"korthikanti2022-0{i}" for i in range(1, 5)]
    assert stale() == [name for name in SCENARIOS if name != STEPS]
    before = table.read_bytes()
    for damage in (b"", before + b"\n", before.replace(b"0", b"1")):
        table.write_bytes(damage)
        assert STEPS in stale()
        (reason,) = judge(STEPS, read_lock()).reasons
        assert f"table results/scenarios/{STEPS}.csv" in reason
        assert [done.verdict for done in verify([STEPS])] == ["different"]
        solve([STEPS])
        assert table.read_bytes() == before
    table.unlink()
    assert "missing" in judge(STEPS, read_lock()).reasons[0]
    solve([STEPS])
    assert table.read_bytes() == before
    assert STEPS not in stale()
    assert with_steps.joinpath("results", "scenarios", f"{STEPS}.csv") == table


@pytest.mark.usefixtures("with_steps")
def test_a_changed_row_makes_its_artifact_stale_and_comes_back_with_the_row(
    with_steps: Path,
) -> None:
    solve([STEPS])
    path = with_steps / "scenarios" / f"{STEPS}.csv"
    text = path.read_text("utf-8")
    path.write_text(text.replace("1.42,reported", "1.43,reported"), "utf-8")
    assert "inputs changed" in "; ".join(judge(STEPS, read_lock()).reasons)
    path.write_bytes(text.replace("\n", "\r\n").encode())  # as another editor ends its lines
    assert judge(STEPS, read_lock()).fresh
    path.write_text(text, "utf-8")
    assert judge(STEPS, read_lock()).fresh


@pytest.mark.usefixtures("with_steps")
def test_a_table_of_a_scenario_that_is_gone_is_an_orphan_too(
    with_steps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    solve([STEPS])
    (with_steps / "scenarios" / f"{STEPS}.toml").unlink()
    assert main(["verify"]) == 1
    assert f"results/scenarios/{STEPS}.csv" in capsys.readouterr().out


def test_a_scenario_without_a_table_says_so() -> None:
    with pytest.raises(InputError, match="DenseLLMReplica has no table"):
        read("DenseLLMReplica").table()


def test_the_rows_are_frozen_with_the_scenario(steps: PublishedStepTimesScenario) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        steps.runs = ()  # type: ignore[misc]
    assert unit("%") == steps.mean_error.units
