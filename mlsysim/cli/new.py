"""`mlsysim new`: a scenario or a chapter that builds as it is and says what to fill in."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from pathlib import Path
from typing import Any

from mlsysim import bounds, files, paths
from mlsysim.declarations.documents import Document, Known, document, names
from mlsysim.declarations.follows import KEYS
from mlsysim.errors import InputError, MlsysimError, UnknownName, nearest
from mlsysim.naming import alike, meant, no_name

__all__ = ["new_chapter", "new_scenario"]

_WIDTH = 100
_REFERENCE = "DenseLLMPretrainingStep"
_TOCTREE = re.compile(r"(```\{toctree\}\n(?::.*\n)*\n)((?:\d\d_\w+\n)+)(```)")


def new_scenario(name: str, kind: str = "", base: str = "") -> Path:
    """Write scenarios/NAME.toml: a variant of `base`, or one of `kind` with every field.

    Without either it varies the reference step. Raises InputError or UnknownName for a name that
    is taken or is none, and for an unknown kind or base.
    """
    from mlsysim.engine.scenario_types import KINDS
    from mlsysim.engine.scenarios import scenario

    known = names("Scenarios")
    path = paths.scenarios() / f"{name}.toml"
    if why := no_name(name):
        raise InputError(f"{name!r} is no name: {why}")
    if taken := alike("Scenarios", name):
        how = "exists already" if taken == name else f"differs from {taken}.toml in case alone"
        raise InputError(f"{paths.shown(path)} {how}")
    if base and base not in known:
        raise UnknownName(f"base {base!r} is no scenario; {meant('Scenarios', base)}")
    if kind and kind not in KINDS:
        raise UnknownName(f"kind {kind!r} is no scenario class; {nearest(kind, KINDS)}")
    if kind and not base:
        text = _of_kind(name, KINDS[kind], _pattern(kind, known))
    else:
        varied = document(f"Scenarios.{base or _REFERENCE}")
        scenario(varied)  # a base that cannot be is told as what is wrong with it
        if kind and kind != varied.kind:
            raise InputError(f"kind {kind}: the base {varied.name} is a {varied.kind}")
        text = _variant(name, KINDS[varied.kind], varied)
    files.write(path, text)
    try:
        scenario(document(f"Scenarios.{name}"))
    except MlsysimError:
        path.unlink()
        raise
    return path


def _pattern(kind: str, known: list[str]) -> Document:
    """A scenario of this kind to take values from; one that varies no other if there is one."""
    found, read = [], Known()
    for name in known:
        try:
            told = document(f"Scenarios.{name}", read)
        except MlsysimError:
            continue
        if told.kind == kind:
            varies = "base = " in files.text(paths.scenarios() / f"{name}.toml")
            found.append((varies, name, told))
    if not found:
        raise InputError(
            f"no scenario of the kind {kind} exists to take values from; write the first one by "
            "hand, as results/scenario.schema.json describes it"
        )
    return min(found, key=lambda each: each[:2])[2]


def _variant(name: str, cls: Any, base: Document) -> str:
    lines = [
        "# TODO: say in a sentence what this varies, and for which question.",
        f'base = "Scenarios.{base.name}"',
        f'title = "TODO: {_words(name)}, in a line"',
        "",
        *_comment(
            f"Every input is that of {base.name}. Uncomment those that differ, with a value and a "
            "source of their own, and remove the others. A source is a key of "
            "chapters/references.bib with the place in it, or 'assumption: reason'. A value that "
            "is another's says so by follows = 'Scenarios.NAME.OUTPUT'."
        ),
    ]
    for field in dataclasses.fields(cls):
        lines += ["", *_about(field)]
        lines += [f"# {line}" for line in _leaves(field.name, base.fields[field.name])]
    return "\n".join(lines) + "\n"


def _of_kind(name: str, cls: Any, pattern: Document) -> str:
    lines = [
        "# TODO: say in a sentence what this is, and for which question.",
        f'kind = "{pattern.kind}"',
        f'title = "TODO: {_words(name)}, in a line"',
        "",
        *_comment(
            f"The values are those of {pattern.name}. Give each its own, and a source: a key of "
            "chapters/references.bib with the place in it, or 'assumption: reason'. A value that "
            "is another's says so by follows = 'Scenarios.NAME.OUTPUT'."
        ),
    ]
    for field in dataclasses.fields(cls):
        lines += ["", *_about(field)]
        lines += _leaves(field.name, pattern.fields[field.name], f"that of {pattern.name}")
    return "\n".join(lines) + "\n"


def _about(field: dataclasses.Field[Any]) -> list[str]:
    from mlsysim.artifacts.scenario_schema import told

    return _comment(told(field))


def _leaves(key: str, leaf: dict[str, Any], taken: str = "") -> list[str]:
    """A field as TOML; `taken` says where the value comes from, for a source to be filled in."""
    if "value" not in leaf:
        return [
            line for part, each in leaf.items() for line in _leaves(f"{key}.{part}", each, taken)
        ]
    source = f"assumption: TODO; {taken}" if taken else "assumption: TODO"
    followed = [] if taken else [f"{part} = {_toml(leaf[part])}" for part in KEYS if part in leaf]
    return [f"[{key}]", f"value = {_toml(leaf['value'])}", *followed, f"source = {_toml(source)}"]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value)


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")


def _words(name: str) -> str:
    """A name in words: ``WideReplica`` is "wide replica"."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", " ", name)
    return " ".join(w if w.isupper() and len(w) > 1 else w.lower() for w in parted.split())


