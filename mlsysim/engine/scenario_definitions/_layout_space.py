"""Every layout of a training step at once, solved as arrays; the map and the choices read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import LayoutError
from mlsysim.solvers.arguments import RECOMPUTATION
from mlsysim.solvers.inputs import Ledger

__all__ = ["CHOICES", "COLUMNS", "LayoutSpace", "shared_arguments"]

# The choices of a layout and the columns that hold them; data parallelism follows from the others.
CHOICES = {
    "tensor": "tp_size",
    "context": "cp_size",
    "pipeline": "pp_size",
    "interleaving": "v_stages",
    "microbatch": "microbatch_size",
    "recomputation": "activation_recomputation",
    "sharding": "zero_stage",
}
COLUMNS = (
    *(name for name in CHOICES.values() if name not in ("tp_size", "pp_size")),
    "dp_size",
    "idle",
    "microbatches",
    "step_time_s",
    *(f"{name}_s" for name in Ledger._fields),
    "memory_gb",
)

# The arguments of a step that its layouts share, beside model, fleet and batch.
_OPTIONS = (
    "seq_len",
    "precision",
    "efficiency",
    "bytes_per_param",
    "sequence_parallel",
    "fused_attention",
    "gradient_precision",
    "overlap_comm",
    "overlap_tp_comm",
)


def shared_arguments(step: ReferenceTrainingStepScenario) -> dict[str, Any]:
    """The arguments of DistributedModel.solve that all layouts of a step share."""
    given = step.solver_arguments()
    return {name: getattr(given, name) for name in ("model", "fleet", "batch_size", *_OPTIONS)}


class LayoutSpace:
    """Every layout that exists on the step's fleet, as an array for each column.

    Columns are those of the search over layouts: choices, `dp_size`, `step_time` and ledger in
    seconds, `memory` in bytes, and `feasible`; `shared` are the arguments that all layouts have in
    common. Raises LayoutError if none fits.
    """

    def __init__(self, step: ReferenceTrainingStepScenario, most_sharding: int) -> None:
        from mlsysim.solvers import search

        self.shared = shared_arguments(step)
        options = dict(self.shared)
        model, fleet, batch = (options.pop(name) for name in ("model", "fleet", "batch_size"))
        inputs = search.shared(model, fleet, batch, options)
        devices = fleet.total_accelerators
        columns, _ = search.existing_layouts(
            inputs, model.kv_heads, devices, batch, zero_stages=range(most_sharding + 1)
        )
        self._columns = columns | search.evaluate(inputs, columns, devices, batch)
        if not self["feasible"].any():
            raise LayoutError("no layout of the step fits the memory of the accelerator")

    def __getitem__(self, column: str) -> Any:
        return self._columns[column]

    def having(self, choices: Mapping[str, int]) -> Any:
        """Which layouts have these choices; recomputation is given by its place in its list."""
        same = self["tp_size"] > 0
        for choice, value in choices.items():
            same = same & (self[CHOICES[choice]] == value)
        return same

    def fastest(self, among: Any) -> float:
        """Seconds of the fastest layout of `among`. Raises LayoutError if there is none."""
        if not among.any():
            raise LayoutError("no layout is left among those that fit and meet a condition")
        return float(self["step_time"][among].min())

    def least(self, column: str, among: Any) -> int:
        """The first of those layouts of `among` whose `column` is least."""
        places = among.nonzero()[0]
        return int(places[self[column][places].argmin()])

    def order(self, among: Any) -> list[int]:
        """The layouts of `among`, fastest first."""
        places = among.nonzero()[0]
        return [int(i) for i in places[self["step_time"][places].argsort(kind="stable")]]

    def row(self, i: int) -> dict[str, Any]:
        """Layout `i` as a row of a table: choices, degrees, ledger in s, memory in GB."""
        row: dict[str, Any] = {name: int(self[name][i]) for name in CHOICES.values()}
        row["activation_recomputation"] = RECOMPUTATION[row["activation_recomputation"]]
        row["dp_size"] = int(self["dp_size"][i])
        replica = row["tp_size"] * row["cp_size"] * row["pp_size"]
        row["idle"] = self.shared["fleet"].total_accelerators - replica * row["dp_size"]
        row["microbatches"] = self.shared["batch_size"] // (row["dp_size"] * row["microbatch_size"])
        times = {f"{name}_s": float(self[name][i]) for name in ("step_time", *Ledger._fields)}
        return row | times | {"memory_gb": float(self["memory"][i]) / 1e9}
