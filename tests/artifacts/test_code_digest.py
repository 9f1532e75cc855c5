"""The digest of the code: blind to what moves no result, sharp for what does."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from mlsysim import paths
from mlsysim.artifacts.code import closure, closure_of_kind, libraries, one_look
from mlsysim.engine import scenario_types
from mlsysim.errors import InputError

KINDS = [*scenario_types.HOMES]
TRAINING = Path("engine", "scenario_definitions", "training.py")
STEP = "ReferenceTrainingStepScenario"
# Their tables print the message of a layout that cannot be.
TELLING = {"FleetScalingScenario", "ShardedStateScenario", "TrainingStepSweepScenario"}
SOLVERS = sorted(paths.PACKAGE.joinpath("solvers").glob("*.py"))

# What an import of any module of the package imports.
THE_PACKAGE = {"mlsysim", "mlsysim.doors"}
# Solvers that only the published steps use.
OF_OTHERS = {"fitting", "statistics"}
# Solvers of one subject, with a kind that uses it.
OF_KINDS = {
    "checkpoints": "FleetReliabilityScenario",
    "schedule": "PipelineScheduleScenario",
    "search": "LayoutSearchScenario",
}

Digests = dict[tuple[str, str], str]


@pytest.fixture
def copy(root: Path, package: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package whose files this process digests in place of its own."""
    assert paths.root() == root
    assert untouched()
    monkeypatch.setattr(paths, "PACKAGE", package)
    return package


@cache
def untouched() -> Digests:
    """The digests of the package itself, which those of a copy equal until it is edited."""
    return digests()


def digests() -> Digests:
    """The digests as they are now, each module read once."""
    with one_look():
        return looked()


def looked() -> Digests:
    found = {
        (name, kind): each.digest for kind in KINDS for name, each in closure_of_kind(kind).items()
    }
    assert len(found) > 10
    return found


def moved() -> set[str]:
    return {name for name, _ in moved_of_kinds()}


def moved_of_kinds() -> set[tuple[str, str]]:
    before, now = untouched(), digests()
    return {key for key in {*before, *now} if before.get(key) != now.get(key)}


def moved_kinds() -> set[str]:
    return {kind for _, kind in moved_of_kinds()}


def rewrite(path: Path, edit: Callable[[str], str]) -> None:
    text = path.read_text("utf-8")
    assert edit(text) != text, path
    path.write_text(edit(text), "utf-8")


# What does not move it.


def test_comments_and_layout_of_all_modules_move_nothing(copy: Path) -> None:
    for path in copy.rglob("*.py"):
        rewrite(path, lambda text: "# a remark\n\n" + text.replace("\n\n\n", "\n" * 4) + "# end\n")
    assert moved() == set()


def test_another_way_to_spell_the_same_code_moves_nothing(copy: Path) -> None:
    for path in copy.rglob("*.py"):
        text = path.read_text("utf-8")
        if "# ASSUME " not in text:  # unparsing drops comments, and those are printed
            path.write_text(ast.unparse(ast.parse(text)), "utf-8")
    assert moved() == set()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("solvers/memory.py", "Memory of one accelerator, in bytes"),  # of a module
        ("solvers/memory.py", "Bytes per accelerator of one layer's activations"),  # of a function
        ("solvers/pipeline.py", "Seconds in which the slowest stage waits"),
        ("units/vocabulary.py", "The finite float that"),
    ],
)
def test_a_docstring_that_no_artifact_prints_moves_nothing(
    path: str, text: str, copy: Path
) -> None:
    rewrite(copy / path, lambda source: source.replace(text, "Something else"))
    assert moved() == set()


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("errors.py", "names most like", "names like"),
        ("files.py", "def unwritten(", "def unused() -> None: ...\n\n\ndef unwritten("),
        ("solvers/memory.py", "def state_bytes(", "_UNUSED = 3\n\n\ndef state_bytes("),
        ("solvers/memory.py", "__all__ = [", '__all__ = [\n    "_",'),
        ("solvers/step.py", "def step(x: Inputs) -> Step:", "def step(x: Any) -> Any:"),
        ("__init__.py", "_HOMES = {", '__version__ = "2"\n_HOMES = {\n    "show": "mlsysim.cli",'),
        ("declarations/documents.py", "files follow from one another", "files come one by one"),
    ],
)
def test_what_no_artifact_shows_moves_nothing(path: str, old: str, new: str, copy: Path) -> None:
    rewrite(copy / path, lambda text: text.replace(old, new, 1))
    assert moved() == set()


