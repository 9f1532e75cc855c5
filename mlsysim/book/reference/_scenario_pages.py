"""The page of a named scenario: what it is, what it gives, what it rests on, and who uses it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlsysim.book.products.markdown import block, code, escaped, link, prose, table, under, value
from mlsysim.book.reference._class_pages import link_to
from mlsysim.book.reference._output_rows import outputs_section
from mlsysim.book.source.product_uses import Product

__all__ = ["Told", "scenario_page", "sourced"]

_UP = "../.."  # from reference/scenarios to the first page
# What separates words in a file; a no-break space is one of the title.
_BLANKS = re.compile(r"[ \t\r\n]+")
_COLLECTIONS = ("Scenarios.", "Hardware.", "Models.", "Fleets.")


@dataclass(frozen=True)
class Told:
    """What a page says beside the artifact.

    `purpose` is the comment at the head of the scenario's file, `base` the scenario that it varies
    and `own` the fields that it gives itself; `ingredients` are digests by module and library;
    `printed` counts the numbers that each chapter prints of it, `products` are the figures and
    tables by chapter, `used_by` the scenarios that refer to it, `drafts` the files with a TODO
    that it rests on.
    """

    purpose: str = ""
    base: str = ""
    own: tuple[str, ...] = ()
    ingredients: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    printed: Mapping[str, int] = field(default_factory=dict)
    products: Mapping[str, list[Product]] = field(default_factory=dict)
    used_by: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()


def scenario_page(artifact: Mapping[str, Any], told: Told) -> str:
    """The page as MyST, from the content of the artifact and what is told beside it."""
    name, inputs = artifact["name"], artifact["inputs"]
    references = [
        each for each in dict.fromkeys(_owner(key) for key in inputs) if each
    ]  # in the order in which the inputs lead to them
    parts = [
        f"# {name}",
        f"**{escaped(_BLANKS.sub(' ', artifact['title']).strip())}**",
        _draft(told.drafts),
        block(prose(told.purpose)),
        _facts(artifact, told, references),
        "## Outputs",
        *outputs_section(artifact["outputs"]),
        "## Inputs",
        *_inputs(inputs, references),
        *_statements("Assumptions", artifact["assumptions"]),
        *_statements("Left out", artifact["excludes"]),
        "## Where it is used",
        *_used(told),
        "## Make it again",
        *_commands(artifact),
        "## Ingredients",
        *_ingredients(told),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _draft(files: Iterable[str]) -> str:
    """A box that says that the scenario is a draft, if it is one."""
    listed = ", ".join(map(code, files))
    said = f"TODO stands in {listed}. Nothing of this is published."
    return f":::{{admonition}} Draft\n:class: warning draft\n\n{said}\n:::" if listed else ""


def _facts(artifact: Mapping[str, Any], told: Told, references: list[str]) -> str:
    """The first things that a reader wants to know, as a list of fields."""
    name, kind, feasibility = artifact["name"], artifact["kind"], artifact["feasibility"]
    facts = {"Class": f"{{doc}}`{kind} </reference/classes/{kind}>`"}
    if told.base:
        own = ", ".join(map(code, told.own))
        facts["Derived from"] = (
            f"{_linked(told.base)}, {f'with its own {own}' if own else 'as it is'}"
        )
    fits = "yes" if feasibility["feasible"] else "**no**"
    facts["Feasible"] = f"{fits} ({prose(feasibility['reason'])})"
    if references:
        facts["Rests on"] = ", ".join(map(_linked, references))
    facts["Artifact"] = link(f"{name}.json", f"{_UP}/artifacts/{name}.json")
    if "table" in artifact:
        file, count = artifact["table"]["file"], artifact["table"]["rows"]
        facts["Table"] = f"{link(file, f'{_UP}/artifacts/{file}')}, {count:,} rows"
    facts["See also"] = (
        "{doc}`all scenarios </reference/scenarios>`, {doc}`all classes </reference/classes>`"
    )
    return "\n".join(f":{title}: {text}" for title, text in facts.items())


def _owner(key: str) -> str:
    """The thing that an input belongs to: ``Hardware.H100_SXM``; empty for the scenario's own."""
    return ".".join(key.split(".")[:2]) if key.startswith(_COLLECTIONS) else ""


def _linked(reference: str) -> str:
    """A thing by its full name, with a link if it is a scenario."""
    collection, _, name = reference.partition(".")
    return link_to(name) if collection == "Scenarios" else code(reference)


