"""Files as a slip, a merge or another program leaves them: each is told in a line, by its name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mlsysim import bounds, files, paths
from mlsysim.artifacts import default_formats
from mlsysim.artifacts.lock import read_lock
from mlsysim.book.source import cells
from mlsysim.building import plan, records
from mlsysim.building.solving import solve
from mlsysim.cli.main import main
from mlsysim.declarations.documents import document, names
from mlsysim.errors import InputError, MlsysimError
from tests.conftest import copy_project

# One of each kind of file that people, git or a build may leave damaged, and who reads it.
_PARSE = ("plan",)  # `status` looks at the same
_BUILD = ("status", *_PARSE)
_RESULTS = ("show", "solve", *_BUILD)
_CHAPTERS = ("check", "new chapter", *_BUILD)
FILES = {
    "scenarios/DenseLLMReplica.toml": ("list", "new scenario", "check", *_RESULTS),
    "chapters/references.bib": ("list", "new scenario", "check", *_RESULTS),
    "chapters/formats.toml": ("check", *_BUILD),
    "chapters/index.md": _CHAPTERS,
    "chapters/01_first.md": _CHAPTERS,
    "results/artifacts.lock": _RESULTS,
    "results/artifact.schema.json": _PARSE,
    "results/scenario.schema.json": _PARSE,
    "results/quotes.json": _PARSE,
    "results/claims.json": _PARSE,
    "results/scenarios/DenseLLMReplica.json": ("check", *_RESULTS),
    "build/executed/01_first.json": _PARSE,
    "build/page.json": _PARSE,
    "build/code.json": _PARSE,
    "requirements.lock": _BUILD,
}


def _other(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: _other(path, b""),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link in a circle": lambda path: (path.unlink(), path.symlink_to(path.name)),
    "no text": lambda path: _other(path, path.read_bytes() + b"\n\xff\xfe\n"),
    "a byte-order mark": lambda path: _other(path, b"\xef\xbb\xbf" + path.read_bytes()),
    "nested": lambda path: _other(path, b"[" * 5_000),
    "another": lambda path: _other(path, b'{"key": 3, "table": [{}]}\n'),
    "a control character": lambda path: _other(path, path.read_bytes() + b"\n\x1b[31m\x9b\n"),
}
COMMANDS: dict[str, Callable[[], object]] = {
    "list": lambda: main(["list"]),
    "show": lambda: main(["show", "DenseLLMReplica"]),
    "status": lambda: main(["status"]),
    "plan": lambda: plan.plan(),
    "check": lambda: main(["check"]),
    "solve": lambda: main(["solve", "DenseLLMReplica"]),
    "new scenario": lambda: main(["new", "scenario", "Wide", "--base", "DenseLLMReplica"]),
    "new chapter": lambda: main(["new", "chapter", "07_more"]),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small project with a chapter, solved, and records as a build leaves them."""
    made = copy_project(tmp_path_factory.mktemp("damaged") / "root")
    for name in ("DenseLLMPretrainingStepA100", "DenseLLMReplicaA100"):
        (made / f"scenarios/{name}.toml").unlink()
    chapters = made / "chapters"
    (chapters / "index.md").write_text("# Book\n\n```{toctree}\n01_first\n```\n", "utf-8")
    (chapters / "01_first.md").write_text("# First\n\nA chapter without cells.\n", "utf-8")
    (chapters / "formats.toml").write_text('"*.step_time" = "in s as .2f"\n', "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLSYSIM_ROOT", str(made))
        patch.setenv("MLSYSIM_BUILD", "tests")
        assert not [done.error for done in solve(names("Scenarios")) if done.error]
        nothing: dict[str, dict[str, str]] = {"files": {}, "folders": {}, "patterns": {}}
        records.record_chapter("01_first", records.chapter_key("01_first"), nothing)
        records.record_page(records.page_key())
        for path in (paths.quotes(), paths.claims()):
            files.write(path, "{}\n")
        yield made


