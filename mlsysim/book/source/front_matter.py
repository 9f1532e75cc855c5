"""The front matter of a page: what makes it a notebook, and what it tells this book."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from mlsysim.book.source.cells import place
from mlsysim.book.source.myst import parsed
from mlsysim.book.source.yaml_slips import line_of, reason
from mlsysim.declarations.documents import names
from mlsysim.errors import InputError
from mlsysim.naming import meant

__all__ = ["FrontMatter", "skeleton"]

# What Jupyter needs to save what this book adds.
_FILTER = "mlsysim,-jupytext.text_representation.jupytext_version"
_OURS = (
    "mlsysim holds scenarios, a map of short names such as step: DenseLLMPretrainingStep, and "
    "infeasible, a list of scenarios"
)


def skeleton(scenarios: Mapping[str, str] | None = None) -> str:
    """What Jupyter and jupytext need to open a chapter and to save it as it was.

    `scenarios` are its short names, each with the scenario that it stands for.
    """
    names = "".join(f"    {name}: {of}\n" for name, of in sorted((scenarios or {}).items()))
    ours = f"mlsysim:\n  scenarios:\n{names}" if names else ""
    return f"""\
---
jupytext:
  notebook_metadata_filter: {_FILTER}
  text_representation:
    extension: .md
    format_name: myst
    format_version: 0.13
kernelspec:
  display_name: Python 3 (ipykernel)
  language: python
  name: python3
{ours}---
"""


@dataclass(frozen=True)
class FrontMatter:
    """The YAML between the first two lines of three dashes; `page` is the stem of its file."""

    page: str
    text: str

    def _wrong(self, line: int, why: str) -> InputError:
        return InputError(f"{place(self.page, line)}: front matter: {why}")

    @cached_property
    def _source(self) -> str:
        return parsed(self.text).front_matter

    @cached_property
    def _content(self) -> dict[str, Any]:
        import yaml

        try:
            content = yaml.safe_load(self._source)
        except yaml.YAMLError as error:
            raise self._wrong(line_of(error) + 2, reason(error)) from None
        return content if isinstance(content, dict) else {}

    @cached_property
    def _tree(self) -> Any:
        """The YAML with its lines."""
        import yaml

        return yaml.compose(self._source)

    def _line(self, *keys: str) -> int:
        """The line on which a key stands; that of the nearest key above it that is there."""
        import yaml

        node, line = self._tree, 1
        for key in keys:
            pairs = node.value if isinstance(node, yaml.MappingNode) else []
            found = [(name, value) for name, value in pairs if name.value == key]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 2, found[0][1]
        return line

    @cached_property
    def _ours(self) -> dict[str, Any]:
        ours = self._content.get("mlsysim", {})
        if not isinstance(ours, dict) or set(ours) - {"scenarios", "infeasible"}:
            raise self._wrong(self._line("mlsysim"), _OURS)
        return ours

    @cached_property
    def aliases(self) -> dict[str, str]:
        """The short names of scenarios: ``mlsysim: {scenarios: {step: ...}}``.

        Raises InputError for another form, or for a short name that is a scenario's already.
        """
        short, known = self._ours.get("scenarios", {}), names("Scenarios")
        if not isinstance(short, dict):
            raise self._wrong(self._line("mlsysim", "scenarios"), _OURS)
        for name, scenario in short.items():
            line = self._line("mlsysim", "scenarios", str(name))
            if not isinstance(name, str) or not name.isidentifier() or name in known:
                raise self._wrong(
                    line,
                    f"{name!r} is no short name; expected a word that is not the name of a "
                    "scenario",
                )
            if scenario not in known:
                choices = meant("Scenarios", str(scenario), known)
                raise self._wrong(line, f"{name}: {scenario!r} is no scenario; {choices}")
        return short

    @cached_property
    def infeasible(self) -> list[str]:
        """Scenarios whose results may be quoted although they do not fit, because it is said so.

        Raises InputError for another form than a list of scenarios.
        """
        accepted, known = self._ours.get("infeasible", []), names("Scenarios")
        line = self._line("mlsysim", "infeasible")
        if not isinstance(accepted, list):
            raise self._wrong(line, _OURS)
        for scenario in accepted:
            if scenario not in known:
                choices = meant("Scenarios", str(scenario), known)
                raise self._wrong(line, f"infeasible: {scenario!r} is no scenario; {choices}")
        return accepted

    def check_notebook(self) -> None:
        """See that Jupyter opens the chapter, and saves what stands here as it stands.

        Raises InputError with what to write.
        """
        if self._value("jupytext", "text_representation", "format_name") != "myst":
            raise InputError(
                f"chapters/{self.page}.md: no front matter that makes it a notebook; begin it "
                f"with these lines:\n{skeleton().rstrip()}"
            )
        if self._value("kernelspec", "name") != "python3":
            raise self._wrong(self._line("kernelspec"), "expected a kernelspec with name: python3")
        if "mlsysim" not in self._content:
            return
        kept = self._value("jupytext", "notebook_metadata_filter")
        if "mlsysim" not in str(kept).split(","):
            raise self._wrong(
                self._line("mlsysim"),
                "Jupyter drops mlsysim when it saves; write under jupytext: "
                f"notebook_metadata_filter: {_FILTER}",
            )
        self._check_order()
        self._check_layout()

    def _value(self, *keys: str) -> Any:
        value: Any = self._content
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def _check_order(self) -> None:
        """Jupyter sorts the keys of what it saves."""
        for keys, what in ((("scenarios",), "aliases"), ((), "keys of mlsysim")):
            block = self._value("mlsysim", *keys)
            found = list(block) if isinstance(block, dict) else []
            for one, following in pairwise(found):
                if str(following) < str(one):
                    raise self._wrong(
                        self._line("mlsysim", *keys, following),
                        f"sort the {what}: {following} comes before {one}, as Jupyter saves them",
                    )

    def _check_layout(self) -> None:
        """Jupyter saves a block of YAML in one layout, without comments."""
        import yaml

        expected = yaml.safe_dump({"mlsysim": self._content["mlsysim"]}).splitlines()
        first = self._line("mlsysim")
        lines = self.text.split("\n")[first - 1 : first - 1 + len(expected)]
        for number, (found, saved) in enumerate(zip(lines, expected, strict=False), first):
            if found != saved:
                raise self._wrong(
                    number, f"expected `{saved}`, as Jupyter saves it; found `{found}`"
                )
