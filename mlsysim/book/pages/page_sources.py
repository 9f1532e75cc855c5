"""The pages of the book: their source with its quotes and claims, and the records of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from mlsysim import files, paths
from mlsysim.artifacts.quotes import Printed, printed, unfit
from mlsysim.artifacts.reading import read
from mlsysim.book.arithmetic.displayed_arithmetic import Equation, equations
from mlsysim.book.claims.chapter_claims import Claim, examine, split
from mlsysim.book.pages import page_records
from mlsysim.book.pages._dollar_signs import check_dollars
from mlsysim.book.pages._quote_context import check_around
from mlsysim.book.products import latex, table_quotes
from mlsysim.book.products.table_quotes import TableQuote
from mlsysim.book.source import cells, short_names
from mlsysim.book.source.cells import place
from mlsysim.book.source.front_matter import FrontMatter
from mlsysim.book.source.product_uses import Product, products
from mlsysim.book.source.scanner import Role, scan
from mlsysim.book.source.shown_tables import Shown, shown
from mlsysim.errors import InputError, MlsysimError

__all__ = [
    "Page",
    "TableNumber",
    "page",
    "pages",
    "read_once",
    "record_texts",
    "write_records",
]

_KEPT: ContextVar[dict[str, Page] | None] = ContextVar("_KEPT", default=None)


@dataclass(frozen=True)
class TableNumber:
    """A quote in a table of a page: the line that includes the table, the cell, what it prints."""

    line: int
    table: str
    cell: TableQuote
    value: Printed


@dataclass(frozen=True)
class Page:
    """A page by the stem of its file; chapters are pages with code cells."""

    name: str

    @cached_property
    def text(self) -> str:
        """The source, as it stands in chapters/."""
        return cells.source(self.name)

    @cached_property
    def front_matter(self) -> FrontMatter:
        """What the page says before its text."""
        return FrontMatter(self.name, self.text)

    @cached_property
    def _roles(self) -> list[Role]:
        return scan(self.name, self.text)

    @cached_property
    def quotes(self) -> list[tuple[Role, Printed]]:
        """Every quote with what it prints.

        Raises one MlsysimError that lists all that cannot be printed, each with its line.
        """
        self._check_short_names()
        roles = [role for role in self._roles if role.name == "quote"]
        return _each(roles, self._print)

    @cached_property
    def products(self) -> list[Product]:
        """The figures and tables of a chapter. Raises InputError as `product_uses` does."""
        return products(self.name, self.text)

    @cached_property
    def tables(self) -> list[Shown]:
        """The saved tables that the page shows."""
        return shown(self.text)

    @cached_property
    def table_numbers(self) -> list[TableNumber]:
        """The quotes in these tables, with what they print.

        Raises MlsysimError with the line that includes the table.
        """
        made = []
        for each in self.tables:
            for cell in table_quotes.read(each.table):
                try:
                    value = printed(cell.spec, infeasible=self.front_matter.infeasible)
                except MlsysimError as error:
                    told = f"table {each.table}, row {cell.row}, column {cell.column}: {error}"
                    raise type(error)(f"{place(self.name, each.line)}: {told}") from None
                made.append(TableNumber(each.line, each.table, cell, value))
        return made

    def numbers(self) -> list[tuple[int, Printed, str]]:
        """Every number that the page prints: its line, and its table if it stands in one.

        They are in the order of the source. Raises MlsysimError as `quotes` and `table_numbers` do.
        """
        found = [(role.line, value, "") for role, value in self.quotes]
        found += [(each.line, each.value, each.table) for each in self.table_numbers]
        return sorted(found, key=lambda each: each[0])

    @cached_property
    def claims(self) -> list[tuple[Role, Claim]]:
        """Every claim, tested.

        Raises one MlsysimError that lists all that are false or cannot be tested, each with its
        line, condition and values.
        """
        self._check_short_names()
        roles = [role for role in self._roles if role.name == "claim"]
        return _each(roles, lambda role: self.test(role.spec, role.line))

    @cached_property
    def equations(self) -> list[Equation]:
        """Every equation between quotes whose sides can be computed from what is printed.

        Raises one MlsysimError that lists all whose result does not follow, each with its line.
        """
        values = {role.spec: value for role, value in self.quotes}
        found = equations(self.text, lambda spec: values[spec])
        wrong = [f"{place(self.name, each.line)}: {each.wrong}" for each in found if each.wrong]
        if wrong:
            raise MlsysimError("\n".join(wrong))
        return found

    def _check_short_names(self) -> None:
        """See that no declaration of a short name is lost. Raises InputError with what to write."""
        said = [role.spec.rpartition(" if ")[2] for role in self._roles]  # of a quote all of it
        _ = self.front_matter.infeasible  # another mistake there is told first
        short_names.check(self.name, self.text, said, self.front_matter.aliases)

    def _print(self, role: Role) -> Printed:
        """What a quote prints, seen in its line."""
        value = self.resolve(role.spec, role.line)
        line = self.text.split("\n")[role.line - 1]
        before, after = line[: role.column], line[role.column + len(role.raw) :]
        math = role.where == "math" and not latex.is_in_text(role.before)
        try:
            check_around(value, before, after, math=math)
        except MlsysimError as error:
            told = f"{place(self.name, role.line)}: quote `{role.spec}` {error}"
            raise type(error)(told) from None
        return value

    def check_dollars(self) -> None:
        """See that no price is read as a formula. Raises InputError with the lines."""
        check_dollars(self.name, self.text)

    def check_reads(self) -> None:
        """See that the cells read no scenario that does not fit, unless that is said on purpose.

        Tables, figures and shown values come from what is read, so the refusal is that of quotes.
        Raises InputError with the line of the call.
        """
        for name, line in cells.uses(self.name, self.text).reads.items():
            artifact = read(name)
            if not artifact.feasible and name not in self.front_matter.infeasible:
                raise InputError(f"{place(self.name, line)}: read: {unfit(artifact)}")

    def resolve(self, spec: str, line: int) -> Printed:
        """What a quote on `line` prints. Raises MlsysimError with place and nearest names."""
        try:
            return printed(spec, self.front_matter.aliases, infeasible=self.front_matter.infeasible)
        except MlsysimError as error:
            if error.placed or str(error).startswith(f"chapters/{self.name}.md"):
                raise
            raise type(error)(f"{place(self.name, line)}: quote `{spec}`: {error}") from None

    def test(self, spec: str, line: int) -> Claim:
        """The claim on `line`, which holds. Raises MlsysimError with place and values."""
        try:
            claim = examine(
                spec, self.front_matter.aliases, infeasible=self.front_matter.infeasible
            )
        except MlsysimError as error:
            if error.placed or str(error).startswith(f"chapters/{self.name}.md"):
                raise
            raise type(error)(f"{place(self.name, line)}: claim `{spec}`: {error}") from None
        if not claim.holds:
            condition = split(spec)[1]
            raise MlsysimError(
                f'{place(self.name, line)}: the claim "{claim.phrase}" is false: it needs '
                f"{condition}, and {claim.values}"
            )
        return claim

    def plain(self) -> str:
        """The source with every quote replaced by what it prints, and every claim by its phrase.

        The lines stay where they are.
        """
        lines = self.text.split("\n")
        texts = [(role, value.text) for role, value in self.quotes]
        texts += [(role, claim.phrase) for role, claim in self.claims]
        for role, text in sorted(texts, key=lambda each: (each[0].line, each[0].column))[::-1]:
            shown = text
            if role.where == "math":
                shown = latex.in_formula(text, role.before)
            elif role.where != "alt":
                shown = _escaped(text)
            line = lines[role.line - 1]
            lines[role.line - 1] = line[: role.column] + shown + line[role.column + len(role.raw) :]
        return "\n".join(lines)


_T = TypeVar("_T")


def _each(roles: Iterable[Role], work: Callable[[Role], _T]) -> list[tuple[Role, _T]]:
    """Each role with what `work` gives; one error for all that it cannot do."""
    done, wrong = [], []
    for role in roles:
        try:
            done.append((role, work(role)))
        except MlsysimError as error:
            wrong.append(error)
    told = dict.fromkeys(map(str, wrong))  # what is wrong with another file is told once
    if len(told) == 1:
        raise wrong[0]
    if told:
        raise MlsysimError("\n".join(told))
    return done


def _escaped(text: str) -> str:
    """Printed text as Markdown: a dollar sign must not begin a formula, nor a word an emphasis."""
    return "".join(f"\\{sign}" if sign in "$*_[]`<|" else sign for sign in text)


def page(name: str) -> Page:
    """The page of that name; where pages are read once, the same one each time."""
    kept = _KEPT.get()
    return Page(name) if kept is None else kept.setdefault(name, Page(name))


@contextmanager
def read_once() -> Iterator[None]:
    """While this lasts a page is what it was when it was first asked for.

    A build asks for each from many sides, and all of them should see the same.
    """
    token = _KEPT.set(kept if (kept := _KEPT.get()) is not None else {})
    try:
        yield
    finally:
        _KEPT.reset(token)


def pages() -> list[Page]:
    """Every page: the chapters in their order, then the others by name."""
    chapters = cells.chapters()
    others = sorted({path.stem for path in paths.chapters().glob("[!.]*.md")} - set(chapters))
    return [page(name) for name in (*chapters, *others)]


def write_records(book: list[Page]) -> bool:
    """Write the quotes and the claims of each page in order; False if both files were right."""
    done = [files.write(path, text) for path, text in record_texts(book).items()]
    return any(done)


def record_texts(book: list[Page]) -> dict[Path, str]:
    """The records of quotes and claims by their path, of each page in order.

    results/quotes.json has neither lines nor sentences, so it changes only when a quote or what it
    prints does; a quote in a table is named with its table. results/claims.json has no values:
    those move with the artifacts, and a claim stays while it holds. Raises one MlsysimError for all
    that is wrong in any page.
    """
    quotes, claims = {}, {}
    wrong: list[str] = []
    for each in book:
        try:
            quotes[each.name] = [
                {"key": value.key, "spec": value.spec, "printed": value.text}
                | ({"table": table} if table else {})
                for _, value, table in each.numbers()
            ]
        except MlsysimError as error:
            wrong.append(str(error))
        try:
            each.equations  # noqa: B018
        except MlsysimError as error:
            wrong.append(str(error))
        try:
            claims[each.name] = [
                {"claim": claim.phrase, "if": claim.condition} for _, claim in each.claims
            ]
        except MlsysimError as error:
            wrong.append(str(error))
    if wrong:
        raise MlsysimError("\n".join(dict.fromkeys(wrong)))
    return {
        paths.quotes(): page_records.text(quotes),
        paths.claims(): page_records.text(claims),
    }
