"""The one unit registry: texts to quantities and back, rounding once in a conversion."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pint
from pint import DimensionalityError

from mlsysim.errors import UnitError, nearest
from mlsysim.library_hooks.pint_units import ExactRegistry
from mlsysim.scalars import plain

__all__ = [
    "DimensionalityError",
    "Q",
    "Quantity",
    "convert",
    "dimension",
    "is_quantity",
    "number",
    "plain_quantity",
    "quantity",
    "shown",
    "to_si",
    "unit_text",
    "ureg",
]


ureg = ExactRegistry(str(Path(__file__).with_suffix(".txt")), non_int_type=Fraction)
if TYPE_CHECKING:
    Quantity: TypeAlias = pint.Quantity[Any]
else:
    Quantity = ureg.Quantity
# A quantity that is unpickled belongs to it too.
pint.application_registry.set(ureg)  # type: ignore[no-untyped-call]

# Of a text without blanks at its ends. What follows a part never begins like its end, so that no
# text is looked at twice.
_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(1/.*|[^\d\s.+-].*)?"
)
_NAME = r"[A-Za-zµ%][A-Za-z0-9]*(?:\*\*[1-9])?"
_UNIT = re.compile(rf"(?:1/)?{_NAME}(?:[*/]{_NAME})*")
_FACTOR = re.compile(r"([*/]?)([A-Za-zµ%][A-Za-z0-9]*)(?:\*\*([1-9]))?")

# What people write for a unit, and what the vocabulary calls it.
_HINTS = {
    "KB": "kB (1,000 bytes) or KiB (1,024 bytes)",
    "Kb": "kb (1,000 bits) or Kib (1,024 bits)",
    "Gbps": "Gb/s",
    "Gbs": "Gb/s",
    "GBps": "GB/s",
    "GBs": "GB/s",
    "Mbps": "Mb/s",
    "MBps": "MB/s",
    "Tbps": "Tb/s",
    "TBps": "TB/s",
    "kbps": "kb/s",
    "bps": "b/s",
    "gb": "GB (bytes) or Gb (bits)",
    "mb": "MB (bytes) or Mb (bits)",
    "tb": "TB (bytes) or Tb (bits)",
    "FLOPS": "FLOP/s",
    "FLOPs": "FLOP",
    "flops": "FLOP/s",
    "GFLOPS": "GFLOP/s",
    "TFLOPS": "TFLOP/s",
    "TFLOPs": "TFLOP",
    "PFLOPS": "PFLOP/s",
    "sec": "s",
    "secs": "s",
    "hr": "h",
    "hrs": "h",
    "tokens": "tok",
    "sequences": "seq",
    "params": "param",
}
_SMALL_PREFIXES = {"milli", "micro", "nano"}
_SMALL_ALLOWED = {"second", "meter", "gram", "joule", "watt"}
_BINARY_PREFIXES = {"kibi", "mebi", "gibi", "tebi"}
_BINARY_ALLOWED = {"byte", "bit"}
_NO_PREFIX = {"minute", "hour", "day", "percent"}


def _check_symbol(symbol: str) -> None:
    """Refuse a symbol outside the vocabulary, or a prefix that only a typing slip puts there."""
    if symbol in _HINTS:
        raise UnitError(f"unit {symbol!r}: write {_HINTS[symbol]}")
    for prefix, name, suffix in ureg.parse_unit_name(symbol):
        slip = (
            name in _NO_PREFIX
            or (prefix in _SMALL_PREFIXES and name not in _SMALL_ALLOWED)
            or (prefix in _BINARY_PREFIXES and name not in _BINARY_ALLOWED)
        )
        if not (prefix and slip) and not suffix:
            return
    known = ["B", "b", "s", "min", "h", "d", "FLOP", "tok", "seq", "param", "USD", "W", "J", "%"]
    known += [p + u for p in ("k", "M", "G", "T", "Gi", "Mi") for u in ("B", "b")]
    raise UnitError(
        f"unit {symbol!r} is not in the vocabulary (mlsysim/units/vocabulary.txt); "
        + nearest(symbol, known, count=14)
    )


@cache
def unit(text: str) -> Any:
    """The pint unit that `text` spells: ``"GB/s"``, ``"FLOP/s"``, ``"B/param"``, ``"1/s"``.

    Raises UnitError with the right spelling for what looks like a unit but is none.
    """
    stripped = text.strip().replace("\u03bc", "µ")  # Greek mu looks the same as the micro sign
    for mark in "$€£":
        if mark in stripped:
            raise UnitError(f"unit {mark!r}: write USD, such as 3 USD/h")
    factors = _FACTOR.findall(stripped)
    for _mark, symbol, _power in factors:
        if symbol in _HINTS:
            _check_symbol(symbol)
    if not _UNIT.fullmatch(stripped):
        raise UnitError(f"{stripped!r} is not a unit; join symbols by * and /, as in GB/s")
    powers: dict[str, int] = {}
    for mark, symbol, power in factors:
        _check_symbol(symbol)
        name = ureg.get_name(symbol)
        powers[name] = powers.get(name, 0) + (-1 if mark == "/" else 1) * int(power or 1)
    left = {name: power for name, power in powers.items() if power}
    if not left:
        raise UnitError(f"{stripped!r} cancels out; write a plain number")
    if max(map(abs, left.values())) > 9:
        raise UnitError(f"{stripped!r} has a power above 9, which no unit needs")
    return ureg.Unit(ureg.UnitsContainer(left))


def number(text: str) -> float:
    """The finite float that `text` spells, without a unit.

    >>> number("3.2e6")
    3200000.0
    """
    found = _QUANTITY.fullmatch(text.strip())
    if not found or found[2]:
        raise UnitError(f"{text!r} is not a plain number such as 96 or 3.2e6")
    return _finite(found[1], text)


def _finite(digits: str, text: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise UnitError(f"{text!r} is too large for a 64-bit float")
    if not value and re.search("[1-9]", digits.lower().partition("e")[0]):
        raise UnitError(f"{text!r} is too small for a 64-bit float")
    return value


def quantity(text: str) -> Any:
    """The quantity that `text` spells: a number, then a unit of the vocabulary.

    >>> quantity("400 Gb/s").to("GB/s").magnitude
    50.0

    Raises UnitError for a number without a unit, a unit without a number, sums, products,
    thousands separators, nan, overflow, and units outside the vocabulary.
    """
    if not isinstance(text, str):
        raise UnitError(f'expected a text such as "80 GB", found {text!r}')
    if re.search(r"\d,\d", text):
        raise UnitError(f"{text!r} is not a quantity; write the number without commas")
    found = _QUANTITY.fullmatch(text.strip())
    if not found:
        if "$" in text:
            raise UnitError(
                f"{text!r} is not a quantity; write the currency as USD, such as 3 USD/h"
            )
        if _UNIT.fullmatch(text.strip()):
            raise UnitError(f"{text!r} is a unit without a number")
        raise UnitError(f'{text!r} is not a quantity; write a number and a unit, such as "80 GB"')
    if not found[2]:
        raise UnitError(f'{text!r} has no unit; write a number and a unit, such as "80 GB"')
    value = _finite(found[1], text)
    try:
        return Quantity(value, unit(found[2]))
    except UnitError as error:
        raise UnitError(f"{text!r}: {error}") from None


Q = quantity


def unit_text(what: Any) -> str:
    """The symbol text of a unit or of a quantity's unit, as `unit` reads it.

    >>> unit_text(quantity("3.35 TB/s"))
    'TB/s'
    """
    powers = dict((what if is_quantity(what) else 1 * what).unit_items())
    top = [_power(name, p) for name, p in powers.items() if p > 0]
    below = [_power(name, -p) for name, p in powers.items() if p < 0]
    return "/".join(["*".join(top) or "1", *below]) if powers else ""


def _power(name: str, power: Any) -> str:
    symbol = str(ureg.get_symbol(name))
    return symbol if power == 1 else f"{symbol}**{power}"


def dimension(text: str) -> Any:
    """The dimensionality of the unit that `text` spells; the empty text is a plain number."""
    return unit(text).dimensionality if text else ureg.dimensionless.dimensionality


def convert(value: float, source: str, target: str) -> float:
    """`value` in unit `source` expressed in unit `target`, rounded once.

    >>> convert(1.0, "m", "nm")
    1000000000.0
    """
    if source == target:
        return value
    try:
        return float(Quantity(value, unit(source)).to(unit(target)).magnitude)
    except pint.DimensionalityError as error:
        raise UnitError(f"cannot print {source} in {target}: {_why(error)}") from None


def _why(error: pint.DimensionalityError) -> str:
    return " is not ".join(_dimension_text(each) for each in (error.dim1, error.dim2))


def _dimension_text(dimension: Any) -> str:
    """The name of a dimensionality. Pint's own cannot print the powers of our registry."""
    names = {name.strip("[]"): int(power) for name, power in dimension.items()}
    powers = {name: name + (f"**{abs(p)}" if abs(p) > 1 else "") for name, p in names.items()}
    top = [powers[name] for name, power in names.items() if power > 0]
    below = [powers[name] for name, power in names.items() if power < 0]
    return "/".join(["*".join(top) or "1", *below])


def is_quantity(value: Any) -> bool:
    """Whether a value carries a unit."""
    return isinstance(value, pint.Quantity)


def plain_quantity(value: Any) -> Any:
    """A quantity with a Python number as its magnitude; scalars of numpy as `plain` has them.

    Raises UnitError for an array, a decimal, a complex number.
    """
    magnitude = plain(value.magnitude)
    if isinstance(magnitude, Fraction):  # what pint makes of a text
        magnitude = float(magnitude)
    if type(magnitude) not in (int, float):
        raise UnitError(f"{str(value)[:80]}: expected one whole number or float and its unit")
    return value if magnitude is value.magnitude else Quantity(magnitude, value.units)


def shown(value: Any) -> str:
    """A quantity as it is written in a file; anything else as Python shows it.

    >>> shown(quantity("16 B")), shown(16)
    ('16 B', '16')
    """
    if not is_quantity(value):
        return repr(value)
    return f"{float(value.magnitude):g} {unit_text(value)}".rstrip()


def to_si(value: Any) -> float:
    """The magnitude in base units (B, FLOP, s, tok, seq, param ...), as a float.

    >>> to_si(quantity("400 Gb/s"))
    50000000000.0
    """
    return float(value.to_root_units().magnitude)
