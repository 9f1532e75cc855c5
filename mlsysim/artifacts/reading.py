"""Reading artifacts: what chapters and readers see of a scenario."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mlsysim import files, paths
from mlsysim.artifacts import previews
from mlsysim.artifacts.artifact_schema import VERSION, schema
from mlsysim.artifacts.schema_versions import other_schema
from mlsysim.canonical import loads
from mlsysim.errors import InputError, MlsysimError, UnknownName
from mlsysim.naming import exists, unknown

if TYPE_CHECKING:
    from mlsysim.artifacts.printed import Printed

__all__ = ["Artifact", "read"]


def read(name: str) -> Artifact:
    """The published artifact of the scenario `name`.

    Raises UnknownName for a name that no scenario carries, InputError if it is not solved yet or
    unreadable.
    """
    if not exists("Scenarios", name):
        raise unknown("Scenarios", name)
    try:
        return _read(name, _stamp(name))
    except (AttributeError, KeyError, TypeError):
        shown = paths.shown(paths.artifact(name))
        raise InputError(f"{shown} is damaged; run: snakemake artifacts") from None


@lru_cache(maxsize=256)  # a page reads the same few for each of its quotes
def _read(name: str, _stamp: tuple[object, ...]) -> Artifact:
    return Artifact(_content(name))


def _content(name: str) -> dict[str, Any]:
    """What the artifact's file holds. Raises InputError if that is no artifact of `name`."""
    path = paths.artifact(name)
    data = files.read(path)
    if not data and not path.exists():
        raise InputError(f"{name} is not solved yet; run: snakemake artifacts")
    try:
        content = loads(data)
    except ValueError:
        content = None
    said = content.get("schema") if isinstance(content, dict) else None
    if other := other_schema(said, VERSION):
        raise InputError(f"{paths.shown(path)} is {other}")
    if not (isinstance(content, dict) and content.keys() >= set(schema()["required"])):
        content = {}
    if (content.get("schema"), content.get("name")) != (VERSION, name):
        raise InputError(
            f"{paths.shown(path)} is not the artifact of {name}; run: snakemake artifacts"
        )
    return content


