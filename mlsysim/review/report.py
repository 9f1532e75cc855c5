"""A comparison as a reviewer reads it: a few lines of summary, then sections of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mlsysim.review.changes import FigureChange, InputChange, PrintedChange
from mlsysim.review.comparison import Comparison, Verdict
from mlsysim.review.moves import percent

__all__ = ["Report", "Section", "largest", "report"]

Rows = Sequence[tuple[str, ...]]

_SHOWN = 12  # rows of what is folded that are shown before the rest is counted
_NAMED = 3  # names or places that a row shows before it counts the others


@dataclass(frozen=True)
class Section:
    """Rows under a title and the heads of their columns; `folded` are rows that are counted only.

    A section that is not `first` tells what a reviewer may skip.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    folded: int = 0
    first: bool = True


@dataclass(frozen=True)
class Report:
    """What is compared, the verdict, the summary, warnings, and sections in order."""

    before: str
    after: str
    verdict: str
    summary: tuple[str, ...]
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]


def report(found: Comparison, *, whole: bool = False) -> Report:
    """The report of a comparison; `whole` folds nothing away."""
    made = [section for section in _sections(found, whole=whole) if section.rows or section.folded]
    return Report(
        found.before.tree.label,
        found.after.tree.label,
        Verdict.WORDS[found.verdict],
        tuple(_summary(found)),
        tuple(found.warnings),
        tuple(made),
    )


def _summary(found: Comparison) -> Iterator[str]:
    roots, under = len(found.inputs), sum(_below(each) for each in found.inputs)
    reached = len({name for each in _flat(found.inputs) for name in each.reaches})
    told = [_counted(roots, "input", "inputs")]
    told += [f"{under} that follow"] if under else []
    told += [f"in {_counted(reached, 'artifact', 'artifacts')}"] if roots else []
    yield ", ".join(told)
    told = [_counted(len(found.modules), "module", "modules")]
    told += [_counted(len(found.libraries), "library", "libraries")] if found.libraries else []
    yield ", ".join(told)
    yield _counted(len(found.outputs), "output", "outputs")
    keys = len({each.key or each.place.product for each in found.printed})
    places = _counted(len(found.printed), "printed place", "printed places")
    told = [f"{places} of {_counted(keys, 'value', 'values')}"]
    told += [f"{len(found.hidden)} values below their last printed digit"] if found.hidden else []
    yield ", ".join(told)
    fell = sum(claim.fell for claim in found.claims)
    near = sum(claim.is_narrow for claim in found.claims)
    claims = _counted(len(found.claims), "claim", "claims")
    yield f"{claims} touched, {fell} fell, {near} came near"
    styled = sum(each.style_only for each in found.figures)
    told = [_counted(len(found.figures) - styled, "figure", "figures")]
    told += [f"{styled} drawn otherwise"] if styled else []
    yield ", ".join(told)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _flat(changes: Iterable[InputChange]) -> Iterator[InputChange]:
    for each in changes:
        yield each
        yield from _flat(each.under)


def _below(change: InputChange) -> int:
    return sum(1 for _ in _flat(change.under))


def _sections(found: Comparison, *, whole: bool) -> Iterator[Section]:
    yield Section("Why: inputs", ("input", "old -> new", "source", "reaches"), tuple(_why(found)))
    code: Rows = [
        *((each.name, _few(each.parts, whole=whole)) for each in found.modules),
        *((each.name, f"{each.old or 'none'} -> {each.new or 'none'}") for each in found.libraries),
    ]
    yield _section("Why: code", ("module or library", "what changed"), code, whole=whole)
    heads = ("value", "old -> new", "where")
    yield Section("Printed otherwise", heads, tuple(_printed(found, whole=whole)))
    yield Section("To read again", ("place", "sentence"), tuple(_sentences(found)))
    yield Section("Claims", ("place", "claim", "slack"), tuple(_claims(found)))
    yield Section("Figures", ("figure", "largest move", "where"), tuple(_figures(found)))
    yield Section("Scenarios", ("scenario", "what"), tuple(_scenarios(found)))
    facts = [
        (each.what, _few(each.names, whole=whole), f"{each.old} -> {each.new}")
        for each in found.facts
    ]
    yield _section("Said otherwise", ("what", "of", "old -> new"), facts, whole=whole, first=False)
    texts = [
        (str(each.place), f"{'+' if each.is_new else '-'} {each.what}", each.said)
        for each in found.texts
    ]
    yield _section("Came or went", ("place", "what", "said"), texts, whole=whole, first=False)
    hidden = [(key, str(move)) for key, move in found.hidden.items()]
    title = "Moved below the last printed digit"
    yield _folded(title, ("value", "old -> new"), hidden, whole=whole)
    nowhere = [(each.name, str(each.move)) for each in found.outputs if not each.places]
    yield _folded("Moved and printed nowhere", ("output", "old -> new"), nowhere, whole=whole)


