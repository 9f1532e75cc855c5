"""Drafts: a file with a TODO is built, named line by line, shown as what it is, never printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsysim.artifacts.reading import read
from mlsysim.book.reference._scenario_pages import Told, scenario_page
from mlsysim.book.site import printed_book
from mlsysim.book.site._cards import card
from mlsysim.building.solving import solve
from mlsysim.cli import new
from mlsysim.declarations import drafts
from mlsysim.declarations.documents import document
from mlsysim.errors import MlsysimError

REPLICA = "SelfContainedReplicaScenario"
BOX = "TODO stands in `scenarios/WideReplica.toml`. Nothing of this is published."


def test_every_todo_of_a_scaffold_is_named_with_its_line(root: Path) -> None:
    path = new.new_scenario("WideReplica", kind=REPLICA)
    chapter = root / "chapters/09_x.md"
    chapter.write_text("# A title\n\nThe mastodon is no TODOS, but TODO: this.\n", "utf-8")
    lines = path.read_text(encoding="utf-8").splitlines()
    told = [(mark.file, mark.line) for mark in drafts.marks()]
    assert told == [
        ("chapters/09_x.md", 3),
        *(("scenarios/WideReplica.toml", n) for n, line in enumerate(lines, 1) if "TODO" in line),
    ]
    assert drafts.remark().startswith("2 drafts, not to be published: chapters/09_x.md, scenarios/")
    with pytest.raises(MlsysimError, match=r"TODO stands in chapters/09_x.md, scenarios/WideRep"):
        printed_book.build()


@pytest.mark.usefixtures("root")
def test_a_finished_project_has_no_draft() -> None:
    assert drafts.marks() == []
    assert drafts.remark() == ""
    drafts.refuse()


def test_what_rests_on_a_draft_is_one(root: Path) -> None:
    new.new_scenario("WideReplica", kind=REPLICA)
    (root / "scenarios/Wider.toml").write_text(
        'base = "Scenarios.WideReplica"\ntitle = "Wider"\n', encoding="utf-8"
    )
    found = drafts.drafts()
    assert drafts.under(document("Scenarios.Wider"), found) == ["scenarios/WideReplica.toml"]
    assert drafts.under(document("Scenarios.DenseLLMReplica"), found) == []


@pytest.mark.usefixtures("root")
def test_a_draft_is_solved_and_its_page_and_cards_say_what_it_is() -> None:
    new.new_scenario("WideReplica", kind=REPLICA)
    assert not solve(["WideReplica"])[0].error
    artifact = read("WideReplica")
    assert BOX in scenario_page(artifact.content, Told(drafts=("scenarios/WideReplica.toml",)))
    assert "Draft" not in scenario_page(artifact.content, Told())
    assert "<strong>Draft</strong>" in card(artifact, "replica_gpus", [], {}, draft=True)
    assert "Draft" not in card(artifact, "replica_gpus", [], {})
