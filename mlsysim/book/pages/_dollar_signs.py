"""Formulas that are none: text between two dollar signs that were meant as prices."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mlsysim.book.pages.visible import MATH, seen
from mlsysim.book.source.cells import place
from mlsysim.errors import InputError

__all__ = ["check_dollars"]

_FORMULA = re.compile(f"{MATH}(?P<content>[^{MATH}]*){MATH}(?P<after>.?)", re.DOTALL)
_COMMAND = re.compile(r"\\(?:text|mathrm|mbox|operatorname|textrm)\s*\{[^{}]*\}|\\[A-Za-z]+")
_WORDS = re.compile(r"[A-Za-z]{2,}\s+[A-Za-z]{2,}")


def check_dollars(page: str, text: str) -> None:
    r"""Refuse what MyST takes for a formula and a reader does not, as in ``$3 and then $72``.

    A formula begins and ends without a blank, no digit follows its last sign, and it has no two
    words side by side but in ``\text{}``. Raises one InputError with every ``chapters/x.md:LINE``.
    """
    wrong = [
        f"{place(page, line)}: `${content}$` is read as a formula; write \\$ for a dollar sign; "
        "a formula has no blanks inside its $, and its words stand in \\text{}"
        for line, content in _wrong(text)
    ]
    if wrong:
        raise InputError("\n".join(wrong))


def _wrong(text: str) -> Iterator[tuple[int, str]]:
    for part in seen(text):
        for found in _FORMULA.finditer(part.text):
            content = found["content"]
            if (
                content != content.strip()
                or found["after"].isdigit()
                or _WORDS.search(_COMMAND.sub("", content))
            ):
                line = part.line + part.text.count("\n", 0, found.start())
                yield line, " ".join(content.split("\n"))[:60]