def _section(
    title: str, heads: tuple[str, ...], rows: Rows, *, whole: bool, first: bool = True
) -> Section:
    """A section that shows its first rows."""
    most = len(rows) if whole else _SHOWN
    return Section(title, heads, tuple(rows[:most]), len(rows[most:]), first)


def _folded(title: str, heads: tuple[str, ...], rows: Rows, *, whole: bool) -> Section:
    """A section that is only counted, unless all is asked for."""
    return Section(title, heads, tuple(rows) if whole else (), 0 if whole else len(rows), False)


def _few(names: Iterable[str], *, whole: bool = False) -> str:
    names = list(names)
    shown = names if whole else names[:_NAMED]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _why(found: Comparison) -> Iterator[tuple[str, ...]]:
    def rows(changes: Iterable[InputChange], depth: int) -> Iterator[tuple[str, ...]]:
        for each in changes:
            source = f"follows {each.follows}" if each.follows else each.source
            if each.old_source and each.old_source != each.source and not each.follows:
                source = f"{each.source} (was: {each.old_source})"
            yield "  " * depth + each.name, str(each.move), source, _reaches(each)
            yield from rows(each.under, depth + 1)

    yield from rows(found.inputs, 0)


def _reaches(change: InputChange) -> str:
    return change.reaches[0] if len(change.reaches) == 1 else f"{len(change.reaches)} artifacts"


def _printed(found: Comparison, *, whole: bool) -> Iterator[tuple[str, ...]]:
    """Each value once, with the texts that it prints and the places of each."""
    groups: dict[str, dict[tuple[str, str, str], list[PrintedChange]]] = {}
    for each in found.printed:
        texts = groups.setdefault(each.key or each.place.product, {})
        texts.setdefault((each.old, each.new, each.why), []).append(each)
    for key, texts in groups.items():
        for number, ((old, new, why), changes) in enumerate(texts.items()):
            move = changes[0].move
            share = f" ({move.how_far})" if move and move.how_far and not number else ""
            otherwise = f" ({why})" if why == "printed otherwise" else ""
            told = f"{old} -> {new}{share}{otherwise}"
            yield key if not number else "", told, _where(changes, whole=whole)


def _where(changes: Iterable[PrintedChange], *, whole: bool) -> str:
    """The places of one text: the file once, then lines, each with what stands there."""
    told, page = [], ""
    for each in changes:
        place = each.place
        name = f"chapters/{place.page}.md" if place.page != page else ""
        line = f":{place.line}" if place.line else ""
        kind = {"text": "", "math": " formula"}.get(place.kind, f" {place.kind}")
        told.append(f"{name}{line}{kind}")
        page = place.page
    return _few(dict.fromkeys(told), whole=whole)


def _sentences(found: Comparison) -> Iterator[tuple[str, ...]]:
    """The sentences that changed, in the order in which they are read."""
    places = {each.place for each in found.printed if each.place.sentence}
    seen = set()
    for each in sorted(places, key=lambda place: (place.page, place.line)):
        if (each.page, each.sentence) not in seen:
            seen.add((each.page, each.sentence))
            yield str(each), each.sentence


def _claims(found: Comparison) -> Iterator[tuple[str, ...]]:
    for each in found.claims:
        if not math.isinf(each.new):
            told = "fell" if each.fell else "near" if each.is_narrow else ""
            slack = f"{each.old:.2g} -> {each.new:.2g}" + (f", {told}" if told else "")
            yield str(each.place), each.phrase, slack
        elif each.fell:
            yield str(each.place), each.phrase, "fell"


def _figures(found: Comparison) -> Iterator[tuple[str, ...]]:
    for each in sorted(found.figures, key=lambda each: -each.largest):
        yield each.name, largest(each), str(each.place)


def largest(change: FigureChange) -> str:
    """What became of a figure, in words."""
    if change.style_only:
        return "drawn otherwise, from the same data"
    told = []
    if change.largest:
        where = f"{change.column} at {change.row}" if change.row else change.column
        share = percent(change.largest).removeprefix("+")
        told.append(f"{share} of the span of {where}: {change.old} -> {change.new}")
    if change.rows:
        told.append(f"rows {_few(dict.fromkeys(change.rows))}")
    if change.columns:
        told.append(f"columns {_few(change.columns)}")
    return "; ".join(told) or "other data"


def _scenarios(found: Comparison) -> Iterator[tuple[str, ...]]:
    pairs = found.pairs
    yield from ((name, "new") for name in pairs.added)
    yield from ((name, "gone") for name in pairs.removed)
    yield from ((name, f"was {old}") for name, old in pairs.scenarios.items())
    yield from ((name, f"was {old}") for name, old in pairs.outputs.items())
