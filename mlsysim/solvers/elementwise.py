"""Comparisons on floats and arrays alike, so that one formula serves a step and a sweep."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Number", "choose", "larger", "smaller"]

# A float, or a numpy array of floats; the formulas of the solvers take either.
Number: TypeAlias = Any


def larger(a: Number, b: Number) -> Number:
    """The larger of two, element by element.

    >>> larger(2.0, 3.0)
    3.0
    """
    if hasattr(a, "dtype") or hasattr(b, "dtype"):
        import numpy as np

        return np.maximum(a, b)
    return a if a >= b else b


def smaller(a: Number, b: Number) -> Number:
    """The smaller of two, element by element.

    >>> smaller(2.0, 3.0)
    2.0
    """
    if hasattr(a, "dtype") or hasattr(b, "dtype"):
        import numpy as np

        return np.minimum(a, b)
    return a if a <= b else b


def choose(condition: Number, yes: Number, no: Number) -> Number:
    """`yes` where the condition holds, else `no`, element by element.

    >>> choose(2 > 3, 1.0, 0.0)
    0.0
    """
    if hasattr(condition, "dtype"):
        import numpy as np

        return np.where(condition, yes, no)
    return yes if condition else no
