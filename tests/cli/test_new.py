"""`mlsysim new`: files that build as they are, and names that are refused."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import jupytext
import pytest

from mlsysim import Hardware
from mlsysim.book.pages.page_sources import Page
from mlsysim.book.source import cells
from mlsysim.building.solving import solve
from mlsysim.cli import new
from mlsysim.cli.main import main
from mlsysim.declarations.documents import document
from mlsysim.engine.scenario_types import KINDS
from mlsysim.errors import InputError, MlsysimError, UnknownName
from tests.conftest import REPOSITORY

REPLICA = "SelfContainedReplicaScenario"
INDEX = """\
# The book

```{toctree}
:numbered:

01_first
05_fifth
```

```{toctree}
bibliography
```
"""


@pytest.fixture
def book(root: Path) -> Path:
    """A root with two chapters in its table of contents."""
    (root / "chapters/index.md").write_text(INDEX, encoding="utf-8")
    for name in ("01_first", "05_fifth"):
        (root / f"chapters/{name}.md").write_text("# A chapter\n", encoding="utf-8")
    return root


def test_a_scenario_of_a_kind_gives_every_field_with_unit_range_and_a_source_to_fill_in(
    root: Path,
) -> None:
    text = new.new_scenario("WideReplica", kind=REPLICA).read_text(encoding="utf-8")
    content = tomllib.loads(text)
    fields = [field.name for field in dataclasses.fields(KINDS[REPLICA])]
    assert list(content) == ["kind", "title", *fields]
    assert content["title"] == "TODO: wide replica, in a line"
    assert all(content[name]["source"].startswith("assumption: TODO") for name in fields)
    above = text.partition("[bytes_per_param]")[0].splitlines()[-1]
    assert above.startswith("# training state kept for each parameter; ")
    assert above.endswith('such as "1 B", more than 0 B')
    assert not solve(["WideReplica"])[0].error
    assert (root / "results/scenarios/WideReplica.json").is_file()


@pytest.mark.parametrize(
    ("kind", "field", "choices"),
    [
        ("ReferenceTrainingStepScenario", "precision", "bf16, fp16, fp8"),
        (REPLICA, "activation_recomputation", "none, selective, full"),
        (REPLICA, "gradient_precision", "bf16, fp16, fp32"),
    ],
)
def test_the_words_that_a_field_takes_are_listed_above_it(
    root: Path, kind: str, field: str, choices: str
) -> None:
    text = new.new_scenario("Some", kind=kind).read_text(encoding="utf-8")
    above = text.partition(f"[{field}]")[0].rpartition("\n\n")[2].replace("\n# ", " ")
    assert above.endswith(f"; a text, one of {choices}\n")
    path = root / "scenarios/Some.toml"
    path.write_text(text.replace(f'[{field}]\nvalue = "', f'[{field}]\nvalue = "x'), "utf-8")
    assert f"expected one of {choices}" in solve(["Some"])[0].error


def test_every_precision_that_a_scenario_can_name_is_a_rate_of_some_accelerator() -> None:
    [precision] = [
        field
        for field in dataclasses.fields(KINDS["ReferenceTrainingStepScenario"])
        if field.name == "precision"
    ]
    rates = {rate for name in Hardware for rate in getattr(Hardware[name], "rates", {})}
    assert rates >= set(precision.metadata["choices"])


def test_a_variant_changes_nothing_and_offers_every_field_of_its_base(root: Path) -> None:
    text = new.new_scenario("LargeBatch").read_text(encoding="utf-8")
    made = document("Scenarios.LargeBatch")
    base = document("Scenarios.DenseLLMPretrainingStep")
    assert (made.kind, made.fields) == (base.kind, base.fields)
    offered = [line for line in text.splitlines() if line.startswith("# [")]
    assert offered == [f"# [{name}]" for name in base.fields]
    uncommented = text.replace(
        "# [batch_divisor]\n# value = 512\n# source", "[batch_divisor]\nvalue = 256\nsource"
    )
    (root / "scenarios/LargeBatch.toml").write_text(uncommented, encoding="utf-8")
    assert document("Scenarios.LargeBatch").fields["batch_divisor"]["value"] == 256


def test_lists_are_written_as_a_scenario_file_has_them(root: Path) -> None:
    sweep = (REPOSITORY / "scenarios/NetworkRateSweep.toml").read_text(encoding="utf-8")
    (root / "scenarios/NetworkRateSweep.toml").write_text(sweep, encoding="utf-8")
    path = new.new_scenario("NewSweep", kind="TrainingStepSweepScenario")
    made, pattern = document("Scenarios.NewSweep").fields, tomllib.loads(sweep)
    assert made["second_values"]["value"] == pattern["second_values"]["value"] == [True, False]
    assert made["values"]["value"] == pattern["values"]["value"]
    assert "value = [true, false]" in path.read_text(encoding="utf-8")


def test_a_variant_of_a_variant_and_of_a_named_kind(root: Path) -> None:
    assert (root / "scenarios").is_dir()
    new.new_scenario("OlderReplica", kind=REPLICA, base="DenseLLMReplicaA100")
    assert document("Scenarios.OlderReplica").fields["node"]["value"] == "Hardware.DGX_A100"


@pytest.mark.parametrize(
    ("name", "kind", "base", "error", "message"),
    [
        ("DenseLLMReplica", "", "", InputError, "scenarios/DenseLLMReplica.toml exists already"),
        ("denseLLMreplica", "", "", InputError, "differs from DenseLLMReplica.toml in case alone"),
        ("wide-replica", "", "", InputError, "letters, digits and _"),
        ("9Replica", "", "", InputError, "a letter first"),
        ("../Replica", "", "", InputError, "is no name"),
        ("class", "", "", InputError, "is no name"),
        ("Größe", "", "", InputError, "is no name"),
        ("", "", "", InputError, "is no name"),
        ("Wide", "SelfContainedReplica", "", UnknownName, f"did you mean '{REPLICA}'"),
        ("Wide", "", "DenseLLMReplic", UnknownName, "did you mean 'DenseLLMReplica'"),
        ("Wide", REPLICA, "DenseLLMPretrainingStep", InputError, "is a ReferenceTrainingStep"),
        ("Wide", "LayoutSearchScenario", "", InputError, "no scenario of the kind"),
    ],
)
def test_what_cannot_be_a_scenario_is_refused_and_leaves_no_file(
    root: Path, name: str, kind: str, base: str, error: type[MlsysimError], message: str
) -> None:
    before = {path: path.read_bytes() for path in (root / "scenarios").iterdir()}
    with pytest.raises(error) as refused:
        new.new_scenario(name, kind, base)
    assert message in str(refused.value)
    assert {path: path.read_bytes() for path in (root / "scenarios").iterdir()} == before


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("03_third", ["01_first", "03_third", "05_fifth"]),
        ("09_last", ["01_first", "05_fifth", "09_last"]),
        ("00_before", ["00_before", "01_first", "05_fifth"]),
    ],
)
def test_a_chapter_is_a_notebook_in_its_place(book: Path, name: str, lines: list[str]) -> None:
    text = new.new_chapter(name).read_text(encoding="utf-8")
    assert jupytext.writes(jupytext.reads(text, fmt="md:myst"), fmt="md:myst") == text
    listed = "\n".join(lines)
    assert (book / "chapters/index.md").read_text(encoding="utf-8") == INDEX.replace(
        "01_first\n05_fifth", listed
    )
    Page(name).front_matter.check_notebook()
    uses = cells.uses(name)
    assert list(uses.reads) == ["DenseLLMPretrainingStep"]
    assert (list(uses.figures), list(uses.tables)) == ([f"{name}/parts"], [f"{name}/parts"])
    assert "{quote}`step.step_time" in text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("01_first", "chapters/01_first.md has the number 01 already"),
        ("05_other", "chapters/05_fifth.md has the number 05 already; taken are 01, 05"),
        ("07_first", "a chapter 'first' exists already"),
        ("Memory", "two digits for its place and a title in a-z, 0-9 and _, such as 02_memory"),
        ("7_memory", "such as 02_memory"),
        ("07-Memory", "such as 02_memory"),
        ("../07_memory", "names no chapter"),
    ],
)
def test_what_cannot_be_a_chapter_is_refused(book: Path, name: str, message: str) -> None:
    before = sorted(path.name for path in (book / "chapters").iterdir())
    with pytest.raises(InputError) as refused:
        new.new_chapter(name)
    assert message in str(refused.value)
    assert sorted(path.name for path in (book / "chapters").iterdir()) == before
    assert (book / "chapters/index.md").read_text(encoding="utf-8") == INDEX


def test_a_book_without_a_list_of_chapters_is_named(book: Path) -> None:
    (book / "chapters/index.md").write_text("# The book\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"chapters/index.md: there is no \{toctree\}"):
        new.new_chapter("03_third")
    assert not (book / "chapters/03_third.md").exists()


def test_the_command_says_what_it_wrote(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "scenario", "LargeBatch", "--base", "DenseLLMPretrainingStep"]) == 0
    assert "wrote scenarios/LargeBatch.toml; it builds as it is" in capsys.readouterr().out
    assert main(["new", "chapter", "03_third"]) == 0
    assert "its line in chapters/index.md" in capsys.readouterr().out
    assert (book / "chapters/03_third.md").is_file()
    assert main(["new", "chapter", "04_fourth", "--kind", REPLICA]) == 1
    assert "are for scenarios" in capsys.readouterr().err


def test_every_kind_of_the_project_has_a_scenario_to_begin_from() -> None:
    used = {
        document(f"Scenarios.{path.stem}").kind
        for path in (REPOSITORY / "scenarios").glob("*.toml")
    }
    assert used == set(KINDS)
