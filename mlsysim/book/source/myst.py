"""The source of a page, read once by the parser that lays it out: blocks, directives, texts, cells.

All that looks at a page takes what it needs from here, so no two of them read it in different ways.
Lines are those of the page, from 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any

from mlsysim.book.source._directive_options import Option, options, parted
from mlsysim.book.source.spans import Span, spans

__all__ = ["EXTENSIONS", "Block", "Directive", "Source", "parsed", "text_of"]

# What conf.py enables; pages must be read as Sphinx does.
EXTENSIONS = ("amsmath", "colon_fence", "dollarmath")
# Directives whose content is shown or used as it stands, so that no Markdown is in it.
_VERBATIM = {
    *("bibliography", "code", "code-block", "code-cell", "eval-rst", "include", "literalinclude"),
    *("math", "mermaid", "meta", "parsed-literal", "raw", "raw-cell", "sourcecode", "toctree"),
}
_CELL = "{code-cell}"
_BLOCKS = {
    "amsmath": "math",
    "code_block": "indented",
    "html_block": "html",
    "math_block": "math",
    "math_block_label": "math",
    "myst_line_comment": "comment",
    "myst_target": "label",
}


@dataclass(frozen=True)
class Block:
    """A part of a page from its first line to its last; its content begins on the line `first`.

    `kind` is text, heading, cell (of a pipe table), code, indented (code without a fence), math,
    label, comment, html or directive. A cell has the line of its `row`, and in `about` the heads of
    its row and column.
    """

    kind: str
    line: int
    last: int
    first: int
    content: str
    row: int = 0
    about: str = ""
    parts: tuple[Any, ...] = field(default=(), repr=False, compare=False)  # the parser's

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """The parts of a text, in the order of its source."""
        return spans(self.parts, self.content, self.first)


@dataclass(frozen=True)
class Directive(Block):
    """A directive: its name, its title, its options, and its content, the text after them.

    A fence of colons without a name in braces has none; its content is Markdown. `head` are the
    lines of options as they stand, `settings` what they say, as YAML. A fence that the end of the
    page, or of the block around it, closes is not `closed`. Only a `{code-cell}` that stands in no
    other block, behind a fence of backticks or tildes, is a cell for MyST-NB and Jupytext.
    """

    name: str = ""
    title: str = ""
    head: tuple[str, ...] = ()
    settings: str = ""
    closed: bool = True
    is_cell: bool = False

    @cached_property
    def titled(self) -> Block:
        """The title as a text."""
        return text_of(self.title, self.line)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The content as Markdown, whether or not this directive takes it for that."""
        return tuple(_of(_parser().parse(self.content), self.first - 1))

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """The options, read as MyST does; none if it refuses them."""
        begins = self.line + 1 + self.head[0].startswith("---") if self.head else 0
        return options(self.settings, begins)

    @property
    def has_markdown(self) -> bool:
        """Whether the page lays out the content as Markdown."""
        return self.name not in _VERBATIM

    def option(self, key: str) -> str:
        """The value of an option, empty if it is not given."""
        return next((each.value for each in self.options if each.key == key), "")


@dataclass(frozen=True)
class Source:
    """A page as it was read; `front_matter` is the text between its first two lines of dashes."""

    front_matter: str
    blocks: tuple[Block, ...]

    def walk(self) -> Iterator[tuple[Block, tuple[Directive, ...]]]:
        """Every block that the page lays out, each with the directives around it."""
        return _walk(self.blocks, ())

    @property
    def directives(self) -> Iterator[tuple[Directive, tuple[Directive, ...]]]:
        """Every directive, each with those around it."""
        return ((each, around) for each, around in self.walk() if isinstance(each, Directive))

    @property
    def texts(self) -> Iterator[Block]:
        """Every text, with the titles of directives."""
        for block, _ in self.walk():
            if isinstance(block, Directive) and block.has_markdown:
                yield block.titled
            elif block.kind in ("text", "heading", "cell"):
                yield block

    @property
    def cells(self) -> Iterator[Directive]:
        """The code cells."""
        return (each for each in self.blocks if isinstance(each, Directive) and each.is_cell)


