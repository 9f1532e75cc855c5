"""The reference page of a scenario class, from its docstrings, fields and outputs."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_type_hints

from mlsysim.artifacts.reading import Artifact
from mlsysim.book.products.markdown import block, code, link, prose, table, under
from mlsysim.book.reference._class_examples import example_of, returned
from mlsysim.declarations.docstrings import equation_of, section_of, summary_of
from mlsysim.declarations.kinds import Kind, kind_of
from mlsysim.declarations.outputs import Output, outputs
from mlsysim.engine.scenario import Scenario

__all__ = ["class_page", "link_to", "properties"]

_SECTIONS = ("Equation", "Assumptions", "Excludes", "Derivation", "References")
_CONSTRUCT = (
    "Construct this scenario with keyword inputs. The fields below show the types, units and "
    "defaults declared by this class."
)
_ALL = "{doc}`All classes </reference/classes>`"
_OFFERED = "mlsysim.engine.scenario_types"


def class_page(cls: type[Scenario], artifacts: Sequence[Artifact] = ()) -> str:
    """The page of `cls` as MyST; `artifacts` are those of the named scenarios of this class."""
    cited = sorted({key for artifact in artifacts for key in artifact.sources})
    name, topic = cls.__name__, cls.__module__.rpartition(".")[2].replace("_", " ").capitalize()
    source = f"{cls.__module__.replace('.', '/')}.py"
    parts = [
        f"# {name}",
        f"{topic} scenarios · Implementation: {code(source)} · {_ALL}.",
        _CONSTRUCT,
        *_directive("class", f"{name}({_signature(cls)})", _description(cls)),
        "## Notes",
        *_notes(cls),
        "## References",
        *_references(cls, cited),
        "## Example",
        *_example(cls, artifacts),
        "## Attributes",
        _attributes(cls),
        "## Declared fields",
        *_declared(cls),
        "## Properties",
        *(part for each in properties(cls) for part in _property(cls, *each)),
    ]
    for output in outputs(cls):
        parts += _inner(output)
    if cls.table_rows is not Scenario.table_rows:
        parts += ["## Table", block(prose(_first_paragraph(cls.table_rows)))]
    return "\n\n".join(parts) + "\n"


def _directive(kind: str, signature: str, body: Iterable[str]) -> list[str]:
    """An entry of Sphinx's Python domain, in the module that offers all classes."""
    text = "\n\n".join(body)
    return [f":::{{py:{kind}}} {signature}\n:module: {_OFFERED}\n\n{text}\n:::"]


def _signature(cls: type[Scenario]) -> str:
    fields = [field.name for field in dataclasses.fields(cls)]
    return ", ".join(["*", *fields]) if fields else ""


def _paragraphs(documented: Any) -> list[str]:
    return inspect.cleandoc(documented.__doc__ or "").split("\n\n")


def _first_paragraph(documented: Any) -> str:
    return " ".join(_paragraphs(documented)[0].split())


def _description(cls: type[Scenario]) -> list[str]:
    """The paragraphs of the docstring before and between its titled sections."""
    titled = re.compile(rf"({'|'.join(_SECTIONS)}):|>>> ")
    return [block(prose(each)) for each in _paragraphs(cls) if not titled.match(each)]


def _notes(cls: type[Scenario]) -> Iterator[str]:
    for title in ("Equation", "Assumptions", "Excludes"):
        text = section_of(cls, title)
        if text:
            said = code(text) if title == "Equation" else prose(text)
            yield f"**{title}:** {said}."
    for solver in cls.solvers:
        excluded = section_of(solver, "Excludes")
        if excluded:
            yield f"**Excludes, with** {code(solver.__name__)}**:** {prose(excluded)}."


def _references(cls: type[Scenario], cited: Iterable[str]) -> Iterator[str]:
    for title in ("Derivation", "References"):
        text = section_of(cls, title)
        if text:
            yield f"**{title}:** {prose(text)}."
    if cls.solvers:
        names = " and ".join(code(f"{each.__module__}.{each.__name__}") for each in cls.solvers)
        yield f"**Solver:** {names}; its formulas state their sources in their docstrings."
    keys = ",".join(cited)
    if keys:
        yield f"**Sources** of the inputs of its named scenarios: {{cite:t}}`{keys}`."