@pytest.mark.parametrize(
    ("path", "old", "new", "kinds"),
    [
        # A message counts where a table prints why a layout cannot be, and nowhere else.
        ("errors.py", 'return "did you mean "', 'return "perhaps "', TELLING),
        ("declarations/_kind.py", "expected a finite number", "expected a number", TELLING),
        ("solvers/layout_rules.py", "microbatch_count / pp_size: ", "microbatches: ", TELLING),
        # So does the text of a class, where it is the class of the scenario.
        (str(TRAINING), "Excludes: a measured step time,", "Excludes: a time,", {STEP}),
        ("solvers/search.py", '"no whole microbatch"', '"none whole"', {"LayoutMapScenario"}),
    ],
)
def test_what_some_artifacts_show_moves_these_alone(
    path: str, old: str, new: str, kinds: set[str], copy: Path
) -> None:
    rewrite(copy / path, lambda text: text.replace(old, new, 1))
    assert moved_kinds() == kinds


# What moves it.


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("solvers/memory.py", "inner = 4.0 * hidden", "inner = 9.0 * hidden"),
        ("solvers/memory.py", "inner = 4.0 * hidden", "inner = 4.0 - hidden"),
        ("solvers/memory.py", "inner = 4.0 * hidden", "inner = 4 * hidden"),
        (
            "solvers/memory.py",
            "hidden * whole + inner / tensor",
            "hidden * (whole + inner) / tensor",
        ),
        ("solvers/memory.py", "interleaving > 1", "interleaving >= 1"),
        ("solvers/memory.py", "return smaller(kept", "return max(kept"),
        (
            "solvers/memory.py",
            "# ASSUME precision: weights are kept",
            "# ASSUME precision: weights are never kept",
        ),
        ("solvers/memory.py", "# ASSUME precision: weights are kept", "# weights are kept"),
        ("solvers/result.py", "Equation: twice forward;", "Equation: two times forward;"),
        (str(TRAINING), "Tokens of one optimizer step after", "Tokens of a step after"),
        (str(TRAINING), "Excludes: a measured step time,", "Excludes: a measured time,"),
        (str(TRAINING), '@output("GB")', '@output("GiB")'),
        ("units/vocabulary.txt", "minute = 60", "minute = 61"),
        ("units/vocabulary.txt", "hour = 3600 * second = h", ""),
        (
            "units/vocabulary.py",
            "return float(value.to_root_units()",
            "return int(value.to_root_units()",
        ),
        ("registry/types.py", "norms = 2 * h", "norms = 3 * h"),
        ("canonical.py", ":.12g}", ":.11g}"),
    ],
)
def test_what_can_move_a_digit_or_a_printed_text_moves_the_digest_of_its_module(
    path: str, old: str, new: str, copy: Path
) -> None:
    rewrite(copy / path, lambda text: text.replace(old, new, 1))
    name = "mlsysim." + path.removesuffix(".py").removesuffix(".txt").replace("/", ".")
    assert moved() == {name}


def test_a_comment_in_the_vocabulary_of_units_moves_nothing(copy: Path) -> None:
    rewrite(
        copy / "units/vocabulary.txt", lambda text: "# a remark\n" + text.replace(" = ", "  =  ")
    )
    assert moved() == set()


def test_an_assumption_counts_with_all_its_lines(copy: Path) -> None:
    rewrite(
        copy / "solvers" / "layer.py",
        lambda text: re.sub(r"(# ASSUME sequence parallelism: .*\n\s+# )", r"\1once more ", text),
    )
    assert moved() == {"mlsysim.solvers.layer"}


def test_an_assumption_beside_code_counts_like_one_above_it(copy: Path) -> None:
    line = "return choose(causal_half, 2.0, 4.0) * sequences * seq_len * seq_len * hidden"
    rewrite(
        copy / "solvers" / "flops.py",
        lambda text: text.replace(line, f"{line}  # ASSUME attention: the other half is skipped"),
    )
    assert moved() == {"mlsysim.solvers.flops"}
    stated = closure("mlsysim.solvers.flops")["mlsysim.solvers.flops"].assumptions
    assert stated == ("attention: the other half is skipped",)


def test_an_assumption_without_a_topic_is_refused(copy: Path) -> None:
    rewrite(
        copy / "solvers" / "layer.py", lambda text: text.replace("ASSUME precision: ", "ASSUME ")
    )
    with pytest.raises(InputError, match=r"solvers/layer.py: '# ASSUME activations .*' names no"):
        closure_of_kind(STEP)


# What counts of a module, shown on one that a formula takes `used` from.


