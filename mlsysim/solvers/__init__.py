"""The solvers: pure functions on floats in base units, composed by DistributedModel."""

from mlsysim.solvers.distributed import DistributedModel, DistributedResult

__all__ = ["DistributedModel", "DistributedResult"]
