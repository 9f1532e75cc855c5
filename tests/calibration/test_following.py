"""Values that follow others: what differs is refused with its place, and calibrated in place."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mlsysim import paths
from mlsysim.artifacts.staleness import stale
from mlsysim.building import plan
from mlsysim.building.solving import Solved, solve
from mlsysim.calibration.agreement import differences
from mlsysim.calibration.calibrating import calibrate
from mlsysim.calibration.following import Following
from mlsysim.calibration.settling import findings
from mlsysim.cli.main import main
from mlsysim.declarations.documents import names
from tests.conftest import REPOSITORY

BAD = REPOSITORY / "tests" / "bad" / "following"
STEP, FIT = "DenseLLMPretrainingStep", "PublishedStepFit"


def swap(path: Path, old: str, new: str) -> None:
    text = path.read_bytes().decode()
    assert text.count(old) == 1, f"{path.name}: {old!r}"
    path.write_bytes(text.replace(old, new).encode())


def follow(root: Path, leaf: str, name: str = "Follower") -> Path:
    """A variant of the reference step with one value of its own."""
    path = root / "scenarios" / f"{name}.toml"
    path.write_text(f'base = "Scenarios.{STEP}"\ntitle = "A follower"\n\n{leaf}', "utf-8")
    return path


REASON = 'source = "assumption: a test"\n'


@pytest.fixture
def fitted(root: Path, registry: Path) -> Path:
    """A root with the published steps and their fit, and a registry to edit; all is solved."""
    for name in (f"{FIT}.toml", "PublishedStepTimes.toml", "PublishedStepTimes.csv"):
        shutil.copy(REPOSITORY / "scenarios" / name, root / "scenarios")
    swap(root / "scenarios" / f"{FIT}.toml", "value = 50", "value = 1")
    assert registry.is_dir()
    assert not [done.error for done in solve(names("Scenarios"), compare=True) if done.error]
    return registry / "hardware"


# The values of the project.


def test_every_value_of_the_project_is_what_it_follows() -> None:
    following = Following()
    assert len(following.followers) > 30
    assert following.origins.index(FIT) < following.origins.index(STEP)
    assert [str(each) for each in findings(following)] == []


# What differs.


def test_an_edit_of_a_data_sheet_is_refused_until_what_follows_is_calibrated(
    fitted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in fitted.glob("*.toml")}
    artifacts = {path: path.read_bytes() for path in (paths.results()).rglob("*.*")}
    h100 = fitted / "H100_SXM.toml"
    swap(h100, "3.35 TB/s", "3.2 TB/s")
    # The fit is stale, so a build solves it first, and what follows it is compared then.
    first = plan.plan().first
    assert first == [FIT]
    assert main(["solve", "--compare", *first]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("mlsysim: values that differ from what they follow: 3; run: mlsysim")
    assert len(said) == 5
    line = h100.read_text("utf-8").splitlines().index("value = 0.389") + 1
    origin = f"Scenarios.{FIT}.memory_efficiency.H100_SXM"
    assert f"H100_SXM.toml:{line}: memory_efficiency = 0.389, but {origin} gives 0.407" in said[1]
    assert ["B200.toml:" in said[2], "H200_SXM.toml:" in said[3]] == [True, True]
    assert "not solved, because it rests on Hardware.H100_SXM.memory_efficiency" in said[4]
    # Nothing that contradicts is certified, and every command tells it.
    assert {path: path.read_bytes() for path in (paths.results()).rglob("*.*")} == artifacts
    assert {each.follower.name for each in differences()} == {
        f"Hardware.{name}.memory_efficiency" for name in ("B200", "H100_SXM", "H200_SXM")
    }
    for command in ("status", "verify", "check"):
        assert main([command]) == 1
        assert "memory_efficiency = 0.389, but" in capsys.readouterr().out
    # One command mends all that follow, in the order in which they follow, and nothing else.
    assert main(["calibrate"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "H100_SXM.toml" in said[0]
    assert said[0].endswith(": memory_efficiency: 0.389 -> 0.407")
    assert said[-1] == "rewrote 3 values; run: make"
    for path, data in before.items():
        moved = path.stem in ("B200", "H100_SXM", "H200_SXM")
        expected = data.replace(b"0.389", b"0.407") if moved else data
        assert path.read_bytes() == expected.replace(b"3.35 TB/s", b"3.2 TB/s")
    assert main(["calibrate"]) == 0
    assert capsys.readouterr().out == "every value is what it follows\n"
    assert not [done.error for done in solve(names("Scenarios"), compare=True) if done.error]
    assert stale() == []
    assert plan.plan().first == []


def test_a_scaled_value_follows_both_its_origin_and_its_scale(fitted: Path) -> None:
    path = fitted / "B200.toml"
    head, rate, tail = path.read_text("utf-8").partition('"2250 TFLOP/s"')  # of bf16, then fp16
    assert rate
    path.write_text(f'{head}"2.3 PFLOP/s"{tail}', "utf-8")
    [found] = findings()
    # 179 GFLOP x 2300 / 989.4 = 416.11..., to three digits
    assert (found.follower.name, found.due) == ("Hardware.B200.half_work", "416 GFLOP")


SEQUENCES = f'[batch_divisor]\nvalue = 9\nfollows = "Scenarios.{STEP}.global_batch_sequences"\n'
TOKENS = '[batch_tokens]\nvalue = 3.2e6\nfollows = "Models.GPT3_175B.context_length"\n'
SHARE = '[local_efficiency]\nvalue = {}\nfollows = "Hardware.DGX_H100.link_efficiency"\n'
WORD = '[precision]\nvalue = "fp8"\nfollows = "Scenarios.DenseLLMReplica.gradient_precision"\n'
THING = f'[fleet]\nvalue = "Fleets.DGX_A100_1024"\nfollows = "Scenarios.{STEP}.fleet"\n'


@pytest.mark.parametrize(
    ("leaf", "due"),
    [
        (SEQUENCES, 1536),
        (SEQUENCES + "scale = 0.5\n", 768),
        (SEQUENCES + f'scale = "2 / Scenarios.{STEP}.data_parallel"\n', 192),
        (SEQUENCES + f'scale = "1 / Scenarios.{STEP}.fleet.node.accelerators"\n', 192),
        (TOKENS + "scale = 1000\n", 2048000.0),
        (SHARE.format(0.7), 0.82),
        (SHARE.format(0.7) + "digits = 1\n", 0.8),
        (SHARE.format('"70 %"'), "82 %"),
        (WORD, "bf16"),
        (THING, "Fleets.DGX_H100_1024"),
    ],
    ids=lambda part: str(part).splitlines()[-1],
)
def test_a_value_is_what_it_follows_times_its_scale_to_its_digits(
    leaf: str, due: object, root: Path
) -> None:
    path = follow(root, leaf + REASON)
    [found] = findings()
    assert found.due == due
    assert type(found.due) is type(due)
    assert found.file == "scenarios/Follower.toml"
    assert path.read_text("utf-8").splitlines()[found.line - 1].startswith("value = ")
    assert [done.new for done in calibrate()] == [due]
    assert findings() == []


def test_a_value_follows_what_another_is_to_become(root: Path) -> None:
    leaf = '[batch_divisor]\nvalue = 9\nfollows = "Scenarios.{}.batch_divisor"\n' + REASON
    follow(root, leaf.format("Second"), "First")
    follow(root, leaf.format("Third"), "Second")
    follow(root, '[batch_divisor]\nvalue = 64\nsource = "assumption: a test"\n', "Third")
    assert [each.follower.name for each in findings()] == [
        "Scenarios.Second.batch_divisor",
        "Scenarios.First.batch_divisor",
    ]
    # An output of what is to change is followed as it will be: 3.2e6 / 2048 down to a multiple.
    follow(root, SEQUENCES.replace(STEP, "First") + REASON, "Fourth")
    assert {each.due for each in findings()} == {64, 1536}
    calibrate()
    assert findings() == []


def test_a_value_that_its_field_cannot_have_is_told_and_not_written(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = follow(
        root,
        f'[local_efficiency]\nvalue = 0.7\nfollows = "Scenarios.{STEP}.tensor_parallel"\n{REASON}',
    )
    before = path.read_bytes()
    assert main(["calibrate"]) == 1
    said = capsys.readouterr()
    assert "scenarios/Follower.toml:5: local_efficiency: what it follows gives 8.0: " in said.err
    assert "at most 1" in said.err
    assert not said.out
    assert path.read_bytes() == before


def test_a_scenario_that_rests_on_nothing_that_differs_is_solved(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    follow(root, SEQUENCES + REASON)
    assert main(["solve", STEP]) == 0
    assert not capsys.readouterr().err
    assert main(["solve", STEP, "Follower"]) == 1
    told: list[Solved] = []
    assert [bool(done.error) for done in solve([STEP, "Follower"], told.append)] == [False, True]
    assert told[0].error.startswith("values that differ from what they follow: 1")


def test_a_registry_of_another_project_is_not_compared_with_scenarios_that_this_one_lacks(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert FIT not in names("Scenarios")
    assert findings() == []
    # In the project to which it belongs, a scenario that is gone is a mistake.
    shutil.copytree(paths.PACKAGE / "registry" / "data", root / "mlsysim" / "registry" / "data")
    monkeypatch.setattr(paths, "PACKAGE", root / "mlsysim")
    wrong = {each.follower.name: each.wrong for each in findings()}
    assert f"'{FIT}' is not in Scenarios; known: " in wrong["Hardware.H100_SXM.half_work"]


# What a build asks.


def test_a_build_of_what_agrees_loads_no_unit_library(solved: Path) -> None:
    assert solve(names("Scenarios"), compare=True)
    code = (
        "import sys; from mlsysim.building.plan import plan; plan = plan(); "
        "assert not plan.first, plan; assert 'pint' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=solved, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_value_that_was_edited_is_told_by_the_first_job_of_a_build(fitted: Path) -> None:
    swap(fitted / "H200_SXM.toml", "value = 0.696", "value = 0.7")
    made = plan.plan()
    # Nothing that is solved rests on it, and still a build does not pass.
    assert len(made.first) == 1
    assert [name for name, stale in made.scenarios.items() if stale] == made.first
    told: list[Solved] = []
    solve(made.first, told.append, compare=True)
    assert "H200_SXM.toml:26: matrix_efficiency = 0.7, but" in told[0].error


# Files keep all but the value.


@pytest.mark.parametrize(
    "text",
    [
        "[batch_divisor]\nvalue = 9 # nine\nfollows = 'F'\nsource = 'S'\n",
        "[batch_divisor]\r\nvalue = 9\r\nfollows = 'F'\r\nsource = 'S'\r\n",
        "batch_divisor = { value = 9, follows = 'F', source = 'S' } # nine",
        "batch_divisor.source = 'S'\nbatch_divisor.follows = 'F'\nbatch_divisor.value = 9\n",
        "# value = 9\n[batch_divisor] # value = 9\nsource = 'S'\nfollows = 'F'\nvalue =\t9",
    ],
    ids=["a comment", "line ends", "an inline table", "dotted keys", "the same text elsewhere"],
)
def test_a_value_is_found_in_every_layout_and_nothing_else_moves(text: str, root: Path) -> None:
    text = text.replace("'F'", f"'Scenarios.{STEP}.global_batch_sequences'")
    text = text.replace("'S'", "'assumption: value = 9'")
    path = root / "scenarios" / "Follower.toml"
    path.write_bytes(f'base = "Scenarios.{STEP}"\ntitle = "x"\n{text}'.encode())
    before = path.read_bytes()
    spellings = (b"]\nvalue = 9", b"]\r\nvalue = 9", b"{ value = 9", b"divisor.value = 9", b"\t9")
    [at] = [before.index(each) + len(each) - 1 for each in spellings if each in before]
    [done] = calibrate()
    assert (done.new, done.line) == (1536, before.count(b"\n", 0, at) + 1)
    assert path.read_bytes() == before[:at] + b"1536" + before[at + 1 :]


# Mistakes: one bad file for each.

REFUSED: dict[str, tuple[str, ...]] = {
    "unknown_entry": ("Hardware.H100_SMX.half_work", "did you mean 'H100_SXM'"),
    "unknown_input": ("Hardware.H100_SXM.rates.bf61", "did you mean 'rates.bf16'"),
    "unknown_output": ("replica_gpu,", "did you mean 'replica_gpus'?"),
    "beyond_a_number": ("batch_tokens is no reference, and has no 'half'",),
    "another_dimension": ("which is in GFLOP: wrong dimension; expected a unit like seq",),
    "scale_in_bytes": ("which is in MiB: wrong dimension",),
    "word_as_input": ("512 cannot follow", "precision = 'bf16'"),
    "text_for_a_number": ("'five' cannot follow Scenarios.DenseLLMReplica.replica_gpus = 64",),
    "word_as_output": ("which is the word 'matrix units'", "a number"),
    "word_to_scale": ("'bf16' is no number, so it has neither scale nor digits",),
    "itself": ("in a circle: Scenarios.itself.batch_divisor -> Scenarios.itself.batch_divisor",),
    "in_a_circle": ("in a circle: ", "Scenarios.in_a_circle_too.batch_divisor -> "),
    "in_a_circle_too": ("in a circle: ", "Scenarios.in_a_circle.batch_divisor -> "),
    "what_rests_on_it": (
        "a circle: Scenarios.what_rests_on_it.global_batch_sequences rests on",
        "Scenarios.what_rests_on_it.batch_divisor, and that on it",
    ),
    "of_a_bad_file": ("which cannot be computed: scenarios/efficiency_zero.toml: local_eff",),
}


@pytest.fixture
def with_bad_files(root: Path) -> Path:
    for path in (*BAD.glob("*.toml"), BAD.parent / "scenarios" / "efficiency_zero.toml"):
        shutil.copy(path, root / "scenarios")
    return root


def test_every_bad_file_is_refused_by_a_test_of_its_own() -> None:
    assert {path.stem for path in BAD.glob("*.toml")} == {*REFUSED}


@pytest.mark.usefixtures("with_bad_files")
@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_file_is_refused_with_place_finding_and_choices(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", name]) == 1
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith("mlsysim: values that cannot be compared with what they follow")
    [told] = [line for line in said.err.splitlines() if f"scenarios/{name}.toml:" in line]
    for fragment in (f"scenarios/{name}.toml:6: ", *REFUSED[name]):
        assert fragment in told
    assert f"mlsysim: {name}: not solved, because it rests on Scenarios.{name}." in said.err
    assert not paths.artifact(name).exists()


@pytest.mark.usefixtures("with_bad_files")
def test_bad_files_spoil_no_good_one_and_calibrating_tells_them_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["solve", STEP]) == 0
    assert main(["calibrate"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert {*REFUSED} <= {re.sub(r".*?scenarios/(\w+)\.toml.*", r"\1", line) for line in said}


@pytest.mark.parametrize("leaf", ["scale = 0", "digits = 0", 'scale = "1 / 0"', "scale = nan"])
def test_calibrating_tells_of_a_file_that_cannot_be_read_and_writes_nothing(
    leaf: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    follows = f'follows = "Scenarios.{STEP}.batch_divisor"\n{REASON}'
    other = follow(root, f"[batch_divisor]\nvalue = 9\n{follows}", "Other")
    before = other.read_bytes()
    follow(root, f"[batch_divisor]\nvalue = 512\n{leaf}\n{follows}")
    assert main(["calibrate"]) == 1
    said = capsys.readouterr()
    assert said.err.startswith("mlsysim: scenarios/Follower.toml: batch_divisor.")
    assert (said.out, other.read_bytes()) == ("", before)


def test_a_float_where_a_whole_number_is_due_is_calibrated_to_one(root: Path) -> None:
    leaf = f'[batch_divisor]\nvalue = 5.5\nfollows = "Scenarios.{STEP}.batch_divisor"\n{REASON}'
    path = follow(root, leaf)
    [done] = calibrate()
    assert (done.new, done.wrong) == (512, "")
    assert "value = 512\n" in path.read_text("utf-8")


def test_a_chain_of_any_length_ends_in_an_error(root: Path) -> None:
    leaf = '[batch_divisor]\nvalue = 9\nfollows = "Scenarios.C{}.batch_divisor"\n' + REASON
    for number in range(120):
        follow(root, leaf.format(number + 1), f"C{number}")
    assert any("more than 50 others" in each.wrong for each in findings())
