"""Scaling: one training step on fleets of many sizes, with a batch that is fixed or grows."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mlsysim.declared import declared, record
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import InputError, LayoutError, division
from mlsysim.outputs import output
from mlsysim.registry.types import Fleet
from mlsysim.solvers import DistributedModel
from mlsysim.solvers.inputs import Ledger
from mlsysim.units import Quantity, unit

__all__ = ["FleetScalingScenario"]


@record
class FleetScalingScenario(Scenario):
    """A training step on fleets of other sizes, its replica repeated as often as each has room.

    With a fixed batch the replicas share what the step trains on (strong scaling); with one that
    grows every accelerator keeps its part of it (weak scaling). With the layout `fastest` each size
    has the fastest layout of all that exist and fit, in place of the step's replica.

    Equation: efficiency at a size = tokens a second and accelerator there / at the smallest size
    that works.

    Assumptions: fleets differ in their number of nodes alone.

    Excludes: what a batch of another size does to the training; failures; networks whose links
    thin out towards the core.
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step that is scaled")
    sizes: str = declared(description="accelerators of each fleet, ascending, separated by commas")
    batch: str = declared(
        choices=("fixed", "grows"), description="whether the batch grows with the fleet"
    )
    layout: str = declared(
        choices=("repeated", "fastest"), description="the step's replica, or a search at each size"
    )
    most_sharding: int = declared(
        at_least=0, at_most=3, description="highest ZeRO stage of a search; 0 without one"
    )
    least_efficiency: float = declared(
        above=0, at_most=1, description="efficiency below which a fleet counts as too large"
    )

    def check(self) -> None:
        """Refuse sizes that are none, or out of order, and a study in which no size works."""
        if self.layout == "repeated" and self.most_sharding:
            raise InputError(
                f"most_sharding = {self.most_sharding}: the step's replica is repeated as it is, "
                "so expected 0"
            )
        sizes = self._sizes()
        for before, after in itertools.pairwise(sizes):
            if after <= before:
                raise InputError(f"sizes: {after} follows {before}; expected ascending sizes")
        if not self._working():
            raise LayoutError(f"no size works: {self.table()[-1]['reason']}")

    @output()
    def largest_fleet(self) -> int:
        """The largest size that works. Equation: max(size) over sizes with a layout that fits."""
        return int(self._working()[-1]["accelerators"])

    @output()
    def smallest_fleet(self) -> int:
        """The smallest size that works, to which the others are compared. Equation: min(size)."""
        return int(self._working()[0]["accelerators"])

    @output()
    def fastest_fleet(self) -> int:
        """The size with the shortest step. Equation: arg min step time over sizes that work."""
        return int(min(self._working(), key=lambda row: row["step_time_s"])["accelerators"])

    @output()
    def efficient_fleet(self) -> int:
        """The largest size whose efficiency is at least least_efficiency.

        Equation: max(size : efficiency_at >= least_efficiency).
        """
        return max(
            int(row["accelerators"])
            for row in self._working()
            if row["efficiency"] >= self.least_efficiency
        )

    @output("seq")
    def batch_at(self) -> dict[str, int]:
        """Sequences of the batch. Equation: those of the step, times size / its own if it grows."""
        return {key: int(row["batch_seq"]) for key, row in self._by_size()}

    @output()
    def replicas_at(self) -> dict[str, int]:
        """Replicas, the data-parallel degree. Equation: accelerators // those of a replica."""
        return {key: int(row["replicas"]) for key, row in self._by_size()}

    @output()
    def tensor_parallel_at(self) -> dict[str, int]:
        """Tensor-parallel degree. Equation: the step's, or that of the fastest layout."""
        return {key: int(row["tensor"]) for key, row in self._by_size()}

    @output()
    def context_parallel_at(self) -> dict[str, int]:
        """Context-parallel degree. Equation: the step's, or that of the fastest layout."""
        return {key: int(row["context"]) for key, row in self._by_size()}

    @output()
    def pipeline_depth_at(self) -> dict[str, int]:
        """Pipeline stages. Equation: the step's, or those of the fastest layout."""
        return {key: int(row["pipeline"]) for key, row in self._by_size()}

    @output()
    def microbatches_at(self) -> dict[str, int]:
        """Microbatches of a replica. Equation: batch / (replicas * sequences of a microbatch)."""
        return {key: int(row["microbatches"]) for key, row in self._by_size()}

    @output("s")
    def step_time_at(self) -> dict[str, Quantity]:
        """Step time of each size. Equation: DistributedModel.solve(...).step_latency_total."""
        return {key: _seconds(row["step_time_s"]) for key, row in self._by_size()}

    @output()
    def speed_up_at(self) -> dict[str, float]:
        """Tokens a second over those of the smallest fleet. Equation: ratio of throughputs."""
        return {key: float(row["speed_up"]) for key, row in self._by_size()}

    @output("%")
    def efficiency_at(self) -> dict[str, Quantity]:
        """Speed-up over the ideal one. Equation: speed_up_at / (size / smallest_fleet)."""
        return {key: _percent(row["efficiency"]) for key, row in self._by_size()}

    @output("%")
    def utilization_at(self) -> dict[str, Quantity]:
        """Model FLOPs utilization of all accelerators of the fleet.

        Equation: model FLOP of the batch / (step time * accelerators * peak rate).
        """
        return {key: _percent(row["utilization"]) for key, row in self._by_size()}

    @output("%")
    def share_at(self) -> dict[str, Quantity]:
        """Parts of the step, by size and part; they add up to 100 %.

        Equation: matrix products (forward, backward, recomputation), memory (memory_bound,
        optimizer), exposed communication in a replica (tensor, context, point to point), exposed
        communication between replicas (data parallel), and bubble, each over the step time.
        """
        return {
            f"{key}.{part}": _percent(value)
            for key, row in self._by_size()
            for part, value in _shares(row).items()
        }

    @output("s")
    def fixed_time_at(self) -> dict[str, Quantity]:
        """What no further replica shortens. Equation: bubble + data parallel + optimizer."""
        return {key: _seconds(_fixed(row)) for key, row in self._by_size()}

    @output()
    def fixed_microbatches_at(self) -> dict[str, float]:
        """That time in microbatches, c of an efficiency of about m / (m + c).

        Equation: fixed_time_at / ((step_time_at - fixed_time_at) / microbatches_at).
        """
        return {
            key: _fixed(row) / ((row["step_time_s"] - _fixed(row)) / row["microbatches"])
            for key, row in self._by_size()
        }

    @output("%")
    def fixed_efficiency_at(self) -> dict[str, Quantity]:
        """Efficiency if nothing but that time were lost. Equation: m / (m + c)."""
        return {
            key: _percent(1.0 - _fixed(row) / row["step_time_s"]) for key, row in self._by_size()
        }

    @output("h")
    def accelerator_time_at(self) -> dict[str, Quantity]:
        """Accelerator-hours that one step costs. Equation: accelerators * step time."""
        return {
            key: Quantity(row["accelerators"] * row["step_time_s"] / 3600.0, unit("h"))
            for key, row in self._by_size()
        }

    @property
    def feasible(self) -> bool:
        """Whether every size works. Equation: no row of the table has a reason against it."""
        return True

    @property
    def feasibility(self) -> str:
        """How many of the sizes work."""
        return f"{len(self._working())} of {len(self.table())} sizes have a layout that fits"

    def table(self) -> Sequence[Mapping[str, Any]]:
        """One row a size: layout, batch, step and ledger in seconds, or why there is none."""
        if "_rows" not in self.__dict__:
            self.__dict__["_rows"] = [*self._solved()]
        rows: list[dict[str, Any]] = self.__dict__["_rows"]
        return rows

    def _sizes(self) -> list[int]:
        texts = [text.strip() for text in self.sizes.split(",") if text.strip()]
        if not texts:
            raise InputError("sizes: expected at least one number of accelerators")
        each = self.step.fleet.node.accelerators
        for text in texts:
            if not text.isdecimal() or not 0 < int(text) < 1 << 40:
                raise InputError(f"sizes: {text!r}: expected a whole number of accelerators")
            if int(text) % each:
                raise InputError(
                    f"sizes: {text} accelerators fill no whole nodes: {division(int(text), each)}"
                )
        return [int(text) for text in texts]

    def _solved(self) -> Any:
        base: float | None = None
        for size in self._sizes():
            row: dict[str, Any] = {"accelerators": size}
            try:
                batch = self._batch(size)
                solve = self._repeated if self.layout == "repeated" else self._fastest
                found = solve(size, batch)
            except LayoutError as error:
                yield row | {"feasible": False, "reason": str(error)} | _NOTHING
                continue
            rate = batch / found["step_time_s"]
            base = base or rate / size
            work = self.step.result.step.work.model / self.step.global_batch_sequences
            yield row | {
                "feasible": True,
                "reason": "",
                "batch_seq": batch,
                **found,
                "speed_up": rate / (base * self._smallest(size)),
                "efficiency": rate / size / base,
                "utilization": rate * work / (size * self.step.result.inputs.peak),
            }

    def _smallest(self, size: int) -> int:
        """The smallest size that works, which is the first one to ask."""
        return int(self.__dict__.setdefault("_first", size))

    def _batch(self, size: int) -> int:
        """Sequences of the batch on a fleet of that size."""
        batch, own = self.step.global_batch_sequences, self.step.fleet.total_accelerators
        if self.batch == "fixed":
            return batch
        if batch * size % own:
            raise LayoutError(
                f"no whole sequences: {batch} x {size} / {own} accelerators = "
                f"{division(batch * size, own)}"
            )
        return batch * size // own

    def _fleet(self, size: int) -> Fleet:
        fleet = self.step.fleet
        return dataclasses.replace(fleet, node_count=size // fleet.node.accelerators)

    def _repeated(self, size: int, batch: int) -> dict[str, Any]:
        """The step's own replica, as often as it fits."""
        step = self.step
        replica, own = step.replica.replica_gpus, step.sequences_per_microbatch
        replicas = size // replica
        if not replicas:
            raise LayoutError(f"fewer than one replica of {replica}")
        if batch % (replicas * own):
            raise LayoutError(
                f"the batch has no whole shares for all replicas: {division(batch, replicas * own)}"
            )
        changed = {
            "fleet": self._fleet(size),
            "batch_size": batch,
            "microbatch_count": batch // (replicas * own),
        }
        result = DistributedModel.solve(**{**step.solver_arguments(), **changed})
        if not result.feasible:
            raise LayoutError(result.feasibility)
        ledger = result.ledger
        return {
            "layout": f"t{step.tensor_parallel} p{step.pipeline_depth}",
            "tensor": step.tensor_parallel,
            "context": 1,
            "pipeline": step.pipeline_depth,
            "replicas": replicas,
            "microbatches": changed["microbatch_count"],
            "step_time_s": float(ledger.total),
            **{f"{name}_s": float(part) for name, part in ledger._asdict().items()},
            "memory_gb": result.step.memory.total / 1e9,
        }

    def _fastest(self, size: int, batch: int) -> dict[str, Any]:
        """The fastest layout that exists at this size and fits."""
        arguments = self.step.solver_arguments()
        found = DistributedModel.best_layout(
            arguments["model"],
            self._fleet(size),
            batch_size=batch,
            count=1,
            zero_stages=range(self.most_sharding + 1),
            **{name: arguments[name] for name in _SHARED},
        ).best[0]
        return {
            "layout": _described(found),
            "tensor": found["tp_size"],
            "context": found["cp_size"],
            "pipeline": found["pp_size"],
            "replicas": found["dp_size"],
            "microbatches": batch // (found["dp_size"] * found["microbatch_size"]),
            "step_time_s": found["step_time"],
            **{f"{name}_s": found[name] for name in Ledger._fields},
            "memory_gb": found["memory"] / 1e9,
        }

    def _working(self) -> list[Mapping[str, Any]]:
        return [row for row in self.table() if row["feasible"]]

    def _by_size(self) -> list[tuple[str, Mapping[str, Any]]]:
        return [(str(row["accelerators"]), row) for row in self._working()]


# The arguments of a step that a search leaves as they are.
_SHARED = (
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
_NOTHING: dict[str, Any] = dict.fromkeys(
    (
        *("batch_seq", "layout", "tensor", "context", "pipeline"),
        *("replicas", "microbatches", "step_time_s"),
        *(f"{name}_s" for name in Ledger._fields),
        *("memory_gb", "speed_up", "efficiency", "utilization"),
    ),
    "",
)


def _described(found: Mapping[str, Any]) -> str:
    """A layout by its degrees: ``t8 c2 p4 v24 b3 z1``, what is 1 or none left out."""
    letters = {"t": "tp_size", "c": "cp_size", "p": "pp_size", "v": "v_stages"}
    words = [f"{letter}{found[name]}" for letter, name in letters.items() if found[name] > 1]
    words += [f"b{found['microbatch_size']}"]
    words += [f"z{found['zero_stage']}"] if found["zero_stage"] else []
    again = found["activation_recomputation"]
    return " ".join([*words, *([] if again == "none" else [again])])


def _fixed(row: Mapping[str, Any]) -> float:
    return float(row["bubble_s"] + row["data_parallel_s"] + row["optimizer_s"])


def _shares(row: Mapping[str, Any]) -> dict[str, float]:
    """The parts of a step as shares of it."""
    seconds = {
        "matrix": row["forward_s"] + row["backward_s"] + row["recomputation_s"],
        "memory": row["memory_bound_s"] + row["optimizer_s"],
        "in_replica": row["tensor_parallel_s"]
        + row["context_parallel_s"]
        + row["point_to_point_s"],
        "between_replicas": row["data_parallel_s"],
        "bubble": row["bubble_s"],
    }
    return {part: value / row["step_time_s"] for part, value in seconds.items()}


def _seconds(value: float) -> Quantity:
    return Quantity(value, unit("s"))


def _percent(value: float) -> Quantity:
    return Quantity(value * 100, unit("%"))
