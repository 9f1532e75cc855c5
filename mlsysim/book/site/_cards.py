"""The card of a quoted number, as HTML: what it is, what it rests on, and where else it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

from mlsysim.artifacts.numbers import exact_number, with_unit
from mlsysim.artifacts.reading import Artifact
from mlsysim.declarations.follows import NAME

__all__ = ["Place", "Work", "basis", "card", "exact", "identity", "source", "terms"]

_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w[\w-]*)*")
_ASSUMPTION = "assumption: "
_FEW = 12  # a card has no room for more results that one name stands for
_SHARED = ("Fleets", "Hardware", "Models", "Scenarios")


@dataclass(frozen=True)
class Place:
    """A place that prints a value: its page as the book lists it, a link to it, the text there."""

    page: str
    href: str
    text: str


@dataclass(frozen=True)
class Work:
    """A cited work or scenario: its label, its title, and a link, empty if the book has none."""

    label: str
    title: str
    href: str = ""


def exact(entry: Mapping[str, Any]) -> str:
    r"""The value of an entry of an artifact with all its digits and its unit.

    >>> exact({"value": 3145728, "unit": "tok"}), exact({"value": True, "unit": ""})
    ('3,145,728\xa0tokens', 'yes')
    """
    value = entry["value"]
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else with_unit(exact_number(value), entry["unit"])


def identity(artifact: Artifact, key: str) -> tuple[Any, ...]:
    """What two keys have in common that stand for one value.

    A result, or an input of the scenario itself, belongs to this scenario alone. An input of a
    thing that scenarios share, such as a model, is the same wherever it has the same value.
    """
    full = artifact.resolve(key)
    entry = artifact.entry(full)
    shared = full.split(".")[0] in _SHARED
    return ("" if shared else artifact.name, full, entry["value"], entry["unit"])


def terms(artifact: Artifact, key: str) -> dict[str, str]:
    """What the names in the equation of a result stand for: keys of the artifact.

    A name is looked for beside the key, then among all. It may be that of a few results together,
    as in "sum of hidden". Other words of an equation stand for nothing.
    """
    full = artifact.resolve(key)
    if full not in artifact.outputs:
        return {}
    beside = full.rpartition(".")[0]
    found: dict[str, str] = {}
    for name in _NAME.findall(artifact.outputs[full]["equation"]):
        asked = name.removesuffix(".magnitude")
        for candidate in (f"{beside}.{asked}", asked) if beside else (asked,):
            if candidate in artifact and artifact.resolve(candidate) != full:
                found.setdefault(asked, artifact.resolve(candidate))
                break
            group = [each for each in artifact.outputs if each.startswith(f"{candidate}.")]
            if group and len(group) <= _FEW and full not in group:
                found |= {asked + each.removeprefix(candidate): each for each in group}
                break
    return found


def source(text: str, works: Mapping[str, Work]) -> str:
    """Where an input comes from, as HTML: works by their authors, with the place in them."""
    if text.startswith(_ASSUMPTION):
        return f"Assumption: {_html(text.removeprefix(_ASSUMPTION))}"
    parts = []
    for part in text.split(";"):
        key, _, place = (each.strip() for each in part.partition(","))
        work = works.get(key, Work(key, ""))
        label = _html(work.label)
        if work.href:
            label = f'<a href="{escape(work.href)}" title="{escape(work.title)}">{label}</a>'
        parts.append(label + (f", {_html(place)}" if place else ""))
    return "; ".join(parts)


def origin(entry: Mapping[str, Any], works: Mapping[str, Work]) -> str:
    """Where an input comes from, as HTML: what it follows, and its source."""
    said = source(entry["source"], works)
    if "follows" not in entry:
        return said

    def linked(name: re.Match[str]) -> str:
        work = works.get(".".join(name[0].split(".")[:2]), Work("", ""))
        link = f'<a href="{escape(work.href)}" title="{escape(work.title)}">' if work.href else ""
        return f"{link}{_code(name[0])}</a>" if link else _code(name[0])

    return f"Follows {re.sub(NAME, linked, _html(entry['follows']))}. {said}"


def card(
    artifact: Artifact,
    key: str,
    places: Iterable[Place],
    works: Mapping[str, Work],
    *,
    page: str = "",
    draft: bool = False,
) -> str:
    """The card of one key. Links start at the root of the book; `page` is the scenario's, if any.

    That of a `draft` says so.

    A result leaves room, an element of class ``basis``, for what all results of the scenario share.
    """
    full = artifact.resolve(key)
    entry = artifact.entry(full)
    name = _code(f"{artifact.name}.{key}")
    parts = [
        f'<p class="key" id="quote-card-key">{name}</p>',
        f'<p class="value">{_html(exact(entry))}</p>',
    ]
    if entry.get("description"):
        parts.append(f'<p class="words">{_sentence(entry["description"])}</p>')
    if full in artifact.outputs:
        parts += _equation(artifact, full)
    else:
        parts.append(f'<p class="words">{origin(entry, works)}</p>')
    if draft:
        parts.append('<p class="words"><strong>Draft</strong>, not to be published.</p>')
    if not artifact.feasible:
        parts.append(f'<p class="words">{_sentence(f"infeasible: {artifact.feasibility}")}</p>')
    if full in artifact.outputs:
        parts.append('<div class="basis"></div>')
    title = _html(artifact.title)
    scenario = f'<a href="{escape(page)}">{title}</a>' if page else title
    data = f'<a href="artifacts/{artifact.name}.json">artifact</a>'
    parts += [
        _printed(places),
        f'<p class="scenario">{scenario} ({data})</p>',
        f'<p class="command"><code>mlsysim show {name}</code></p>',
    ]
    return "\n".join(parts)


def _equation(artifact: Artifact, key: str) -> list[str]:
    """The equation of a result, and the values of the names in it.

    An equation that only names another result is followed to the equation of that.
    """
    equations, named = [], {key: key}
    following: str | None = key
    while following in artifact.outputs and artifact.outputs[following]["equation"]:
        equations.append(artifact.outputs[following]["equation"])
        named = terms(artifact, following)
        following = named.get(equations[-1]) if len(equations) < len(artifact.outputs) else None
    if not equations:
        return []
    lines = [
        f'<p class="equation"><span aria-hidden="true">= </span>{_code(each)}</p>'
        for each in equations
    ]
    return [f'<div class="equations">{"".join(lines)}</div>', _rows(artifact, named)]


def _rows(artifact: Artifact, named: Mapping[str, str]) -> str:
    """Names with the values that they stand for; nothing if there are none."""
    rows = [
        f"<div><dt>{_code(name)}</dt><dd>{_html(exact(artifact.entry(key)))}</dd></div>"
        for name, key in named.items()
    ]
    return f'<dl class="terms">{"".join(rows)}</dl>' if rows else ""


def _printed(places: Iterable[Place]) -> str:
    """The places that print the value, page by page."""
    pages = []
    for page, found in groupby(places, lambda place: place.page):
        links = [f'<a href="{escape(each.href)}">{_html(each.text)}</a>' for each in found]
        pages.append(f"<li>{_html(page)}: {', '.join(links)}</li>")
    return f'<div class="places"><p>Printed in</p><ul>{"".join(pages)}</ul></div>'


def basis(artifact: Artifact, works: Mapping[str, Work]) -> str:
    """What all results of a scenario rest on, as HTML: inputs with sources, and assumptions."""
    things: dict[str, list[str]] = {}
    for key, entry in artifact.inputs.items():
        thing = key.rpartition(".")[0] if key.split(".")[0] in _SHARED else ""
        name = key.removeprefix(f"{thing}.")
        things.setdefault(thing, []).append(
            f"<div><dt>{_code(name)}</dt><dd>{_html(exact(entry))}</dd>"
            f'<dd class="from">{origin(entry, works)}</dd></div>'
        )
    inputs = [
        (f"<p>{_code(thing)}</p>" if thing else "") + f"<dl>{''.join(rows)}</dl>"
        for thing, rows in things.items()
    ]
    parts = [_details(f"{len(artifact.inputs)} inputs and their sources", "".join(inputs))]
    for title, stated in (
        ("assumptions", artifact.assumptions),
        ("things left out", artifact.excludes),
    ):
        if stated:
            items = "".join(f"<li>{_sentence(each['text'])}</li>" for each in stated)
            parts.append(_details(f"{len(stated)} {title}", f"<ul>{items}</ul>"))
    return "\n".join(parts)


def _details(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>{content}</details>"


def _sentence(text: str) -> str:
    """A statement with a capital first and a full stop last."""
    full = text if text.endswith((".", "!", "?")) else f"{text}."
    return _html(full[:1].upper() + full[1:])


def _code(text: str) -> str:
    """Code that a narrow card may break at its dots and underscores."""
    return re.sub(r"(?<=\w)([._])(?=\w)", r"\1<wbr>", _html(text))


def _html(text: str) -> str:
    return escape(text, quote=False)
