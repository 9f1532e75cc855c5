"""Files of another schema than this code writes: told as that, with what to do."""

from __future__ import annotations

from typing import Any

__all__ = ["other_schema"]


def other_schema(found: Any, ours: int) -> str:
    """Why a generated file of schema `found` is not read; empty if it is ours, or names none.

    >>> other_schema(2, 2)
    ''
    >>> other_schema(1, 2)
    'of schema 1, made by older code than this, which has 2; run: snakemake all'
    >>> other_schema(3, 2)
    'of schema 3, made by newer code than this, which has 2; update it, or run: snakemake all'
    """
    if found == ours or type(found) is not int:
        return ""
    age, first = ("older", "") if found < ours else ("newer", "update it, or ")
    return (
        f"of schema {found}, made by {age} code than this, which has {ours}; "
        f"{first}run: snakemake all"
    )
