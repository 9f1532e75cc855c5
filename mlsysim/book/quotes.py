"""Quotes: a number of an artifact, printed in a sentence as `KEY in UNIT as FORMAT` asks."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlsysim import units
from mlsysim.book.default_formats import default_form
from mlsysim.documents import exists, names
from mlsysim.errors import InputError, MlsysimError, UnknownName, nearest
from mlsysim.printing import Spec, parse, text_of

if TYPE_CHECKING:
    from mlsysim.artifacts.reading import Artifact

__all__ = ["Printed", "Spec", "find", "parse", "printed", "printed_from", "unfit"]


@dataclass(frozen=True, repr=False)
class Printed:
    """A value as the page prints it, beside the value and unit of the artifact.

    `key` starts with the scenario's name; `spec` prints the same text again. A notebook shows the
    text with all of these, and with a word on an artifact that is stale.
    """

    text: str
    key: str
    value: int | float | bool | str
    unit: str
    spec: str

    def __str__(self) -> str:
        return self.text

    @property
    def printed_unit(self) -> str:
        """The unit that the text shows, which may be another than that of the artifact."""
        if self.text.endswith("%"):
            return "%"
        asked = parse(self.spec).unit
        return units.unit_text(units.unit(asked)) if asked else self.unit

    def __repr__(self) -> str:
        from mlsysim.artifacts.previews import notices

        exact = f"{self.key} = {self.value!r} {self.unit}".rstrip()
        return "\n".join([f"{self.text}    ({exact})", *notices(self.key.partition(".")[0])])


def printed(
    text: str, aliases: Mapping[str, str] | None = None, *, infeasible: Container[str] = ()
) -> Printed:
    """The value that a quote in a chapter prints; its key starts with a scenario's name.

    `aliases` maps the short names that the chapter gives to scenarios; results of a scenario that
    does not fit are refused unless `infeasible` holds it. Raises UnknownName, UnitError or
    InputError with the nearest names or with what to write.
    """
    spec = parse(text)
    artifact, key = find(spec.key, aliases or {}, infeasible=infeasible)
    return _printed(artifact, Spec(key, spec.unit, spec.format))


def find(
    path: str, aliases: Mapping[str, str], *, infeasible: Container[str] = ()
) -> tuple[Artifact, str]:
    """The artifact that a key of a chapter names, and the key inside it; for quotes and claims.

    Raises UnknownName or InputError as `printed` does.
    """
    from mlsysim.artifacts.reading import read

    name, _, key = path.partition(".")
    if name not in aliases and not exists("Scenarios", name):
        raise UnknownName(f"{name!r} is no scenario; {_choices(name, aliases)}")
    if not key:
        raise InputError(
            f"{name!r} is a scenario; say which of its values, such as {name}.step_time"
        )
    artifact = read(aliases.get(name, name))
    _check_reference(artifact, name, key)
    if not artifact.feasible and artifact.name not in infeasible:
        _check_input(artifact, key)
    return artifact, key


def _choices(name: str, short: Mapping[str, str]) -> str:
    """The chapter's own short names, then the scenario that is meant, or some that exist."""
    known = names("Scenarios")
    meant = nearest(name, [*short, *known])
    if not short:
        return meant
    listed = meant if meant.startswith("did") else nearest(name, known)
    return f"short names here: {', '.join(short)}; {listed}"


def _check_reference(artifact: Artifact, name: str, key: str) -> None:
    """Refuse a key whose value is the name of another thing."""
    value = artifact.entry(key)["value"]
    if not isinstance(value, str):
        return
    parts = [each for each in (*artifact.outputs, *artifact.inputs) if each.startswith(f"{value}.")]
    if parts:
        example = parts[0].removeprefix(f"{value}.")
        raise InputError(
            f"{key} refers to {value}, which is no number; quote one of its values, such as "
            f"{name}.{key}.{example}".removeprefix(".")
        )


def _check_input(artifact: Artifact, key: str) -> None:
    """Of a scenario that does not fit only inputs can be quoted."""
    if artifact.resolve(key) not in artifact.inputs:
        raise InputError(unfit(artifact))


def unfit(artifact: Artifact) -> str:
    """Why results of a scenario that does not fit are refused, and how to quote them on purpose."""
    name = artifact.name
    return (
        f"{name} is infeasible: {artifact.feasibility}. Only if the text is about that, list it in "
        f"the front matter: mlsysim, infeasible: [{name}]"
    )


def printed_from(artifact: Artifact, text: str) -> Printed:
    """The value of `artifact` that a quote prints; its key starts inside the artifact.

    A key that refers to another thing is refused as in a chapter's text. That a scenario fits is
    asked of the chapter that reads it, because a value alone knows no chapter.
    """
    spec = parse(text)
    _check_reference(artifact, "", spec.key)
    return _printed(artifact, spec)


def _printed(artifact: Artifact, spec: Spec) -> Printed:
    entry = artifact.entry(spec.key)
    value, unit = entry["value"], entry["unit"]
    is_word = isinstance(value, (bool, str))
    if not (is_word or spec.unit or spec.format):
        spec = Spec(spec.key, *default_form(artifact.name, artifact.resolve(spec.key)))
    try:
        text = text_of(value, unit, spec)
    except MlsysimError as error:
        raise type(error)(f"{spec.key}: {error}") from None
    whole = Spec(f"{artifact.name}.{spec.key}", spec.unit, spec.format)
    return Printed(text=text, key=whole.key, value=value, unit=unit, spec=str(whole))
