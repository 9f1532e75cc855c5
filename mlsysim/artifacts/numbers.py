"""How a number and its unit look on the page."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from mlsysim.errors import InputError

__all__ = ["DIGITS", "NBSP", "amount", "exact_number", "format_number", "with_unit"]

NBSP = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"

DIGITS = 12  # significant digits that an artifact keeps

_FORMAT = re.compile(r"(,?)(?:\.(\d{1,2}))?([dfge%]?)")
_FORMATS = "[,][.DIGITS][type] with a type of d, f, g, e or %, such as ,d or .1f or ,.3g"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_number(value: int | float, format: str = "") -> str:  # noqa: A002  what the field calls it
    """The digits of `value` as the page shows them, without a unit.

    `format` is a format of Python for numbers; without one, whole numbers print in full and others
    to four significant digits.

    >>> format_number(3145728), format_number(43.75), format_number(6.80079883267, ".2f")
    ('3,145,728', '43.75', '6.80')
    >>> format_number(0.00012), format_number(0.086, ".0%")
    ('1.2×10⁻⁴', '9%')

    Raises InputError for a text that is no format of a number, for zero printed where the value is
    not zero, for more digits than an artifact keeps, and for an exponent that was not asked for.
    """
    if not math.isfinite(value):
        raise InputError(f"{value} is no number to print")
    digits = _default(value) if format == "" else _formatted(value, format)
    if value and not any(digit in digits.partition("e")[0] for digit in "123456789"):
        raise InputError(
            f"{format!r} prints {value!r} as {digits}: give it more digits, or print it in another "
            "unit"
        )
    if not value:
        digits = digits.removeprefix("-")
    return _typeset(digits)


def exact_number(value: int | float) -> str:
    """Every digit that an artifact keeps of a number, thousands apart.

    >>> exact_number(6.80079883267), exact_number(175e9), exact_number(3.38597803806e18)
    ('6.80079883267', '175,000,000,000', '3.38597803806×10¹⁸')
    """
    return _typeset(f"{value:,}".removesuffix(".0"))


def _typeset(digits: str) -> str:
    """A number of Python with the signs that a page has for a power of ten and for minus."""
    mantissa, exponent, power = digits.partition("e")
    if exponent:
        digits = f"{mantissa}×10{str(int(power)).translate(_SUPERSCRIPT)}"
    return digits.replace("-", MINUS)


def _default(value: int | float) -> str:
    if isinstance(value, int):
        return f"{value:,d}"
    if value == 0:
        return "0"
    size = abs(value)
    if not 1e-3 <= size < 1e15:
        mantissa, exponent, power = f"{value:.3e}".partition("e")
        return mantissa.rstrip("0").rstrip(".") + exponent + power
    decimals = max(0, 3 - math.floor(math.log10(size)))
    digits = f"{value:,.{decimals}f}"
    return digits.rstrip("0").rstrip(".") if decimals else digits


def _formatted(value: int | float, format: str) -> str:  # noqa: A002
    parsed = _FORMAT.fullmatch(format)
    if not parsed or (parsed[3] == "d" and parsed[2]) or (parsed[3] == "e" and parsed[1]):
        raise InputError(f"{format!r} is no format of a number; expected {_FORMATS}")
    kind = parsed[3]
    if kind == "d":
        if value != int(value):
            raise InputError(
                f"{format!r} is for whole numbers, and this is {value!r}; try {'.1f'!r}"
            )
        digits = f"{int(value):{format}}"
    else:
        digits = f"{float(value):{format}}"
    if "e" in digits and kind != "e":
        raise InputError(
            f"{format!r} prints {value!r} as {digits}; write "
            f"{',.0f' if abs(value) > 1 else '.2e'!r}, or print it in another unit"
        )
    if isinstance(value, float) and _significant(digits) > DIGITS:
        raise InputError(
            f"{format!r} prints {value!r} as {digits}, more than the {DIGITS} significant digits "
            "that an artifact keeps"
        )
    return digits


def _significant(digits: str) -> int:
    """Significant digits down to the last decimal printed, or to the last that is not zero."""
    plain = digits.rstrip("%").replace(",", "").partition("e")[0]
    number = "".join(map(str, Decimal(plain).as_tuple().digits))
    return len(number if "." in plain else number.rstrip("0"))


# Units that are counted in words, with their singular.
_WORDS = {
    "tok": ("tokens", "token"),
    "seq": ("sequences", "sequence"),
    "param": ("parameters", "parameter"),
}
_MULTIPLES = {"": "", "k": "thousand", "M": "million", "G": "billion", "T": "trillion"}
_FACTOR = re.compile(r"(?P<prefix>[kMGT]?)(?P<word>tok|seq|param|USD)")
_TIMES = re.compile(r"(?<!\*)\*(?!\*)")
_CO2 = re.compile(r"(?P<mass>[kMGT]?[gt])CO2(?P<all>e?)")


def with_unit(digits: str, unit: str) -> str:
    r"""Digits and a unit as the page shows them, kept on a line by a no-break space.

    >>> with_unit("6.8", "s"), with_unit("3,145,728", "tok"), with_unit("1", "seq")
    ('6.8\xa0s', '3,145,728\xa0tokens', '1\xa0sequence')
    >>> with_unit("175", "Gparam"), with_unit("45.2", "%"), with_unit("2.50", "USD/h")
    ('175\xa0billion\xa0parameters', '45.2%', '$2.50/h')
    """
    if not unit:
        return digits
    if unit == "%":
        return f"{digits}%"
    top, *below = unit.split("/")
    under = "".join(
        "/" + "·".join(_symbol(each, one=True) for each in _TIMES.split(part)) for part in below
    )
    money = _FACTOR.fullmatch(top)
    if money and money["word"] == "USD":
        sign, digits = (MINUS, digits[1:]) if digits.startswith(MINUS) else ("", digits)
        multiple = _MULTIPLES[money["prefix"]]
        return f"{sign}${digits}" + (f"{NBSP}{multiple}" if multiple else "") + under
    if top == "1":
        return f"{digits}{NBSP}per{NBSP}{under.removeprefix('/')}"
    return (
        digits
        + NBSP
        + "·".join(_symbol(each, one=digits == "1") for each in _TIMES.split(top))
        + under
    )


def _symbol(factor: str, *, one: bool) -> str:
    """One factor of a unit: a symbol, or a counted thing in words."""
    name, _, power = factor.partition("**")
    counted, gas = _FACTOR.fullmatch(name), _CO2.fullmatch(name)
    if counted and counted["word"] in _WORDS:
        many, single = _WORDS[counted["word"]]
        multiple = _MULTIPLES[counted["prefix"]]
        name = f"{multiple}{NBSP}{many}" if multiple else single if one else many
    elif gas:
        name = f"{gas['mass']}{NBSP}CO₂{gas['all']}"
    elif re.fullmatch(r"u(s|m|g|J|W)", name):
        name = f"µ{name[1:]}"
    return name + power.translate(_SUPERSCRIPT)


def amount(entry: Mapping[str, Any]) -> str:
    """A value with its unit, exact as the artifact has it, thousands apart.

    >>> amount({"value": 3145728, "unit": "tok"}), amount({"value": 6.80079883267, "unit": "s"})
    ('3,145,728 tok', '6.80079883267 s')
    """
    value = entry["value"]
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else re.sub(r"\.0$", "", f"{value:,}")
    return f"{text} {entry['unit']}".rstrip()
