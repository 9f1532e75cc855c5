"""The card of a quoted number, as HTML: what it is, what it rests on, and where else it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

from mlsysim.artifacts.numbers import exact_number, with_unit
from mlsysim.artifacts.reading import Artifact
from mlsysim.declarations.follows import NAME
from mlsysim.templates import template

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


def _cited(text: str, works: Mapping[str, Work]) -> Iterator[tuple[Work, str]]:
    """The works that a source names, each with the place in it."""
    for part in text.split(";"):
        key, _, place = (each.strip() for each in part.partition(","))
        yield works.get(key, Work(key, "")), place


def _followed(text: str, works: Mapping[str, Work]) -> Iterator[tuple[str, Work]]:
    """The parts of what a value follows: names with their scenarios, and the text between them."""
    for part in re.split(f"({NAME})", text):
        shown = _code(part) if re.fullmatch(NAME, part) else part
        yield shown, works.get(".".join(part.split(".")[:2]), Work(part, ""))


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
    equations, named = _equations(artifact, full)
    return str(
        _macros().card(
            key=f"{artifact.name}.{key}",
            entry=artifact.entry(full),
            artifact=artifact,
            is_result=full in artifact.outputs,
            equations=equations,
            terms={name: artifact.entry(each) for name, each in named.items()},
            pages=[(name, list(found)) for name, found in groupby(places, lambda each: each.page)],
            works=works,
            page=page,
            draft=draft,
        )
    )


def _equations(artifact: Artifact, key: str) -> tuple[list[str], dict[str, str]]:
    """The equation of a result, and what the names in it stand for; an input has none.

    An equation that only names another result is followed to the equation of that.
    """
    equations: list[str] = []
    named: dict[str, str] = {}
    following: str | None = key
    while following in artifact.outputs and artifact.outputs[following]["equation"]:
        equations.append(artifact.outputs[following]["equation"])
        named = terms(artifact, following)
        following = named.get(equations[-1]) if len(equations) < len(artifact.outputs) else None
    return equations, named


def basis(artifact: Artifact, works: Mapping[str, Work]) -> str:
    """What all results of a scenario rest on, as HTML: inputs with sources, and assumptions."""
    things: dict[str, dict[str, Any]] = {}
    for key, entry in artifact.inputs.items():
        thing = key.rpartition(".")[0] if key.split(".")[0] in _SHARED else ""
        things.setdefault(thing, {})[key.removeprefix(f"{thing}.")] = entry
    return str(_macros().basis(artifact, things, works))


def source(text: str, works: Mapping[str, Work]) -> str:
    """Where an input comes from, as HTML: works by their authors, with the place in them."""
    return str(_macros().source(text, works))


def _macros() -> Any:
    """The macros of the template, which call what reads artifacts and shapes words."""
    made = template(
        "book/site/templates/cards.html",
        ASSUMPTION=_ASSUMPTION,
        cited=_cited,
        code=_code,
        exact=exact,
        followed=_followed,
        sentence=_sentence,
    )
    return made.module


def _sentence(text: str) -> str:
    """A statement with a capital first and a full stop last."""
    full = text if text.endswith((".", "!", "?")) else f"{text}."
    return full[:1].upper() + full[1:]


def _code(text: str) -> Markup:
    """Code that a narrow card may break at its dots and underscores."""
    return Markup(re.sub(r"(?<=\w)([._])(?=\w)", r"\1<wbr>", str(escape(text))))
