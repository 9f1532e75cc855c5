"""Numbers that a chapter types: in its prose, captions, tables and code, with the unit beside them.

Only those are found that could be a result: with a unit, or of three significant digits or more.
Years, identifiers, versions, numbers of sections and lists, and what stands in roles are none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from mlsysim import units
from mlsysim.book.cells import code_cells
from mlsysim.book.claims import split
from mlsysim.errors import InputError, UnitError

__all__ = ["COUNTED", "TypedNumber", "typed_numbers"]

# The unit of a multiplied number without a counted word: 175 billion of anything that is counted.
COUNTED = "counted"

_GAP = r"(?:[ \t\u00a0\u2009\u202f~*$-]|\\[,; ]|\{\\,\})*"
# What may stand between groups of three digits: a plain space would join neighbors in a list.
_GROUP = r"(?:,|\{,\}|\\,|['’\u00a0\u2009\u202f])"
_SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_MULTIPLES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PREFIXES = {"thousand": "k", "million": "M", "billion": "G", "trillion": "T"}
_WORDS = {
    "percent": "%",
    "per cent": "%",
    "sec": "s",
    "second": "s",
    "millisecond": "ms",
    "microsecond": "us",
    "minute": "min",
    "hour": "h",
    "day": "d",
    "token": "tok",
    "sequence": "seq",
    "parameter": "param",
    "byte": "B",
    "gigabyte": "GB",
    "terabyte": "TB",
    "watt": "W",
    "dollar": "USD",
}
_NUMBER = re.compile(
    rf"""
    (?<![\w./^_{{\\@&#-]) (?P<money>\\\$|USD\s)? (?P<sign>[-−])?
    (?P<digits>\d{{1,3}}(?:{_GROUP}\d{{3}})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)
    (?P<power>\s*(?:×|\\times)\s*10(?:\^\{{?(?P<exponent>-?\d+)\}}?|(?P<raised>⁻?[⁰¹²³⁴-⁹]+))
       |[eE](?P<e>[+-]?\d{{1,2}}))?
    (?![\d_]|\.\d)
    (?:{_GAP}(?P<multiple>thousand|million|billion|trillion)\b)?
    (?:{_GAP}(?:\\(?:mathrm|text)\{{\W*)?
       (?P<unit>\\?%|per[ ]cent\b|[A-Za-zµμ][A-Za-z]*(?:/[A-Za-z]+)?)
       (?P<rate>\s(?:per|a|each)\s(?:second|s)\b)?)?
    """,
    re.VERBOSE,
)
_NAMED = re.compile(
    r"(?:\b(?:table|figure|section|chapter|equation|eq|pages?|pp?|version|release|volume|vol|no|number"
    r"|appendix|step|exercise|algorithm|fig|tab|sec|eqs|figs|tables|figures|sections|chapters)\.?|§)"
    r"[\s\u00a0~(]*$",
    re.IGNORECASE,
)
# A word with a capital letter that does not only begin a sentence: Llama 3.11, Python 3.12.
_NAME_BEFORE = re.compile(
    r"\b(?!(?:A|About|After|All|Also|An|And|Are|As|At|Before|But|By|Each|Every|For|From|Here|How|If|In"
    r"|Is|It|Its|Less|More|Most|Nearly|No|Of|On|Only|Or|Over|So|Some|That|The|Then|There|These|They"
    r"|This|Those|Thus|To|Under|Up|When|Where|Which|With)\b)[A-Z][\w-]*[ \u00a0]$"
)
_BLANK = [
    re.compile(r"^[ ]*\|.*\{cite(?::\w+)?\}`.*$", re.MULTILINE),  # a row of what a source reports
    re.compile(r"\A---\n.*?\n---$", re.DOTALL | re.MULTILINE),  # front matter
    re.compile(r"^[ ]{0,3}%.*$", re.MULTILINE),
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"^[ ]*\([\w:.-]+\)=[ ]*$|^\$\$[ ]*\([\w:-]+\)", re.MULTILINE),  # labels
    re.compile(r"^[ ]*(?::{3,}|`{3,})\{(?:figure|image|include|literalinclude|toctree)\}.*$", re.M),
    re.compile(r"^[ ]*(?::{3,}|`{3,})\{[\w:-]+\}", re.MULTILINE),
    re.compile(r"^[ ]*:(?!alt:)[\w-]+:.*$", re.MULTILINE),  # options of directives
    re.compile(r"\{(?!(?:claim|math|sub|sup)\})[\w:+-]+\}(`+)(?!`).*?(?<!`)\1(?!`)"),  # roles
    re.compile(r"(?<!\})(`+)(?!`)[^\n]*?(?<!`)\1(?!`)"),  # code
    re.compile(r"\]\([^)\s]*|\bhttps?://\S+|<[^>\s]+>|\b10\.\d{4,}/\S+"),
    re.compile(r"\barXiv[:\s]*\d{4}\.\d{4,5}(?:v\d+)?|\b\d{4}-\d{2}-\d{2}\b", re.IGNORECASE),
    re.compile(r"^[ ]*\d+[.)][ ]", re.MULTILINE),  # lists
]
_CLAIM = re.compile(r"\{claim\}(`+)(?!`)(.*?)(?<!`)\1(?!`)")
_FENCE = re.compile(
    r"^(?P<fence>`{3,}|~{3,})(?!\{)[^\n]*\n.*?^(?P=fence)[ ]*$"
    r"|^(?P<cell>`{3,}|:{3,}|~{3,})\{(?:code|code-block|code-cell|raw|eval-rst|mermaid|parsed-literal)\}"
    r".*?^(?P=cell)[ ]*$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class TypedNumber:
    """A number as typed on a line: exact value, size of its last digit, significant digits, unit.

    The unit is a text of the vocabulary, COUNTED, or empty; `prefix` is that of a multiple in
    words, such as M of million.
    """

    line: int
    text: str
    value: Fraction
    last: Fraction
    significant: int
    unit: str
    prefix: str
    grouped: bool
    decimals: int


def typed_numbers(text: str) -> list[TypedNumber]:
    """Every number in the source of a page that could be a result, in the order of its lines."""
    found = list(_in_text(_prose(text), 1))
    for cell in code_cells(text):
        found += _in_code(cell.source, cell.line)
    return sorted(found, key=lambda number: number.line)


def _prose(text: str) -> str:
    """The text with all blanked that no reader takes for a number of the book."""
    text = _FENCE.sub(_blank, text)
    text = _CLAIM.sub(_phrase, text)
    for pattern in _BLANK:
        text = pattern.sub(_blank, text)
    return text


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", "\0", found[0])


def _phrase(found: re.Match[str]) -> str:
    """The phrase of a claim, in as many characters."""
    with suppress(InputError):
        return split(found[2])[0].ljust(len(found[0]), "\0")
    return _blank(found)


def _in_text(text: str, first: int) -> Iterator[TypedNumber]:
    for number, line in enumerate(text.split("\n"), start=first):
        if any(sign.isdigit() for sign in line):
            for found in _NUMBER.finditer(line):
                typed = _typed(found, line[: found.start()], number)
                if typed:
                    yield typed


def _in_code(source: str, first: int) -> Iterator[TypedNumber]:
    """Numbers in code, and in its texts, but for limits and ticks of axes."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    layout = set(_layout(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or isinstance(node.value, (bool, bytes, complex)):
            continue
        if node in layout:
            continue
        line = first + node.lineno - 1
        if isinstance(node.value, str):
            yield from _in_text(node.value.replace("\n", " "), line)
        elif isinstance(node.value, (int, float)) and abs(node.value) < 1e300:
            found = _NUMBER.match(_digits(node.value))
            typed = _typed(found, "", line) if found else None
            if typed:
                yield typed


def _layout(tree: ast.Module) -> Iterator[ast.AST]:
    """What `axes.set_xticks(...)` and its like are given, and whole numbers in a list."""
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and re.match(r"set(?:_|$)", called.attr):
            yield from ast.walk(node)
        elif isinstance(node, (ast.List, ast.Tuple)):
            for each in node.elts:
                if isinstance(each, ast.Constant) and isinstance(each.value, int):
                    yield each


def _digits(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{Decimal(repr(value)):f}"


def _typed(found: re.Match[str], before: str, line: int) -> TypedNumber | None:
    digits = re.sub(r"[^\d.]", "", found["digits"])
    whole, _, fraction = digits.partition(".")
    significant = len((whole + fraction).lstrip("0") if fraction else whole.strip("0"))
    unit, end = _unit(found)
    if not significant or (not unit and significant < 3):
        return None
    if (
        not unit
        and not found["multiple"]
        and not found["power"]
        and _is_name(digits, before, found)
    ):
        return None
    if not unit and _NAMED.search(before):
        return None
    zeros = 0 if fraction else len(whole) - len(whole.rstrip("0"))
    raised = (found["raised"] or "").translate(_SUPERSCRIPTS)
    exponent = int(found["exponent"] or raised or found["e"] or 0)
    scale = Fraction(_MULTIPLES.get(found["multiple"] or "", 1)) * Fraction(10) ** exponent
    return TypedNumber(
        line=line,
        text=found.string[found.start() : end].strip().replace("\0", ""),
        value=Fraction(digits) * scale * (-1 if found["sign"] else 1),
        last=Fraction(10) ** (zeros - len(fraction)) * scale,
        significant=significant,
        unit=unit,
        prefix=_PREFIXES.get(found["multiple"] or "", ""),
        grouped=not found["digits"].replace(".", "").isdecimal(),
        decimals=len(fraction),
    )


def _is_name(digits: str, before: str, found: re.Match[str]) -> bool:
    """Whether a number without a unit is a year, a version, or part of a name."""
    if re.fullmatch(r"(?:19\d\d|20[0-3]\d)", digits) and "," not in found["digits"]:
        return True
    if _NAME_BEFORE.search(before):
        return True
    after = found.string[found.end("digits") : found.end("digits") + 1]
    return after.isalpha()  # 175B, 405B: names of models


def _unit(found: re.Match[str]) -> tuple[str, int]:
    """The unit beside a number as the vocabulary writes it, and where the text with it ends."""
    parts = ("digits", "power", "multiple")
    end = max(found.end(part) for part in parts)
    if found["money"]:
        return "USD", end
    word = (found["unit"] or "").replace("\\", "").replace("μ", "µ")
    unit = _WORDS.get(word) or _WORDS.get(word.removesuffix("s"), "")
    # 175B is a name, 7.73s is a time; the 90s are neither.
    beside = found.start("unit") == end
    is_letter = len(word) == 1 and not (word == "%" or (word == "s" and found["digits"][-1] != "0"))
    if not unit and word and not (beside and is_letter):
        unit = _symbol(word)
    if unit and found["rate"] and "/" not in unit:
        return f"{unit}/s", found.end("rate")
    if unit:
        return unit, found.end("unit")
    return COUNTED if found["multiple"] else "", end


def _symbol(word: str) -> str:
    """A symbol of the vocabulary, or nothing; of single letters those that are no words."""
    if word in ("m", "d", "g", "b", "h", "J"):
        return ""
    with suppress(UnitError):
        return units.unit_text(units.unit(re.sub(r"FLOPS$", "FLOP/s", word)))
    return ""