def _example(cls: type[Scenario], artifacts: Sequence[Artifact]) -> Iterator[str]:
    example = example_of(cls, artifacts)
    if example:
        yield "The named scenario supplies illustrative inputs; the output is calculated."
        yield f"```pycon\n{example}\n```"
    listed = [link_to(each.name) for each in artifacts]
    if listed:
        yield f"Named scenarios of this class: {', '.join(listed)}."
    else:
        yield "No scenario of this class has a name yet."


def link_to(name: str) -> str:
    """A link from any page to the page of a named scenario."""
    return f"{{doc}}`{name} </reference/scenarios/{name}>`"


def properties(cls: type[Scenario]) -> list[tuple[str, Any]]:
    """The public properties of a class in the order they are written: outputs, then the others."""
    plain = {
        name: member
        for base in reversed(cls.__mro__)
        for name, member in vars(base).items()
        if isinstance(member, property) and not name.startswith("_")
    }
    return [(output.name, output) for output in outputs(cls)] + list(plain.items())


def _unit(member: Any) -> str:
    return member.unit if isinstance(member, Output) else ""


def _attributes(cls: type[Scenario]) -> str:
    """Every name of the class in alphabetical order, with a link to its entry."""
    told = {
        field.name: (field.metadata["unit"], field.metadata["description"])
        for field in dataclasses.fields(cls)
    }
    told |= {name: (_unit(each), summary_of(each)) for name, each in properties(cls)}
    rows = [
        [
            link(code(name), f"#{_OFFERED}.{cls.__name__}.{name}"),
            code(unit) if unit else "",
            prose(text[:1].upper() + text[1:].rstrip(".")) + ".",
        ]
        for name, (unit, text) in sorted(told.items())
    ]
    return table(["Name", "Unit", "Description"], rows)


def _declared(cls: type[Scenario]) -> Iterator[str]:
    for field in dataclasses.fields(cls):
        kind, text = kind_of(field), field.metadata["description"]
        said = [f"{block(prose(text[:1].upper() + text[1:]))}."]
        lines = [f"Type: {_type(kind)}."]
        if kind.unit:
            like = "a unit like " if kind.takes_any_unit else ""
            lines.append(f"Unit: {like}{code(kind.unit)}.")
        if ends := kind.ends_in_words():
            lines.append(f"Range: {', '.join(ends)}.")
        if kind.choices:
            lines.append(f"Choices: {', '.join(code(str(each)) for each in kind.choices)}.")
        required = field.default is dataclasses.MISSING
        lines.append(f"Declared default: {'required' if required else code(repr(field.default))}.")
        said.append("\\\n".join(lines))
        yield from _directive("attribute", f"{cls.__name__}.{field.name}", said)


def _type(kind: Kind) -> str:
    if kind.type_in_words:
        return f"{code(kind.name)}, {kind.type_in_words}"
    return f"{{py:class}}`{kind.name} <{_OFFERED}.{kind.name}>`"


def _inner(output: Output[Any]) -> list[str]:
    """The outputs of an output that has its own: ``result.forward``."""
    made = get_type_hints(output.compute).get("return")
    if not isinstance(made, type) or not any(outputs(made)):
        return []
    rows = [
        [
            code(f"{output.name}.{each.name}"),
            code(each.unit) if each.unit else "",
            under(prose(summary_of(each)), code(equation_of(each))),
        ]
        for each in outputs(made)
    ]
    return [
        f"## Properties of {output.name}",
        f"{code(made.__name__)}: {prose(_first_paragraph(made))}",
        table(["Name", "Unit", "Meaning and equation"], rows),
    ]


def _property(cls: type[Scenario], name: str, member: Any) -> list[str]:
    kind = returned(member.compute if isinstance(member, Output) else member.fget)
    lines = [f"Type: {code(kind)}."] if kind else []
    if _unit(member):
        lines.append(f"Unit: {code(_unit(member))}.")
    if equation_of(member):
        lines.append(f"Equation: {code(equation_of(member))}.")
    said = [block(prose(summary_of(member))), *(["\\\n".join(lines)] if lines else [])]
    return _directive("property", f"{cls.__name__}.{name}", said)
