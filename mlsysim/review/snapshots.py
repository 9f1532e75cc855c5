"""What a revision says: artifacts, quotes, claims, tables and figures, in the form of its time.

Every schema that a book had is read; what is damaged, or newer than this code, is noted and left
out.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mlsysim.artifacts.artifact_schema import VERSION
from mlsysim.artifacts.lock_lines import Lock, parsed
from mlsysim.artifacts.reading import Artifact
from mlsysim.artifacts.schema_versions import other_schema
from mlsysim.book.pages.page_records import SCHEMA
from mlsysim.canonical import loads
from mlsysim.review.trees import Tree

__all__ = ["Entry", "Quote", "Snapshot", "full_name"]

# A value with its unit, and where it is from.
Entry = Mapping[str, Any]

_SCENARIOS = "results/scenarios/"
_CHAPTERS = "chapters/"
# matplotlib draws a text as outlines, below a comment that holds it.
_DRAWN = re.compile(r"<!-- (.*?) -->")
_TEXT = re.compile(r"<text[^>]*>(.*?)</text>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True)
class Quote:
    """A number that a page prints: its key, what it asks for, its text, and perhaps a table."""

    key: str
    spec: str
    printed: str
    table: str = ""


@dataclass
class Snapshot:
    """What the files of a tree say, read when it is asked for."""

    tree: Tree
    damaged: dict[str, str] = field(default_factory=dict)
    _artifacts: dict[str, Artifact | None] = field(default_factory=dict)

    @cached_property
    def scenarios(self) -> Mapping[str, str]:
        """The identity of each artifact's file by the scenario's name."""
        return self._stems(_SCENARIOS, ".json")

    @cached_property
    def chapters(self) -> Mapping[str, str]:
        """The identity of each page's source by its name."""
        return self._stems(_CHAPTERS, ".md")

    @cached_property
    def tables(self) -> Mapping[str, str]:
        """The identity of each printed table by its name, ``01_reference_step/ledger``."""
        return self._stems("results/tables/", ".md")

    @cached_property
    def figures(self) -> Mapping[str, tuple[str, str]]:
        """The identities of each figure's data and drawing by its name."""
        data = self._stems("results/figures/", ".csv")
        drawn = self._stems("results/figures/", ".svg")
        return {name: (data.get(name, ""), drawn.get(name, "")) for name in sorted({*data, *drawn})}

    def _stems(self, folder: str, ending: str) -> dict[str, str]:
        return {
            path.removeprefix(folder).removesuffix(ending): identity
            for path, identity in self.tree.ids.items()
            if path.startswith(folder) and path.endswith(ending)
        }

    def text(self, path: str) -> str:
        """The text of a file, empty if there is none."""
        return self.tree.read(path).decode(errors="replace")

    def page(self, name: str) -> str:
        """The source of a page."""
        return self.text(f"{_CHAPTERS}{name}.md")

    def artifact(self, name: str) -> Artifact | None:
        """The artifact of a scenario; None if there is none that can be read."""
        if name not in self._artifacts:
            self._artifacts[name] = self._artifact(name)
        return self._artifacts[name]

    def _artifact(self, name: str) -> Artifact | None:
        path = f"{_SCENARIOS}{name}.json"
        if path not in self.tree.ids:
            return None
        content = self._json(path, VERSION)
        try:
            return Artifact(content)
        except (AttributeError, KeyError, TypeError):
            self.damaged.setdefault(path, "is no artifact")
            return None

    def _json(self, path: str, schema: int) -> Any:
        """The content of a file of results, if it is of a schema that this code knows."""
        try:
            content = loads(self.tree.read(path))
        except ValueError:
            self.damaged[path] = "is no JSON"
            return {}
        said = content.get("schema", 1) if isinstance(content, dict) else 1
        if type(said) is int and said > schema:
            self.damaged[path] = f"is {other_schema(said, schema)}"
            return {}
        return content

    @cached_property
    def quotes(self) -> Mapping[str, list[Quote]]:
        """What each page prints, in the order of its source."""
        return {
            page: [
                Quote(each["key"], each["spec"], each["printed"], each.get("table", ""))
                for each in entries
            ]
            for page, entries in self._record("results/quotes.json", ("key", "spec", "printed"))
        }

    @cached_property
    def claims(self) -> Mapping[str, list[tuple[str, str]]]:
        """Phrase and condition of what each page claims, in the order of its source."""
        return {
            page: [(each["claim"], each["if"]) for each in entries]
            for page, entries in self._record("results/claims.json", ("claim", "if"))
        }

    def records(self) -> list[str]:
        """The pages that quote or claim something."""
        return sorted({*self.quotes, *self.claims})

    def _record(self, path: str, keys: tuple[str, ...]) -> list[tuple[str, list[Any]]]:
        if path not in self.tree.ids:
            return []
        content = self._json(path, SCHEMA)
        # The first schema named none, and had the pages at its top.
        pages = content.get("pages", content) if isinstance(content, dict) else {}
        found = []
        for page, entries in pages.items() if isinstance(pages, dict) else ():
            if isinstance(entries, list) and all(
                isinstance(each, dict) and each.keys() >= {*keys} for each in entries
            ):
                found.append((page, entries))
            elif page != "schema":
                self.damaged[path] = "is damaged"
        return found

    def table(self, name: str) -> list[list[str]]:
        """The cells of a printed table, its head first."""
        return [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
            for line in self.text(f"results/tables/{name}.md").splitlines()
            if line.startswith("|") and not re.fullmatch(r"[|:\- ]+", line)
        ]

    def quoted_cells(self, name: str) -> set[tuple[int, int]]:
        """Row and column, from 1, of the cells of a table that stand in the record of quotes."""
        try:
            cells = loads(self.tree.read(f"results/tables/{name}.quotes.json") or b"[]")
            return {(each["row"], each["column"]) for each in cells}
        except (KeyError, TypeError, ValueError):
            self.damaged[f"results/tables/{name}.quotes.json"] = "is damaged"
            return set()

    def plotted(self, name: str) -> list[list[str]]:
        """The rows of the data that a figure draws, their names first."""
        return list(csv.reader(io.StringIO(self.text(f"results/figures/{name}.csv"))))

    def drawn(self, name: str) -> list[str]:
        """The texts in a figure, in the order in which they are drawn."""
        image = self.text(f"results/figures/{name}.svg")
        found = [(each.start(), each[1]) for each in _DRAWN.finditer(image)]
        found += [(each.start(), _TAG.sub("", each[1])) for each in _TEXT.finditer(image)]
        return [text.strip() for _, text in sorted(found)]

    @cached_property
    def lock(self) -> Lock:
        """What certifies the results."""
        return parsed(self.tree.read("results/artifacts.lock"))

    @cached_property
    def libraries(self) -> Mapping[str, str]:
        """The pinned version of each library."""
        lines = self.text("requirements.lock").splitlines()
        pairs = (line.split(";")[0].strip().partition("==") for line in lines)
        return {name.strip().lower(): version.strip() for name, sign, version in pairs if sign}


def full_name(scenario: str, key: str) -> str:
    """The full name of an input that an artifact lists; one of the registry has it already.

    >>> full_name("Step", "batch_tokens"), full_name("Step", "Hardware.H100_SXM.rates.bf16")
    ('Scenarios.Step.batch_tokens', 'Hardware.H100_SXM.rates.bf16')
    """
    first = key.partition(".")[0]
    return key if first[:1].isupper() and "." in key else f"Scenarios.{scenario}.{key}"
