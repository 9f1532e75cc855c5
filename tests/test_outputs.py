"""Outputs: in Python as in the artifact, in the unit they declare; what is declared wrong is told.

Numbers of numpy are met here too, since one rule serves all their ways in and out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlsysim import Fleets, Models, Q, Scenarios, paths
from mlsysim.artifacts.reading import read
from mlsysim.book import new_figure, save_figure, save_table
from mlsysim.canonical import csv_text, rounded
from mlsysim.declarations import lists
from mlsysim.declarations.documents import names
from mlsysim.declarations.outputs import has_outputs, output, outputs
from mlsysim.errors import MlsysimError, UnitError
from mlsysim.scalars import plain
from mlsysim.solvers import DistributedModel
from mlsysim.units import Quantity, unit
from tests.conftest import vary

SINGLE = np.float32(0.7)


def live(thing: Any, prefix: str = "") -> Iterator[tuple[str, str, Any]]:
    """Every output of a thing: its key in the artifact, its unit, its value in Python."""
    for each in outputs(type(thing)):
        key, value = prefix + each.name, getattr(thing, each.name)
        if has_outputs(value):
            yield from live(value, f"{key}.")
        elif isinstance(value, Mapping):
            yield from ((f"{key}.{part}", each.unit, one) for part, one in value.items())
        else:
            yield key, each.unit, value


@pytest.mark.parametrize("name", names("Scenarios"))
def test_a_live_output_is_what_the_artifact_says_in_the_unit_it_declares(name: str) -> None:
    scenario, artifact = getattr(Scenarios, name), read(name)
    found = {key: (declared, value) for key, declared, value in live(scenario)}
    assert list(found) == list(artifact.outputs)
    for key, (declared, value) in found.items():
        told = artifact.outputs[key]
        assert told["unit"] == declared
        if isinstance(value, Quantity):
            assert value.units == unit(declared), key
            value = value.magnitude
        assert type(value) is type(told["value"]), key
        assert (rounded(value) if isinstance(value, float) else value) == told["value"], key
    if rows := scenario.table():
        table = csv_text(rows[0], (row.values() for row in rows))
        assert table == paths.table(name).read_text(encoding="utf-8")


def declared_in(text: str, returned: object, document: str = "Some. Equation: a / b.") -> object:
    """An object with one output `rate`, declared in a unit, that returns something."""

    def rate(self: object) -> object:  # noqa: ARG001
        return returned

    rate.__doc__ = document
    rate.__qualname__ = "Run.rate"
    return type("Run", (), {"rate": output(text)(rate)})()


def price() -> Quantity:
    return Quantity(3.0, unit("tok/USD"))


@pytest.mark.parametrize(
    ("text", "returned", "told"),
    [
        ("tok/s", price(), "Run.rate: returned 3 tok/USD, and is declared in tok/s"),
        ("h", 5, "Run.rate: returned 5, and is declared in h: expected a quantity"),
        ("", price(), "Run.rate: returned 3 tok/USD, and is declared without a unit"),
        ("s", {"a": Q("1 s"), "b": Q("1 B")}, "Run.rate.b: returned 1 B, and is declared in s"),
        ("s", 7.7, "Run.rate: returned 7.7, and is declared in s: expected a quantity"),
        ("s", True, "Run.rate: returned True, and is declared in s: expected a quantity"),
        ("", None, "Run.rate: returned None, and is declared without a unit: expected a number"),
        ("", [1, 2], "Run.rate: returned [1, 2], and is declared without a unit: expected a "),
        ("ns", Q("1e305 s"), "Run.rate: 1e+305 is too large for a 64-bit float in that unit"),
        ("s", Quantity(np.array([1.0, 2.0]), unit("s")), "Run.rate: [1.0 2.0] second: expected"),
        ("s", Quantity(Decimal("0.7"), unit("s")), "Run.rate: 0.7 second: expected one whole "),
    ],
)
def test_a_value_that_is_not_what_was_declared_names_output_and_both_units(
    text: str, returned: object, told: str
) -> None:
    with pytest.raises(MlsysimError) as caught:
        declared_in(text, returned).rate  # type: ignore[attr-defined]  # noqa: B018
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    ("text", "document", "told"),
    [
        ("GBps", "Some. Equation: a.", "Run.rate: @output('GBps'): unit 'GBps': write GB/s"),
        ("s/s", "Some. Equation: a.", "Run.rate: @output('s/s'): 's/s' cancels out"),
        (" ", "Some. Equation: a.", "Run.rate: @output(' '): '' is not a unit"),
        ("s", "Some.", "Run.rate: no equation; write 'Equation: ...' into its docstring"),
        ("s", "Some. Equation:", "Run.rate: no equation"),
        ("s", "Equation: a / b.", "Run.rate: an output begins its docstring with what it is"),
        ("s", "", "Run.rate: an output begins its docstring with what it is"),
    ],
)
def test_what_is_declared_wrong_is_told_when_the_class_is_made(
    text: str, document: str, told: str
) -> None:
    with pytest.raises(MlsysimError) as caught:
        declared_in(text, None, document)
    assert str(caught.value).startswith(f"{__name__}: {told}")


def test_an_output_may_return_any_unit_of_its_dimension_and_any_number_of_numpy() -> None:
    def value(text: str, returned: object) -> object:
        return declared_in(text, returned).rate  # type: ignore[attr-defined]

    assert str(value("USD", Quantity(7200.0, unit("s")) * Q("3 USD/h"))) == "6.0 dollar"
    assert str(value("ms", {"a": Q("1.5 s")})) == "{'a': <Quantity(1500.0, 'millisecond')>}"
    assert repr(value("s", Quantity(SINGLE, unit("s")))) == "<Quantity(0.7, 'second')>"
    assert repr(value("", SINGLE)) == "0.7"
    assert repr(value("tok", np.int64(3))) == "3"


def test_a_number_of_numpy_is_the_shortest_decimal_of_its_own_precision() -> None:
    told = {
        0.7: (SINGLE, np.float64(0.7), np.longdouble("0.7"), np.array(0.7, dtype="f4")),
        0.1: (np.float16(0.1),),
        3: (np.int8(3), np.uint64(3)),
        True: (np.bool_(True),),
        "bf16": (np.str_("bf16"),),
    }
    for expected, given in told.items():
        for each in given:
            assert (type(plain(each)), plain(each)) == (type(expected), expected)
    complex_number = np.complex64(1)
    assert plain(complex_number) is complex_number


def cells(name: str, kind: str) -> list[str]:
    path = paths.results() / kind / f"{name}.csv"
    return path.read_text(encoding="utf-8").splitlines()[1].split(",")


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    "column",
    [[SINGLE], pd.array([0.7], dtype="Float32"), np.array([0.7], dtype="f4"), np.array([0.7])],
    ids=["objects", "pandas", "single", "double"],
)
def test_a_frame_keeps_a_number_of_numpy_whatever_holds_it(column: Any) -> None:
    frame = pd.DataFrame({"a": column, "b": ["x"]})
    save_table("01_x/t", frame, columns={"a": ".3f"})
    save_figure("01_x/f", new_figure(width=1, height=1)[0], data=frame)
    assert cells("01_x/t", "tables") == cells("01_x/f", "figures") == ["0.7", "x"]


def step(**changes: Any) -> Any:
    return vary(Scenarios.DenseLLMPretrainingStep, **changes)


def in_usd(magnitude: object) -> Any:
    return vary(Scenarios.DenseLLMTrainingRun, price=Quantity(magnitude, unit("USD/h"))).price


GIVEN: dict[str, tuple[Callable[[], object], object]] = {
    "float": (lambda: step(local_efficiency=SINGLE).local_efficiency, 0.7),
    "int": (lambda: step(batch_divisor=np.int64(256)).batch_divisor, 256),
    "bool": (lambda: step(overlap_comm=np.bool_(1)).overlap_comm, True),
    "text": (lambda: step(precision=np.str_("bf16")).precision, "bf16"),
    "magnitude": (lambda: in_usd(SINGLE).magnitude, 0.7),
    "ratio": (lambda: in_usd(Fraction(7, 10)).magnitude, 0.7),
    "count": (lambda: lists.counts("depths", [*np.array([1, 2])], least=1)[1], 2),
    "value": (lambda: lists.values("rates", [SINGLE])[0], 0.7),
}


@pytest.mark.parametrize("field", GIVEN)
def test_a_scenario_given_a_number_of_numpy_holds_the_number_that_it_prints(field: str) -> None:
    made, expected = GIVEN[field]
    assert (type(made()), made()) == (type(expected), expected)


@pytest.mark.parametrize("magnitude", [np.array([1.0, 2.0]), Decimal("0.7"), 1 + 2j])
def test_a_scenario_refuses_a_magnitude_that_is_no_number(magnitude: object) -> None:
    with pytest.raises(UnitError, match=r"^TrainingRunScenario\.price = .*: expected one whole"):
        in_usd(magnitude)


def test_the_solver_takes_a_number_of_numpy_as_the_number_that_it_prints() -> None:
    def solved(efficiency: object, tensor: object) -> float:
        options: Any = {
            "efficiency": efficiency,
            "tp_size": tensor,
            "pp_size": 8,
            "seq_len": 2048,
            "bytes_per_param": Q("16 B"),
            "precision": "bf16",
            "batch_size": 1536,
        }
        result = DistributedModel.solve(Models.GPT3_175B, Fleets.DGX_H100_1024, **options)
        return float(result.step_latency_total.magnitude)

    assert solved(SINGLE, np.int64(8)) == solved(0.7, 8)
