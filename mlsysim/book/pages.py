"""The pages of the book: their source with its short names and quotes, and results/quotes.json."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlsysim import files, paths
from mlsysim.artifacts.canonical import dumps
from mlsysim.book import cells, latex
from mlsysim.book.cells import place
from mlsysim.book.quotes import Printed, printed
from mlsysim.book.scanner import Quote, scan
from mlsysim.documents import names
from mlsysim.errors import InputError, MlsysimError, nearest

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
    def aliases(self) -> dict[str, str]:
        """The short names that the front matter gives: ``mlsysim: {scenarios: {step: ...}}``.

        Raises InputError for another form, or for a short name that is a scenario's already.
        """
        ours = self._front_matter().get("mlsysim", {})
        short = ours.get("scenarios", {}) if isinstance(ours, dict) else None
        where, known = f"chapters/{self.name}.md", names("Scenarios")
        if not isinstance(short, dict) or set(ours) - {"scenarios"}:
            raise InputError(
                f"{where}: front matter: mlsysim holds scenarios alone, a map of short names, "
                "such as step: DenseLLMPretrainingStep"
            )
        for name, scenario in short.items():
            if not isinstance(name, str) or not name.isidentifier() or name in known:
                raise InputError(
                    f"{where}: front matter: {name!r} is no short name; expected a word that is "
                    "not the name of a scenario"
                )
            if scenario not in known:
                choices = nearest(str(scenario), known)
                raise InputError(
                    f"{where}: front matter: {name}: {scenario!r} is no scenario; {choices}"
                )
        return short

    def _front_matter(self) -> dict[str, Any]:
        import yaml

        if not self.text.startswith("---\n"):
            return {}
        try:
            front = yaml.safe_load(self.text[4:].partition("\n---")[0])
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 2 if mark else 1
            raise InputError(f"{place(self.name, line)}: front matter is no valid YAML") from None
        return front if isinstance(front, dict) else {}

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
            return printed(spec, self.aliases)
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
