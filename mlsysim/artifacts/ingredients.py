"""What results are made from: inputs, modules and libraries, each part with its digest."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from mlsysim import paths
from mlsysim.artifacts.artifact_schema import VERSION
from mlsysim.artifacts.code import Module, closure, closure_of_kind, libraries
from mlsysim.canonical import digest
from mlsysim.declarations.documents import Document
from mlsysim.engine.scenario_types import HOMES
from mlsysim.errors import InputError
from mlsysim.runtime.pins import pins

__all__ = ["CHAPTERS", "RECORDS", "Ingredients", "code", "ingredients", "pinned", "short"]

INPUTS = "inputs"

# The modules that cells of chapters run, and those that write the records of quotes and claims.
CHAPTERS = (
    "mlsysim.book",
    "mlsysim.book.products.charts",
    "mlsysim.book.products.tables",
    "mlsysim.book.products.figures",
    "mlsysim.book.execution.chapter_execution",
    "mlsysim.book.execution._host",
)
RECORDS = ("mlsysim.book.pages.page_sources",)


def short(long: str) -> str:
    """A digest as the lock holds it: its first 60 bits in ten characters of base64.

    A content is only ever compared with the few that its own line certifies, so that 60 bits hide
    an edit once in 10^18 edits. They are no guard against one who forges: the lock can be edited.

    >>> short("c0de" * 6)
    'wN7A3sDewN'
    """
    return base64.urlsafe_b64encode(bytes.fromhex(long)).decode()[:10]


@dataclass(frozen=True)
class Ingredients:
    """What something is made from: the digest of each part, by name."""

    parts: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        """One digest of all parts, as the lock holds it."""
        return short(digest(self.parts))

    @property
    def inputs(self) -> str:
        """The digest of a scenario's resolved inputs."""
        return dict(self.parts)[INPUTS]

    @property
    def code(self) -> tuple[tuple[str, str], ...]:
        """All parts but the inputs."""
        return tuple(part for part in self.parts if part[0] != INPUTS)

    @property
    def modules(self) -> list[tuple[str, str]]:
        """The parts that are modules of this package."""
        package = paths.PACKAGE.name
        return [part for part in self.parts if part[0].partition(".")[0] == package]

    @property
    def libraries(self) -> list[str]:
        """The parts that are libraries of others."""
        ours = {INPUTS, _SCHEMA, *(name for name, _ in self.modules)}
        return [name for name, _ in self.parts if name not in ours]


_SCHEMA = "the schema of artifacts"


def ingredients(document: Document, same_kind: Ingredients | None = None) -> Ingredients:
    """The ingredients of a scenario as they are now; its code is that of others of its kind."""
    try:
        made_with = same_kind.code if same_kind else _code_of_kind(document.kind)
    except InputError as error:
        raise InputError(f"{document.place}: {error}") from None
    return Ingredients(((INPUTS, digest(document.content())), *made_with))


def _code_of_kind(kind: str) -> tuple[tuple[str, str], ...]:
    modules = closure_of_kind(kind)
    pins = {name: digest(lines) for name, lines in libraries(modules).items()}
    return tuple({_SCHEMA: str(VERSION), **pins, **_digests(modules)}.items())


def _digests(modules: Mapping[str, Module]) -> dict[str, str]:
    return {name: each.digest for name, each in modules.items()}


def pinned() -> str:
    """A digest of the pinned libraries, whatever is said about them in comments."""
    return digest([pin.line for pin in pins()])


def code(words: Iterable[str]) -> dict[tuple[str, str], str]:
    """The digest of each module and library that makes such results, by ("module", its name).

    A module may count with other definitions for each kind of scenario; its digest is over all.
    """
    starts = {"chapter": CHAPTERS, "record": RECORDS}
    closures = [closure(*starts[word]) for word in sorted({*words}) if word in starts]
    for kind in HOMES:
        with suppress(SyntaxError):  # of a class that is being written, and made nothing yet
            closures.append(closure_of_kind(kind))
    found: dict[str, set[str]] = {}
    for modules in closures:
        for name, each in modules.items():
            found.setdefault(name, set()).add(each.digest)
    pins = libraries({name: each for modules in closures for name, each in modules.items()})
    return {
        **{("library", name): short(digest(lines)) for name, lines in pins.items()},
        **{("module", name): short(digest(sorted(each))) for name, each in found.items()},
    }
