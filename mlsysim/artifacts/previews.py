"""How an artifact looks in a running notebook, with a word on whether it is still true."""

from __future__ import annotations

import html
import os
from typing import TYPE_CHECKING

from mlsysim.runtime import turns

if TYPE_CHECKING:
    from mlsysim.artifacts.reading import Artifact

__all__ = ["notices", "summary", "summary_html", "watched"]


def watched() -> bool:
    """Whether somebody may edit and solve while this process runs; a build reads what is fresh."""
    return turns.BUILD not in os.environ


def notices(name: str) -> list[str]:
    """Why the artifact of `name` is stale, with what to run; none if it is fresh."""
    if not watched():
        return []
    from mlsysim.artifacts.lock import read_lock
    from mlsysim.artifacts.staleness import judge

    return [
        f"STALE, run snakemake artifacts: {reason}" for reason in judge(name, read_lock()).reasons
    ]


def summary(artifact: Artifact) -> str:
    """Title, feasibility and the scenario's own outputs, as text."""
    rows = _rows(artifact)
    first = max(len(key) for key, _, _ in rows)
    second = max(len(value) for _, value, _ in rows)
    return "\n".join(
        [
            *notices(artifact.name),
            f"{artifact.name}: {artifact.title}",
            _feasible(artifact),
            *(f"    {key:{first}}  {value:>{second}}  {about}" for key, value, about in rows),
            _more(artifact, rows),
        ]
    )


def summary_html(artifact: Artifact) -> str:
    """The same as HTML."""
    rows = _rows(artifact)
    told = "".join(
        f"<p><strong>{html.escape(each)}</strong></p>" for each in notices(artifact.name)
    )
    cells = "".join(
        f"<tr><td><code>{html.escape(key)}</code></td>"
        f'<td style="text-align: right">{html.escape(value)}</td>'
        f'<td style="text-align: left">{html.escape(about)}</td></tr>'
        for key, value, about in rows
    )
    return (
        f"<div>{told}<p><strong>{html.escape(artifact.name)}</strong>: "
        f"{html.escape(artifact.title)}<br>{html.escape(_feasible(artifact))}</p>"
        f"<table><thead><tr><th>Output</th><th>Value</th><th>Meaning</th></tr></thead>"
        f"<tbody>{cells}</tbody></table><p>{html.escape(_more(artifact, rows))}</p></div>"
    )


def _rows(artifact: Artifact) -> list[tuple[str, str, str]]:
    """Key, value and meaning of the outputs that are the scenario's own, or of the first ones."""
    from mlsysim.artifacts.numbers import amount

    own = {key: entry for key, entry in artifact.outputs.items() if "." not in key}
    shown = own or dict(list(artifact.outputs.items())[:10])
    return [(key, amount(entry), entry["description"]) for key, entry in shown.items()]


def _feasible(artifact: Artifact) -> str:
    return f"{'feasible' if artifact.feasible else 'INFEASIBLE'}: {artifact.feasibility}"


def _more(artifact: Artifact, rows: list[tuple[str, str, str]]) -> str:
    others = len(artifact.outputs) - len(rows)
    return f"and {others} more outputs, {len(artifact.inputs)} inputs: mlsysim show {artifact.name}"
