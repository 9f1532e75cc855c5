"""Edits that must not escape: code changed while it runs, caches of code, other libraries."""

from __future__ import annotations

import json
import os
import py_compile
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mlsysim import paths
from mlsysim.artifacts.ingredients import ingredients
from mlsysim.artifacts.lock import Certificate, certify
from mlsysim.building import records, status
from mlsysim.building.solving import solve
from mlsysim.canonical import digest
from mlsysim.declarations.documents import document
from mlsysim.errors import InputError, MlsysimError
from mlsysim.runtime import environment
from tests.conftest import Run

REPLICA = "DenseLLMReplica"
# At the top of a module of the copy: what a person does to another one while this is imported.
EDIT = """\
from pathlib import Path
file = Path(__file__).parents[2] / "units/vocabulary.py"
if "EDITED" not in file.read_text():
    file.write_text(file.read_text() + "EDITED = 1\\n")
"""
TO_AND_FRO = """\
from pathlib import Path
file = Path(__file__).parents[2] / "solvers/memory.py"
held = file.read_text()
file.write_text(held.replace("inner = 4.0 * hidden", "inner = 9.0 * hidden"))
import mlsysim.solvers.memory
file.write_text(held)
"""


def begin(module: Path, code: str) -> None:
    """Run this code before the imports of a module."""
    text, first = module.read_text(encoding="utf-8"), "from __future__ import annotations\n"
    assert first in text
    module.write_text(text.replace(first, f"{first}\n{code}", 1), encoding="utf-8")


@pytest.mark.parametrize(
    ("code", "named"),
    [(EDIT, "mlsysim/units/vocabulary.py"), (TO_AND_FRO, "mlsysim/solvers/memory.py")],
)
@pytest.mark.parametrize("command", [("solve", REPLICA), ("verify",)])
def test_code_that_was_edited_while_it_ran_certifies_nothing_and_is_named(
    root: Path, package: Path, run: Run, code: str, named: str, command: tuple[str, ...]
) -> None:
    before = (package / "units/vocabulary.py").read_text(encoding="utf-8")
    begin(package / "engine/scenario_definitions/training.py", code)
    told = run(root, *command, package=package)
    assert told.returncode == 1
    assert f"mlsysim: {named}: edited while this ran" in told.stderr
    assert not paths.lock().exists()
    assert not paths.artifact(REPLICA).exists()
    if code == EDIT:
        assert before != (package / "units/vocabulary.py").read_text(encoding="utf-8")
        assert run(root, "solve", REPLICA, package=package).returncode == 0


def test_a_comment_that_is_written_meanwhile_refuses_nothing(
    root: Path, package: Path, run: Run
) -> None:
    comment = EDIT.replace("EDITED = 1", "# EDITED")
    begin(package / "engine/scenario_definitions/training.py", comment)
    assert run(root, "solve", REPLICA, package=package).returncode == 0
    assert paths.artifact(REPLICA).exists()


def test_importing_the_package_leaves_the_settings_of_python_alone() -> None:
    code = "import sys; before = sys.dont_write_bytecode, [*sys.meta_path]; import mlsysim; "
    code += "mlsysim.Scenarios, mlsysim.read; "
    code += "sys.exit((sys.dont_write_bytecode, sys.meta_path) != before)"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=paths.root())


def test_a_cache_that_python_would_trust_by_its_time_stamp_is_not_what_solves(
    root: Path, package: Path, run: Run
) -> None:
    assert run(root, "solve", REPLICA, package=package).returncode == 0
    then = json.loads(paths.artifact(REPLICA).read_text(encoding="utf-8"))
    module = package / "declarations/outputs.py"
    edited = package / "engine/scenario_definitions/training.py"
    for path in (module, edited, package / "__init__.py"):
        os.utime(path, (1.5e9, 1.5e9))
        mode = py_compile.PycInvalidationMode.TIMESTAMP
        py_compile.compile(str(path), invalidation_mode=mode)
    text = edited.read_text(encoding="utf-8")
    word = re.search(r"Excludes: (\w+)", text)
    assert word
    other = word[1][::-1]
    edited.write_text(text.replace(f"Excludes: {word[1]}", f"Excludes: {other}"), encoding="utf-8")
    os.utime(edited, (1.5e9, 1.5e9))
    assert run(root, "solve", REPLICA, package=package).returncode == 0
    now = json.loads(paths.artifact(REPLICA).read_text(encoding="utf-8"))
    assert then["excludes"] != now["excludes"]


@pytest.fixture
def other_pint(solved: Path) -> str:
    """A root whose requirements.lock pins another version of pint than is installed."""
    lock = solved / "requirements.lock"
    text = lock.read_text(encoding="utf-8")
    found = re.search(r"^pint==(\S+)", text, re.MULTILINE)
    assert found
    lock.write_text(text.replace(found[0], "pint==0.1"), encoding="utf-8")
    return f"pint {found[1]} is installed, requirements.lock pins 0.1"


def test_another_library_than_is_pinned_is_told_and_certifies_nothing(
    solved: Path, other_pint: str
) -> None:
    assert environment.differences() == [other_pint]
    assert environment.differences(["numpy"]) == []
    assert status.status()[0] == {"what": status.ENVIRONMENT, "reasons": [other_pint]}
    before = paths.lock().read_bytes()
    with pytest.raises(MlsysimError, match="run make") as error:
        solve([REPLICA])
    assert str(error.value).startswith(other_pint)
    assert paths.lock().read_bytes() == before
    (solved / "chapters/01_x.md").write_text("# X\n", encoding="utf-8")
    with pytest.raises(MlsysimError, match="run make"):
        list(records.execute(["01_x"], 1))


def test_lines_of_the_lock_for_other_machines_are_not_asked_for(root: Path) -> None:
    (root / "requirements.lock").write_text(
        "pint==0.1 ; sys_platform == 'nowhere'\nno-such-thing==1 ; python_version < '3'\n"
        "no-such-thing==2\n",
        encoding="utf-8",
    )
    assert environment.differences() == ["no-such-thing is not installed, requirements.lock pins 2"]


def test_a_line_of_the_lock_that_pins_nothing_is_named(root: Path) -> None:
    (root / "requirements.lock").write_text("# Pins.\npint==0.1  # units\nnumpy>=2\n", "utf-8")
    with pytest.raises(InputError) as error:
        environment.differences()
    assert str(error.value) == "requirements.lock:3: expected NAME==VERSION, found 'numpy>=2'"


def test_verify_advises_what_then_works(solved: Path, run: Run) -> None:
    # The lock certifies it, as a defect or a forged line could: a build would make nothing.
    path = paths.artifact(REPLICA)
    old = path.read_bytes()
    path.write_bytes(old.replace(b'"title": "', b'"title": "Another '))
    assert old != path.read_bytes()
    made = ingredients(document(f"Scenarios.{REPLICA}"))
    certify([Certificate("scenario", REPLICA, made, digest(path.read_bytes()))])
    told = run(solved, "verify")
    advice = re.search(r"make them again with: mlsysim (.*)", told.stderr)
    assert advice
    assert advice[1] == f"solve {REPLICA}"
    assert run(solved, *advice[1].split()).returncode == 0
    assert path.read_bytes() == old
    assert run(solved, "verify").returncode == 0
