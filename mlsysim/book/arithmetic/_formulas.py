"""Where a page computes: its formulas, and the texts between them, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mlsysim.book.source.scanner import MARK, VERBATIM, after_options, parser

__all__ = ["Display", "bare", "displays", "one_line"]

_DIRECTIVE = re.compile(r"\{([\w:.-]+)\}(.*)")
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
    for each in _blocks(text, 0):
        if MARK in each.text and any(sign in each.text for sign in _SIGNS):
            yield each


def _blocks(text: str, before: int) -> Iterator[Display]:
    """Those in Markdown text that follows on `before` lines."""
    if MARK not in text:
        return
    for token in parser().parse(text):
        line = before + token.map[0] + 1 if token.map else 0
        if token.type == "inline":
            yield from _inline(token.children or [], line)
        elif token.type in ("math_block", "math_block_label", "amsmath"):
            yield Display(line, token.content, math=True)
        elif token.type in ("fence", "colon_fence"):
            yield from _directive(token, line)


def _directive(token: Any, line: int) -> Iterator[Display]:
    """Those in the title and the body of a directive."""
    found = _DIRECTIVE.match(token.info.strip())
    body = token.content.split("\n")
    if not found:
        return
    first = after_options(body)
    rest = "\n".join(body[first:])
    if found[1] == "math":
        yield Display(line + 1 + first, rest, math=True)
    elif found[1] not in VERBATIM:
        for inline in parser().parseInline(found[2].strip()):
            yield from _inline(inline.children or [], line)
        yield from _blocks(rest, line + first)


def _inline(children: list[Any], line: int) -> Iterator[Display]:
    """The formulas in a paragraph, a heading or a cell, then the text around them."""
    parts: list[str] = []
    at = line
    for child in children:
        if child.type.startswith("math_inline") or _role(child) == "math":
            yield Display(at, child.content, math=True)
            parts.append("\0")
        elif child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
            at += 1
        elif _role(child) == "quote":
            parts.append(f"{{quote}}`{child.content}`")
        elif child.type == "text":
            parts.append(child.content)
        elif child.content or child.type == "image":
            parts.append("\0")
    yield from (
        Display(line + number, each, math=False)
        for number, each in enumerate("".join(parts).split("\n"))
    )


def _role(child: Any) -> str:
    return str(child.meta.get("name", "")) if child.type == "myst_role" else ""


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
