"""The pages that lead to the generated ones: of all, of the scenarios, of the classes."""

from __future__ import annotations

from collections.abc import Mapping

from mlsysim.artifacts.reading import Artifact
from mlsysim.book.products.markdown import escaped, prose, table
from mlsysim.book.reference._class_pages import link_to
from mlsysim.declarations.docstrings import summary_of
from mlsysim.engine.scenario_types import KINDS

__all__ = ["entry_pages"]

_ENTRY = """\
# Reference

Every number of the book belongs to a named scenario, and every scenario to a class.

- {doc}`scenarios`: a page for each says what it gives, what it rests on, and who uses it.
- {doc}`classes`: a page for each states its formulas, and the inputs that it needs.
- {doc}`numbers`: every number that the book prints, with the places."""
_SCENARIOS = """\
# Scenarios

A scenario is declared once, in a file of its own, and solved into an artifact that all chapters
read."""
_CLASSES = """\
# Classes of scenarios

A class says which inputs a scenario of its kind declares, and by which formulas its outputs follow.
The full name of each ends in `Scenario`."""


def entry_pages(artifacts: Mapping[str, Artifact]) -> dict[str, str]:
    """Their texts by name."""
    scenarios = [
        [link_to(name), f"{{doc}}`{_short(each.kind)} <classes/{each.kind}>`", escaped(each.title)]
        for name, each in artifacts.items()
    ]
    classes = [
        [f"{{doc}}`{_short(kind)} <classes/{kind}>`", prose(summary_of(cls))]
        for kind, cls in KINDS.items()
    ]
    texts = {
        "index": [
            _ENTRY,
            _contents(["scenarios", "classes"]),
        ],
        "scenarios": [
            _SCENARIOS,
            table(["Name", "Class", "What it is"], scenarios),
        ],
        "classes": [
            _CLASSES,
            table(["Class", "What it is"], classes),
        ],
    }
    return {f"reference/{name}": "\n\n".join(parts) + "\n" for name, parts in texts.items()}


def _short(kind: str) -> str:
    return kind.removesuffix("Scenario")


def _contents(listed: list[str]) -> str:
    """What the sidebar shows below a page."""
    lines = "\n".join(listed)
    return f"```{{toctree}}\n:hidden:\n\n{lines}\n```"