@lru_cache(maxsize=128)
def parsed(text: str) -> Source:
    r"""What a page says, read once for each text.

    >>> source = parsed("# A\n\n:::{figure} a.svg\n:name: fig-a\n\nSee {ref}`b`.\n:::\n")
    >>> [(block.kind, block.line, block.last) for block, _ in source.walk()]
    [('heading', 1, 1), ('directive', 3, 7), ('text', 6, 6)]
    >>> [span.content for text in source.texts for span in text.spans if span.kind == "role"]
    ['b']
    """
    tokens = _parser().parse(text)
    first = tokens[0].content if tokens and tokens[0].type == "front_matter" else ""
    return Source(first, tuple(_of(tokens, 0)))


def text_of(text: str, line: int) -> Block:
    """A text that stands on one line, such as a title or the value of an option."""
    inline = _parser().parseInline(text)[0]
    return Block("text", line, line, line, inline.content, parts=tuple(inline.children or ()))


@cache
def _parser() -> Any:
    """The parser of MyST, with what the book enables."""
    from markdown_it.renderer import RendererHTML
    from myst_parser.config.main import MdParserConfig
    from myst_parser.parsers.mdit import create_md_parser

    return create_md_parser(MdParserConfig(enable_extensions=set(EXTENSIONS)), RendererHTML)


def _walk(
    blocks: tuple[Block, ...], around: tuple[Directive, ...]
) -> Iterator[tuple[Block, tuple[Directive, ...]]]:
    for block in blocks:
        yield block, around
        if isinstance(block, Directive) and block.has_markdown:
            yield from _walk(block.blocks, (*around, block))


def _of(tokens: list[Any], before: int) -> Iterator[Block]:
    table, kind = _Table(), "text"
    for token in tokens:
        start, end = token.map or (0, 0)
        line, last = before + start + 1, before + end
        table.note(token.type, line)
        if token.type in ("heading_open", "heading_close"):
            kind = "heading" if token.type == "heading_open" else "text"
        elif token.type == "inline":
            about, parts = table.about(token.content), tuple(token.children or ())
            inside = "cell" if table.row else kind
            yield Block(inside, line, last, line, token.content, table.row, about, parts)
        elif token.type in ("fence", "colon_fence"):
            yield _fence(token, line, last)
        elif token.type in _BLOCKS:
            yield Block(_BLOCKS[token.type], line, last, line, token.content)
            if token.type == "math_block_label":
                yield Block("label", last, last, last, token.info)


class _Table:
    """The row of a pipe table that a walk is in, 0 outside, and the heads of its columns."""

    def __init__(self) -> None:
        self.row = 0
        self._heads: list[str] = []
        self._cells: list[str] = []

    def note(self, token: str, line: int) -> None:
        if token == "tr_open":
            self.row, self._cells = line, []
        elif token == "tr_close":
            self.row = 0
        elif token == "thead_close":
            self._heads = self._cells

    def about(self, cell: str) -> str:
        """The heads of the next cell's row and column."""
        if not self.row:
            return ""
        number = len(self._cells)
        self._cells.append(cell)
        return " ".join((*self._cells[:1], *self._heads[number : number + 1]))


def _fence(token: Any, line: int, last: int) -> Block:
    """A directive, or a block of code."""
    name, title = [*token.info.split(maxsplit=1), "", ""][:2]
    is_cell = token.type == "fence" and not token.level and token.info.startswith(_CELL)
    if is_cell:
        name, title = _CELL, token.info.removeprefix(_CELL)
    lines = token.content.splitlines()
    closed = last - line > len(lines)
    named = name.startswith("{") and name.endswith("}")
    if not named and token.type == "fence":
        return Block("code", line, last, line + 1, token.content)
    count, settings, rest = parted(lines) if named else (0, "", lines)
    return Directive(
        "directive",
        line,
        last,
        line + 1 + len(lines) - len(rest),
        "\n".join(rest),
        name=name[1:-1] if named else "",
        title=title.strip() if named else "",
        head=tuple(lines[:count]),
        settings=settings,
        closed=closed,
        is_cell=is_cell,
    )
