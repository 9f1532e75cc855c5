"""Many layouts at once: a grid of given axes, and an exhaustive search for the fastest that fit."""

from __future__ import annotations

import dataclasses
import itertools
import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mlsysim.errors import InputError, LayoutError
from mlsysim.registry.links import Links
from mlsysim.registry.types import Fleet, TransformerModel
from mlsysim.solvers.arguments import RECOMPUTATION, StepArguments, inputs_of
from mlsysim.solvers.inputs import Inputs, Ledger
from mlsysim.solvers.pipeline import leaves_a_stage_empty
from mlsysim.solvers.step import memory_of, step

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "AXES",
    "LAYOUT",
    "LayoutSearch",
    "evaluate",
    "existing_layouts",
    "fits",
    "grid",
    "search",
    "shared",
    "solved_grid",
]

# The columns of a layout, in the order in which they vary slowest to fastest.
AXES = (
    "tp_size",
    "cp_size",
    "pp_size",
    "v_stages",
    "microbatch_size",
    "activation_recomputation",
    "zero_stage",
)
_LARGEST = 2**20  # of a count on an axis: products of three stay exact in 64 bits
_BLOCK = 4096  # layouts evaluated together, few enough for the processor's cache

Columns = dict[str, Any]


@dataclass(frozen=True)
class LayoutSearch:
    """All layouts that were looked at: the fastest that fit, and how many fell for which reason.

    `best` has one row a layout, fastest first, with its columns, `step_time` in seconds, the ledger
    and `memory` in bytes; `fallen` counts layouts by the reason why they are none or do not fit.
    """

    best: list[dict[str, Any]]
    looked_at: int
    fallen: dict[str, int]


