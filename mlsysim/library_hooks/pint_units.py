"""Pint: factors of units as ratios of integers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pint

from mlsysim.errors import UnitError
from mlsysim.library_hooks import changed

__all__ = ["ExactRegistry"]


class ExactRegistry(pint.UnitRegistry[Any]):
    """Unit factors are ratios of integers, so a conversion rounds once, to the nearest float.

    Written for pint 0.25.3, whose quantities convert by this method of their registry, and whose
    factors are ratios if it is made with ``non_int_type=Fraction``. Buys that 0.1 nm are 1e-10 m,
    which are 1.0000000000000002e-10 m without it, and that arrays stay arrays of floats.
    """

    def convert(self, value: Any, src: Any, dst: Any, inplace: bool = False, **given: Any) -> Any:
        """`value` in the unit `src` expressed in the unit `dst`."""
        one = Fraction(1)
        factor: Any = super().convert(one, src, dst, inplace, **given)
        if factor is one:  # the units are the same
            return value
        if not isinstance(factor, Fraction):
            raise changed("pint", "0.25.3", "UnitRegistry.convert that keeps a Fraction")
        if isinstance(value, Fraction):
            return value * factor
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if not math.isfinite(value):
                return value
            try:
                return float(Fraction(repr(float(value))) * factor)
            except OverflowError:
                raise UnitError(f"{value:g} is too large for a 64-bit float in that unit") from None
        if factor.denominator == 1:  # arrays: at most two roundings
            return value * float(factor.numerator)
        return value * float(factor.numerator) / float(factor.denominator)
