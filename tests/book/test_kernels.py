"""Kernels of chapters: forked, apart from each other, gone with the process that asked for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mlsysim import paths
from mlsysim.book.execution.chapter_execution import execute, execute_all, executed
from mlsysim.building import records
from mlsysim.errors import MlsysimError
from tests.books import write

FOREVER = """\
import pathlib
import time

while True:
    pathlib.Path("beat").write_text(str(time.monotonic()))
    time.sleep(0.01)"""


def shown(chapter: str) -> list[str]:
    """The text that the cells of an executed chapter show."""
    notebook = json.loads(executed(chapter).read_text(encoding="utf-8"))
    outputs = [output for cell in notebook["cells"] for output in cell["outputs"]]
    return ["".join(output.get("data", {}).get("text/plain", "")) for output in outputs]


@pytest.mark.usefixtures("solved")
def test_no_kernel_writes_after_the_command_was_killed(root: Path) -> None:
    write(root, FOREVER)
    beat = root / "chapters/beat"
    process = subprocess.Popen(
        [sys.executable, "-m", "mlsysim", "execute", "01_small"],
        cwd=root,
        env=os.environ | {"MLSYSIM_ROOT": str(root), "PYTHONPATH": str(paths.PACKAGE.parent)},
    )
    try:
        deadline = time.monotonic() + 120
        while not beat.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    killed = time.monotonic()
    time.sleep(3)
    # The clock of the kernel is that of this machine. A busy one may need a moment to end it; the
    # kernel that looks for its parent once a second would go on for half of that on average.
    assert float(beat.read_text() or killed) < killed + 0.5


@pytest.mark.usefixtures("solved")
def test_a_chapter_that_fails_does_not_stop_the_others(root: Path) -> None:
    write(root, "1 / 0")
    write(root, "1 + 1", name="02_good")
    found = dict(records.execute(["01_small", "02_good", "02_good"], 2))
    assert str(found["01_small"]).endswith("ZeroDivisionError: division by zero")
    assert found["02_good"] == []
    assert records.chapter_reasons("02_good") == []
    assert records.chapter_reasons("01_small") != []
    assert dict(records.execute(["02_good"], 1)) == {"02_good": None}


@pytest.mark.usefixtures("solved")
def test_chapters_see_nothing_of_each_other(root: Path) -> None:
    for number in range(4):
        write(
            root,
            "import os\nimport pandas as pd\n'seen' in vars(pd), os.path.basename(os.getcwd())",
            "pd.seen = True\nseen = True",
            "[name for name in dir() if not name.startswith('_')]",
            name=f"0{number}_small",
        )
    made = dict(execute_all([f"0{number}_small" for number in range(4)], 2))
    assert [ran.made for ran in made.values()] == [[], [], [], []]
    texts = [shown(f"0{number}_small") for number in range(4)]
    assert {text[0] for text in texts} == {"(False, 'chapters')"}
    assert all("'seen'" in text[1] and "'pd'" in text[1] for text in texts)
    assert len({text[1] for text in texts}) == 1


@pytest.mark.usefixtures("solved")
def test_sets_and_imports_are_the_same_each_time(root: Path) -> None:
    write(root, "import antigravity_none", name="01_small")
    with pytest.raises(MlsysimError, match="ModuleNotFoundError"):
        execute("01_small")
    write(root, "list({f'x{n}' for n in range(50)})")
    execute("01_small")
    first = executed("01_small").read_bytes()
    execute("01_small")
    assert executed("01_small").read_bytes() == first


@pytest.mark.usefixtures("solved")
def test_a_plain_figure_is_shown_and_a_local_module_is_found(root: Path) -> None:
    (root / "chapters/local_data.py").write_text("VALUE = 42\n", encoding="utf-8")
    write(
        root,
        "import matplotlib.pyplot as plt\nimport local_data\n\nplt.plot([0, 1])\nplt.show()",
        "local_data.VALUE",
    )
    execute("01_small")
    content = executed("01_small").read_text(encoding="utf-8")
    assert "image/png" in content
    assert shown("01_small")[-1] == "42"


@pytest.mark.usefixtures("solved")
def test_what_a_cell_left_running_ends_with_its_kernel(root: Path) -> None:
    write(root, 'import subprocess\nsubprocess.Popen(["sleep", "60"]).pid')
    execute("01_small")
    [left] = shown("01_small")
    deadline = time.monotonic() + 10
    while (stat := Path(f"/proc/{left}/stat")).exists() and " Z " not in stat.read_text():
        assert time.monotonic() < deadline, "the process still runs"
        time.sleep(0.05)
