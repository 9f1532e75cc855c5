"""Where things live: one root, and every folder of the project seen from it."""

from __future__ import annotations

import os
from pathlib import Path

from mlsysim.errors import MlsysimError

PACKAGE = Path(__file__).resolve().parent


def root() -> Path:
    """The folder that holds `scenarios`, `chapters` and `results`.

    MLSYSIM_ROOT if it is set; else the nearest folder, from the working directory upwards, with a
    Snakefile and scenarios; else the checkout that this package lies in. Raises MlsysimError
    if there is none, or if the working directory is in one checkout and this package in another,
    because results must come from the code beside them.
    """
    named = os.environ.get("MLSYSIM_ROOT")
    if named:
        if not (Path(named) / "scenarios").is_dir():
            raise MlsysimError(f"MLSYSIM_ROOT is {named}, which has no folder scenarios/")
        return Path(named).resolve()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if _is_project(folder):
            if (folder / "mlsysim" / "__init__.py").is_file() and folder / "mlsysim" != PACKAGE:
                raise MlsysimError(
                    f"you are in {folder}, but mlsysim runs from {PACKAGE.parent}; use the .venv "
                    "of the checkout you are in (`make` sets it up), or set MLSYSIM_ROOT to mean it"
                )
            return folder
    if _is_project(PACKAGE.parent):
        return PACKAGE.parent
    raise MlsysimError(
        f"no project found from {here} upwards: a folder with a Snakefile and scenarios/; "
        "go to one, or set MLSYSIM_ROOT"
    )


def _is_project(folder: Path) -> bool:
    return (folder / "Snakefile").is_file() and (folder / "scenarios").is_dir()


def results() -> Path:
    """Where results live: generated, versioned files. All places for results follow from it."""
    return root() / "results"


def artifact(name: str) -> Path:
    """The JSON artifact of the scenario `name`."""
    return results() / "scenarios" / f"{name}.json"


def table(name: str) -> Path:
    """The CSV table beside the artifact of the scenario `name`, if it has one."""
    return results() / "scenarios" / f"{name}.csv"


def lock() -> Path:
    """The file that says which ingredients made each artifact."""
    return results() / "artifacts.lock"


def quotes() -> Path:
    """The record of every number that a chapter prints."""
    return results() / "quotes.json"


def claims() -> Path:
    """The record of every claim that a chapter makes, with its condition."""
    return results() / "claims.json"


def scenarios() -> Path:
    """One TOML file per named scenario."""
    return root() / "scenarios"


def chapters() -> Path:
    """One MyST notebook per chapter, with their bibliography and configuration."""
    return root() / "chapters"


def bibliography() -> Path:
    """The sources that values and chapters cite."""
    return chapters() / "references.bib"


def build() -> Path:
    """Generated files that are never versioned."""
    return root() / "build"


def requirements() -> Path:
    """The pinned versions of third-party libraries."""
    return root() / "requirements.lock"


def shown(path: Path) -> str:
    """`path` as messages print it: relative to the root where it lies inside."""
    for base in (root(), PACKAGE.parent):
        if path.is_relative_to(base):
            return path.relative_to(base).as_posix()
    return str(path)
