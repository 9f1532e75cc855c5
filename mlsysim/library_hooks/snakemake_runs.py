"""Snakemake: which kind of run reads a Snakefile."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlsysim.library_hooks import need

__all__ = ["builds", "has_nodes", "is_first_process", "prefer_in_order"]

_WRITTEN_FOR = "9.27.1"


def is_first_process(workflow: Any) -> bool:
    """Whether this process plans the run, and is no job of it on another machine.

    Written for Snakemake 9.27.1. Buys that a job of a cluster plans nothing anew.
    """
    need("snakemake", _WRITTEN_FOR, workflow, "is_main_process")
    return bool(workflow.is_main_process)


def has_nodes(workflow: Any) -> bool:
    """Whether jobs go to the nodes of a cluster.

    Written for Snakemake 9.27.1, where `--jobs` sets the nodes and `--cores` does not. Buys that
    the nodes share chapters, which one machine executes in one process.
    """
    need("snakemake", _WRITTEN_FOR, workflow, "resource_settings")
    need("snakemake", _WRITTEN_FOR, workflow.resource_settings, "nodes")
    return workflow.resource_settings.nodes is not None


def builds(workflow: Any) -> bool:
    """Whether this run makes things: neither a dry run nor a picture or a list.

    Known once Snakemake asks for inputs. Written for Snakemake 9.27.1, which has an executor only
    then. Buys that looking at the graph waits for nobody and touches no file.
    """
    need("snakemake", _WRITTEN_FOR, workflow, "executor_plugin", "dryrun")
    return workflow.executor_plugin is not None and not workflow.dryrun


def prefer_in_order(workflow: Any, rules: Iterable[str]) -> None:
    """Of several rules that make a file, take the first of these: `ruleorder` for computed names.

    Written for Snakemake 9.27.1. Buys batches of chapters: 8 s when all are executed.
    """
    need("snakemake", _WRITTEN_FOR, workflow, "ruleorder")
    workflow.ruleorder(*rules)
