"""Links: one collective by the size of its message, and a step by the rate inside its nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from mlsysim import units
from mlsysim.declarations.fields import declared, record
from mlsysim.declarations.lists import Values
from mlsysim.declarations.outputs import output
from mlsysim.engine.scenario import Scenario
from mlsysim.engine.scenario_definitions.training import ReferenceTrainingStepScenario
from mlsysim.errors import InputError, LayoutError, MlsysimError
from mlsysim.registry.types import Fleet
from mlsysim.solvers import DistributedModel, collectives
from mlsysim.solvers.collectives import Group
from mlsysim.solvers.distributed import solved
from mlsysim.units import Quantity, to_si, unit
from mlsysim.units.quantities import gigabytes, seconds

__all__ = ["CollectiveTimesScenario", "NodeLinkSweepScenario"]


@record
class CollectiveTimesScenario(Scenario):
    """Time of an all-reduce in one group of a fleet's accelerators, by the size of its message.

    Equation: time = ring steps * latency + bytes that cross a link / its rate, for the ring inside
    a node and the ring between nodes one after the other (mlsysim.solvers.collectives).

    Assumptions: rings only, every step of which costs the same latency, whatever the size.

    Excludes: trees, protocols for small messages, and reduction inside switches, which libraries
    choose by size.
    """

    fleet: Fleet = declared(description="the accelerators and links")
    members: int = declared(at_least=2, description="accelerators that take part")
    stride: int = declared(
        at_least=1, description="distance of their ranks; 1 is neighbors, which share a node"
    )
    smallest: Quantity = declared(unit="B", above=0, description="the smallest message")
    doublings: int = declared(
        at_least=1, at_most=60, description="how often the message is doubled from there"
    )

    def check(self) -> None:
        """Refuse a group that the fleet has no room for."""
        last = (self.members - 1) * self.stride
        if last >= self.fleet.total_accelerators:
            raise LayoutError(
                f"{self.members} members, {self.stride} ranks apart, end at rank {last}, and the "
                f"fleet has {self.fleet.total_accelerators} accelerators"
            )
        if not to_si(self.smallest).is_integer():
            raise InputError(f"smallest = {units.shown(self.smallest)}: expected whole bytes")
        if to_si(self.smallest) > 2**50:
            raise InputError(f"smallest = {units.shown(self.smallest)}: expected at most 1 PiB")

    @output()
    def inside(self) -> int:
        """Members in each node. Equation: collectives.group_of(members, stride, node size)."""
        return int(self._group.inside)

    @output()
    def nodes(self) -> int:
        """Nodes that the group spans. Equation: members / inside."""
        return int(self._group.nodes)

    @output()
    def ring_steps(self) -> int:
        """Steps one after the other. Equation: 2 (inside - 1) + 2 (nodes - 1)."""
        return 2 * (self.inside - 1) + 2 * (self.nodes - 1)

    @output("us")
    def latency_time(self) -> Quantity:
        """Time that remains however small the message. Equation: all_reduce_time(0 B)."""
        return seconds(self._time(0.0))

    @output("GB/s")
    def large_rate(self) -> Quantity:
        """Bytes of a message a second, of one so large that latency is nothing.

        Equation: 1 / (2 (inside - 1) / inside / link rate + 2 (nodes - 1) / members / network
        rate).
        """
        return Quantity(1.0 / (self._per_byte * 1e9), unit("GB/s"))

    @output("MB")
    def balanced_message(self) -> Quantity:
        """The message whose latency and transfer take equally long.

        Equation: latency_time * large_rate.
        """
        return gigabytes(self._time(0.0) / self._per_byte / 1e9)

    @output("us")
    def time_at(self) -> dict[str, Quantity]:
        """Time of each message. Equation: all_reduce_time(message)."""
        return {f"{row['message_B']}_B": seconds(row["time_s"]) for row in self.table()}

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """One row a message: bytes, seconds, and the two parts of them."""
        smallest = to_si(self.smallest)
        return [
            {
                "message_B": int(size),
                "time_s": self._time(size),
                "latency_s": self._time(0.0),
                "transfer_s": size * self._per_byte,
            }
            for size in (smallest * (1 << doubling) for doubling in range(self.doublings + 1))
        ]

    @property
    def _group(self) -> Group:
        return collectives.group_of(self.members, self.stride, self.fleet.node.accelerators)

    def _time(self, size: float) -> float:
        return float(collectives.all_reduce_time(size, self._group, self.fleet.links))

    @property
    def _per_byte(self) -> float:
        """Seconds a byte: the time of one byte on links without latency."""
        links = self.fleet.links._replace(link_latency=0.0, network_latency=0.0)
        return float(collectives.all_reduce_time(1.0, self._group, links))


@record
class NodeLinkSweepScenario(Scenario):
    """A training step on nodes whose accelerators are joined by links of other rates.

    Equation: each row = the step with that line rate in every node, solved by
    DistributedModel.solve.

    Assumptions: efficiency and latency of the links stay as they are.

    Excludes: links that several accelerators share.

    >>> from mlsysim import Scenarios
    >>> case = Scenarios.NodeLinkSweep
    >>> case.step_time_at["225_GB_per_s"] > case.step.step_time
    True
    """

    solvers: ClassVar[tuple[type, ...]] = (DistributedModel,)

    step: ReferenceTrainingStepScenario = declared(description="the step that is varied")
    rates: Values = declared(
        description="line rates of an accelerator's links, one direction, such as 450 GB/s"
    )

    def check(self) -> None:
        """Refuse what is no rate."""
        self.table()

    @output("s")
    def step_time_at(self) -> dict[str, Quantity]:
        """Step time of each rate. Equation: DistributedModel.solve(...).step_latency_total."""
        return self._column("step_time_s")

    @output("s")
    def exposed_at(self) -> dict[str, Quantity]:
        """Exposed tensor-parallel time of each rate. Equation: tp_communication_latency."""
        return self._column("tensor_parallel_s")

    @output("s")
    def hidden_at(self) -> dict[str, Quantity]:
        """Hidden tensor-parallel time of each rate. Equation: tp_communication_hidden."""
        return self._column("tensor_parallel_hidden_s")

    def table_rows(self) -> list[dict[str, Any]]:
        """One row a rate: the rate, the step, and its ledger in seconds."""
        return [self._row(rate) for rate in self.rates]

    def _row(self, rate: Any) -> dict[str, Any]:
        node = self.step.fleet.node
        try:
            node = replace(node, link_bandwidth=rate)
        except MlsysimError as error:
            raise InputError(f"rates: {rate!r}: {error}") from None
        fleet = replace(self.step.fleet, node=node)
        result = solved(replace(self.step.solver_arguments(), fleet=fleet))
        return {
            "rate": rate,
            "rate_GB_per_s": to_si(node.link_bandwidth) / 1e9,
            "step_time_s": float(result.ledger.total),
            **{f"{name}_s": float(part) for name, part in result.ledger._asdict().items()},
            "tensor_parallel_hidden_s": float(result.step.hidden_tensor_parallel),
        }

    def _column(self, name: str) -> dict[str, Quantity]:
        return {
            row["rate"].replace("/", "_per_").replace(" ", "_").replace(".", "_"): seconds(
                row[name]
            )
            for row in self.table()
        }
