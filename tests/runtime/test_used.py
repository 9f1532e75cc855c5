"""What cells use is what makes a chapter stale: files, folders and modules, and nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mlsysim.building import records
from mlsysim.errors import MlsysimError
from tests.books import write

CELLS = (
    # Files by Python, pandas and a command; one that is not there; a module and what that reads.
    """\
import json
import os
import sqlite3
import subprocess
from glob import glob
from pathlib import Path

import pandas as pd

import helper
import package.inner

Path("../data/plain.txt").read_text()
pd.read_csv("../data/extra.csv")
subprocess.run(["cat", "../data/by_command.txt"], capture_output=True)
!cat ../data/by_shell.txt > /dev/null
sqlite3.connect("../data/rows.db").close()
sqlite3.connect("../data/made.db").execute("create table made (a)").connection.close()
try:
    open("../data/absent.txt")
except FileNotFoundError:
    pass
try:
    import optional
except ImportError:
    pass""",
    # Folders and patterns; what the chapter writes is none of its ingredients.
    """\
os.listdir("../listed")
sorted(Path("../below").rglob("*.csv"))
glob("../data/*.json")
Path("../listed/own.txt").write_text("own")
Path("../listed/own.txt").read_text()
None""",
    # A form of chapters/formats.toml.
    """\
from mlsysim import read

step = read("DenseLLMPretrainingStep")
step.quote("step_time").text""",
)
FILES = {
    "data/plain.txt": "1",
    "data/extra.csv": "a\n1\n",
    "data/by_command.txt": "1",
    "data/by_shell.txt": "1",
    "data/from_module.txt": "1",
    "data/rows.db": "",
    "data/one.json": "{}",
    "listed/one.txt": "1",
    "below/deep/one.csv": "1",
    "chapters/helper.py": 'open("../data/from_module.txt").read()\n',
    "chapters/package/__init__.py": "",
    "chapters/package/inner.py": "VALUE = 1\n",
    "chapters/formats.toml": '"*.step_time" = "in s as .2f"\n',
}


@pytest.fixture
def chapter(solved: Path) -> Path:
    """A root with a chapter that uses all of these, executed."""
    for name, text in FILES.items():
        (solved / name).parent.mkdir(parents=True, exist_ok=True)
        (solved / name).write_text(text, encoding="utf-8")
    write(solved, *CELLS)
    assert dict(records.execute(["01_small"], 1)) == {"01_small": []}
    assert records.chapter_reasons("01_small") == []
    return solved


def stale_for(root: Path, path: str, text: str | None) -> list[str]:
    """Why the chapter is stale while a file holds another text, or is gone."""
    file = root / path
    before = file.read_bytes() if file.exists() else None
    if text is None:
        file.unlink()
    else:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    reasons = records.chapter_reasons("01_small")
    if before is None:
        file.unlink()
    else:
        file.write_bytes(before)
    assert records.chapter_reasons("01_small") == []
    return reasons


def test_a_chapter_depends_on_what_its_cells_open_list_and_import_and_on_nothing_else(
    chapter: Path,
) -> None:
    for path in FILES:
        told = "below/**/*.csv" if path.startswith("below") else path
        if path == "listed/one.txt":
            told, text = "listed/", None
        elif path in ("below/deep/one.csv", "data/one.json"):
            told, text = {"b": "below/**/*.csv", "d": "data/*.json"}[path[0]], None
        else:
            text = "edited = 1\n"
        assert stale_for(chapter, path, text) == [f"changed: {told}"], path
    for path, told in {
        "data/absent.txt": "data/absent.txt",
        "data/new.json": "data/*.json",
        "below/new.csv": "below/**/*.csv",
        "listed/new.txt": "listed/",
        "chapters/optional.py": "chapters/optional.py",
        "chapters/optional/__init__.py": "chapters/optional/__init__.py",
    }.items():
        assert stale_for(chapter, path, "") == [f"changed: {told}"], path
    shutil.rmtree(chapter / "chapters/optional")
    for litter in (
        *("chapters/.01_small.md.swp", "chapters/01_small.md~", "chapters/.DS_Store"),
        *("chapters/01_small.ipynb", "chapters/unused.py", "data/.extra.csv.swp", "data/more.csv"),
        *("below/deep/.one.csv.swp", "results/tables/01_small/.DS_Store", "listed/own.txt"),
        *("results/tables/01_small/ledger.csv~", "scenarios/.DS_Store"),
    ):
        (chapter / litter).parent.mkdir(parents=True, exist_ok=True)
        assert stale_for(chapter, litter, "litter") == [], litter


@pytest.mark.usefixtures("solved")
def test_what_a_chapter_is_made_from_and_changes_while_it_runs_is_named_and_recorded_as_nothing(
    root: Path,
) -> None:
    (root / "data.txt").write_text("1", encoding="utf-8")
    touched = 'from pathlib import Path\n\nPath("../data.txt").read_text()\nimport subprocess\n'
    write(root, touched + 'subprocess.run("echo 2 > ../data.txt", shell=True)\nNone')
    [(_, error)] = records.execute(["01_small"], 1)
    assert isinstance(error, MlsysimError)
    assert str(error) == "chapters/01_small.md: data.txt: edited while it ran; run it again"
    assert records.chapter_reasons("01_small") == ["not executed yet"]


@pytest.mark.usefixtures("solved")
def test_a_cached_module_beside_a_chapter_is_not_what_runs(root: Path) -> None:
    import py_compile

    module = root / "chapters/helper.py"
    module.write_text("VALUE = 1\n", encoding="utf-8")
    os.utime(module, (1.5e9, 1.5e9))
    py_compile.compile(str(module))
    module.write_text("VALUE = 2\n", encoding="utf-8")
    os.utime(module, (1.5e9, 1.5e9))
    write(root, "import helper\n\nassert helper.VALUE == 2")
    assert dict(records.execute(["01_small"], 1)) == {"01_small": []}
