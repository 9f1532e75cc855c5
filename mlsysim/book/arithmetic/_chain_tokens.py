"""The numbers, units and signs of displayed arithmetic, in a formula or in a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from mlsysim import units
from mlsysim.artifacts.quotes import Printed
from mlsysim.book.arithmetic._formulas import bare
from mlsysim.book.arithmetic._printed_values import Interval, of_quote, typed
from mlsysim.book.source.scanner import ROLE
from mlsysim.errors import UnitError

__all__ = ["Token", "tokens"]

_NUMBER = r"(?:\d{1,3}(?:(?:\{,\}|,)\d{3})+|\d+)(?:(?:\.|\{\.\})\d+)?(?![\d.]*\d)"
_LONGEST = 40  # digits of a number that anybody reads
_UNIT = r"%|[A-Za-zµμ][A-Za-z]*(?:/[A-Za-z]+)*"
_MU = r"\\(?:up|text)?mu(?![A-Za-z])\s*|[µμ]\s*"
_MONEY = {"": "USD", "USD": "USD", "k": "kUSD", "M": "MUSD", "B": "GUSD"}
_SIGNS = r"""
  | (?P<equal>=)
  | (?P<about>\\approx(?![A-Za-z])|≈)
  | (?P<barrier>[<>≤≥∝≠→]|\\(?:lt|gt|leq?|geq?|neq?|ll|gg|propto|to|sim|simeq|equiv)(?![A-Za-z]))
