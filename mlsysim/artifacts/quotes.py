"""Quotes: a number of an artifact, printed in a sentence as `KEY in UNIT as FORMAT` asks."""

from __future__ import annotations

from collections.abc import Container, Mapping

from mlsysim.artifacts.printed import Printed, check_reference, printed_as, printed_from
from mlsysim.artifacts.printing import Spec, parse
from mlsysim.artifacts.reading import Artifact, read
from mlsysim.declarations.documents import exists, names
from mlsysim.errors import InputError, UnknownName, nearest
from mlsysim.naming import meant, renamed

__all__ = ["Printed", "Spec", "find", "parse", "printed", "printed_from", "unfit"]


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
    return printed_as(artifact, Spec(key, spec.unit, spec.format))


def find(
    path: str, aliases: Mapping[str, str], *, infeasible: Container[str] = ()
) -> tuple[Artifact, str]:
    """The artifact that a key of a chapter names, and the key inside it; for quotes and claims.

    Raises UnknownName or InputError as `printed` does.
    """
    name, _, key = path.partition(".")
    if name not in aliases and not exists("Scenarios", name):
        raise UnknownName(f"{name!r} is no scenario; {_choices(name, aliases)}")
    if not key:
        raise InputError(
            f"{name!r} is a scenario; say which of its values, such as {name}.step_time"
        )
    artifact = read(aliases.get(name, name))
    check_reference(artifact, name, key)
    if not artifact.feasible and artifact.name not in infeasible:
        _check_input(artifact, key)
    return artifact, key


def _choices(name: str, short: Mapping[str, str]) -> str:
    """The chapter's own short names, then the scenario that is meant, or some that exist."""
    known = names("Scenarios")
    first = meant("Scenarios", name, [*short, *known])
    if not short or renamed("Scenarios", name):
        return first
    listed = first if first.startswith("did") else nearest(name, known)
    return f"short names here: {', '.join(short)}; {listed}"


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