def moves(copy: Path, source: str, old: str, new: str) -> bool:
    """Whether an edit of a module moves the digests of a kind that takes `used` from it."""
    other = copy / "other.py"
    other.write_text(source, "utf-8")
    rewrite(
        copy / "solvers" / "memory.py",
        lambda text: text.replace(
            "__all__ =", "from mlsysim.other import used\n\n__all__ =", 1
        ).replace("inner = 4.0 * hidden", "inner = 4.0 * hidden * used()"),
    )
    before = closure_of_kind(STEP)
    rewrite(other, lambda text: text.replace(old, new))
    return closure_of_kind(STEP) != before


NOTES = """
A = []
def note(f):
    A.append(f)
    return f
class Noted:
    def __init_subclass__(cls): A.append(cls)
"""
TELLS = """
from mlsysim.errors import InputError, MlsysimError, UnitError
def refuse(x):
    if x: raise InputError(f"no {x}")
def again(x):
    try: refuse(x)
    except MlsysimError as error: raise UnitError(f"wrong: {error}") from None
"""


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        # Names, however they are given.
        ("def used(): return helper()\ndef helper(): return 1", "return 1", "return 2"),
        ("A, B = 1, 2\ndef used(): return B", "2", "3"),
        ("def used(value=A): return value\nA = 1", "A = 1", "A = 2"),
        (
            "from math import floor as f, ceil as c\ndef used(): return f(c(1.5))",
            "f, ceil",
            "c, ceil",
        ),
        ("import mlsysim.errors as e\ndef used(): return e.division(1, 2)", "errors", "units"),
        ("class Base:\n  def f(self): return 1\nclass used(Base): ...", "return 1", "return 2"),
        ("class A:\n  @staticmethod\n  def f(): return 1\ndef used(): return A.f()", "n 1", "n 2"),
        (
            "class A:\n  @staticmethod\n  def f(): return 1\ndef used(): return getattr(A, 'f')()",
            *("return 1", "return 2"),
        ),
        # What happens when the module is imported.
        ("A = {}\nA['a'] = 1\ndef used(): return A", "= 1", "= 2"),
        ("A = []\nfor each in (1, 2): A.append(each)\ndef used(): return A", "2)", "3)"),
        (f"{NOTES}@note\ndef one(): return 1\ndef used(): return A[0]()", "return 1", "return 2"),
        (f"{NOTES}class One(Noted):\n  x = 1\ndef used(): return A[0].x", "x = 1", "x = 2"),
        ("import mlsysim.errors\nmlsysim.errors.X = 1\ndef used(): return 1", "X = 1", "X = 2"),
        # Fields, whose types are read.
        ("class used:\n  x: int = 1", "x: int", "x: float"),
        # Conditions of errors, and messages that something is done with.
        (f"{TELLS}def used(): return refuse(0)", "if x:", "if not x:"),
        (
            f"{TELLS}def used():\n  try: again(1)\n  except UnitError as e: return str(e)",
            *("wrong: ", "false: "),
        ),
        (
            f"{TELLS}def used():\n  try: again(1)\n  except UnitError as e: return str(e)",
            *('f"no {x}"', 'f"none {x}"'),
        ),
        (
            f"{TELLS}def used():\n  try: again(1)\n  except ValueError as e: return e.args",
            *("wrong: ", "false: "),
        ),
        (f"{TELLS}def used(): return str(InputError('a'))", "'a'", "'b'"),
    ],
)
def test_what_a_formula_uses_counts(source: str, old: str, new: str, copy: Path) -> None:
    assert moves(copy, source, old, new)


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        ("def used(): return 1\ndef helper(): return 1", "def helper(): return 1", ""),
        ("def used() -> int: return 1", "int", "float"),
        ("def used(): return 1\nimport json", "import json", "import csv"),
        (
            "class A:\n  @staticmethod\n  def beyond(): return 1\ndef used(): return A()",
            "n 1",
            "n 2",
        ),
        (f"{TELLS}def used(): return again(0)", "wrong: ", "false: "),
        (f"{TELLS}def used():\n  try: again(1)\n  except ValueError: return 1", "wrong", "false"),
        (
            f"{TELLS}def used():\n  try: again(1)\n  except TypeError as e: return str(e)",
            *("wrong", "false"),
        ),
    ],
)
def test_what_a_formula_does_not_use_does_not_count(
    source: str, old: str, new: str, copy: Path
) -> None:
    assert not moves(copy, source, old, new)


# Which modules it covers.


