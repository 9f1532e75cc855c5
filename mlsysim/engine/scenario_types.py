"""Every scenario class, importable from here; the imports below are also the list of kinds."""

from mlsysim.engine.scenario_definitions.fitting import PublishedStepFitScenario
from mlsysim.engine.scenario_definitions.published import PublishedStepTimesScenario
from mlsysim.engine.scenario_definitions.training import (
    ReferenceTrainingStepScenario,
    SelfContainedReplicaScenario,
)
from mlsysim.engine.scenario_definitions.variation import (
    LayoutSearchScenario,
    TrainingStepSweepScenario,
)

__all__ = [
    "LayoutSearchScenario",
    "PublishedStepFitScenario",
    "PublishedStepTimesScenario",
    "ReferenceTrainingStepScenario",
    "SelfContainedReplicaScenario",
    "TrainingStepSweepScenario",
]