def evaluate(inputs: Inputs, columns: Mapping[str, Any], devices: int, batch: int) -> Columns:
    """Step time, ledger and memory of each layout in `columns`, whose arrays have one length.

    `inputs` gives everything that the layouts share. The formulas are those of one step.
    """
    parts = [_evaluate_block(each) for each in _blocks(inputs, columns, devices, batch)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def fits(inputs: Inputs, columns: Mapping[str, Any], devices: int, batch: int) -> Any:
    """Whether each layout fits the accelerator's memory; as `evaluate`, without the times."""
    parts = [
        np.broadcast_to(memory_of(each).total <= inputs.capacity, np.shape(each.tensor))
        for each in _blocks(inputs, columns, devices, batch)
    ]
    return np.concatenate(parts)


def _blocks(
    inputs: Inputs, columns: Mapping[str, Any], devices: int, batch: int
) -> Iterator[Inputs]:
    """The inputs of all layouts, some at a time."""
    for start in range(0, len(columns["tp_size"]), _BLOCK):
        block = {name: values[start : start + _BLOCK] for name, values in columns.items()}
        data = devices // (block["tp_size"] * block["cp_size"] * block["pp_size"])
        recomputation = block["activation_recomputation"]
        yield inputs._replace(
            links=Links(*map(float, inputs.links)),
            tensor=block["tp_size"],
            context=block["cp_size"],
            pipeline=block["pp_size"],
            data=data,
            interleaving=block["v_stages"],
            microbatch=block["microbatch_size"],
            microbatches=batch // (data * block["microbatch_size"]),
            repeats_core=recomputation >= 1,
            repeats_all=recomputation >= 2,
            zero_stage=block["zero_stage"],
        )


def _evaluate_block(inputs: Inputs) -> Columns:
    found, shape = step(inputs), np.shape(inputs.tensor)
    ledger = {
        name: np.broadcast_to(np.asarray(part, float), shape)
        for name, part in zip(Ledger._fields, found.ledger, strict=True)
    }
    total = np.broadcast_to(np.asarray(found.ledger.total, float), shape)
    memory = np.broadcast_to(np.asarray(found.memory.total, float), shape)
    return {
        "step_time": total,
        **ledger,
        "memory": memory,
        "feasible": memory <= inputs.capacity,
        "dp_size": inputs.data,
    }


def grid(axes: Mapping[str, Sequence[Any]]) -> Columns:
    """Every combination of the given values, an array for each axis; others are 1, none or 0."""
    if not isinstance(axes, Mapping):
        raise InputError(f"axes = {axes!r}: expected values by axis, such as {{'tp_size': (4, 8)}}")
    for name, given in axes.items():
        if name not in AXES:
            raise InputError(f"{name!r} is no axis; the axes are {', '.join(AXES)}")
        if not isinstance(given, (list, tuple, range)):
            raise InputError(f"axis {name} = {given!r}: expected a list of values")
    usual: dict[str, Sequence[Any]] = {"activation_recomputation": ("none",), "zero_stage": (0,)}
    values = [[*axes.get(name, usual.get(name, (1,)))] for name in AXES]
    for name, given in zip(AXES, values, strict=True):
        if not given:
            raise InputError(f"axis {name} has no values")
        for value in given if name != "activation_recomputation" else ():
            whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
            if not whole or abs(value) > _LARGEST:
                raise InputError(f"axis {name}: {value!r} is no whole number up to {_LARGEST}")
            if name == "zero_stage":
                _check_zero_stage(value)
    values[5] = [_word(word) for word in values[5]]
    table = np.array([*itertools.product(*values)])
    return {name: table[:, i] for i, name in enumerate(AXES)}


def _check_zero_stage(stage: Any) -> None:
    whole = isinstance(stage, numbers.Integral) and not isinstance(stage, bool)
    if not whole or stage not in (0, 1, 2, 3):
        raise InputError(f"zero_stage {stage!r}: expected one of 0, 1, 2, 3")


def _word(word: Any) -> int:
    if word not in RECOMPUTATION:
        choices = ", ".join(RECOMPUTATION)
        raise InputError(f"activation_recomputation {word!r}: expected one of {choices}")
    return RECOMPUTATION.index(word)


def existing_layouts(
    inputs: Inputs, kv_heads: int, devices: int, batch: int, *, zero_stages: Sequence[int]
) -> tuple[Columns, dict[str, int]]:
    """Every layout that can exist of a model on `devices` accelerators, and why others cannot.

    Tensor parallelism divides heads and MLP, context parallelism the sequence, the pipeline has at
    most a stage a layer, every replica gets whole microbatches, and interleaved parts are equal.
    """
    heads, layers, seq_len = int(inputs.heads), int(inputs.layers), int(inputs.seq_len)
    tensor, context, stages = (
        each.ravel()
        for each in np.meshgrid(
            np.array(range(1, min(heads, devices) + 1)),
            np.array(_divisors(seq_len)),
            np.array(range(1, layers + 1)),
            indexing="ij",
        )
    )
    replica = tensor * context * stages
    checks = (
        (replica > devices, "more accelerators than the fleet has"),
        (
            (heads % tensor != 0) | (kv_heads % tensor != 0) | (int(inputs.ffn) % tensor != 0),
            "tensor parallelism does not divide the heads or the MLP",
        ),
        (
            inputs.sequence_parallel & (seq_len // context % tensor != 0),
            "tensor parallelism does not divide the tokens of a rank",
        ),
        (
            inputs.slots_for_ends & leaves_a_stage_empty(layers, stages),
            "embedding and head leave a stage without a layer",
        ),
        (batch % np.maximum(devices // replica, 1) != 0, "replicas do not divide the batch"),
    )
    fallen: dict[str, int] = {}

    def fell(reason: str, count: int = 1) -> None:
        if count:
            fallen[reason] = fallen.get(reason, 0) + count

    exists = np.full(len(replica), True)
    for wrong, reason in checks:
        fell(reason, int((exists & wrong).sum()))
        exists &= ~wrong
    # Parts of an interleaved stage are equal, so embedding and head take no place in one.
    parts = layers if not inputs.slots_for_ends else 0
    rows: list[tuple[int, int, int, int, int]] = []
    local = batch // (devices // replica[exists])
    replicas = (tensor[exists], context[exists], stages[exists], local)
    for tp, cp, pp, sequences in zip(*(each.tolist() for each in replicas), strict=True):
        rows += _schedules(tp, cp, pp, sequences, parts, fell)
    if not rows:
        raise InputError(f"no layout exists on {devices} accelerators for {batch} sequences")
    table = np.repeat(np.array(rows), len(RECOMPUTATION) * len(zero_stages), axis=0)
    options = np.array([*itertools.product(range(len(RECOMPUTATION)), zero_stages)])
    chosen = np.tile(options, (len(rows), 1))
    columns = {name: table[:, i] for i, name in enumerate(AXES[:5])}
    return columns | {AXES[5]: chosen[:, 0], AXES[6]: chosen[:, 1]}, fallen


def _schedules(
    tensor: int, context: int, stages: int, local: int, layers: int, fell: Any
) -> list[tuple[int, int, int, int, int]]:
    """Microbatch sizes and interleavings of a replica whose batch is `local` sequences.

    `layers` are those that may be cut into parts of equal stages.
    """
    equal = stages > 1 and layers >= stages and layers % stages == 0
    parts = _divisors(layers // stages) if equal else [1]
    found = []
    for size, part in itertools.product(_divisors(local), parts):
        if part > 1 and (local // size) % stages:
            fell("an interleaved schedule needs microbatches in groups of the stages")
        else:
            found.append((tensor, context, stages, part, size))
    return found


def _divisors(number: int) -> list[int]:
    """All divisors, in order.

    >>> _divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})


def search(
    model: TransformerModel,
    fleet: Fleet,
    batch: int,
    options: Mapping[str, Any],
    *,
    count: int,
    zero_stages: Sequence[int],
) -> LayoutSearch:
    """Look at every layout and keep the `count` fastest that fit the accelerator's memory."""
    if type(count) is not int or count < 1:
        raise InputError(f"count = {count!r}: expected a whole number of at least 1")
    if not isinstance(zero_stages, (list, tuple, range)) or not zero_stages:
        raise InputError(f"zero_stages = {zero_stages!r}: expected a list of stages")
    for stage in zero_stages:
        _check_zero_stage(stage)
    zero_stages = sorted(set(zero_stages))
    inputs, devices = shared(model, fleet, batch, options), fleet.total_accelerators
    columns, fallen = existing_layouts(
        inputs, model.kv_heads, devices, batch, zero_stages=zero_stages
    )
    fitting = fits(inputs, columns, devices, batch)
    looked_at = len(fitting) + sum(fallen.values())
    fallen["does not fit the memory"] = int((~fitting).sum())
    if not fitting.any():
        raise LayoutError(f"none of {len(fitting)} layouts fits the memory of the accelerator")
    columns = {name: values[fitting] for name, values in columns.items()}
    found = evaluate(inputs, columns, devices, batch)
    order = np.argsort(found["step_time"], kind="stable")[:count]
    best = [_row(columns, found, int(i)) for i in order]
    return LayoutSearch(best=best, looked_at=looked_at, fallen=fallen)


def _row(columns: Columns, found: Columns, i: int) -> dict[str, Any]:
    """One layout as plain numbers and words."""
    row: dict[str, Any] = {name: int(columns[name][i]) for name in AXES}
    row["activation_recomputation"] = RECOMPUTATION[row["activation_recomputation"]]
    row["dp_size"] = int(found["dp_size"][i])
    return row | {name: float(found[name][i]) for name in ("step_time", *Ledger._fields, "memory")}


def solved_grid(
    model: TransformerModel,
    fleet: Fleet,
    batch: int,
    axes: Mapping[str, Sequence[Any]],
    options: Mapping[str, Any],
) -> pd.DataFrame:
    """The frame of DistributedModel.solve_grid."""
    import pandas as pd

    columns, devices = grid(axes), fleet.total_accelerators
    inputs = shared(model, fleet, batch, options)
    reasons = _reasons(model, inputs, columns, devices, batch)
    exists = reasons == ""
    frame = pd.DataFrame(columns)
    frame["activation_recomputation"] = [
        RECOMPUTATION[int(i)] for i in columns["activation_recomputation"]
    ]
    if exists.any():
        kept = {name: values[exists] for name, values in columns.items()}
        found = evaluate(inputs, kept, devices, batch)
        fitting = found.pop("feasible")
        for name, values in found.items():
            frame.loc[exists, name] = values
        reasons[np.flatnonzero(exists)[~fitting]] = "does not fit the memory"
    frame["feasible"] = reasons == ""
    frame["reason"] = reasons
    return frame


# The arguments of `solve` that a layout sets.
LAYOUT = (
    "tp_size",
    "cp_size",
    "pp_size",
    "v_stages",
    "microbatch_count",
    "activation_recomputation",
    "zero_stage",
)


def shared(
    model: TransformerModel,
    fleet: Fleet,
    batch_size: int,
    options: Mapping[str, Any],
) -> Inputs:
    """What all layouts of a grid share, checked as `solve` does, whose defaults hold too."""
    known = {each.name: each for each in dataclasses.fields(StepArguments)}
    for name in options:
        if name not in known or name in LAYOUT:
            choices = ", ".join(each for each in known if each not in LAYOUT)
            raise InputError(f"option {name!r} is none of a grid; the options are {choices}")
    given = {**options, "model": model, "fleet": fleet, "batch_size": 1}
    missing = [
        name
        for name, each in known.items()
        if name not in given and each.default is dataclasses.MISSING
    ]
    if missing:
        raise InputError(f"{', '.join(missing)}: missing, as for solve")
    if type(batch_size) is not int or batch_size < 1:
        raise InputError(f"batch_size = {batch_size!r}: expected a whole number of at least 1")
    one = StepArguments(**{**given, "fleet": _of_one_accelerator(fleet)})
    return inputs_of(one)[0]._replace(node_size=fleet.node.accelerators, links=fleet.links)


def _of_one_accelerator(fleet: Fleet) -> Fleet:
    """A fleet on which the trivial layout exists, to check everything but the layout."""
    node = dataclasses.replace(fleet.node, accelerators=1)
    return dataclasses.replace(fleet, node=node, node_count=1)


def _reasons(
    model: TransformerModel, inputs: Inputs, columns: Mapping[str, Any], devices: int, batch: int
) -> Any:
    """Why each layout of a grid cannot exist; empty where it can."""
    tensor, context, stages = (columns[name] for name in ("tp_size", "cp_size", "pp_size"))
    parts, size = columns["v_stages"], columns["microbatch_size"]
    below = np.minimum.reduce([tensor, context, stages, parts, size]) < 1
    tensor, context, stages, parts, size = (
        np.maximum(count, 1) for count in (tensor, context, stages, parts, size)
    )
    seq_len = inputs.seq_len
    replica = tensor * context * stages
    data = np.maximum(devices // np.maximum(replica, 1), 1)
    whole = batch % np.maximum(data * size, 1) == 0
    microbatches = batch // np.maximum(data * size, 1)
    interleaved = parts > 1
    reasons = np.full(len(tensor), "", dtype=object)
    checks = (
        (below, "a count below 1"),
        (replica > devices, "more accelerators than the fleet has"),
        (
            (model.attention_heads % tensor != 0)
            | (model.kv_heads % tensor != 0)
            | (model.ffn_hidden_size % tensor != 0),
            "tensor parallelism does not divide the heads or the MLP",
        ),
        (seq_len % context != 0, "context parallelism does not divide the sequence"),
        (
            inputs.sequence_parallel & (seq_len // context % tensor != 0),
            "tensor parallelism does not divide the tokens of a rank",
        ),
        (stages * parts > model.layers, "more stages than layers"),
        (
            inputs.slots_for_ends & leaves_a_stage_empty(model.layers, stages),
            "embedding and head leave a stage without a layer",
        ),
        (~whole, "no whole microbatch"),
        (interleaved & (stages == 1), "no pipeline to interleave"),
        (
            interleaved & inputs.slots_for_ends,
            "interleaved parts leave no place for embedding and head",
        ),
        (interleaved & (model.layers % (stages * parts) != 0), "interleaved parts are not equal"),
        (
            interleaved & (microbatches % stages != 0),
            "an interleaved schedule needs microbatches in groups of the stages",
        ),
    )
    for wrong, reason in checks:
        reasons[np.broadcast_to(wrong, reasons.shape) & (reasons == "")] = reason
    return reasons
