"""What a scenario's file says in words that reach a page: first comment, title and assumptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mlsysim import files, paths
from mlsysim.artifacts.printing import QUOTE, filled
from mlsysim.artifacts.reading import Artifact, read
from mlsysim.book.check._written_numbers import TypedNumber, in_text
from mlsysim.book.source.findings import accepts
from mlsysim.errors import MlsysimError

__all__ = ["place", "purpose", "referred", "text", "typed_numbers"]

_SAID = re.compile(r"\s*(?:title\s*=|source\s*=\s*[\"']+assumption)(?P<text>.*)")


def place(name: str) -> str:
    """A scenario's file as messages name it."""
    return paths.shown(paths.scenarios() / f"{name}.toml")


def text(name: str) -> str:
    """The source of a scenario's file."""
    return files.text(paths.scenarios() / f"{name}.toml")


def purpose(name: str) -> str:
    """The comment at the head of a scenario's file, with what its quotes print.

    Raises MlsysimError with the file for a quote that prints nothing.
    """
    said = " ".join(line for _, line in _head(text(name)))
    try:
        return filled(said, lambda key: _entry(read(name), key))
    except MlsysimError as error:
        raise type(error)(f"{place(name)}: first comment: {error}") from None


def typed_numbers(name: str) -> list[TypedNumber]:
    """The numbers that these texts type, by line.

    Few values are compared with them, so they need no word that says what they are.
    """
    source = text(name)
    lines = [*_head(source)]
    for number, line in enumerate(source.splitlines(), start=1):
        if said := _SAID.match(line):
            lines.append((number, said["text"]))
    return [
        TypedNumber(**{**vars(typed), "context": None})
        for number, said in lines
        for typed in in_text(QUOTE.sub("\0", said), number)
    ]


def referred(artifact: Artifact) -> dict[str, str]:
    """The scenarios that a scenario refers to, by the field that leads there."""
    values = ((key, entry["value"]) for key, entry in artifact.inputs.items())
    return {
        key: value.removeprefix("Scenarios.")
        for key, value in values
        if isinstance(value, str) and re.fullmatch(r"Scenarios\.\w+", value) and "." not in key
    }


def _head(source: str) -> Iterator[tuple[int, str]]:
    """The lines of the first comment, but for those that accept a finding."""
    silent = {accept.line for accept in accepts(source)}
    for number, line in enumerate(source.splitlines(), start=1):
        if not line.startswith("#"):
            return
        if number not in silent:
            yield number, line.lstrip("#").strip()


def _entry(artifact: Artifact, key: str) -> Mapping[str, Any]:
    """A value by its key, or by the field that leads to the scenario that has it."""
    field, _, rest = key.partition(".")
    if key not in artifact and rest and (other := referred(artifact).get(field)):
        return _entry(read(other), rest)
    return artifact.entry(key)
