"""The reference scenario: the seed's names, types and equations, and the numbers they give."""

from __future__ import annotations

import dataclasses
import inspect
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mlsysim import Scenarios
from mlsysim.declarations import documents
from mlsysim.declarations.docstrings import equation_of, summary_of
from mlsysim.declarations.fields import Declared
from mlsysim.declarations.outputs import outputs
from mlsysim.engine.scenario_types import (
    ReferenceTrainingStepScenario,
    SelfContainedReplicaScenario,
)
from mlsysim.registry.types import Fleet
from mlsysim.solvers import DistributedModel, DistributedResult
from mlsysim.units import Quantity, quantity, to_si, unit
from tests.conftest import REPOSITORY, vary

# The declared fields of the specification, with the types it gives them.
DECLARED = {
    "replica": "SelfContainedReplicaScenario",
    "fleet": "Fleet",
    "batch_tokens": "float",
    "batch_divisor": "int",
    "sequences_per_microbatch": "int",
    "precision": "str",
    "local_efficiency": "float",
    "overlap_comm": "bool",
}
# The attributes it computes, with what they are in Python.
COMPUTED: dict[str, type] = {
    "tensor_parallel": int,
    "pipeline_depth": int,
    "data_parallel": int,
    "context_length": int,
    "global_batch_sequences": int,
    "global_batch_tokens": int,
    "microbatches_per_replica": int,
    "state_per_gpu": Quantity,
    "result": DistributedResult,
    "step_time": Quantity,
}


@pytest.fixture
def case() -> ReferenceTrainingStepScenario:
    found = Scenarios.DenseLLMPretrainingStep
    assert isinstance(found, ReferenceTrainingStepScenario)
    return found


@pytest.fixture
def replica() -> SelfContainedReplicaScenario:
    found = Scenarios.DenseLLMReplica
    assert isinstance(found, SelfContainedReplicaScenario)
    return found


def first_of_each_kind() -> list[str]:
    """Names of scenarios, one for each class that has any."""
    found: dict[str, str] = {}
    for path in sorted((REPOSITORY / "scenarios").glob("*.toml")):
        kind = tomllib.loads(path.read_text(encoding="utf-8")).get("kind")
        if kind:  # what varies a base is of its kind
            found.setdefault(kind, path.stem)
    return [*found.values()]


def fields_of(thing: Declared) -> dict[str, Any]:
    return {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}


def test_the_reference_step_declares_the_fields_of_its_specification_and_no_others() -> None:
    fields = dataclasses.fields(ReferenceTrainingStepScenario)
    assert {field.name: field.type for field in fields} == DECLARED


def test_every_declared_field_is_required_and_described() -> None:
    for kind in (ReferenceTrainingStepScenario, SelfContainedReplicaScenario):
        for field in dataclasses.fields(kind):
            assert field.default is dataclasses.MISSING, field.name
            assert field.metadata["description"], field.name


def test_the_reference_step_computes_every_attribute_of_its_specification(
    case: ReferenceTrainingStepScenario,
) -> None:
    for name, kind in COMPUTED.items():
        assert type(getattr(case, name)) is kind, name
    assert to_si(case.step_time) > 0


def test_the_definitions_are_where_the_specification_puts_them() -> None:
    module = "mlsysim.engine.scenario_definitions.training"
    assert ReferenceTrainingStepScenario.__module__ == module
    assert SelfContainedReplicaScenario.__module__ == module
    assert DistributedModel.__module__.startswith("mlsysim.solvers")


def test_the_reference_step_comes_out_as_published(case: ReferenceTrainingStepScenario) -> None:
    assert (case.tensor_parallel, case.pipeline_depth, case.data_parallel) == (8, 8, 16)
    assert case.context_length == 2048
    assert case.global_batch_sequences == 1536
    assert case.global_batch_tokens == 3_145_728
    assert case.microbatches_per_replica == 96
    assert case.state_per_gpu == quantity("43.75 GB")
    assert case.replica.replica_gpus == 64
    assert case.fleet.total_accelerators == 1024
    assert case.feasible


