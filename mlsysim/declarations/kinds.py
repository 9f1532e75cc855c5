"""The kinds of declared field, a class each: how a value is checked, read from a file, described.

A field's kind is the word of its annotation; its unit, range and choices are those that `declared`
was given.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

from mlsysim.declarations._kind import Kind, Link
from mlsysim.declarations._made_kinds import Reference, ReferenceTable, Rows
from mlsysim.declarations._value_kinds import KINDS, Rates

__all__ = ["Kind", "Link", "Rates", "kind_of"]


@cache
def kind_of(field: dataclasses.Field[Any]) -> Kind:
    """The kind of a declared field; a word that is no other kind is the name of a class."""
    name = str(field.type)
    other = Rows if name == "Rows" else ReferenceTable if name.endswith("Table") else Reference
    return KINDS.get(name, other)(name, field.metadata)
