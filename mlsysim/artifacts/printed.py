"""A value of an artifact as a text prints it: digits and unit, with the value they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlsysim import units
from mlsysim.artifacts.default_formats import default_form
from mlsysim.artifacts.printing import Spec, parse, text_of
from mlsysim.errors import InputError, MlsysimError

if TYPE_CHECKING:
    from mlsysim.artifacts.reading import Artifact

__all__ = ["Printed", "check_reference", "printed_as", "printed_from"]


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


def printed_from(artifact: Artifact, text: str) -> Printed:
    """The value of `artifact` that a quote prints; its key starts inside the artifact.

    A key that refers to another thing is refused as in a chapter's text. That a scenario fits is
    asked of the chapter that reads it, because a value alone knows no chapter.
    """
    spec = parse(text)
    check_reference(artifact, "", spec.key)
    return printed_as(artifact, spec)


def printed_as(artifact: Artifact, spec: Spec) -> Printed:
    """What `spec` asks of `artifact`, in the format of its key if it asks for none."""
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


def check_reference(artifact: Artifact, name: str, key: str) -> None:
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
