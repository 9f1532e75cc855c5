"""A small book in a repository of its own, written by hand: a comparison reads files alone."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

PAGE = """\
# The step

How long is a step?

## Time

First comes a sentence. One step takes {quote}`Step.time in s as .2f` of
a minute. That is {claim}`short if Step.time < 10 s`.

:::{figure} ../results/figures/01_step/parts.svg
:name: fig-parts

Its parts, {quote}`Step.time in s as .1f` in all.
:::

:::{table} Its parts
```{include} ../results/tables/01_step/parts.md
```
:::
"""
RATE = "Hardware.Fast.rate"
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg">\n <!-- {label} -->\n <path d="M0 {style}"/>\n</svg>\n'
)


def artifact(
    name: str, outputs: dict[str, Any], inputs: dict[str, Any] | None = None, **other: Any
) -> str:
    """The artifact of a scenario; a value stands for an entry in seconds, or is an entry."""
    content: dict[str, Any] = {
        "schema": 1,
        "name": name,
        "kind": "StepScenario",
        "title": "A step",
        "description": "A step.",
        "inputs": {key: _entry(value, "source") for key, value in (inputs or {}).items()},
        "outputs": {key: _entry(value, "equation") for key, value in outputs.items()},
        "feasibility": {"feasible": True, "reason": "fits"},
        "assumptions": [],
        "excludes": [],
        "sources": [],
    }
    return json.dumps(content | other, indent=2) + "\n"


def _entry(value: Any, about: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return {"description": "a value", **value}
    return {"value": value, "unit": "s", "description": "a value", about: "assumption: a case"}


class History:
    """A repository whose files tests write and commit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch", "main")
        self.git("config", "user.name", "Test")
        self.git("config", "user.email", "test@example.invalid")
        (path / "Snakefile").touch()
        (path / "scenarios").mkdir()
        self.write({"scenarios/Step.toml": 'title = "A step"\n', "chapters/01_step.md": PAGE})
        self.step()

    def git(self, *arguments: str) -> str:
        """What git says."""
        return subprocess.run(
            ["git", *arguments], cwd=self.path, check=True, capture_output=True, text=True
        ).stdout

    def write(self, files: dict[str, str | None]) -> None:
        """Write these files; None removes one."""
        for name, text in files.items():
            path = self.path / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def step(
        self,
        time: float = 7.731,
        rate: float = 2.0,
        *,
        parts: tuple[float, float] = (3.0, 4.0),
        label: str = "7.7 s",
        style: int = 0,
        cell: str = "long",
    ) -> None:
        """What a build would make of a step that takes `time`."""
        inputs = {RATE: {"value": rate, "unit": "TB/s", "source": "assumption: a data sheet"}}
        spec = "Step.time in s as"
        quotes = [
            {"key": "Step.time", "spec": f"{spec} .2f", "printed": f"{time:.2f} s"},
            {"key": "Step.time", "spec": f"{spec} .1f", "printed": f"{time:.1f} s"},
            {
                "key": "Step.time",
                "spec": f"{spec} .3f",
                "printed": f"{time:.3f} s",
                "table": "01_step/parts",
            },
        ]
        claims = [{"claim": "short", "if": "Step.time < 10 s"}]
        cells = [{"row": 1, "column": 2, "spec": f"{spec} .3f"}]
        self.write(
            {
                "results/scenarios/Step.json": artifact("Step", {"time": time}, inputs),
                "results/quotes.json": json.dumps({"schema": 2, "pages": {"01_step": quotes}}),
                "results/claims.json": json.dumps({"schema": 2, "pages": {"01_step": claims}}),
                "results/figures/01_step/parts.csv": f"part,s\na,{parts[0]}\nb,{parts[1]}\n",
                "results/figures/01_step/parts.svg": SVG.format(label=label, style=style),
                "results/tables/01_step/parts.md": (
                    "| Part | Time | Word |\n| :-- | --: | :-- |\n"
                    f"| all | {time:.3f} s | {cell} |\n"
                ),
                "results/tables/01_step/parts.quotes.json": json.dumps(cells),
            }
        )

    def commit(self, message: str = "A change") -> str:
        """Commit everything; the name of the revision."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD").strip()
