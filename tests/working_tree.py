"""The working tree as git knows it, for copies that tests and benchmarks write in."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def copy_to(folder: Path, left_out: Callable[[str], bool] = lambda _name: False) -> None:
    """Copy the files of the working tree that git does not ignore, but for those left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and not left_out(name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
