"""What a chapter imports: `from mlsysim.book import new_figure, save_figure, save_table`.

The names are loaded when they are first asked for, so that a command that only looks at a chapter's
cells does not import the libraries that draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlsysim.book.products.charts import stacked_bars as stacked_bars
    from mlsysim.book.products.charts import timeline as timeline
    from mlsysim.book.products.charts import waterfall as waterfall
    from mlsysim.book.products.figures import new_figure as new_figure
    from mlsysim.book.products.figures import save_figure as save_figure
    from mlsysim.book.products.tables import Code as Code
    from mlsysim.book.products.tables import save_table as save_table

_HOMES = {
    "Code": "mlsysim.book.products.tables",
    "new_figure": "mlsysim.book.products.figures",
    "save_figure": "mlsysim.book.products.figures",
    "save_table": "mlsysim.book.products.tables",
    "stacked_bars": "mlsysim.book.products.charts",
    "timeline": "mlsysim.book.products.charts",
    "waterfall": "mlsysim.book.products.charts",
}

__all__ = [
    "Code",
    "new_figure",
    "save_figure",
    "save_table",
    "stacked_bars",
    "timeline",
    "waterfall",
]


def __getattr__(name: str) -> Any:
    from mlsysim.doors import opened

    return opened(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted((*globals(), *__all__))
