"""The documents say what the project does."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mlsysim.cli.main import parser

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "profiles/slurm/README.md")
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```console\n\$ (mlsysim .*)\n((?:.*\n)*?)```", README)


def commands() -> list[str]:
    actions = [a for a in parser()._actions if a.metavar == "COMMAND"]
    return list(actions[0].choices or ())


@pytest.mark.parametrize(("command", "shown"), BLOCKS)
def test_a_command_of_the_readme_prints_what_the_readme_shows(command: str, shown: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(shown)
    assert shown.strip()


def test_the_readme_fits_a_screen_and_shows_a_command() -> None:
    assert len(README.splitlines()) <= 60
    assert BLOCKS


def test_every_command_for_people_is_in_the_readme() -> None:
    said = set(re.findall(r"`(?:mlsysim )?(\w+)", README)) | {c.split()[1] for c, _ in BLOCKS}
    assert {"list", "show", "solve", "status", "verify"} <= said
    assert {"list", "show", "solve", "status", "verify"} <= set(commands())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_names_only_commands_files_and_targets_that_exist(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    for word in re.findall(r"`mlsysim (\w+)", text):
        assert word in commands()
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for word in re.findall(r"`make (\w+)`", text):
        assert word in targets
    for path in re.findall(r"`((?:mlsysim|scenarios|chapters|results|tests)/[\w./]*)`", text):
        assert (ROOT / path).exists() or "NAME" in path or "NN_" in path, path


def test_nothing_in_the_tree_names_a_machine_or_a_registry_host() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    named = re.compile(
        r"(/hom[e]/|/roo[t]/|/wor[k]/|/User[s]/|p[y]pi\.org|python[h]osted|registr[y]\.npmjs)"
    )
    for path in filter(None, listed):
        file = ROOT / path
        if file.is_file() and "_static/mathjax" not in path:
            assert not named.search(file.read_text("utf-8", errors="ignore")), path