def test_each_equation_of_the_specification_holds_on_inputs_taken_from_the_files(
    case: ReferenceTrainingStepScenario,
) -> None:
    def given(reference: str, field: str) -> Any:
        return documents.document(reference).fields[field]["value"]

    step = "Scenarios.DenseLLMPretrainingStep"
    devices = given("Fleets.DGX_H100_1024", "node_count") * given(
        "Hardware.DGX_H100", "accelerators"
    )
    tensor, pipeline = given("Hardware.DGX_H100", "accelerators"), 8
    context = given("Models.GPT3_175B", "context_length")
    divisor = given(step, "batch_divisor")
    data = devices // (tensor * pipeline)
    sequences = int(given(step, "batch_tokens") / context) // divisor * divisor
    parameters = float(given("Models.GPT3_175B", "parameters").removesuffix(" param"))
    per_parameter = float(given("Scenarios.DenseLLMReplica", "bytes_per_param").removesuffix(" B"))

    assert case.tensor_parallel == tensor
    assert case.pipeline_depth == pipeline
    assert case.data_parallel == data
    assert case.context_length == context
    assert case.global_batch_sequences == sequences
    assert case.global_batch_tokens == sequences * context
    assert case.microbatches_per_replica == sequences // (
        data * given(step, "sequences_per_microbatch")
    )
    assert to_si(case.state_per_gpu) == parameters * per_parameter / (tensor * pipeline)
    assert case.step_time == case.result.step_latency_total


def test_the_equation_for_state_holds_as_the_specification_spells_it(
    case: ReferenceTrainingStepScenario,
) -> None:
    replica = case.replica
    assert case.state_per_gpu == (
        replica.workload.parameters.magnitude * replica.bytes_per_param / replica.replica_gpus
    )


def test_the_result_is_what_the_solver_gives_for_the_declared_inputs(
    case: ReferenceTrainingStepScenario,
) -> None:
    for solver in (DistributedModel, DistributedModel()):
        solved = solver.solve(
            case.replica.workload,
            case.fleet,
            batch_size=1536,
            seq_len=2048,
            precision="bf16",
            efficiency=case.local_efficiency,
            bytes_per_param=quantity("16 B"),
            tp_size=8,
            pp_size=8,
            microbatch_count=96,
            sequence_parallel=True,
            fused_attention=True,
            overlap_comm=True,
            overlap_tp_comm=True,
        )
        assert solved.step_latency_total == case.result.step_latency_total
        assert solved.ledger == case.result.ledger


def test_the_depth_is_the_smallest_that_fits_and_divides_the_layers(
    replica: SelfContainedReplicaScenario,
) -> None:
    layers, capacity = replica.workload.layers, replica.node.accelerator.capacity_bytes
    powers = [2**i for i in range(8)]
    fit = [p for p in powers if layers % p == 0 and 175e9 * 16 / (8 * p) <= capacity]
    assert replica.pipeline_depth == fit[0] == 8
    assert capacity >= 175e9 * 16 / (8 * 6)  # six stages would fit too, and are no power of two


@pytest.mark.parametrize("name", first_of_each_kind())
def test_a_scenario_is_frozen_and_keyword_only(name: str) -> None:
    found = Scenarios[name]
    given = fields_of(found)
    for field in given:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(found, field, given[field])
    with pytest.raises(TypeError):
        type(found)(*given.values())
    assert type(found)(**given) == found


def test_what_a_scenario_refers_to_is_frozen_all_the_way_down(
    case: ReferenceTrainingStepScenario,
) -> None:
    parts: tuple[Any, ...] = (case.fleet, case.fleet.node, case.fleet.fabric, case.replica.workload)
    for part in parts:
        with pytest.raises(dataclasses.FrozenInstanceError):
            part.name = "another"
    rates: Any = case.fleet.node.accelerator.rates
    with pytest.raises(TypeError):
        rates["bf16"] = quantity("1 TFLOP/s")


def test_a_variant_made_in_python_is_checked_and_solved_like_a_named_one(
    case: ReferenceTrainingStepScenario,
) -> None:
    faster = vary(case, local_efficiency=0.8)
    assert to_si(faster.step_time) < to_si(case.step_time)
    assert faster.data_parallel == case.data_parallel


