"""Displayed arithmetic: what follows from printed numbers, what is refused or left alone.

The chains of the real chapters that no formula shows stand in tests/book/spoken_chains.txt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim import paths
from mlsysim.artifacts.numbers import format_number, with_unit
from mlsysim.artifacts.quotes import Printed
from mlsysim.book.arithmetic.displayed_arithmetic import Equation, equations
from mlsysim.book.check import checking
from mlsysim.book.check.typed_numbers import typed_numbers
from mlsysim.book.pages.page_sources import Page, pages, write_records
from mlsysim.book.source.myst import Directive, parsed
from mlsysim.book.source.scanner import ROLE
from mlsysim.errors import MlsysimError
from mlsysim.units import convert
from tests.books import chapter

# A quote by the word that stands for it here: value, unit of the artifact, printed in, format.
VALUES: dict[str, tuple[float, str, str, str]] = {
    "power": (1162.8, "W", "W", ",.0f"),
    "hours": (214392.3, "h", "h", ",.0f"),
    "energy": (249.2953, "MWh", "MWh", ".0f"),
    "five": (5.5, "MWh", "MWh", ".1f"),
    "save": (30.146, "s", "s", ".0f"),
    "between": (49.49, "h", "h", ".1f"),
    "young": (54.6, "min", "min", ".1f"),
    "parameters": (175e9, "param", "Gparam", ".0f"),
    "bytes": (16.0, "B", "B", ".0f"),
    "state": (2800.0, "GB", "TB", ".1f"),
    "batch": (3145728.0, "tok", "tok", ",.0f"),
    "budget": (3e11, "tok", "Gtok", ".0f"),
    "steps": (95368, "", "", ",d"),
    "price": (3.0, "USD/h", "USD/h", ".2f"),
    "bill": (643176.9, "USD", "MUSD", ".2f"),
    "eight": (8, "", "", "d"),
    "third": (100 / 3, "%", "%", ".1f"),
    "work": (3.386e18, "FLOP", "EFLOP", ".3f"),
    "rate": (989.4, "TFLOP/s", "TFLOP/s", ".1f"),
    "peak": (3422.28, "s", "s", ",.0f"),
    "tiny": (2.5e-7, "s", "s", ".1e"),
    "brief": (1.25e-5, "s", "us", ".1f"),
    "word": (0.0, "word", "", ""),
}


def printed(name: str) -> Printed:
    value, unit, shown, form = VALUES[name]
    if unit == "word":
        return Printed("bf16", name, "bf16", "", name)
    number = convert(value, unit, shown) if unit else value
    text = with_unit(format_number(number, form), shown)
    return Printed(text, name, value, unit, f"{name} in {shown}" if shown else name)


def found(text: str) -> list[Equation]:
    """The equations of a text in which <word> stands for a quote."""
    return equations(re.sub(r"<(\w+)>", r"{quote}`\1`", text), printed)


@pytest.mark.parametrize(
    "line",
    [
        r"$<power> \times <hours> = <energy>$",
        "The run takes <power> × <hours> = <energy>, which is much.",
        "- so <power> * <hours> ≈ <energy>",
        "| <power> × <hours> = <energy> |\n|:--|\n| x |",
        ":::{note}\nIt is <power> × <hours> = <energy>.\n:::",
        ":::{figure} x.svg\n\nHere <power> × <hours> = <energy>.\n:::",
        "```{math}\n:label: a\n\n<power> \\cdot <hours> = <energy>\n```",
        "{math}`` <power> \\times <hours> = <energy> ``",
        r"$E = <power> \times <hours> = <energy>$",
        r"$<energy> = <power> \times <hours>$",
        r"$\frac{<power> \times <hours>}{1{,}000} = \frac{<energy>}{1{,}000}$",
        r"$\sqrt{2 \times <save> \times <between>} = <young>$",
        r"$<parameters> \times <bytes> = <state>$",
        r"$\left\lceil \frac{<budget>}{<batch>} \right\rceil = <steps>$",
        r"$<hours> \times <price> = <bill>$",
        r"$\frac{1}{3} = <third>$",
        r"$\frac{<eight>}{24} = <third>$",
        r"$\frac{<work>}{<rate>} = <peak>$",
        r"$<eight>\,(2 + 1)^2 = 72$",
        r"$<eight> - 3 = 5$",
        r"$<eight>\,\mathrm{s} \times 2 = 16{,}000\,\mathrm{ms}$",
        r"$<tiny> \times <eight> = 2\,\mathrm{us}$",
        r"$2 < <eight> = 2 \times 4$",
        r"$\frac{<eight>}{3} \approx 3$",
        r"$<hours> \approx 200{,}000\,\mathrm{h}$",
        "$$\n\\begin{aligned}\nW &= <power> \\times <hours> \\\\\n&= <energy>,\n\\end{aligned}\n$$",
        "$$\na = <eight>, \\qquad <eight> \\times 2 = 16.\n$$",
    ],
)
def test_what_follows_is_seen_and_accepted(line: str) -> None:
    seen = found(line)
    assert seen
    assert [each.wrong for each in seen] == [""] * len(seen)


@pytest.mark.parametrize(
    ("line", "given"),
    [
        (r"$<power> \times <hours> = <five>$", "249.3 MWh"),
        ("The run takes <power> × <hours> = <five>, which is little.", "249.3 MWh"),
        (":::{figure} x.svg\n\nIt is <power> × <hours> = <five>.\n:::", "249.3 MWh"),
        (":::{table} So <power> × <hours> = <five>.\n\n| a |\n|:--|\n:::", "249.3 MWh"),
        ("| <power> × <hours> = <five> |\n|:--|\n| x |", "249.3 MWh"),
        (r"$<hours> \times <power> \approx <five>$", "249.3 MWh"),
        (r"$<five> = <power> \times <hours>$", "249.3 MWh"),
        (r"$E = <power> \times <hours> = x = <five>$", "249.3 MWh"),
        (r"$\sqrt{<save> \times <between>} = <young>$", "38.54 min"),
        (r"$<parameters> \times <eight>\,\mathrm{B} = <state>$", "1.4 TB"),
        (r"$\left\lfloor \frac{<budget>}{<batch>} \right\rfloor = <steps>$", "95,367"),
        (r"$\frac{<eight>}{16} = <third>$", "50%"),
        (r"$<eight> \times 2 = 17$", "16"),
        (r"$<eight>\,\mathrm{s} \times 2 = 17\,\mathrm{s}$", "16"),
        (r"$2 \times <eight> = 16 = <eight> + 9$", "17"),
        ("So <eight> × 2 = 17 and more.", "16"),
        ("So <eight> × 2 = 17 of them.", "16"),
        ("So <eight> × 2 = 17 and 3 more.", "16"),
        ("So <eight> × 2 = 17 or less.", "16"),
        (r"It is <price> × 24 h = \$73 in all.", "give $72;"),
        (r"It is <price> × 24 h × 1,000 = \$73k.", "give $72 thousand;"),
        (r"It is <price> × 2 = \$7.00/h.", "give $6/h;"),
        (r"$<price> \times 24\,\mathrm{h} = \$73$", "give $72;"),
        ("So <brief> × 8 = 110 \N{GREEK SMALL LETTER MU}s.", "100"),
        (r"$<brief> \times 8 = 110\,\mathrm{\mu s}$", "100"),
        (r"$<brief> \times 8 = 110\,\mu\mathrm{s}$", "100"),
        (r"$2 <save> = 62\,\mathrm{s}$", "60"),
        (r"$\frac{1}{2} <save> = 16\,\mathrm{s}$", "15"),
        (r"$\frac12 <save> = 16\,\mathrm{s}$", "15"),
        (r"$(1 + 1) <save> = 62\,\mathrm{s}$", "60"),
        (r"$<eight> \times 2 = \boxed{17}$", "16"),
        (r"$\boxed{<eight> \times 2 = 17}$", "16"),
        (r"$\mathbf{<eight>} \times 2 {=} \textcolor{red}{\mathbf{17}}$", "16"),
        (r"$\displaystyle <eight> \times 2 = 17$", "16"),
        (r"$\small <eight> \times 2 = \text{17}$", "16"),
        (r"$\mathrm{<save>} \times 2 = \text{62 s}$", "60"),
        (r"$<save> \times 2 = 62{.}0\,\mathrm{s}$", "60"),
    ],
)
def test_what_does_not_follow_is_told_with_what_does(line: str, given: str) -> None:
    wrong = [each.wrong for each in found(line) if each.wrong]
    assert len(wrong) == 1
    assert "does not follow: the printed numbers give" in wrong[0]
    assert given in wrong[0].replace("\N{NO-BREAK SPACE}", " ")


def test_units_of_different_kinds_are_told() -> None:
    (equation,) = found(r"$<power> \times <eight> = <energy>$")
    assert "units of different kinds" in equation.wrong


@pytest.mark.parametrize(
    "line",
    [
        "$T = <save>$",
        "$t \\times p = <eight>$",
        r"$<eight>\,h^2 = <energy>$",
        r"$n = <eight>, \; <eight> = n$",
        r"$\max(<eight>, 3) = 9$",
        r"$<eight> \, 9 = 72$",
        r"$3\frac{1}{2} + <eight> = 11.5$",  # a mixed number or a product
        r"$<eight>\ \text{layers} \times 2 = <energy>$",
        r"$<eight> \times 12 = 96\,\mathrm{ms}$",  # the unit of the left side is not said
        r"$<word> \times 2 = 3$",
        r"$\frac{<eight>}{0} = 1$",
        r"$<eight> + <save> = 3$",
        r"$<eight>^{k} = 64$",
        r"$e^{<eight>} = 3$",
        r"$<eight>! = 40{,}320$",
        r"$<eight> \pm 1 = 9$",
        r"$<eight>_{2} = 3$",
        r"$\log <eight> = 3$",
        "Half of <eight> × 2 = 8.",
        "A third of <save> = 10 s.",
        "With 3 layers × <eight> = 24 it is so.",
        "That is x × <eight> = 9.",
        "That is <eight> × 2 = 32 per node.",
        "The key `<eight> × 2 = 17` is code.",
        "[a](https://x.org/?<eight>=3)",
        "% <eight> × 2 = 17",
        "```python\nx = <eight> * 2 = 17\n```",
        "It is version 3.2 = <eight>.1.",
        "a=<eight>",
        "From <eight> = 2 × 5 of them it is so.",
        "It holds <eight> × 3 = 20 per node, and 5 = <eight> in another count.",
        "The price fell (<eight> × 2 = 15 a day).",
        "7\N{EN DASH}9 × <eight> = 56\N{EN DASH}72",
        "7 \N{EN DASH} 9 × <eight> = 56 \N{EN DASH} 72",
        "17\N{MINUS SIGN}2 × <eight> = 1",
        "So <eight> × 2 = 15\N{EN DASH}17.",
        "So <eight> × 2 = 15 to 17, or <eight> × 2 = 15 and a half.",
        "So <eight> × 2 = 50 % of 32, or <eight> × 2 = 16.5 million.",
        "In step 2 <save> = 30 s.",
        r"$1 / 2 <save> = 15\,\mathrm{s}$",  # half of it, or one by two of it
        r"$<save> \times 2 = 62\,s$",  # a symbol or seconds
        r"$<eight>\mathbf{8} = 88$",
        r"$\begin{aligned} n &= 2 & <save> &= 30\,\mathrm{s} \end{aligned}$",
        r"$2 <save> = 60\,\mathrm{s}$",
        r"It is <price> × 24 h = \$72 in all, and <price> × 2 = \$6 an hour.",
        "$((((9^{24})^{24})^{24})^{24})^{24} = <eight>$",
        f"$<eight> = {'9' * 5000}$",
        f"${'(' * 300}<eight>{')' * 300} = 9$",
    ],
)
def test_what_is_no_plain_arithmetic_is_left_alone(line: str) -> None:
    assert [each.text for each in found(line) if each.wrong] == []


NUMBERS = st.tuples(st.integers(1, 10**7), st.integers(0, 4), st.integers(0, 3))


@given(first=NUMBERS, others=st.lists(st.tuples(st.sampled_from("+-*/"), NUMBERS), min_size=1,
       max_size=4), digits=st.integers(0, 3), prose=st.booleans())  # fmt: skip
def test_a_result_that_is_printed_from_the_exact_inputs_is_never_refused(
    first: tuple[int, int, int],
    others: list[tuple[str, tuple[int, int, int]]],
    digits: int,
    prose: bool,
) -> None:
    specs: dict[str, Printed] = {}

    def quote(value: float, places: int) -> str:
        name = f"v{len(specs)}"
        specs[name] = Printed(format_number(value, f",.{places}f"), name, value, "", name)
        return f"{{quote}}`{name}`"

    def number(parts: tuple[int, int, int]) -> tuple[float, int]:
        value, power, places = parts
        value = float(f"{value / 10**power + 1:.12g}")
        return value, places

    value, places = number(first)
    total, text = Fraction(repr(value)), quote(value, places)
    signs = {"*": "×" if prose else r"\times", "/": "/", "+": "+", "-": "-"}
    for sign, parts in others:
        value, places = number(parts)
        other = Fraction(repr(value))
        compute = {"+": total + other, "-": total - other, "*": total * other, "/": total / other}
        bracket = ("(", ")") if sign in "*/" else ("", "")
        text = f"{bracket[0]}{text}{bracket[1]} {signs[sign]} {quote(value, places)}"
        total = compute[sign]
    result = float(f"{float(total):.12g}")
    if f"{abs(result):.{digits}f}".strip("0.") == "" or abs(result) > 10 ** (12 - digits):
        return
    text = f"{text} = {quote(result, digits)}"
    page = f"So {text}." if prose else f"${text}$"
    (equation,) = equations(page, specs.__getitem__)
    assert equation.wrong == ""


def test_a_typed_number_with_its_point_in_braces_is_seen() -> None:
    (number,) = typed_numbers("It takes $7{.}73$ s.")
    assert (number.value, number.unit, number.grouped) == (Fraction("7.73"), "s", False)


STEP = "{quote}`step.step_time as .2f`"
WRONG = f"$2 \\times {STEP} = {{quote}}`step.state_per_gpu`$ and $3 \\times {STEP} = 20 s$"


def test_a_build_refuses_a_result_that_does_not_follow_with_its_line(solved: Path) -> None:
    page = chapter(
        solved, f"Text.\n\n$$\n2 \\times {STEP}\n= {{quote}}`step.step_time in s as .1f`\n$$"
    )
    with pytest.raises(MlsysimError) as refused:
        write_records([page])
    assert str(refused.value).startswith('chapters/01_x.md:10: "2 × 7.')
    assert "the printed numbers give 15.4" in str(refused.value)
    assert not (solved / "results" / "quotes.json").exists()


def test_the_check_tells_all_that_do_not_follow(solved: Path) -> None:
    chapter(solved, f"A sum: 2 × {STEP} = 3 s.\n\nAnother: 3 × {STEP} = 4 s.")
    told = [each.message for each in checking.check()[0] if "does not follow" in each.message]
    assert len(told) == 2


BOOK = {page.name: page for page in pages()}


def chains() -> list[tuple[str, str, bool]]:
    """The chains of tests/book/spoken_chains.txt: chapter, equation, and whether it is exact."""
    found: list[tuple[str, str, bool]] = []
    page, exact = "", True
    for line in Path(__file__).with_name("spoken_chains.txt").read_text("utf-8").splitlines():
        exact = exact and line != "# sums"
        if line.startswith("## "):
            page = line.removeprefix("## ")
        elif line and not line.startswith("#"):
            found.append((page, line, exact))
    return found


def told(equation: Equation) -> str:
    return f"{equation.text}: the printed digits give {equation.given.shown(equation.result.unit)}"


@pytest.mark.parametrize("page", BOOK)
def test_a_calculator_gets_every_displayed_result_of_the_book_to_the_digit(page: str) -> None:
    off = [told(each) for each in BOOK[page].equations if not each.follows_to_the_digit]
    assert off == [], f"print more digits, or what is missing, in chapters/{page}.md"


def test_the_chapters_display_arithmetic_and_no_formula_with_two_quotes_is_unread() -> None:
    seen = {name: len(page.equations) for name, page in BOOK.items()}
    print(f"{sum(seen.values())} displayed chains: {seen}")
    assert sum(seen.values()) > 0
    unread = [
        (name, " ".join(ROLE.sub("_", formula).split()))
        for name, page in BOOK.items()
        for formula in formulas(page.text)
        if formula.count("{quote}") > 1 and not computed(page, formula)
    ]
    # Two values given, and a number of accelerators: nothing is computed.
    assert unread == [
        (
            "01_reference_step",
            r"R \, e \, \frac{w}{w + w_{\text{half}}}, \qquad e = _, \qquad w_{\text{half}} = _,",
        ),
        ("05_choosing_a_layout", r"N = _ \times _"),
    ]


def formulas(text: str) -> Iterator[str]:
    for block, _ in parsed(text).walk():
        if block.kind == "math" or (isinstance(block, Directive) and block.name == "math"):
            yield block.content
    for each in parsed(text).texts:
        yield from (span.content for span in each.spans if "math" in (span.kind, span.name))


def computed(page: Page, formula: str) -> list[Equation]:
    printed = {role.spec: value for role, value in page.quotes}
    return equations(f"$${formula}$$", printed.__getitem__)


def spoken(page: str, chain: str) -> Equation:
    """A chain over what a chapter prints in its text and in its tables."""
    printed = {role.spec: value for role, value in BOOK[page].quotes}
    printed |= {each.cell.spec: each.value for each in BOOK[page].table_numbers}
    text = re.sub(r"<([^<>]+)>", r"{quote}`\1`", chain)
    asked = [role["spec"] for role in ROLE.finditer(text)]
    assert not (gone := [spec for spec in asked if spec not in printed]), f"{page} prints no {gone}"
    (equation,) = equations(f"${text}$", printed.__getitem__)
    return equation


@pytest.mark.parametrize(("page", "chain", "exact"), chains())
def test_a_calculator_gets_what_a_chapter_says(page: str, chain: str, exact: bool) -> None:
    equation = spoken(page, chain)
    assert equation.follows_to_the_digit if exact else equation.follows, told(equation)


def test_a_spoken_chain_that_no_longer_follows_is_seen() -> None:
    page, chain, _ = chains()[0]
    wrong = spoken(page, chain.replace("=", "+ 1 ="))
    assert not wrong.follows_to_the_digit
    assert not wrong.follows


def test_the_two_ledgers_side_by_side_add_up_within_rounding() -> None:
    table = paths.results() / "tables" / "08_how_far_to_trust_the_step" / "pair.md"
    rows = [line.strip("| ").split(" | ") for line in table.read_text("utf-8").splitlines()[2:]]
    *parts, predicted, _measured = [row[1:] for row in rows if len(row) == 3]
    assert len(parts) > 5
    for column in (0, 1):
        off = sum(Fraction(row[column]) for row in parts) - Fraction(predicted[column])
        assert abs(off) <= Fraction(1, 200) * (len(parts) + 1)