"""
_MATH = re.compile(
    rf"""
    (?P<skip>\s+|\\[,;:!>\s]|~|\{{\}}|\\(?:left|right|[bB]igg?[lrm]?)(?![A-Za-z])
       |\\(?:begin|end)\{{(?:aligned|gathered|split|align\*?|equation\*?)\}})
  | (?P<newline>\\\\)
  | (?P<align>&)
  | (?P<end>\\q?quad(?![A-Za-z])|[,;.])
  | (?P<number>(?:(?<=frac)|(?<=frac\d))\d|(?P<money>\\\$\s*)?{_NUMBER})
  | (?P<unit>(?P<mu>{_MU})?\\(?:mathrm|text|textrm)\{{(?P<word>[^{{}}]*)\}}|\\?%)
  | (?P<function>\\[dt]?frac|\\sqrt(?!\[)|\^)
  | (?P<operator>\\(?:times|cdot|div)(?![A-Za-z])|[*/+×·÷−-])
  | (?P<open>[(\[{{]|\\l(?:floor|ceil|brace))
  | (?P<close>[)\]}}]|\\r(?:floor|ceil|brace))
  {_SIGNS}
  | (?P<other>\\[A-Za-z]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_PROSE = re.compile(
    rf"""
    (?P<skip>\s+)
  | (?P<number>(?<![\w.])(?P<money>\$)?{_NUMBER})
      (?:[ \u00a0]?(?P<unit>{_UNIT}|(?(money)/[A-Za-z]+|(?!)))(?!\w))?
  | (?P<operator>[×·÷*+]|(?<=\s)[−-](?=\s)|/)
  | (?P<open>\()
  | (?P<close>\))
  | (?P<end>[,;:.!?])
  {_SIGNS}
  | (?P<other>\w[\w'’-]*|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPERATORS = {
    **dict.fromkeys(("\\times", "\\cdot", "*", "×", "·"), "*"),
    **dict.fromkeys(("\\div", "/", "÷"), "/"),
    **dict.fromkeys(("-", "−"), "-"),
    "+": "+",
}
_VALUES = {"quote", "number", "unit", "function", "open", "close", "other"}
_WORDS = {
    **dict.fromkeys(("tok", "token", "tokens"), "tok"),
    **dict.fromkeys(("seq", "sequence", "sequences"), "seq"),
    **dict.fromkeys(("param", "parameter", "parameters"), "param"),
    **dict.fromkeys(("byte", "bytes"), "B"),
    **dict.fromkeys(("second", "seconds"), "s"),
    **dict.fromkeys(("minute", "minutes"), "min"),
    **dict.fromkeys(("hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
    "\\%": "%",
}


_GAP = re.compile(r"\\[,;: ]|~")


@dataclass(frozen=True)
class Token:
    """A part of displayed arithmetic, and where it stands in the text.

    `kind` is quote, number, unit, operator, function, open, close, equal, about, barrier, end or
    other. `text` is as it stands, but that of an operator is one of + - * /. The first three have
    what they stand for in `known`.
    """

    kind: str
    text: str
    start: int
    end: int
    known: Interval | None = None


def tokens(text: str, resolve: Callable[[str], Printed], *, math: bool) -> list[Token]:
    r"""The parts of a formula, or of a sentence; `resolve` tells what a quote prints.

    >>> found = tokens("so 12 s × 3 = 36", lambda _: None, math=False)
    >>> " ".join(each.kind for each in found)
    'other number operator number equal number'
    """
    found: list[Token] = []
    text = bare(text) if math else text
    at = 0
    while at < len(text):
        if role := ROLE.match(text, at):
            known = of_quote(resolve(" ".join(role["spec"].split())))
            found.append(Token("quote" if known else "other", role[0], at, role.end(), known))
            at = role.end()
            continue
        match = (_MATH if math else _PROSE).match(text, at)
        at = match.end() if match else at + 1
        if match and match.lastgroup != "skip" and not match["skip"]:
            found += _tokens(match, math=math)
    return _joined(_columns(found))


def _tokens(match: re.Match[str], *, math: bool) -> list[Token]:
    kind = next(
        name
        for name, part in match.groupdict().items()
        if part and name not in ("money", "mu", "word")
    )
    text, start, end = match[kind], match.start(), match.end()
    if kind == "number":
        money = match["money"] or ""
        digits = text.removeprefix(money).replace("{,}", "").replace("{.}", ".")
        if len(digits) > _LONGEST:
            return [Token("other", text, start, end)]
        unit = "" if math else _unit(match["unit"] or "")
        if money:
            unit = "USD" if math else _money(match["unit"] or "")
        if not math and match["unit"] and not unit:  # a word, such as layers
            word = Token("other", match["unit"], match.start("unit"), end)
            if money and word.text.startswith("/"):  # per something unknown
                return [Token("other", text, start, end)]
            known = typed(digits, "USD" if money else "")
            return [Token(kind, text, start, match.end(kind), known), word]
        return [Token(kind, text, start, end, typed(digits, unit))]
    if kind == "unit":
        label = match["word"] if match["word"] is not None else text
        unit = _unit(("µ" if match["mu"] else "") + re.sub(_MU, "µ", label))
        if not unit and any(sign.isdigit() for sign in label):  # set as text: 7.73 s
            inside = [each for each in _PROSE.finditer(_GAP.sub(" ", label)) if not each["skip"]]
            read = [token for each in inside for token in _tokens(each, math=False)]
            return [replace(token, start=start, end=end) for token in read]
        return [Token("unit", text, start, end, typed("1", unit)) if unit
                else Token("other", text, start, end)]  # fmt: skip
    return [Token(kind, _OPERATORS.get(text, text), start, end)]


def _money(word: str) -> str:
    """The unit of an amount in dollars with a word behind it: M, k/h or /h; of others USD."""
    size, _, per = word.partition("/")
    if size not in _MONEY:
        return ""
    return _unit(f"{_MONEY[size]}/{per}" if per else _MONEY[size])


def _unit(word: str) -> str:
    """The unit of the vocabulary that a word is, or nothing."""
    word = word.strip(" ~\u00a0\\,")
    word = _WORDS.get(word, word)
    with suppress(UnitError):
        return units.unit_text(units.unit(word))
    return ""


def _columns(found: list[Token]) -> list[Token]:
    """With ends where columns part; a mark beside a sign only aligns it."""
    kept: list[Token] = []
    for token, after in zip(found, [*found[1:], None], strict=True):
        if token.kind != "align":
            kept.append(token)
        elif kept and after and {kept[-1].kind, after.kind} <= _VALUES:
            kept.append(Token("end", token.text, token.start, token.end))
    return kept


def _joined(found: list[Token]) -> list[Token]:
    """Without ends of lines where the next line goes on with a sign, or inside of brackets."""
    kept: list[Token] = []
    depth = 0
    for token, after in zip(found, [*found[1:], None], strict=True):
        depth += (token.kind == "open") - (token.kind == "close")
        if token.kind != "newline":
            kept.append(token)
        elif depth <= 0 and (not after or after.kind not in ("operator", "equal", "about")):
            kept.append(Token("end", token.text, token.start, token.end))
    return kept
