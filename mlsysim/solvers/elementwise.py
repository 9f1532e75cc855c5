"""Comparisons on numbers and arrays alike, so that one formula serves a step and a sweep."""

from __future__ import annotations

from typing import TypeAlias, TypeVar, cast

__all__ = ["Count", "Flag", "Number", "choose", "larger", "smaller"]

# The formulas of the solvers are written for one layout, and their types are those of one. In place
# of each number the search gives an array of numpy, over many layouts, which takes the same
# operators; only the functions below ask which of the two they have.
Number: TypeAlias = float
Count: TypeAlias = int
Flag: TypeAlias = bool

_N = TypeVar("_N", bound=float)


def larger(a: _N, b: _N) -> _N:
    """The larger of two, element by element.

    >>> larger(2.0, 3.0)
    3.0
    """
    if hasattr(a, "dtype") or hasattr(b, "dtype"):
        import numpy as np

        return cast("_N", np.maximum(a, b))
    return a if a >= b else b


def smaller(a: _N, b: _N) -> _N:
    """The smaller of two, element by element.

    >>> smaller(2.0, 3.0)
    2.0
    """
    if hasattr(a, "dtype") or hasattr(b, "dtype"):
        import numpy as np

        return cast("_N", np.minimum(a, b))
    return a if a <= b else b


def choose(condition: Flag, yes: _N, no: _N) -> _N:
    """`yes` where the condition holds, else `no`, element by element.

    >>> choose(2 > 3, 1.0, 0.0)
    0.0
    """
    if hasattr(condition, "dtype"):
        import numpy as np

        return cast("_N", np.where(condition, yes, no))
    return yes if condition else no