def new_chapter(name: str) -> Path:
    """Write chapters/NAME.md with a quote, a figure and a table, and list it in chapters/index.md.

    Raises InputError for a name that is taken, or is not NN_title.
    """
    from mlsysim.book.source import cells

    known = cells.chapters()
    if not re.fullmatch(r"[0-9]{2}_[a-z][a-z0-9_]*", name) or len(name) > bounds.NAME:
        free = next((f"{n:02}" for n in range(1, 100) if not _numbered(known, n)), "NN")
        raise InputError(
            f"{name!r} names no chapter: write NN_title, two digits for its place and a title in "
            f"a-z, 0-9 and _, such as {free}_{_suggestion(name)[:40]}, of at most {bounds.NAME} "
            "characters"
        )
    taken = _numbered(known, int(name[:2]))
    if taken:
        raise InputError(
            f"chapters/{taken[0]}.md has the number {name[:2]} already; taken are "
            + ", ".join(each[:2] for each in known)
        )
    if any(each[3:] == name[3:] for each in known):
        raise InputError(f"a chapter {name[3:]!r} exists already under another number")
    index = paths.chapters() / "index.md"
    text = files.text(index)
    listed = _TOCTREE.search(text)
    if not listed:
        raise InputError("chapters/index.md: there is no {toctree} that lists chapters as NN_title")
    lines = "".join(f"{each}\n" for each in sorted({*listed[2].split(), name}))
    path = paths.chapters() / f"{name}.md"
    files.write(path, _CHAPTER.replace("NAME", name).replace("LABEL", name[3:].replace("_", "-")))
    files.write(index, text[: listed.start(2)] + lines + text[listed.end(2) :])
    return path


def _numbered(known: list[str], number: int) -> list[str]:
    return [each for each in known if int(each[:2]) == number]


def _suggestion(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"^[\d_]+", "", name.lower())).strip("_") or "title"


_CHAPTER = """\
---
jupytext:
  notebook_metadata_filter: mlsysim,-jupytext.text_representation.jupytext_version
  text_representation:
    extension: .md
    format_name: myst
    format_version: 0.13
kernelspec:
  display_name: Python 3 (ipykernel)
  language: python
  name: python3
mlsysim:
  scenarios:
    step: DenseLLMPretrainingStep
---

(LABEL)=
# TODO: the title

% Lines that begin with a percent sign are comments: they say what to fill in, and go at the end.
% Open with the question that the chapter answers. One sentence a line, one idea a sentence.

TODO: how long does the step take, and why?
According to the model of this book it takes {quote}`step.step_time in s as .2f`.

% Short names of scenarios stand in the front matter, sorted. A quote is KEY in UNIT as FORMAT.
% `mlsysim show DenseLLMPretrainingStep` lists the keys; a number is never typed.

```{code-cell} ipython3
:tags: [hide-input, remove-output]

import pandas as pd

from mlsysim import read
from mlsysim.book import new_figure, save_figure, save_table

step = read("DenseLLMPretrainingStep")
parts = {
    "Forward": "result.forward",
    "Backward": "result.backward",
    "Pipeline bubble": "result.pipeline_bubble_latency",
}
```

## TODO: the argument

% A figure is saved with the data that it shows, then shown. Its name begins with the chapter's.

{numref}`fig-LABEL-parts` shows TODO.

```{code-cell} ipython3
:tags: [hide-input, remove-output]

frame = pd.DataFrame(
    {
        "Part": list(parts),
        "Seconds": [step.value(key).to("s").magnitude for key in parts.values()],
    }
)
figure, axes = new_figure(height=2.0)
axes.barh(frame["Part"], frame["Seconds"])
axes.invert_yaxis()
axes.set_xlabel("time (s)")
save_figure("NAME/parts", figure, data=frame)
```

:::{figure} ../results/figures/NAME/parts.svg
:name: fig-LABEL-parts
:alt: TODO, for who cannot see it. The longest bar is {quote}`step.result.backward in s as .2f`.

TODO: what the figure shows, in a sentence.
:::

% A cell of a table that is a quote keeps value, unit and key.

{numref}`tab-LABEL-parts` gives the numbers.

```{code-cell} ipython3
:tags: [hide-input, remove-output]

table = pd.DataFrame(
    {
        "Part": list(parts),
        "Time": [step.quote(f"{key} in ms as ,.0f") for key in parts.values()],
        "What it is": [step.entry(key)["description"] for key in parts.values()],
    }
)
save_table("NAME/parts", table)
```

:::{table} TODO: what the table lists.
:name: tab-LABEL-parts
:class: stacked

```{include} ../results/tables/NAME/parts.md
```
:::

% End with what the model leaves out, exercises with quoted answers, and the sources.
"""
