"""Printed text in LaTeX: escaped for its text mode, or set upright for its math mode."""

from __future__ import annotations

import re

__all__ = ["PREAMBLE", "in_formula", "in_math", "in_text", "is_in_text"]

_SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_RAISED = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_TEXT = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "−": "$-$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "µ": r"\textmu{}",
    "ρ": r"$\rho$",
    "₂": r"\textsubscript{2}",
    "\N{NO-BREAK SPACE}": "~",
    **{sign: f"\\{sign}" for sign in "%_&#${}"},
}
# Signs that texts of chapters hold and that LaTeX knows no glyph for; quotes with a dotted line,
# a pale one in tables; the contents under that name; no second heading over the bibliography,
# which is a page.
PREAMBLE = r"""
\usepackage[normalem]{ulem}
\newcommand{\quoted}[1]{\dotuline{#1}}
\makeatletter
\newcommand{\quotedcell}{\leavevmode\bgroup\UL@setULdepth\markoverwith{%
  \lower\ULdepth\hbox{\kern.06em\textcolor[gray]{0.6}{.}\kern.04em}}\ULon}
\makeatother
\addto\captionsenglish{\renewcommand{\contentsname}{Contents}}
\renewenvironment{sphinxthebibliography}[1]
  {\begingroup\let\bibsection\relax\begin{thebibliography}{#1}}
  {\end{thebibliography}\endgroup}
""" + "\n".join(
    rf"\DeclareUnicodeCharacter{{{ord(sign):04X}}}{{\ensuremath{{{command}}}}}"
    for sign, command in (
        ("−", "-"),
        ("≤", r"\leq"),
        ("≥", r"\geq"),
        ("≈", r"\approx"),
        ("→", r"\rightarrow"),
        ("×", r"\times"),
        ("·", r"\cdot"),
        ("µ", r"\mathrm{\mu}"),
        ("ρ", r"\rho"),
    )
)
_BRACE = re.compile(r"\\[{}\\]|(?:\\(?P<command>[A-Za-z]+)\s*)?\{|(?P<close>\})")
_TEXT_GROUPS = ("hbox", "mbox", "text", "textbf", "textit", "textnormal", "textrm", "textsf")
_NUMBER = re.compile(r"(?P<digits>−?\$?[\d,.]+)(?:×10(?P<power>[⁻⁰-⁹¹²³]+))?(?P<rest>.*)")


def in_text(text: str) -> str:
    r"""`text` so that LaTeX prints it as it is.

    >>> in_text("50% of a_b")
    '50\\% of a\\_b'
    """
    escaped = "".join(_TEXT.get(sign, sign) for sign in text)
    escaped = _RAISED.sub(lambda found: f"$^{{{found[0].translate(_SUPERSCRIPTS)}}}$", escaped)
    # After the end of a row, a star or a bracket would be read as an option of it.
    return "{" + escaped[0] + "}" + escaped[1:] if escaped[:1] in {"*", "["} else escaped


def in_math(text: str) -> str:
    r"""A printed number and its unit for math mode.

    >>> in_math("6,801\N{NO-BREAK SPACE}ms")
    '6{,}801\\,\\mathrm{ms}'
    >>> in_math("48.5%"), in_math("1.5×10⁻⁷")
    ('48.5\\%', '1.5\\times 10^{-7}')
    """
    found = _NUMBER.fullmatch(text)
    if not found:
        return rf"\text{{{in_text(text)}}}"
    digits = found["digits"].replace(",", "{,}").replace("−", "-")
    made = digits.replace("$", r"\$")
    if found["power"]:
        made += rf"\times 10^{{{found['power'].translate(_SUPERSCRIPTS)}}}"
    unit = found["rest"]
    if unit == "%":
        return made + r"\%"
    if unit.startswith("\N{NO-BREAK SPACE}"):
        made, unit = made + r"\,", unit[1:]
    return made + _upright(unit) if unit else made


def in_formula(text: str, before: str) -> str:
    r"""A printed number and its unit inside of a formula, of which `before` is what leads there.

    In ``\text{}`` it is a formula of its own.

    >>> in_formula("7.73\N{NO-BREAK SPACE}s", "t = "), in_formula("7.73", r"\text{it takes ")
    ('7.73\\,\\mathrm{s}', '\\(7.73\\)')
    """
    made = in_math(text)
    return rf"\({made}\)" if is_in_text(before) else made


def is_in_text(before: str) -> bool:
    r"""Whether a formula that begins like this is in ``\text{}`` or another group of text."""
    groups: list[bool] = []
    for found in _BRACE.finditer(before):
        if found["close"]:
            del groups[-1:]
        elif found[0].endswith("{") and found[0] != r"\{":
            groups.append(found["command"] in _TEXT_GROUPS)
    return any(groups)


def _upright(unit: str) -> str:
    r"""A unit in math mode: ``\mathrm{TFLOP/s}``, with spaces and dots kept."""
    spaced = unit.replace("\N{NO-BREAK SPACE}", r"\ ").replace("·", r"{\cdot}")
    spaced = spaced.replace("µ", r"{\mu}").replace("₂", "_{2}")
    raised = _RAISED.sub(lambda found: f"^{{{found[0].translate(_SUPERSCRIPTS)}}}", spaced)
    return rf"\mathrm{{{raised}}}"
