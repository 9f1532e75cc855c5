"""What the pages print otherwise: quotes, plain cells of tables, texts in figures, claims."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from mlsysim.artifacts.reading import Artifact
from mlsysim.book.claims.slack import slack
from mlsysim.errors import InputError, MlsysimError
from mlsysim.review.changes import ClaimChange, FigureChange, PrintedChange, TextChange
from mlsysim.review.moves import Move, moved
from mlsysim.review.pairs import Pairs, aligned
from mlsysim.review.places import Place, Source
from mlsysim.review.snapshots import Entry, Quote, Snapshot

__all__ = ["Pages"]


class Pages:
    """The pages of two snapshots, compared."""

    def __init__(self, before: Snapshot, after: Snapshot, pairs: Pairs) -> None:
        self._before = before
        self._after = after
        self._pairs = pairs
        self._sources: dict[tuple[int, str], Source] = {}
        self.printed: list[PrintedChange] = []
        self.hidden: dict[str, Move] = {}  # moved below the last digit that is printed, by key
        self.texts: list[TextChange] = []
        for was, page in pairs.pages:
            self._quotes(was, page)

    def source(self, snapshot: Snapshot, page: str) -> Source:
        """The source of a page."""
        key = (id(snapshot), page)
        if key not in self._sources:
            quoted = [each.printed for each in snapshot.quotes.get(page, ()) if not each.table]
            self._sources[key] = Source(page, snapshot.page(page), quoted)
        return self._sources[key]

    def _quotes(self, was: str, page: str) -> None:
        old, new = self._before.quotes.get(was, []), self._after.quotes.get(page, [])
        specs = [[(each.spec, each.table) for each in quotes] for quotes in (old, new)]
        gone: dict[tuple[str, str], list[int]] = {}
        come: list[int] = []
        for first, second in aligned(*specs):
            if first is not None and second is not None:
                self._pair(page, old[first], second)
            elif first is not None:
                key = self._pairs.key_now(old[first].key)
                gone.setdefault((key, old[first].table), []).append(first)
            elif second is not None:
                come.append(second)
        for second in come:  # a quote that asks for another form of the same value
            same = gone.get((new[second].key, new[second].table))
            if same:
                self._pair(page, old[same.pop(0)], second)
            else:
                place = self._place(self._after, page, second)
                self.texts.append(TextChange(place, "quote", _said(new[second]), is_new=True))
        for first in sorted(number for each in gone.values() for number in each):
            place = self._place(self._before, was, first)
            self.texts.append(TextChange(place, "quote", _said(old[first]), is_new=False))

    def _pair(self, page: str, old: Quote, number: int) -> None:
        new = self._after.quotes[page][number]
        move = self._moved(old.key, new.key)
        if old.printed != new.printed:
            why = "moved" if old.spec == new.spec or move else "printed otherwise"
            place = self._place(self._after, page, number)
            change = PrintedChange(new.key, place, old.printed, new.printed, why, move)
            self.printed.append(change)
        elif move:
            self.hidden[new.key] = move

    def _moved(self, old: str, new: str) -> Move | None:
        """What became of the value of a key."""
        scenario = new.partition(".")[0]
        was = self._pairs.scenarios.get(scenario, scenario)
        if self._before.scenarios.get(was) == self._after.scenarios.get(scenario):
            return None
        return moved(value(self._before, old), value(self._after, new))

    def _place(self, snapshot: Snapshot, page: str, number: int) -> Place:
        """Where the quote of that number in a page's record stands."""
        quotes, source = snapshot.quotes[page], self.source(snapshot, page)
        quote = quotes[number]
        if not quote.table:
            return source.quote(sum(not each.table for each in quotes[:number]))
        cells = sum(each.table == quote.table for each in quotes[:number])
        return self._cell(snapshot, source, quote.table, cells)

    def _cell(self, snapshot: Snapshot, source: Source, table: str, number: int) -> Place:
        """The place of a table's quoted cell of that number, by the heads of row and column."""
        place, rows = source.table(table), snapshot.table(table)
        quoted = sorted(snapshot.quoted_cells(table))
        if number < len(quoted):
            row, column = quoted[number]
            return place.cell(table, rows, row, column - 1)
        return place

    @cached_property
    def plain_cells(self) -> list[PrintedChange]:
        """Cells of tables that are no quotes and print another text."""
        found = []
        for name, page in self._shown_tables():
            old, new = self._before.table(name), self._after.table(name)
            quoted = self._before.quoted_cells(name) | self._after.quoted_cells(name)
            place = self.source(self._after, page).table(name)
            heads = [[row[0] if row else "" for row in rows] for rows in (old, new)]
            for first, row in aligned(*heads):
                if first is None or row is None:
                    continue
                for column, cell in enumerate(new[row]):
                    was = old[first][column] if column < len(old[first]) else ""
                    if was != cell and (row, column + 1) not in quoted:
                        at = place.cell(name, new, row, column)
                        found.append(PrintedChange("", at, was, cell, "typed"))
        return found

    @cached_property
    def table_rows(self) -> list[TextChange]:
        """Rows of tables that came or went."""
        found = []
        for name, page in self._shown_tables():
            place = self.source(self._after, page).table(name)
            tables = [each.table(name) for each in (self._before, self._after)]
            heads = [[row[0] if row else "" for row in rows] for rows in tables]
            for first, row in aligned(*heads):
                if first is None and row is not None:
                    said = " | ".join(tables[1][row])
                    found.append(TextChange(place, f"row of {name}", said, is_new=True))
                elif row is None and first is not None:
                    said = " | ".join(tables[0][first])
                    found.append(TextChange(place, f"row of {name}", said, is_new=False))
        return found

    def _shown_tables(self) -> Iterator[tuple[str, str]]:
        """Tables that differ, each with the page that makes it."""
        for name, identity in self._after.tables.items():
            if name in self._before.tables and self._before.tables[name] != identity:
                yield name, name.partition("/")[0]

    @cached_property
    def claims(self) -> list[ClaimChange]:
        """Claims whose values moved, the nearest to falling first."""
        found = []
        for was, page in self._pairs.pages:
            new = self._after.claims.get(page, [])
            for first, second in aligned(self._before.claims.get(was, []), new):
                if first is not None and second is not None:
                    change = self._claim(page, second, *new[second])
                    found += [change] if change else []
        return sorted(found, key=lambda each: (each.new, each.place.page, each.place.line))

    @cached_property
    def _moved_scenarios(self) -> list[str]:
        """The scenarios of which some value moved."""
        return [
            new.name
            for old, new in self._pairs.artifacts
            if old.name != new.name or _values(old) != _values(new)
        ]

    @cached_property
    def claim_texts(self) -> list[TextChange]:
        """Claims that came or went, a reworded one as both."""
        found = []
        for was, page in self._pairs.pages:
            old, new = self._before.claims.get(was, []), self._after.claims.get(page, [])
            for first, second in aligned(old, new):
                if first is None and second is not None:
                    place = self.source(self._after, page).claim(second)
                    found.append(TextChange(place, "claim", " if ".join(new[second]), True))
                elif second is None and first is not None:
                    place = self.source(self._before, was).claim(first)
                    found.append(TextChange(place, "claim", " if ".join(old[first]), False))
        return found

    def _claim(self, page: str, number: int, phrase: str, condition: str) -> ClaimChange | None:
        """A claim of both snapshots, if any value that it rests on moved."""
        if not any(f"{name}." in condition for name in self._moved_scenarios):
            return None
        slacks = []
        met: list[list[tuple[str, Entry]]] = []
        for snapshot in (self._before, self._after):
            seen: list[tuple[str, Entry]] = []
            met.append(seen)
            known = _Values(snapshot, self._pairs, seen)
            try:
                slacks.append(slack(condition, known.entry, known.matching))
            except MlsysimError:
                return None
        if met[0] == met[1]:
            return None
        place = self.source(self._after, page).claim(number)
        return ClaimChange(place, phrase, condition, *slacks)

    @cached_property
    def figures(self) -> list[FigureChange]:
        """Figures with other data or another drawing."""
        from mlsysim.review.figures import figure_change

        found = []
        for name, identities in self._after.figures.items():
            if identities != self._before.figures.get(name, identities):
                place = self.source(self._after, name.partition("/")[0]).figure(name)
                found.append(figure_change(self._before, self._after, name, place))
        return found

    @cached_property
    def drawn(self) -> list[PrintedChange]:
        """Numbers and words in figures that are drawn otherwise, those along the axes included."""
        found = []
        for name, identities in self._after.figures.items():
            was = self._before.figures.get(name)
            if was is None or was[1] == identities[1]:
                continue
            place = self.source(self._after, name.partition("/")[0]).figure(name)
            for old, new in replaced(self._before.drawn(name), self._after.drawn(name)):
                found.append(PrintedChange("", place.of_figure(name), old, new, "drawn"))
        return found


