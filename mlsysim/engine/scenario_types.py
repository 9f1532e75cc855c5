"""Every scenario class, importable from here; a class is loaded when it is first asked for.

One start of the package pays for the classes that it uses, not for all that exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mlsysim.doors import opened

if TYPE_CHECKING:
    from mlsysim.declarations.fields import Declared
    from mlsysim.engine.scenario_definitions.activations import (
        ActivationMemoryScenario as ActivationMemoryScenario,
    )
    from mlsysim.engine.scenario_definitions.bubbles import (
        PipelineBubbleScenario as PipelineBubbleScenario,
    )
    from mlsysim.engine.scenario_definitions.communication import (
        StepCollectivesScenario as StepCollectivesScenario,
    )
    from mlsysim.engine.scenario_definitions.fleet_scaling import (
        FleetScalingScenario as FleetScalingScenario,
    )
    from mlsysim.engine.scenario_definitions.layout_choices import (
        LayoutChoicesScenario as LayoutChoicesScenario,
    )
    from mlsysim.engine.scenario_definitions.layout_evidence import (
        LayoutEvidenceScenario as LayoutEvidenceScenario,
    )
    from mlsysim.engine.scenario_definitions.layout_map import (
        LayoutMapScenario as LayoutMapScenario,
    )
    from mlsysim.engine.scenario_definitions.layout_search import (
        LayoutSearchScenario as LayoutSearchScenario,
    )
    from mlsysim.engine.scenario_definitions.link_sweeps import (
        CollectiveTimesScenario as CollectiveTimesScenario,
    )
    from mlsysim.engine.scenario_definitions.link_sweeps import (
        NodeLinkSweepScenario as NodeLinkSweepScenario,
    )
    from mlsysim.engine.scenario_definitions.measured_scaling import (
        MeasuredScalingScenario as MeasuredScalingScenario,
    )
    from mlsysim.engine.scenario_definitions.memory_sweeps import (
        MemoryByDepthScenario as MemoryByDepthScenario,
    )
    from mlsysim.engine.scenario_definitions.memory_sweeps import (
        ShardedStateScenario as ShardedStateScenario,
    )
    from mlsysim.engine.scenario_definitions.peak_use import (
        PeakUseScenario as PeakUseScenario,
    )
    from mlsysim.engine.scenario_definitions.pipeline_schedules import (
        PipelineScheduleScenario as PipelineScheduleScenario,
    )
    from mlsysim.engine.scenario_definitions.published_fit import (
        PublishedStepFitScenario as PublishedStepFitScenario,
    )
    from mlsysim.engine.scenario_definitions.published_runs import (
        PublishedInterruptionsScenario as PublishedInterruptionsScenario,
    )
    from mlsysim.engine.scenario_definitions.published_runs import (
        PublishedTrainingRunScenario as PublishedTrainingRunScenario,
    )
    from mlsysim.engine.scenario_definitions.published_steps import (
        PublishedStepTimesScenario as PublishedStepTimesScenario,
    )
    from mlsysim.engine.scenario_definitions.reliability import (
        FleetReliabilityScenario as FleetReliabilityScenario,
    )
    from mlsysim.engine.scenario_definitions.restarts import (
        RestartTimesScenario as RestartTimesScenario,
    )
    from mlsysim.engine.scenario_definitions.stages import (
        StageSplitScenario as StageSplitScenario,
    )
    from mlsysim.engine.scenario_definitions.training import (
        ReferenceTrainingStepScenario as ReferenceTrainingStepScenario,
    )
    from mlsysim.engine.scenario_definitions.training import (
        SelfContainedReplicaScenario as SelfContainedReplicaScenario,
    )
    from mlsysim.engine.scenario_definitions.training_runs import (
        TrainingRunScenario as TrainingRunScenario,
    )
    from mlsysim.engine.scenario_definitions.variation import (
        TrainingStepSweepScenario as TrainingStepSweepScenario,
    )

# The module of each class, under mlsysim.engine.scenario_definitions. mlsysim/artifacts/code.py
# reads this table without running it.
HOMES = {
    "ActivationMemoryScenario": "activations",
    "CollectiveTimesScenario": "link_sweeps",
    "FleetReliabilityScenario": "reliability",
    "FleetScalingScenario": "fleet_scaling",
    "LayoutChoicesScenario": "layout_choices",
    "LayoutEvidenceScenario": "layout_evidence",
    "LayoutMapScenario": "layout_map",
    "LayoutSearchScenario": "layout_search",
    "MeasuredScalingScenario": "measured_scaling",
    "MemoryByDepthScenario": "memory_sweeps",
    "NodeLinkSweepScenario": "link_sweeps",
    "PeakUseScenario": "peak_use",
    "PipelineBubbleScenario": "bubbles",
    "PipelineScheduleScenario": "pipeline_schedules",
    "PublishedInterruptionsScenario": "published_runs",
    "PublishedStepFitScenario": "published_fit",
    "PublishedStepTimesScenario": "published_steps",
    "PublishedTrainingRunScenario": "published_runs",
    "ReferenceTrainingStepScenario": "training",
    "RestartTimesScenario": "restarts",
    "SelfContainedReplicaScenario": "training",
    "ShardedStateScenario": "memory_sweeps",
    "StageSplitScenario": "stages",
    "StepCollectivesScenario": "communication",
    "TrainingRunScenario": "training_runs",
    "TrainingStepSweepScenario": "variation",
}
_MODULES = {name: f"mlsysim.engine.scenario_definitions.{home}" for name, home in HOMES.items()}

# Those that publish rows as CSV beside the artifact, which the graph shows without loading a class.
WITH_TABLE = frozenset(
    {
        "ActivationMemoryScenario",
        "CollectiveTimesScenario",
        "FleetReliabilityScenario",
        "FleetScalingScenario",
        "LayoutChoicesScenario",
        "LayoutMapScenario",
        "LayoutSearchScenario",
        "MeasuredScalingScenario",
        "MemoryByDepthScenario",
        "NodeLinkSweepScenario",
        "PeakUseScenario",
        "PipelineBubbleScenario",
        "PipelineScheduleScenario",
        "PublishedStepTimesScenario",
        "RestartTimesScenario",
        "ShardedStateScenario",
        "StageSplitScenario",
        "TrainingStepSweepScenario",
    }
)

__all__ = ["HOMES", "KINDS", "WITH_TABLE"]


def __getattr__(name: str) -> Any:
    return opened(__name__, _MODULES, name)


class _Kinds(Mapping[str, "type[Declared]"]):
    """The classes by name."""

    def __getitem__(self, name: str) -> type[Declared]:
        if name not in HOMES:
            raise KeyError(name)
        found: type[Declared] = __getattr__(name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in HOMES

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)


KINDS = _Kinds()