def test_every_module_of_the_solver_counts_for_the_kind_that_solves() -> None:
    found = closure_of_kind("ReferenceTrainingStepScenario")
    of_step = {path.stem for path in SOLVERS} - {"__init__"} - OF_OTHERS - {*OF_KINDS}
    assert {f"mlsysim.solvers.{name}" for name in of_step} <= {*found}
    # What only the fit of published steps or another kind needs makes no step stale.
    assert not {f"mlsysim.solvers.{name}" for name in OF_OTHERS | {*OF_KINDS}} & {*found}
    for name, kind in OF_KINDS.items():
        assert f"mlsysim.solvers.{name}" in closure_of_kind(kind)
    for_fit = closure_of_kind("PublishedStepFitScenario")
    assert {f"mlsysim.solvers.{name}" for name in of_step | OF_OTHERS} <= {*for_fit}
    # A run needs what its steps and its checkpoints need.
    for_run = closure_of_kind("TrainingRunScenario")
    assert {f"mlsysim.solvers.{name}" for name in of_step | {"checkpoints"}} <= {*for_run}
    assert "mlsysim.units" in found
    assert "mlsysim.solvers" in found  # packages run when a module inside is imported
    assert not [name for name in found if name.startswith("mlsysim.book")]


def test_what_turns_a_document_into_a_scenario_counts_too() -> None:
    found = closure_of_kind("ReferenceTrainingStepScenario")
    assert {
        "mlsysim.declarations.documents",
        "mlsysim.declarations.fields",
        "mlsysim.registry.loading",
    } <= {*found}


def test_modules_that_only_judge_show_or_build_do_not_count() -> None:
    for kind in KINDS:
        found = set(closure_of_kind(kind))
        for name in ("cli", "showing", "building", "artifacts.staleness", "artifacts.lock"):
            assert f"mlsysim.{name}" not in found


def test_imports_for_the_type_checker_are_not_followed(copy: Path) -> None:
    for name in ("seen", "unseen"):
        (copy / f"{name}.py").write_text("X = 1\n", "utf-8")
    (copy / "start.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from mlsysim import unseen\n"
        "else:\n    from mlsysim import seen\n",
        "utf-8",
    )
    assert set(closure("mlsysim.start")) == {*THE_PACKAGE, "mlsysim.start", "mlsysim.seen"}


def test_imports_inside_functions_and_relative_ones_are_followed(copy: Path) -> None:
    inner = copy / "inner"
    inner.mkdir()
    (inner / "__init__.py").write_text("from . import near\n", "utf-8")
    (inner / "near.py").write_text("def f():\n    from ..far import g\n    return g\n", "utf-8")
    (inner / "other.py").write_text("", "utf-8")
    (copy / "far.py").write_text(
        "class A:\n    def f(self):\n        try:\n            import mlsysim.inner.other\n"
        "        finally:\n            pass\n",
        "utf-8",
    )
    found = closure("mlsysim.inner")
    assert set(found) == {
        *THE_PACKAGE,
        "mlsysim.far",
        "mlsysim.inner",
        "mlsysim.inner.near",
        "mlsysim.inner.other",
    }


def test_one_look_sees_what_was_there_and_the_next_one_what_is_there(copy: Path) -> None:
    step = copy / "solvers" / "step.py"
    with one_look():
        before = looked()
        rewrite(step, lambda text: text.replace("def step(", "def step(*none, ", 1))
        assert looked() == before
    assert moved() == {"mlsysim.solvers.step"}
    with one_look():
        assert looked() == digests() != before


def test_a_new_import_brings_its_module_into_the_closure(copy: Path) -> None:
    (copy / "solvers" / "optimizer.py").write_text("X = 1\n", "utf-8")
    rewrite(
        copy / "solvers" / "memory.py",
        lambda text: text.replace(
            "__all__ =", "from mlsysim.solvers.optimizer import X as X\n\n__all__ =", 1
        ),
    )
    assert moved() == set()  # nothing uses it
    rewrite(
        copy / "solvers" / "memory.py",
        lambda text: text.replace("inner = 4.0 * hidden", "inner = 4.0 * hidden * X"),
    )
    assert moved() == {"mlsysim.solvers.memory", "mlsysim.solvers.optimizer"}


def test_the_pinned_versions_of_libraries_that_the_code_imports_count(root: Path) -> None:
    modules = closure_of_kind("ReferenceTrainingStepScenario")
    before = libraries(modules)
    assert "pint" in before
    assert "sphinx" not in before
    pins = root / "requirements.lock"
    rewrite(pins, lambda text: text.replace("sphinx==", "sphinx==9"))
    assert libraries(modules) == before
    rewrite(pins, lambda text: text.replace("pint==0", "pint==1"))
    assert libraries(modules) != before
