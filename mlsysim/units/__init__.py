"""Units: the one vocabulary, texts to quantities and back, and the constructors of outputs."""

from mlsysim.units.vocabulary import (
    DimensionalityError,
    Q,
    Quantity,
    convert,
    dimension,
    is_quantity,
    number,
    plain_quantity,
    quantity,
    shown,
    to_si,
    unit,
    unit_text,
    ureg,
)

__all__ = [
    "DimensionalityError",
    "Q",
    "Quantity",
    "convert",
    "dimension",
    "is_quantity",
    "number",
    "plain_quantity",
    "quantity",
    "shown",
    "to_si",
    "unit",
    "unit_text",
    "ureg",
]
