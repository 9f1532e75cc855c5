"""What a docstring says, by its parts: the summary, the equation, and other titled paragraphs."""

from __future__ import annotations

import inspect
import re
from typing import Any

__all__ = ["equation_of", "section_of", "summary_of"]


def summary_of(documented: Any) -> str:
    """The first paragraph of a docstring on one line, without its equation."""
    text = inspect.cleandoc(documented.__doc__ or "").partition("\n\n")[0]
    return " ".join(text.partition("Equation:")[0].split())


def equation_of(documented: Any) -> str:
    """What a docstring gives after "Equation:", on one line; empty if it gives none."""
    return section_of(documented, "Equation")


def section_of(documented: Any, title: str) -> str:
    """What a docstring says after "`title`:" up to the end of that paragraph, on one line.

    >>> def area():
    ...     '''Area. Equation: width *
    ...     height.'''
    >>> section_of(area, "Equation")
    'width * height'
    """
    text = inspect.cleandoc(documented.__doc__ or "")
    found = re.search(rf"(?:^|\s){title}:\s+(.*?)(?=\n\n|\Z)", text, re.DOTALL)
    return " ".join(found[1].split()).removesuffix(".") if found else ""
