"""Another Python and another seed of hashes make the same bytes from the same ingredients."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mlsysim import paths
from tests.conftest import Run

# Pint and what it imports, all of it pure Python.
DEPENDENCIES = ("pint", "flexparser", "flexcache", "platformdirs", "typing_extensions")


def interpreter(version: str) -> str | None:
    """A Python of that version, on the path or where pyenv keeps them."""
    found = [shutil.which(f"python{version}")]
    kept = Path.home() / ".pyenv" / "versions"
    found += [str(path) for path in sorted(kept.glob(f"{version}.*/bin/python"))]
    say = "import sys; print('%d.%d' % sys.version_info[:2])"
    for path in filter(None, found):
        said = subprocess.run(
            [path, "-c", say], capture_output=True, text=True, check=False, timeout=30
        )
        if said.stdout.strip() == version:
            return path
    return None


def pure_dependencies(folder: Path) -> Path:
    """Links to what mlsysim imports, so that another interpreter finds it and nothing else."""
    folder.mkdir()
    for name in DEPENDENCIES:
        spec = importlib.util.find_spec(name)
        assert spec
        assert spec.origin
        found = Path(spec.origin)
        found = found.parent if found.name == "__init__.py" else found
        (folder / found.name).symlink_to(found)
    installed = next(folder.glob("pint")).resolve().parent  # pint asks for its version there
    for about in installed.glob("*.dist-info"):
        if about.name.partition("-")[0].lower() in DEPENDENCIES:
            (folder / about.name).symlink_to(about)
    return folder


def made(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_another_python_makes_the_same_bytes_from_the_same_ingredients(
    version: str, solved: Path, tmp_path: Path
) -> None:
    python = interpreter(version)
    if not python:
        pytest.skip(f"no Python {version} found")
    before = made(solved / "results")
    shutil.rmtree(solved / "results")
    found = subprocess.run(
        [python, "-m", "mlsysim", "solve", "--all"],
        cwd=solved,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))},
            "MLSYSIM_ROOT": str(solved),
            "PYTHONPATH": os.pathsep.join(
                (str(paths.PACKAGE.parent), str(pure_dependencies(tmp_path / "dependencies")))
            ),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert made(solved / "results") == before


@pytest.mark.parametrize("seed", ["0", "1"])
def test_another_seed_of_hashes_makes_the_same_bytes(seed: str, solved: Path, run: Run) -> None:
    before = made(solved / "results")
    shutil.rmtree(solved / "results")
    found = run(solved, "solve", "--all", PYTHONHASHSEED=seed)
    assert (found.returncode, found.stderr) == (0, "")
    assert made(solved / "results") == before
