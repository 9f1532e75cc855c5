"""Every scenario class, importable from here; the imports below are also the list of kinds."""

from mlsysim.engine.scenario_definitions.training import (
    ReferenceTrainingStepScenario,
    SelfContainedReplicaScenario,
)

__all__ = ["ReferenceTrainingStepScenario", "SelfContainedReplicaScenario"]
