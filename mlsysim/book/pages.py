"""The pages of the book: their source with its short names and quotes, and results/quotes.json."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mlsysim import files, paths
from mlsysim.artifacts.canonical import dumps
from mlsysim.book import cells, latex
from mlsysim.book.cells import place
from mlsysim.book.front_matter import FrontMatter
from mlsysim.book.quotes import Printed, printed
from mlsysim.book.scanner import Quote, scan
from mlsysim.errors import MlsysimError

__all__ = ["Page", "pages", "write_quotes"]


@dataclass(frozen=True)
class Page:
    """A page by the stem of its file; chapters are pages with code cells."""

    name: str

    @cached_property
    def text(self) -> str:
        """The source, as it stands in chapters/."""
        return (paths.chapters() / f"{self.name}.md").read_text(encoding="utf-8")

    @cached_property
    def front_matter(self) -> FrontMatter:
        """What the page says before its text."""
        return FrontMatter(self.name, self.text)

    @cached_property
    def quotes(self) -> list[tuple[Quote, Printed]]:
        """Every quote with what it prints.

        Raises one MlsysimError that lists all that cannot be printed, each with its line.
        """
        resolved, wrong = [], []
        for quote in scan(self.name, self.text):
            try:
                resolved.append((quote, self.resolve(quote.spec, quote.line)))
            except MlsysimError as error:
                wrong.append(error)
        if len(wrong) == 1:
            raise wrong[0]
        if wrong:
            raise MlsysimError("\n".join(map(str, wrong)))
        return resolved

    def resolve(self, spec: str, line: int) -> Printed:
        """What a quote on `line` prints. Raises MlsysimError with place and nearest names."""
        try:
            return printed(spec, self.front_matter.aliases, infeasible=self.front_matter.infeasible)
        except MlsysimError as error:
            if str(error).startswith(f"chapters/{self.name}.md"):
                raise
            raise type(error)(f"{place(self.name, line)}: quote `{spec}`: {error}") from None

    def plain(self) -> str:
        """The source with every quote replaced by what it prints; the lines stay where they are."""
        lines = self.text.split("\n")
        for quote, value in reversed(self.quotes):
            text = value.text
            if quote.where != "alt":
                text = latex.in_math(text) if quote.where == "math" else _escaped(text)
            line = lines[quote.line - 1]
            end = quote.column + len(quote.raw)
            lines[quote.line - 1] = line[: quote.column] + text + line[end:]
        return "\n".join(lines)


def _escaped(text: str) -> str:
    """Printed text as Markdown: a dollar sign must not begin a formula, nor a word an emphasis."""
    return "".join(f"\\{sign}" if sign in "$*_[]`<|" else sign for sign in text)


def pages() -> list[Page]:
    """Every page: the chapters in their order, then the others by name."""
    chapters = cells.chapters()
    others = sorted({path.stem for path in paths.chapters().glob("*.md")} - set(chapters))
    return [Page(name) for name in (*chapters, *others)]


def write_quotes(book: list[Page]) -> bool:
    """Write results/quotes.json, the quotes of each page in order; False if it was right already.

    It has neither lines nor sentences, so it changes only when a quote or what it prints does.
    Raises one MlsysimError for all that is wrong in any page; nothing is written then.
    """
    content: dict[str, list[dict[str, str]]] = {}
    wrong = []
    for page in book:
        try:
            quotes = page.quotes
        except MlsysimError as error:
            wrong.append(error)
            continue
        if quotes:
            content[page.name] = [
                {"key": value.key, "spec": value.spec, "printed": value.text} for _, value in quotes
            ]
    if len(wrong) == 1:
        raise wrong[0]
    if wrong:
        raise MlsysimError("\n".join(map(str, wrong)))
    return files.write(paths.quotes(), dumps(dict(sorted(content.items()))))
