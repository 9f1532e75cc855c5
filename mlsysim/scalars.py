"""Numbers that numpy brings, as Python's own: one rule for all ways in and out.

They come from the cells of frames, from values given in Python, and from what outputs return.
"""

from __future__ import annotations

from typing import Any

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """A scalar of numpy as the Python value that it prints as; anything else as it is.

    A float is the shortest decimal of its own precision: what was 0.7 in single precision is 0.7,
    not the nearest double of its bits, 0.699999988079.

    >>> import numpy as np
    >>> plain(np.float32(0.7)), plain(np.int64(3)), plain(np.bool_(True)), plain("0.7")
    (0.7, 3, True, '0.7')
    """
    if type(value).__module__ != "numpy" or getattr(value, "shape", None) != ():
        return value
    kind = value.dtype.kind
    if kind == "f":
        return float(str(value))
    return value.item() if kind in "biuU" else value