def _inputs(inputs: Mapping[str, Mapping[str, Any]], references: list[str]) -> Iterator[str]:
    """The scenario's own inputs, then those of each thing that they lead to."""
    for reference in ["", *references]:
        begins = f"{reference}." if reference else ""
        if reference:
            yield f"### {reference}"
        yield table(
            ["Input", "Value", "Meaning and source"],
            [
                [
                    code(key.removeprefix(begins)),
                    _given(entry),
                    under(prose(_sentence(entry["description"])), origin(entry)),
                ]
                for key, entry in inputs.items()
                if _owner(key) == reference
            ],
        )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _given(entry: Mapping[str, Any]) -> str:
    given = entry["value"]
    if isinstance(given, str) and given.startswith(_COLLECTIONS):
        return _linked(given)
    return value(entry)


def origin(entry: Mapping[str, Any]) -> str:
    """Where an input comes from: what it follows, and its source.

    >>> origin({"follows": "Models.GPT3_175B.layers", "source": "assumption: as many"})
    '*Follows* `Models.GPT3_175B.layers`. *Assumption:* as many'
    """
    said = sourced(entry["source"])
    if "follows" not in entry:
        return said
    return f"*Follows* {code(entry['follows'])}. {said}"


def sourced(source: str) -> str:
    r"""A source as text with citations, or as an assumption.

    >>> sourced("brown2020, Table 2.1; kaplan2020, Section 5")
    '{cite:t}`brown2020`, Table 2.1; {cite:t}`kaplan2020`, Section 5'
    >>> sourced("assumption: the usual depth")
    '*Assumption:* the usual depth'
    """
    if source.startswith("assumption"):
        return f"*Assumption:* {prose(source.partition(':')[2])}"
    parts = []
    for part in filter(str.strip, source.split(";")):
        key, _, place = (each.strip() for each in part.partition(","))
        parts.append(f"{{cite:t}}`{key}`, {escaped(place)}")
    return "; ".join(parts)


def _statements(title: str, stated: Iterable[Mapping[str, str]]) -> Iterator[str]:
    lines = [
        f"- {block(prose(_sentence(each['text'])))} ({_stated_by(each['where'])})"
        for each in stated
    ]
    if lines:
        yield f"## {title}"
        yield "\n".join(lines)


def _stated_by(where: str) -> str:
    """A class as code, a topic as words."""
    return code(where) if where[:1].isupper() else prose(where)


def _used(told: Told) -> Iterator[str]:
    lines = []
    for chapter in dict.fromkeys([*told.products, *told.printed]):
        count, said = told.printed.get(chapter, 0), []
        if count:
            said.append(
                f"prints {count:,} of its values" if count > 1 else "prints one of its values"
            )
        shown = [
            f"{{numref}}`{product.label}`" if product.label else code(product.stem)
            for product in told.products.get(chapter, [])
        ]
        if shown:
            said.append(f"shows it in {', '.join(shown)}")
        lines.append(f"- {{doc}}`/{chapter}` {' and '.join(said) or 'reads it'}.")
    if told.used_by:
        lines.append(f"- Other scenarios refer to it: {', '.join(map(link_to, told.used_by))}.")
    if told.printed:
        lines.append("- {doc}`/reference/numbers` lists every place that prints a value of it.")
    yield "\n".join(lines) if lines else "No chapter and no other scenario uses it."


def _commands(artifact: Mapping[str, Any]) -> Iterator[str]:
    name, first = artifact["name"], next(iter(artifact["outputs"]))
    yield (
        "```sh\n"
        f"mlsysim show {name}          # this page, in a terminal\n"
        f"mlsysim show {name}.{first}  # one value with all that it rests on\n"
        f"mlsysim solve {name}         # make the artifact again\n"
        "mlsysim verify  # solve every scenario again and compare\n"
        "```"
    )


def _ingredients(told: Told) -> Iterator[str]:
    yield (
        "The artifact follows from its inputs, from the code that solves it, and from the "
        "libraries which that code imports."
    )
    if told.digests:
        yield table(
            ["Ingredient", "Digest"], [[prose(what), code(it)] for what, it in told.digests.items()]
        )
    if told.ingredients:
        yield f"Modules and libraries: {', '.join(map(code, told.ingredients))}."
