"""`mlsysim check`: what the build cannot refuse, but an author should mend or accept in place."""

from __future__ import annotations

import re
from functools import cached_property

from mlsysim import files, paths
from mlsysim.artifacts.reading import Artifact, read
from mlsysim.book.check import _shown_cells, _usage, scenario_texts
from mlsysim.book.check._history import earlier_values
from mlsysim.book.check._written_numbers import COUNTED, TypedNumber
from mlsysim.book.check.known_values import Known, KnownValues, values_of
from mlsysim.book.check.typed_numbers import typed_numbers
from mlsysim.book.pages.page_sources import Page, pages
from mlsysim.book.pages.refusals import wrong_on
from mlsysim.book.source.findings import Accept, Finding, accepts, accepts_on_page
from mlsysim.calibration.agreement import differences
from mlsysim.declarations import drafts
from mlsysim.declarations.documents import names
from mlsysim.errors import MlsysimError

__all__ = ["check"]

_PLACE = re.compile(r"(?P<file>chapters/[\w.-]+)(?::(?P<line>\d+))?: (?P<message>.*)", re.DOTALL)


def check(*, history: bool = False) -> tuple[list[Finding], str]:
    """Everything that was found and not accepted, by file and line, and a remark on the history.

    `history` searches the artifacts of earlier revisions too.
    """
    book = pages()
    old, remark = earlier_values() if history else ([], "")
    found = _Check(book, old, history=history).findings()
    found += [Finding("follows", each.file, each.line, each.advice) for each in differences()]
    return sorted(found, key=lambda each: (each.information, each.file, each.line)), remark


class _Check:
    """One check of the book; what is read is read once."""

    def __init__(self, book: list[Page], old: list[Known], *, history: bool) -> None:
        self.book = book
        self.old = old
        self.history = history

    @cached_property
    def artifacts(self) -> dict[str, Artifact]:
        """Every artifact that is solved, by name."""
        return {name: read(name) for name in names("Scenarios") if paths.artifact(name).is_file()}

    def findings(self) -> list[Finding]:
        """All findings but those that a comment accepts, and the comments that accept nothing."""
        sound, found = list[Page](), list[Finding]()
        for page in self.book:
            wrong = wrong_on(page)
            found += [_of(line) for line in wrong]
            if not wrong:
                sound.append(page)
        typed: dict[str, list[TypedNumber]] = {}
        for page in sound:
            file = f"chapters/{page.name}.md"
            typed[file] = typed_numbers(page.text)
            scenarios, short = _usage.scenarios_of(page), page.front_matter.aliases
            found += self._typed(file, typed[file], scenarios, short)
        for name, artifact in self.artifacts.items():
            file = scenario_texts.place(name)
            typed[file] = scenario_texts.typed_numbers(name)
            short = {"": name, **scenario_texts.referred(artifact)}
            found += _wrong_purpose(name, file)
            found += self._typed(file, typed[file], set(short.values()), short)
        found += _usage.roundings(sound, self.artifacts)
        found += _shown_cells.shown(sound)
        if broken := [page.name for page in self.book if page not in sound]:
            # What a page that cannot be read uses is not known, so nothing is called unused.
            found.append(_unlooked(broken))
        else:
            found += _usage.products(sound)
            found += _usage.contents(sound)
            found += _usage.references(sound)
            found += _usage.unread(sound, self.artifacts)
        found += [
            Finding("draft", mark.file, mark.line, f"to be filled in: {mark.text[:80]}")
            for mark in drafts.marks()
        ]
        return self._accepted(sound, typed, found, whole=not broken)

    def _typed(
        self, file: str, typed: list[TypedNumber], scenarios: set[str], short: dict[str, str]
    ) -> list[Finding]:
        """Numbers typed in a file that equal a value of the scenarios that it is about."""
        if not typed:
            return []
        now = [
            value
            for name in sorted(scenarios & set(self.artifacts))
            for value in values_of(self.artifacts[name].content)
        ]
        published = {(value.path, value.value, value.unit) for value in now}
        then = [
            value
            for value in self.old
            if value.scenario in scenarios
            and (value.path, value.value, value.unit) not in published
        ]
        known = KnownValues([*now, *then])
        return [
            Finding("typed", file, each.line, _told(each, values, short))
            for each in typed
            if (values := known.match(each))
        ]

    def _accepted(
        self,
        sound: list[Page],
        typed: dict[str, list[TypedNumber]],
        found: list[Finding],
        *,
        whole: bool,
    ) -> list[Finding]:
        """Take out what comments accept, and add the comments that are wrong.

        Unless the book is `whole`, what a comment accepts may not have been looked for.
        """
        comments = {f"chapters/{page.name}.md": accepts_on_page(page.text) for page in sound}
        for name in self.artifacts:
            comments[scenario_texts.place(name)] = accepts(scenario_texts.text(name))
        if paths.bibliography().is_file():
            comments["chapters/references.bib"] = accepts(files.text(paths.bibliography()))
        left = list(found)
        for file, accepted in comments.items():
            numbers = typed.get(file, [])
            for accept in accepted:
                covered = [each for each in found if each.file == file and accept.covers(each.line)]
                left = [each for each in left if each not in covered or not accept.reason]
                waits = not self.history and any(accept.covers(n.line) for n in numbers)
                if wrong := _wrong(accept, covered, waits=waits or not whole):
                    left.append(Finding("accept", file, accept.line, wrong))
        return left


