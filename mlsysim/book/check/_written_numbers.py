"""A number as a text writes it: its exact value, its last digit, its unit, the words around it.

Years, identifiers, versions, numbers of sections, and what has a unit of another kind are none.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from mlsysim import units
from mlsysim.book.pages.visible import CUT, MATH
from mlsysim.errors import UnitError

__all__ = ["COUNTED", "TypedNumber", "in_code", "in_text", "words"]

# The unit of a multiplied number without a counted word: 175 billion of anything that is counted.
COUNTED = "counted"

_GAP = r"(?:[ \t\n\u00a0\u2009\u202f~*\1-]|\\[,; ]|\{\\,\})*"
# What may stand between groups of three digits: a plain space would join neighbors in a list.
_POINT = r"(?:\.|\{\.\})"
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
    "megabyte": "MB",
    "gigabyte": "GB",
    "terabyte": "TB",
    "gibibyte": "GiB",
    "teraflop": "TFLOP/s",
    "petaflop": "PFLOP/s",
    "watt": "W",
    "kilowatt": "kW",
    "megawatt": "MW",
    "kilowatt-hour": "kWh",
    "megawatt-hour": "MWh",
    "gigawatt-hour": "GWh",
    "dollar": "USD",
}
# Units that no value of the book has: what they stand with is no number of the book.
_OTHER_UNIT = re.compile(
    r"[kMGTmµn]?(?:Hz|V|A|Pa|Ω|eV)|[kcmµn]?m|k?g|[ml]?l|dBm?|dpi|fps|ft|mph|pt|px|rpm"
    r"|(?:centi|kilo|milli)?(?:meter|metre|gram|liter|litre)s?|(?:mega|giga)?hertz|volts?|amperes?"
    r"|degrees?|euros?|pounds?|cents?|inch(?:es)?|feet|foot|miles?|(?:mega)?pixels?|points?"
)
_NUMBER = re.compile(
    rf"""
    (?<![\w./^_\\@&#-]) (?<![_^]\{{) (?P<money>\\?\$|USD\s)? (?P<sign>[-−])?
    (?P<digits>\d{{1,3}}(?:{_GROUP}\d{{3}})+(?!\d)(?:{_POINT}\d+)?|\d+(?:{_POINT}\d+)?)
    (?P<power>\s*(?:×|\\times)\s*10(?:\^\{{?(?P<exponent>-?\d+)\}}?|(?P<raised>⁻?[⁰¹²³⁴-⁹]+))
       |[eE](?P<e>[+-]?\d{{1,2}}))?
    (?![\d_]|{_POINT}\d)
    (?:{_GAP}(?P<multiple>thousand|million|billion|trillion)\b)?
    (?:{_GAP}(?:\\(?:mathrm|text)\{{\W*)?
       (?P<unit>\\?%|°|€|£|per[ ]cent\b|[a-z]+watt[- ]hours?
         |(?P<gas>(?:[kMG]?g|[kM]?t)[ \u00a0]?CO[2₂]e)(?:/[A-Za-z]+)?
         |[A-Za-zµμΩ][A-Za-z]*(?:/[A-Za-z]+)?(?![A-Za-z\d]))
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
# The words of a sentence, where it ends, and words that say nothing of a value.
_WORD = re.compile(r"[A-Za-z]{3,}|[A-Z]\d{2,3}\b")
_MACHINE = re.compile(r"[A-Z]\d+|GPUs?|[Dd]evices?")
_MOST = 40  # digits of a number that anybody reads
_NEAR = 300  # characters on either side of a number that may belong to it
_SENTENCE = re.compile(r"[.!?:;]\s|\n\n")
_SILENT = frozenset(
    re.findall(
        r"\w+",
        "all and are been between but can each first for from had has have into its last least "
        "long may more most new not number one only other out over per same take takes than that "
        "the them then there these they this those under use used value was were what when where "
        "which while who will with without",
    )
)
# What a reader sees and takes for no number of the book: addresses, and names of works and days.
_NO_NUMBERS = re.compile(
    r"\bhttps?://\S+|\b10\.\d{4,}/\S+|\barXiv[:\s]*\d{4}\.\d{4,5}(?:v\d+)?|\b\d{4}-\d{2}-\d{2}\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class TypedNumber:
    """A number as typed on a line: exact value, size of its last digit, significant digits, unit.

    The unit is a text of the vocabulary, COUNTED, or empty; `prefix` is that of a multiple in
    words, such as M of million. `context` are the words of its sentence, None if it needs none.
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
    context: frozenset[str] | None = None
    in_code: bool = False


def in_text(text: str, first: int = 1, about: str = "") -> Iterator[TypedNumber]:
    """The numbers in a text that a reader sees, which begins on line `first`.

    `about` is what says what they are and stands elsewhere, such as the head of a column.
    """
    if not any(sign.isdigit() for sign in text):
        return
    text = _NO_NUMBERS.sub(lambda found: CUT * len(found[0]), text)
    breaks = [found.start() for found in re.finditer("\n", text)]
    ends = [0, *(found.end() for found in _SENTENCE.finditer(text)), len(text)]
    for found in _NUMBER.finditer(text):
        start = found.start()
        typed = _typed(found, text[max(start - _NEAR, 0) : start], first + bisect(breaks, start))
        if typed:
            sentence = bisect(ends, start)
            begins = max(ends[sentence - 1], start - _NEAR)
            around = text[begins : min(ends[min(sentence, len(ends) - 1)], start + _NEAR)]
            yield replace(typed, context=words(f"{about} {around}"))


def words(text: str) -> frozenset[str]:
    """The words of a text that can say what a number is, in the singular.

    >>> sorted(words("It ran on the GPUs of one fleet."))
    ['accelerator', 'fleet', 'ran']
    """
    found = {_MACHINE.sub("accelerator", word).lower() for word in _WORD.findall(text)}
    return frozenset(word.removesuffix("s") for word in found - _SILENT) - _WORDS.keys()


def in_code(value: int | float, line: int) -> TypedNumber | None:
    """The number that a piece of code holds on a line, if it could be a result."""
    digits = str(value) if isinstance(value, int) else f"{Decimal(repr(value)):f}"
    found = _NUMBER.match(digits)
    typed = _typed(found, "", line) if found else None
    return replace(typed, in_code=True) if typed else None


def _typed(found: re.Match[str], before: str, line: int) -> TypedNumber | None:
    digits = re.sub(r"[^\d.]", "", found["digits"])
    whole, _, fraction = digits.partition(".")
    significant = len((whole + fraction).lstrip("0") if fraction else whole.strip("0"))
    if _OTHER_UNIT.fullmatch(found["unit"] or "") or found["unit"] in ("°", "€", "£"):
        return None
    unit, end = _unit(found)
    if not significant or len(digits) > _MOST or (not unit and significant < 3):
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
        text=found.string[found.start() : end].replace(CUT, "").replace(MATH, "$").strip(),
        value=Fraction(digits) * scale * (-1 if found["sign"] else 1),
        last=Fraction(10) ** (zeros - len(fraction)) * scale,
        significant=significant,
        unit=unit,
        prefix=_PREFIXES.get(found["multiple"] or "", ""),
        grouped=not re.sub(_POINT, "", found["digits"]).isdecimal(),
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
    if found["gas"]:
        return word.replace("₂", "2").replace(" ", "").replace("\u00a0", ""), found.end("unit")
    spelled = re.sub(r"watt hour", "watt-hour", word)
    unit = _WORDS.get(spelled) or _WORDS.get(spelled.removesuffix("s"), "")
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
