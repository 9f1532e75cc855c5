"""Two revisions of the book compared: what moved, what the page prints otherwise, and why."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from mlsysim.artifacts.ingredients import short
from mlsysim.canonical import digest
from mlsysim.review import causes
from mlsysim.review.changes import (
    ClaimChange,
    CodeChange,
    FactChange,
    FigureChange,
    InputChange,
    OutputChange,
    PrintedChange,
    TextChange,
)
from mlsysim.review.moves import Move, moved
from mlsysim.review.pairs import Pairs
from mlsysim.review.printed import Pages
from mlsysim.review.snapshots import Snapshot
from mlsysim.review.trees import Tree

__all__ = ["Comparison", "Verdict"]


class Verdict:
    """What `mlsysim diff` ends with: its exit status, and that in words."""

    NOTHING = 0
    BELOW_THE_DIGITS = 3
    PRINTED = 4
    CLAIMS_FELL = 5
    NOT_ITS_SOURCES = 6

    WORDS: Mapping[int, str] = {
        NOTHING: "nothing moved",
        BELOW_THE_DIGITS: "values moved below the digits that the book prints",
        PRINTED: "printed numbers moved",
        CLAIMS_FELL: "claims fell",
        NOT_ITS_SOURCES: "results are not what their sources make",
    }


class Comparison:
    """What two trees say differently; each part is worked out when it is asked for."""

    def __init__(self, before: Tree, after: Tree) -> None:
        self.before = Snapshot(before)
        self.after = Snapshot(after)
        self.pairs = Pairs(self.before, self.after)

    @cached_property
    def pages(self) -> Pages:
        """The pages, compared."""
        return Pages(self.before, self.after, self.pairs)

    @cached_property
    def inputs(self) -> list[InputChange]:
        """Inputs with other values; what follows one that moved is under it."""
        return causes.inputs(self.pairs)

    @cached_property
    def modules(self) -> list[CodeChange]:
        """Modules that count for some result and changed."""
        return causes.modules(self.before, self.after)

    @cached_property
    def libraries(self) -> list[CodeChange]:
        """Libraries that are pinned otherwise."""
        return causes.libraries(self.before, self.after)

    @cached_property
    def facts(self) -> list[FactChange]:
        """Units, equations, sources, feasibility, titles and assumptions that are other ones."""
        return causes.facts(self.pairs)

    @cached_property
    def outputs(self) -> list[OutputChange]:
        """Outputs with other values, those that came, and those that went."""
        found = []
        for old, new in self.pairs.artifacts:
            kept = {self.pairs.old_key(new.name, key): key for key in new.outputs}
            for was in dict.fromkeys((*kept, *old.outputs)):
                key = kept.get(was, was)
                if move := moved(old.outputs.get(was), new.outputs.get(key)):
                    name = f"{new.name}.{key}"
                    found.append(OutputChange(name, move, self._places.get(name, 0)))
        return found

    @cached_property
    def _places(self) -> Mapping[str, int]:
        """How many places print each value, by its key in the artifact."""
        count: dict[str, int] = {}
        for quotes in self.after.quotes.values():
            for quote in quotes:
                name, _, rest = quote.key.partition(".")
                artifact = self.after.artifact(name)
                key = f"{name}.{artifact.resolve(rest)}" if artifact and rest in artifact else ""
                count[key] = count.get(key, 0) + 1
        return count

    @cached_property
    def printed(self) -> list[PrintedChange]:
        """Every place that prints another text, what a reader would notice first."""
        pages = self.pages
        found = [*pages.printed, *pages.plain_cells, *pages.drawn]
        return sorted(found, key=lambda each: each.noticed)

    @cached_property
    def moved_numbers(self) -> list[PrintedChange]:
        """Those of them whose value moved, which a reason must explain."""
        return [each for each in self.printed if each.why == "moved"]

    @cached_property
    def hidden(self) -> Mapping[str, Move]:
        """Values that moved below their last printed digit, by their keys."""
        shown = {each.key for each in self.printed}
        return {key: move for key, move in self.pages.hidden.items() if key not in shown}

    @cached_property
    def claims(self) -> list[ClaimChange]:
        """Claims whose values moved, the nearest to falling first."""
        return self.pages.claims

    @cached_property
    def texts(self) -> list[TextChange]:
        """Quotes, claims and rows of tables that came or went."""
        return [*self.pages.texts, *self.pages.claim_texts, *self.pages.table_rows]

    @cached_property
    def figures(self) -> list[FigureChange]:
        """Figures with other data, or another drawing."""
        return self.pages.figures

    @cached_property
    def warnings(self) -> list[str]:
        """What a reviewer should not miss."""
        label = self.before.tree.label
        told = [f"{path} {why}" for path, why in self.after.damaged.items()]
        told += [f"{path} of {label} {why}" for path, why in self.before.damaged.items()]
        told += [f"{path} {why}" for path, why in self.uncertified.items()]
        for change in self.inputs:
            if change.is_unexplained:
                told.append(f"{change.name} moved, and its source says the same: {change.source}")
        for claim in self.claims:
            if claim.fell:
                told.append(f'{claim.place}: "{claim.phrase}" is false now: {claim.condition}')
            elif claim.is_narrow:
                told.append(
                    f'{claim.place}: "{claim.phrase}" came near to falling: '
                    f"slack {claim.old:.2g} -> {claim.new:.2g}"
                )
        causeless = not (self.inputs or self.modules or self.libraries)
        if causeless and self.moved_numbers:
            told.append("printed numbers moved, and no input, module or library did")
        return told

    @cached_property
    def uncertified(self) -> Mapping[str, str]:
        """Results of the later tree that its lock does not certify, with what is wrong."""
        lock, found = self.after.lock, {}
        if not lock.made:
            return {}
        for name in self.after.scenarios:
            path = f"results/scenarios/{name}.json"
            if self.before.scenarios.get(name) == self.after.scenarios[name]:
                continue
            made = short(digest(self.after.tree.read(path)))
            if made not in {line.made for line in lock.lines("scenario", name)}:
                found[path] = "is not what its build made; run: snakemake all"
        return found

    @cached_property
    def verdict(self) -> int:
        """The exit status of `mlsysim diff`."""
        if self.uncertified or self.after.damaged:
            return Verdict.NOT_ITS_SOURCES
        if any(claim.fell for claim in self.claims):
            return Verdict.CLAIMS_FELL
        if self.moved_numbers:
            return Verdict.PRINTED
        if self.outputs or self.inputs:
            return Verdict.BELOW_THE_DIGITS
        return Verdict.NOTHING
