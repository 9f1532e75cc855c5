"""Whatever moves a digit or a text of an artifact moves the digest of its code: tried by mutation.

A sample of all numbers, operators, comparisons and texts in functions is changed, one at a time.
A kind of scenario whose digest stays by each of several changes must make the same artifact with
all of these changes at once.
"""

from __future__ import annotations

import ast
import copy
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mlsysim import paths
from mlsysim.artifacts.code import closure_of_kind, one_look
from tests.conftest import REPOSITORY

# A kind with a scenario that is quickly solved. Of each other kind the modules are much the same.
SCENARIOS = {
    "CollectiveTimesScenario": "AllReduceTwoNodes",
    "FleetScalingScenario": "WeakScaling",
    "PublishedTrainingRunScenario": "Llama31PublishedRun",
    "ReferenceTrainingStepScenario": "DenseLLMPretrainingStepH200",
    "SelfContainedReplicaScenario": "DenseLLMReplicaA100",
    "ShardedStateScenario": "ReferenceShardedState",
    "TrainingRunScenario": "DenseLLMTrainingRunA100",
}
# What runs once the inputs are known, which have a digest of their own.
MAKING = (
    *("solvers/*.py", "engine/**/*.py", "units/*.py", "registry/*.py", "declarations/*.py"),
    *("artifacts/making.py", "artifacts/printing.py", "artifacts/numbers.py"),
    *("canonical.py", "scalars.py", "errors.py"),
)
# What reads documents, before that.
BESIDE = ("documents.py", "follows.py", "collections.py", "scenario_types.py")

OTHER: dict[type[ast.AST], Any] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.Mod: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Mutation:
    """Bytes of a file of the package, and what stands there instead."""

    path: str
    first: int
    last: int
    instead: bytes


def mutations(package: Path) -> list[Mutation]:
    """Every change that is tried, in the order of files."""
    found = [path for pattern in MAKING for path in sorted(package.glob(pattern))]
    return [
        mutation
        for path in found
        if path.name not in BESIDE
        for mutation in of_file(path, path.relative_to(package).as_posix())
    ]


def of_file(path: Path, shown: str) -> Iterator[Mutation]:
    source = path.read_bytes()
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    for node in in_functions(ast.parse(source)):
        instead = other(node)
        if instead is not None and isinstance(node, ast.expr):
            first = starts[node.lineno - 1] + node.col_offset
            last = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            if b"#" not in source[first:last]:
                yield Mutation(shown, first, last, instead.encode())


def in_functions(tree: ast.AST, *, inside: bool = False) -> Iterator[ast.AST]:
    """The nodes that run when a function does, each text with values in it whole."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield from (
                each
                for part in node.body
                for each in in_functions(ast.Module([part], []), inside=True)
            )
            continue
        if inside:
            yield node
        if not isinstance(node, ast.JoinedStr):
            yield from in_functions(node, inside=inside)


def other(node: ast.AST) -> str | None:
    """Another text for a node; None for one that stays."""
    changed: Any = copy.deepcopy(node)
    if isinstance(changed, ast.Constant):
        value = changed.value
        if isinstance(value, bool):
            return repr(not value)
        if isinstance(value, (int, float)):
            return repr(value + 1) if isinstance(value, int) else repr(value * 1.5 + 0.25)
        return repr(value + "z") if isinstance(value, str) and value else None
    if isinstance(changed, ast.JoinedStr):
        changed.values.insert(0, ast.Constant("zz"))
    elif isinstance(changed, (ast.BinOp, ast.BoolOp)) and type(changed.op) in OTHER:
        changed.op = OTHER[type(changed.op)]()
    elif isinstance(changed, ast.Compare):
        changed.ops[0] = OTHER[type(changed.ops[0])]()
    elif isinstance(changed, ast.IfExp):
        changed.body, changed.orelse = changed.orelse, changed.body
    else:
        return None
    return f"({ast.unparse(changed)})"


def apply(package: Path, chosen: list[Mutation]) -> dict[Path, bytes]:
    """Write changes, the last of a file first and none within another; the files as they were."""
    before: dict[Path, bytes] = {}
    begun: dict[Path, int] = {}
    for each in sorted(chosen, key=lambda each: (each.path, each.first, -each.last), reverse=True):
        path = package / each.path
        text = path.read_bytes()
        before.setdefault(path, text)
        if each.last <= begun.get(path, len(text)):
            path.write_bytes(text[: each.first] + each.instead + text[each.last :])
            begun[path] = each.first
    return before


def restore(before: dict[Path, bytes]) -> None:
    for path, text in before.items():
        path.write_bytes(text)


def digests(kinds: list[str]) -> dict[str, list[tuple[str, str]]]:
    with one_look():
        return {
            kind: [(name, each.digest) for name, each in closure_of_kind(kind).items()]
            for kind in kinds
        }


def stays(package: Path, chosen: list[Mutation], kinds: list[str]) -> dict[str, list[Mutation]]:
    """The changes, tried one at a time, by which the digest of a kind stays."""
    known = digests(kinds)
    found: dict[str, list[Mutation]] = {kind: [] for kind in kinds}
    for mutation in chosen:
        before = apply(package, [mutation])
        now = digests(kinds)
        restore(before)
        for kind in kinds:
            if now[kind] == known[kind]:
                found[kind].append(mutation)
    return found


SOLVE = """
import sys
from mlsysim.artifacts.making import artifact_texts
from mlsysim.declarations.documents import document
from mlsysim.engine.scenarios import scenario
for name in sys.argv[1:]:
    told = document(f"Scenarios.{name}")
    print(*artifact_texts(scenario(told), told))
"""


def made(package: Path, *names: str) -> str:
    """Artifacts as a copy of the package makes them, or how it fails."""
    found = subprocess.run(
        [sys.executable, "-c", SOLVE, *names],
        cwd=package.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return found.stdout + found.stderr


@pytest.fixture
def copied(package: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package that this process digests, and others run, in place of its own."""
    monkeypatch.setenv("MLSYSIM_ROOT", str(REPOSITORY))
    monkeypatch.setattr(paths, "PACKAGE", package)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return package


def test_no_change_by_which_the_digest_stays_moves_an_artifact(copied: Path) -> None:
    everything = mutations(copied)
    assert len(everything) > 2_000
    chosen = random.Random(1).sample(everything, 40)
    for kind, harmless in stays(copied, chosen, [*SCENARIOS]).items():
        assert 0 < len(harmless) < 40, kind
        before = made(copied, SCENARIOS[kind])
        assert f'"kind": "{kind}"' in before
        files = apply(copied, harmless)
        assert made(copied, SCENARIOS[kind]) == before, (kind, harmless)
        restore(files)


def test_changes_by_which_the_digest_moves_can_move_an_artifact(copied: Path) -> None:
    # That the test above could fail.
    kind, name = "ReferenceTrainingStepScenario", "DenseLLMPretrainingStepH200"
    of_memory = [each for each in mutations(copied) if each.path == "solvers/memory.py"]
    harmless = stays(copied, of_memory[:10], [kind])[kind]
    assert len(harmless) < 10
    before = made(copied, name)
    apply(copied, of_memory[:10])
    assert made(copied, name) != before