def _wrong_purpose(name: str, file: str) -> list[Finding]:
    """What the build would refuse of the first comment of a scenario's file."""
    try:
        scenario_texts.purpose(name)
    except MlsysimError as error:
        return [Finding("build", file, 1, str(error).removeprefix(f"{file}: "))]
    return []


def _wrong(accept: Accept, covered: list[Finding], *, waits: bool) -> str:
    """What is wrong with a comment that accepts; `waits` if what it accepts was not looked for."""
    if not accept.reason:
        return "an accept without a reason; write `accept: REASON`"
    if not covered and not waits:
        return f"accepts nothing (any longer): {accept.reason!r}; remove it"
    return ""


def _unlooked(broken: list[str]) -> Finding:
    """That unused things are not looked for, in one line."""
    pages = ", ".join(f"chapters/{name}.md" for name in broken)
    return Finding(
        "unlooked",
        "chapters",
        0,
        f"what nothing uses or cites is not looked for while these cannot be read: {pages}",
        information=True,
    )


def _of(message: str) -> Finding:
    """An error of the build as a finding."""
    found = _PLACE.fullmatch(message)
    if not found:
        return Finding("build", "chapters", 0, message)
    return Finding("build", found["file"], int(found["line"] or 0), found["message"])


def _told(typed: TypedNumber, values: list[Known], short: dict[str, str]) -> str:
    """What a typed number equals, and what to write in its place."""
    first, *others = values
    more = f" (or {others[0].path}" + (", ..." if others[1:] else "") + ")" if others else ""
    said = f'"{typed.text}" is typed, and'
    value = f"{first.value} {first.unit}".rstrip()
    if first.revision:
        told = f"{said} was {first.path} = {value} in revision {first.revision}"
    else:
        told = f"{said} is {first.path} = {value}"
    return f"{told}; {_write(typed, first, short)}{more}"


def _write(typed: TypedNumber, known: Known, short: dict[str, str]) -> str:
    """What prints a value as it was typed: a quote, or in code what the artifact gives."""
    names_of = {scenario: name for name, scenario in short.items()}
    name = names_of.get(known.scenario, known.scenario)
    asked = known.unit.lstrip("kMGT") if typed.unit == COUNTED else typed.unit
    asked = f"{typed.prefix}{asked}" if asked else ""
    unit = "" if asked in ("", known.unit) else f" in {asked}"
    form = f" as {',' if typed.grouped else ''}.{typed.decimals}f"
    if isinstance(known.value, int) and not unit:
        form = ""  # whole numbers print in full
    if typed.in_code:
        artifact = name if known.scenario in names_of else f'read("{name}")'
        if typed.context is None:
            return f'write {artifact}.value("{known.key}")'
        return f'write {artifact}.quote("{known.key}{unit}{form}").text'
    return f"write {{quote}}`{f'{name}.{known.key}'.removeprefix('.')}{unit}{form}`"
