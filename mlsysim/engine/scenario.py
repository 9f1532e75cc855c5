"""What every scenario class shares: declared inputs, outputs, and whether it can run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from mlsysim.declarations.fields import Declared

__all__ = ["Scenario"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scenario(Declared):
    """A named case: frozen, keyword-only, refused when it is made if it cannot be.

    `solvers` are the classes whose exclusions hold for its outputs.
    """

    solvers: ClassVar[tuple[type, ...]] = ()

    def table(self) -> Sequence[Mapping[str, Any]]:
        """Rows that are published as CSV beside the artifact; none for most scenarios."""
        return self._table

    @cached_property
    def _table(self) -> Sequence[Mapping[str, Any]]:
        return [*self.table_rows()]

    def table_rows(self) -> Iterable[Mapping[str, Any]]:
        """The rows of the table, worked out: what a class with a table says in place of this."""
        return ()

    @property
    def feasible(self) -> bool:
        """Whether the scenario fits the hardware; what cannot exist at all is refused instead."""
        return True

    @property
    def feasibility(self) -> str:
        """The reason for `feasible`, with the figures."""
        return "every input admits a whole layout"
