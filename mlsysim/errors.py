"""What went wrong and what to type instead: the errors a user can cause and mend."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "InputError",
    "LayoutError",
    "MlsysimError",
    "UnitError",
    "UnknownName",
    "division",
    "nearest",
]


class MlsysimError(Exception):
    """A mistake in what a person typed; the message names the thing, the place, the choices.

    `placed` is true once the message starts with the file in which the mistake is.
    """

    placed = False


class InputError(MlsysimError, ValueError):
    """A document or an argument does not hold what its declaration asks for."""


class UnitError(MlsysimError, ValueError):
    """A text is no quantity of the vocabulary in units.txt, or has the wrong dimension."""


class LayoutError(MlsysimError, ValueError):
    """A parallel layout that cannot exist; the message shows the arithmetic."""


class UnknownName(MlsysimError, AttributeError):
    """A name that nothing carries; the message lists the nearest names."""


def division(whole: float, part: float) -> str:
    """The arithmetic of a count that does not divide another.

    >>> division(96, 5)
    '96 / 5 = 19.2'
    """
    return f"{whole:.12g} / {part:.12g} = {whole / part:.12g}"


def nearest(name: str, known: Iterable[str], *, count: int = 5) -> str:
    """The end of an error message: the names most like `name`, or some that exist.

    >>> nearest("H10", ["A100", "H100", "H200"])
    "did you mean 'H100'?"
    >>> nearest("zzz", ["A100", "H100"])
    'known: A100, H100'
    >>> nearest("zzz", [])
    'there are none yet'
    """
    from difflib import get_close_matches

    names = sorted(known)
    lowered: dict[str, str] = {}
    for each in names:
        lowered.setdefault(each.lower(), each)
    close = [lowered[m] for m in get_close_matches(name.lower(), lowered, n=3, cutoff=0.6)]
    if close:
        return "did you mean " + " or ".join(repr(m) for m in close) + "?"
    if not names:
        return "there are none yet"
    shown = ", ".join(names[:count])
    return f"known: {shown}" + (f" and {len(names) - count} more" if len(names) > count else "")
