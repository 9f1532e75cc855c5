"""Small chapters and books for tests, and how to execute them and lay them out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mlsysim import paths
from mlsysim.book.pages.page_sources import Page
from mlsysim.book.source.front_matter import skeleton
from mlsysim.book.source.scanner import scan
from mlsysim.errors import InputError
from tests.conftest import REPOSITORY, copy_project

__all__ = [
    "CELL",
    "HEAD",
    "TABLE",
    "build",
    "built_once",
    "chapter",
    "command",
    "lay_out",
    "line_of",
    "refused",
    "write",
]

HEAD = skeleton({"step": "DenseLLMPretrainingStep"}) + "\n# Small\n\n"
CELL = """\
```{{code-cell}} ipython3
{code}
```

"""
TABLE = """\
import pandas as pd
from mlsysim import read
from mlsysim.book import save_table
step = read("DenseLLMReplica")
save_table("01_small/one", pd.DataFrame({"a": [step.quote("state_per_gpu as .1f")]}))"""


def write(root: Path, *parts: str, name: str = "01_small") -> str:
    """Write a chapter: a part that starts with a blank is prose, the others are cells."""
    body = "".join(p[1:] + "\n\n" if p.startswith(" ") else CELL.format(code=p) for p in parts)
    (root / "chapters" / f"{name}.md").write_text(HEAD + body, encoding="utf-8")
    return HEAD + body


def line_of(text: str, part: str) -> int:
    return text.partition(part)[0].count("\n") + 1


def chapter(
    root: Path, body: str, front: str = "scenarios: {step: DenseLLMPretrainingStep}"
) -> Page:
    text = f"---\nmlsysim:\n  {front}\n---\n\n{body}\n"
    (root / "chapters" / "01_x.md").write_text(text, encoding="utf-8")
    return Page("01_x")


def refused(text: str) -> str:
    """Why the quotes and claims of a page are refused, with its line."""
    with pytest.raises(InputError) as error:
        scan("01_x", text)
    return str(error.value)


def command(root: Path, *arguments: str, warned: bool = False) -> str:
    """Run a command of the project in a process of its own; returns its errors."""
    done = subprocess.run(
        [sys.executable, "-m", "mlsysim", *arguments],
        cwd=root,
        env={**os.environ, "MLSYSIM_ROOT": str(root), "PYTHONPATH": str(paths.PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == (warned or done.stderr == ""), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def lay_out(root: Path) -> Path:
    """A root with solved scenarios and the layout of the real book, and no pages yet."""
    shutil.copytree(REPOSITORY / "chapters" / "_static", root / "chapters" / "_static")
    shutil.copy(REPOSITORY / "chapters" / "conf.py", root / "chapters")
    (root / "chapters" / "index.md").write_text(
        "# Book\n\n```{toctree}\n:numbered:\n\n01_small\n```\n", encoding="utf-8"
    )
    assert command(root, "solve", "--all") == ""
    return root


def build(root: Path) -> str:
    """Execute the chapter and build the book; returns the errors of the latter."""
    assert command(root, "execute", "01_small") == ""
    return command(root, "book")


def built_once(folders: pytest.TempPathFactory, *parts: str) -> Path:
    """A book of this chapter, built in a folder of its own."""
    root = lay_out(copy_project(folders.mktemp("built") / "root"))
    write(root, *parts)
    assert build(root) == ""
    return root
