"""An artifact as a page of text: what `mlsysim show` prints."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from mlsysim import bounds
from mlsysim.artifacts.lock import read_lock
from mlsysim.artifacts.numbers import amount
from mlsysim.artifacts.reading import Artifact, read
from mlsysim.artifacts.staleness import judge
from mlsysim.declarations.bibliography import works
from mlsysim.declarations.documents import cited_keys
from mlsysim.errors import ends, for_terminal

__all__ = ["as_data", "as_text", "origin", "sources_of", "table", "wrapped"]

_WIDTH = 100


def as_data(name: str, key: str = "") -> dict[str, Any]:
    """The artifact, or one key with all that it rests on; and why it is stale, if it is."""
    artifact = read(name)
    stale = list(judge(name, read_lock()).reasons)
    if not key:
        return {**artifact.content, "stale": stale}
    full = artifact.resolve(key)
    shown = {"key": f"{name}.{full}", **artifact.entry(full), "stale": stale}
    if full in artifact.outputs:
        shown["inputs"] = artifact.inputs
        shown["assumptions"] = artifact.assumptions
        shown["excludes"] = artifact.excludes
    return shown


def as_text(name: str, key: str = "") -> str:
    """The same for people."""
    artifact = read(name)
    stale = judge(name, read_lock()).reasons
    lines = [f"STALE, run snakemake artifacts: {reason}" for reason in stale]
    if not artifact.feasible:
        lines.append(f"INFEASIBLE: {artifact.feasibility}")
    lines += _value(artifact, artifact.resolve(key)) if key else _page(artifact)
    return for_terminal(lines)


def _page(artifact: Artifact) -> list[str]:
    lines = [artifact.name, artifact.title, "", *wrapped(artifact.description, "")]
    lines += [
        "",
        f"Feasible: {'yes' if artifact.feasible else 'no'}; {artifact.feasibility}",
        "",
        "Outputs",
    ]
    lines += table(
        {key: (amount(entry), entry["equation"]) for key, entry in artifact.outputs.items()}
    )
    lines += ["", "Inputs", *_given(artifact), "", *_statements(artifact)]
    lines += ["", f"One value: mlsysim show {artifact.name}.{next(iter(artifact.outputs))}"]
    return lines


def _value(artifact: Artifact, key: str) -> list[str]:
    entry = artifact.entry(key)
    lines = [f"{artifact.name}.{key} = {amount(entry)}"]
    if key not in artifact.outputs:
        if "follows" in entry:
            lines += wrapped(entry["follows"], "    follows: ")
        lines += wrapped(entry["source"], "    source: ")
        return [*lines, *sources_of(entry["source"])]
    lines += wrapped(entry["description"], "    ")
    if entry["equation"]:
        lines += wrapped(entry["equation"], "    equation: ")
    lines += [
        "",
        f"Solved by {artifact.kind} from these inputs",
        *_given(artifact),
        "",
        *_statements(artifact),
    ]
    return [*lines, "", f"Make it again: mlsysim solve {artifact.name}"]


def _given(artifact: Artifact) -> list[str]:
    return table({key: (amount(entry), origin(entry)) for key, entry in artifact.inputs.items()})


def origin(entry: dict[str, Any]) -> str:
    """Where an input comes from: what it follows, and its source.

    >>> origin({"follows": "Models.GPT3_175B.layers", "source": "assumption: as many"})
    'follows Models.GPT3_175B.layers; assumption: as many'
    """
    followed = f"follows {entry['follows']}; " if "follows" in entry else ""
    return followed + str(entry["source"])


def _statements(artifact: Artifact) -> list[str]:
    lines = []
    for title, stated in (("Assumptions", artifact.assumptions), ("Excludes", artifact.excludes)):
        lines += [title] if stated else []
        for each in stated:
            lines += wrapped(f"{each['text']} ({each['where']})", "    - ")
    return [*lines, *_sources(artifact.sources)]


def sources_of(source: str) -> list[str]:
    """What the keys of one source text stand for."""
    return _sources(cited_keys(source))


def _sources(keys: list[str]) -> list[str]:
    """What the citation keys stand for, from the bibliography."""
    if not keys:
        return []
    known = works()
    lines = ["", "Sources"]
    for key in keys:
        fields = known[key].fields if key in known else {}
        told = (re.sub("[{}]", "", fields.get(part, "")) for part in ("title", "year", "url"))
        lines += wrapped(f"{key}: " + ", ".join(filter(None, told)), "    - ")
    return lines


def table(rows: dict[str, tuple[str, str]]) -> list[str]:
    """Key and value in columns; the remark on indented lines of its own."""
    first = max(map(len, rows), default=0)
    second = max((len(value) for value, _ in rows.values()), default=0)
    lines = []
    for key, (value, remark) in rows.items():
        head = f"    {key:{first}}  {value:>{second}}"
        lines.append(head)
        lines += wrapped(remark, " " * 8) if remark else []
    return lines


def wrapped(text: str, indent: str) -> list[str]:
    """Lines of a text, the first begun with `indent`, the others below it.

    An artifact that was damaged may hold any text, so its length is bounded here too.
    """
    return textwrap.wrap(
        ends(text, bounds.TEXT),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_long_words=False,
        break_on_hyphens=False,
    )