@pytest.fixture
def project(whole: Path) -> Iterator[Path]:
    """The same project, put back as it was after each test."""
    good = {path: path.read_bytes() for path in whole.rglob("*") if path.is_file()}
    yield whole
    _put_back(whole, good)


@pytest.mark.parametrize("damage", DAMAGE)
def test_no_command_ends_in_a_traceback_whatever_became_of_a_file(
    damage: str, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = {path: path.read_bytes() for path in whole.rglob("*") if path.is_file()}
    for file, commands in FILES.items():
        for command in commands:
            DAMAGE[damage](whole / file)
            try:
                with suppress(MlsysimError):  # Snakemake prints that of a plan
                    COMMANDS[command]()
            except BaseException as error:
                raise AssertionError(f"{file}, {damage}: {command}") from error
            finally:
                _put_back(whole, good)
            printed = capsys.readouterr()
            assert "\x1b" not in printed.out + printed.err, (file, command)
            assert "\x9b" not in printed.out + printed.err, (file, command)
            assert printed.err.count("\n") <= 2, (file, command, printed.err)


def _put_back(root: Path, good: dict[Path, bytes]) -> None:
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_symlink() or (path.is_file() and path not in good):
            path.unlink()
        elif path.is_dir() and path in good:
            path.rmdir()
    for path, data in good.items():
        files.write(path, data)


@pytest.mark.parametrize(
    ("file", "read"),
    [
        ("scenarios/DenseLLMReplica.toml", lambda: document("Scenarios.DenseLLMReplica")),
        ("chapters/references.bib", lambda: document("Scenarios.DenseLLMReplica")),
        ("chapters/formats.toml", default_formats.table),
        ("chapters/01_first.md", lambda: cells.source("01_first")),
        ("results/artifacts.lock", read_lock),
    ],
)
@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("a folder", "cannot be read: Is a directory"),
        ("a link in a circle", "cannot be read: Too many levels of symbolic links"),
        ("no text", "not UTF-8 text: line "),
    ],
)
def test_what_cannot_be_read_is_told_by_its_name_and_the_reason(
    file: str, read: Callable[[], object], damage: str, why: str, project: Path
) -> None:
    if (file, damage) == ("results/artifacts.lock", "no text"):
        return  # a line that is not understood certifies nothing
    DAMAGE[damage](project / file)
    with pytest.raises(InputError) as refused:
        read()
    assert str(refused.value).startswith(f"{file}: {why}")


def test_a_scenario_whose_file_leads_nowhere_keeps_its_artifact(project: Path) -> None:
    path = project / "scenarios/DenseLLMReplica.toml"
    path.unlink()
    path.symlink_to("nothing")
    assert "DenseLLMReplica" in names("Scenarios")
    [done] = solve(["DenseLLMReplica"])
    assert done.error.startswith("scenarios/DenseLLMReplica.toml: cannot be read")
    assert paths.artifact("DenseLLMReplica").is_file()


def test_a_registry_entry_that_cannot_be_read_is_told_by_its_file(registry: Path) -> None:
    entry = registry / "hardware/H100_SXM.toml"
    DAMAGE["a link in a circle"](entry)
    with pytest.raises(InputError, match=r"hardware/H100_SXM\.toml: cannot be read: Too many"):
        document("Hardware.H100_SXM")


def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(root: Path) -> None:
    path = root / "scenarios/DenseLLMReplica.toml"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match="kind is missing"):
        document("Scenarios.DenseLLMReplica")


@pytest.mark.parametrize("size", [bounds.TOML, 10 * bounds.TOML])
def test_a_file_of_more_bytes_than_any_needs_is_refused(root: Path, size: int) -> None:
    (root / "scenarios/Large.toml").write_bytes(b"# more\n" * (size // 7 + 1))
    with pytest.raises(InputError, match=r"scenarios/Large\.toml: longer than 200,000 bytes"):
        document("Scenarios.Large")