@pytest.mark.parametrize(
    "documented",
    [
        member
        for kind in (ReferenceTrainingStepScenario, SelfContainedReplicaScenario, DistributedResult)
        for member in outputs(kind)
    ],
    ids=lambda member: member.name,
)
def test_every_output_says_what_it_is_and_by_which_equation(documented: Any) -> None:
    assert len(summary_of(documented).split()) > 2
    assert equation_of(documented)
    assert unit(documented.unit) if documented.unit else True


@pytest.mark.parametrize("kind", [ReferenceTrainingStepScenario, SelfContainedReplicaScenario])
def test_a_scenario_class_states_equation_assumptions_exclusions_and_derivation(kind: type) -> None:
    text = inspect.getdoc(kind) or ""
    for title in ("Equation:", "Assumptions:", "Excludes:", "Derivation:", ">>> "):
        assert title in text


def test_the_example_of_the_specification_is_a_doctest_of_the_class() -> None:
    text = inspect.getdoc(ReferenceTrainingStepScenario) or ""
    assert ">>> round(float(case.tensor_parallel), 3)\n8.0" in text


def test_the_three_named_scenarios_of_the_reference_differ_as_they_say() -> None:
    step, old = Scenarios.DenseLLMPretrainingStep, Scenarios.DenseLLMPretrainingStepA100
    assert step.replica == Scenarios.DenseLLMReplica
    assert old.fleet.node.accelerator.name == "A100_SXM_80GB"
    assert (old.tensor_parallel, old.data_parallel) == (step.tensor_parallel, step.data_parallel)
    changed = {field for field, value in fields_of(old).items() if value != getattr(step, field)}
    assert changed == {"replica", "fleet", "local_efficiency"}
    assert to_si(old.step_time) > 2 * to_si(step.step_time)


def test_the_worked_example_of_another_machine_differs_in_that_machine_alone() -> None:
    # CONTRIBUTING.md, "How to use another machine": H200 computes and sends as H100 does.
    step, other = Scenarios.DenseLLMPretrainingStep, Scenarios.DenseLLMPretrainingStepH200
    assert other.fleet.node.accelerator.name == "H200_SXM"
    assert {f for f, value in fields_of(other).items() if value != getattr(step, f)} == {
        "replica",
        "fleet",
    }
    assert {
        f for f, value in fields_of(other.replica).items() if value != getattr(step.replica, f)
    } == {"node"}
    assert (step.pipeline_depth, other.pipeline_depth) == (8, 4)  # as the document says
    assert other.feasible
    assert to_si(other.step_time) < to_si(step.step_time)


def test_a_base_gives_every_field_that_is_not_overridden(root: Path) -> None:
    (root / "scenarios" / "Slower.toml").write_text(
        'base = "Scenarios.DenseLLMPretrainingStep"\ntitle = "Slower"\n'
        '[local_efficiency]\nvalue = 0.5\nsource = "assumption: half of the peak for a test"\n',
        "utf-8",
    )
    slower = Scenarios.Slower
    assert slower == vary(Scenarios.DenseLLMPretrainingStep, local_efficiency=0.5)
    assert slower.name == "Slower"


def test_a_fleet_too_large_for_whole_replicas_reports_what_stays_idle(
    case: ReferenceTrainingStepScenario,
) -> None:
    fleet: Fleet = vary(case.fleet, node_count=128 + 3)
    left_over = vary(case, fleet=fleet)
    assert left_over.data_parallel == 16
    assert left_over.result.idle_accelerators == 24


def test_a_step_that_does_not_fit_is_kept_and_said_to_with_the_margin(
    case: ReferenceTrainingStepScenario,
) -> None:
    replica = vary(case.replica, fused_attention=False, sequence_parallel=False)
    too_big = vary(case, replica=replica)
    assert not too_big.feasible
    margin = too_big.result.memory_margin.to(unit("GB")).magnitude
    assert margin < 0
    assert f"{-margin:.1f} GB more than" in too_big.feasibility