class Artifact:
    """A solved scenario as it was published: values by key, with unit, equation or source.

    Outputs and inputs are attributes too: ``step.step_time`` is a quantity, ``step.result.forward``
    one of the result's, ``step.fleet.node_count`` an input of the fleet that the step refers to.

    In a running notebook it is always the published one: a scenario that is solved again shows
    without a restart, and one that is stale says so where it is shown.
    """

    def __init__(self, content: dict[str, Any]) -> None:
        self._fill(content)
        self._stamp = _stamp(self.name)

    def _fill(self, content: dict[str, Any]) -> None:
        self.content = content
        self.name: str = content["name"]
        self.kind: str = content["kind"]
        self.title: str = content["title"]
        self.description: str = content["description"]
        self.inputs: dict[str, dict[str, Any]] = content["inputs"]
        self.outputs: dict[str, dict[str, Any]] = content["outputs"]
        for entry in (*self.inputs.values(), *self.outputs.values()):
            if not isinstance(entry["value"], (str, int, float)) or "unit" not in entry:
                raise TypeError("an entry without a value or a unit")
        self.feasible: bool = content["feasibility"]["feasible"]
        self.feasibility: str = content["feasibility"]["reason"]
        self.assumptions: list[dict[str, str]] = content["assumptions"]
        self.excludes: list[dict[str, str]] = content["excludes"]
        self.sources: list[str] = content["sources"]

    def _renew(self) -> None:
        """Take what was published since; a file that is no artifact now leaves all as it was."""
        if previews.watched() and self._stamp != _stamp(self.name):
            with suppress(MlsysimError, AttributeError, KeyError, TypeError):
                self._fill(_content(self.name))
                self._stamp = _stamp(self.name)

    def table(self) -> Any:
        """The table beside the artifact, a pandas DataFrame. Raises InputError if there is none."""
        if "table" not in self.content:
            raise InputError(f"{self.name} has no table")
        import pandas as pd

        return pd.read_csv(paths.table(self.name))

    def keys(self) -> list[str]:
        """Every key, outputs first."""
        return [*self.outputs, *self.inputs]

    def __contains__(self, key: object) -> bool:
        """Whether a text is a key, or stands for one."""
        full = self._follow(str(key))
        return full in self.outputs or full in self.inputs

    def resolve(self, key: str) -> str:
        """The full key that `key` stands for: ``fleet.node_count`` is ``Fleets.X.node_count``.

        Raises UnknownName with the nearest keys.
        """
        self._renew()
        full = self._follow(key)
        if full in self.outputs or full in self.inputs:
            return full
        known = self.keys()
        said, thing = (path.rpartition(".")[0] for path in (key, full))
        if thing:
            begins = f"{thing}."
            known = [
                f"{said}.{each.removeprefix(begins)}" for each in known if each.startswith(begins)
            ]
        from mlsysim.declarations.outputs import meant
        from mlsysim.declarations.renamed import loaded_outputs
        from mlsysim.engine.scenario_types import KINDS

        with suppress(KeyError, MlsysimError):  # of an artifact that other code made
            KINDS[self.kind]  # declares, once it is loaded, what was renamed
        raise UnknownName(
            f"{self.name} has no {key!r}; {meant(key, known or self.keys(), loaded_outputs(), 20)}"
        )

    def _follow(self, key: str) -> str:
        """`key` with each reference on its way replaced by the full name of what it refers to."""
        full = ""
        parts = key.split(".")
        for number, part in enumerate(parts, start=1):
            full = f"{full}.{part}" if full else part
            value = self.inputs.get(full, {}).get("value")
            if number < len(parts) and isinstance(value, str) and self._begins(value):
                full = value
        return full

    def _begins(self, prefix: str) -> bool:
        """Whether some key goes on from here."""
        return any(each.startswith(f"{prefix}.") for each in self.keys())

    def entry(self, key: str) -> dict[str, Any]:
        """Value and unit of a key, with equation (an output) or source (an input)."""
        full = self.resolve(key)
        return self.outputs[full] if full in self.outputs else self.inputs[full]

    def value(self, key: str) -> Any:
        """The value of a key: a quantity if it has a unit, else a number, word or truth value."""
        entry = self.entry(key)
        if not entry["unit"] or isinstance(entry["value"], (str, bool)):
            return entry["value"]
        from mlsysim.units import Quantity, unit

        return Quantity(entry["value"], unit(entry["unit"]))

    def quote(self, spec: str) -> Printed:
        """A value as text prints it; `spec` is ``KEY [in UNIT] [as FORMAT]``."""
        from mlsysim.artifacts.printed import printed_from

        return printed_from(self, spec)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Branch(self, name).end()

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key.partition(".")[0] for key in self.keys())]

    def __repr__(self) -> str:
        self._renew()
        return previews.summary(self)

    def _repr_html_(self) -> str:
        self._renew()
        return previews.summary_html(self)


def _stamp(name: str) -> tuple[object, ...]:
    """What tells that a file was replaced or edited, without reading it."""
    path = paths.artifact(name)
    try:
        found = path.stat()
    except OSError:
        return (path,)
    return path, found.st_mtime_ns, found.st_ino, found.st_size


class _Branch:
    """A key that is not complete yet, such as ``result`` before ``.forward``."""

    def __init__(self, artifact: Artifact, key: str) -> None:
        self._artifact = artifact
        self._key = key

    def end(self) -> Any:
        """The value if the key is complete and refers to nothing further, else the branch."""
        artifact, key = self._artifact, self._key
        full = artifact._follow(f"{key}.").removesuffix(".")  # a reference at the end is followed
        return self if artifact._begins(full) else artifact.value(key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Branch(self._artifact, f"{self._key}.{name}").end()

    def __repr__(self) -> str:
        return f"<{self._artifact.name}.{self._key}: ...>"
