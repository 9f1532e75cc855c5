"""Where a page computes: its formulas, and the texts between them, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mlsysim.book.source.myst import Block, Directive, parsed
from mlsysim.book.source.scanner import MARK, VERBATIM
from mlsysim.book.source.spans import Span

__all__ = ["Display", "bare", "displays", "one_line"]

_SIGNS = ("=", "≈", "\\approx")
_BRACKETS = {"lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉"}
# Signs in place of commands, and nothing in place of what only sets a formula.
_SHOWN = [
    (re.compile(r"\\(?:up|text)?mu(?![A-Za-z])\s*"), "µ"),
    (re.compile(r"\\(?:mathrm|text|textrm)\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\{([,.])\}"), r"\1"),
    (re.compile(r"\\(?:left|right|begin\{\w+\}|end\{\w+\})|\\[,;!\\]|&|\{\}"), " "),
    (re.compile(r"\\times(?![A-Za-z])"), "×"),
    (re.compile(r"\\cdot(?![A-Za-z])"), "·"),
    (re.compile(r"\\approx(?![A-Za-z])"), "≈"),
    *((re.compile(rf"\\{name}(?![A-Za-z])"), sign) for name, sign in _BRACKETS.items()),
    (re.compile(r"\\([%$])"), r"\1"),
]
# What only sets a formula: sizes and styles, and commands with what they set in braces.
_STYLE = re.compile(
    r"\\(?:(?:display|text|script|scriptscript)style|tiny|scriptsize|footnotesize|small|normalsize"
    r"|[lL]arge|LARGE|[hH]uge|rm|bf|it|sf|tt)(?![A-Za-z])|\\color\s*\{\w+\}"
)
_SET = re.compile(
    r"\\(?:[fm]box|boxed|math(?:bf|it|sf|tt|normal)|text(?:bf|it|sf|tt|normal)|boldsymbol"
    r"|bm|pmb|underline|textcolor\s*\{\w+\}|(?:mathrm|text|textrm)(?=\s*\{\s*\{quote\}))"
    r"\s*\{(?!quote\})"
)
_SIGN = re.compile(r"\{(\s*(?:=|≈|\\approx|[*/+×·÷−-]|\\(?:times|cdot|div))\s*)\}")
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_ROOT = re.compile(r"\\sqrt\s*\{([^{}]*)\}")
_PLAIN = re.compile(r"\(\s*([\w.,\u00a0%/]+)\s*\)")


@dataclass(frozen=True)
class Display:
    """A formula, or a text without the formulas in it; `line` is that of its first character.

    Quotes stand in it as roles; what is no text of the page is a mark that no number can have.
    """

    line: int
    text: str
    math: bool


def displays(text: str) -> Iterator[Display]:
    """The formulas and texts of a page that hold a quote and a sign of equality."""
    for each in _displays(parsed(text).blocks):
        if MARK in each.text and any(sign in each.text for sign in _SIGNS):
            yield each


def _displays(blocks: Iterable[Block]) -> Iterator[Display]:
    """Those in the blocks of a page, and in the titles and the contents of its directives."""
    for block in blocks:
        if MARK not in block.content and not (isinstance(block, Directive) and MARK in block.title):
            continue
        if not isinstance(block, Directive):
            if block.kind == "math":
                yield Display(block.line, block.content, math=True)
            elif block.kind in ("text", "heading", "cell"):
                yield from _inline(block)
        elif block.name == "math":
            yield Display(block.first, block.content, math=True)
        elif block.name not in VERBATIM:
            yield from _inline(block.titled)
            yield from _displays(block.blocks)


def _inline(text: Block) -> Iterator[Display]:
    """The formulas in a paragraph, a heading or a cell, then the text around them."""
    parts: list[str] = []
    at = text.line
    for span in text.spans:
        if span.kind == "math" or _is_role(span, "math"):
            yield Display(at, span.content, math=True)
            parts.append("\0")
        elif span.kind == "break":
            parts.append("\n")
            at += 1
        elif _is_role(span, "quote"):
            parts.append(f"{{quote}}`{span.content}`")
        elif span.kind == "text":
            parts.append(span.content)
        elif span.content or span.kind == "image":
            parts.append("\0")
    yield from (
        Display(text.line + number, each, math=False)
        for number, each in enumerate("".join(parts).split("\n"))
    )


def _is_role(span: Span, name: str) -> bool:
    return span.kind == "role" and span.name == name


def bare(text: str) -> str:
    r"""A formula without what only sets it, such as bold or a box; all else stays in its place.

    >>> bare("\\small 2 {=} \\boxed{\\mathbf{7}}")
    '       2  =                 7  '
    """
    text = _STYLE.sub(lambda found: " " * len(found[0]), text)
    text = _SIGN.sub(r" \1 ", text)
    while found := _SET.search(text):
        start, first = found.span()
        last = _closing(text, first)
        text = text[:start] + " " * (first - start) + text[first:last] + " " + text[last + 1 :]
    return text


def _closing(text: str, at: int) -> int:
    """Where the brace closes that opens before `at`, or the end of the text."""
    depth = 1
    for place in range(at, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if not depth:
            return place
    return len(text)


def one_line(text: str) -> str:
    r"""A formula as plain text on one line, as errors show it.

    >>> one_line("\\frac{96 + 1}{4} \\\\ &= 24{,}250\\,\\mathrm{ms}")
    '(96 + 1) / 4 = 24,250 ms'
    """
    text = bare(text)
    for pattern, sign in _SHOWN:
        text = pattern.sub(sign, text)
    while text != (flat := _FRACTION.sub(r"(\1) / (\2)", _ROOT.sub(r"√(\1)", text))):
        text = flat
    return " ".join(_PLAIN.sub(r"\1", text).split())