def replaced(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    """Texts of a list that others took the place of.

    >>> list(replaced(["0", "7.72 s", "end"], ["0", "7.73 s", "end"]))
    [('7.72 s', '7.73 s')]
    """
    gone: list[str] = []
    come: list[str] = []
    for first, second in [*aligned(old, new), (-1, -1)]:
        if first is None and second is not None:
            come.append(new[second])
        elif second is None and first is not None:
            gone.append(old[first])
        elif gone or come:
            yield from zip(gone, come, strict=False)
            gone, come = [], []


def value(snapshot: Snapshot, key: str) -> Entry | None:
    """The entry of a full key in a snapshot, references followed; None if it has none."""
    name, _, rest = key.partition(".")
    artifact = snapshot.artifact(name)
    return artifact.entry(rest) if artifact and rest in artifact else None


def _values(artifact: Artifact) -> dict[str, tuple[object, object]]:
    entries = {**artifact.inputs, **artifact.outputs}
    return {key: (entry["value"], entry["unit"]) for key, entry in entries.items()}


def _said(quote: Quote) -> str:
    return f"{quote.key}: {quote.printed}" + (f" in {quote.table}" if quote.table else "")


class _Values:
    """The values of a snapshot for a condition that has the names of now."""

    def __init__(self, snapshot: Snapshot, pairs: Pairs, met: list[tuple[str, Entry]]) -> None:
        self._snapshot = snapshot
        self._pairs = pairs
        self._met = met

    def _artifact(self, name: str) -> Artifact | None:
        found = self._snapshot.artifact(name)
        return found or self._snapshot.artifact(self._pairs.scenarios.get(name, name))

    def entry(self, key: str) -> dict[str, object]:
        name, _, rest = key.partition(".")
        artifact = self._artifact(name)
        if artifact and rest not in artifact:
            rest = self._pairs.old_key(name, rest)
        if not artifact or rest not in artifact:
            raise InputError(f"{key} is not in {self._snapshot.tree.label}")
        entry = artifact.entry(rest)
        self._met.append((key, {"value": entry["value"], "unit": entry["unit"]}))
        return entry

    def matching(self, pattern: str) -> list[str]:
        from fnmatch import fnmatchcase

        name, _, rest = pattern.partition(".")
        artifact = self._artifact(name)
        keys = artifact.keys() if artifact else []
        return [f"{name}.{key}" for key in keys if fnmatchcase(key, rest)]
