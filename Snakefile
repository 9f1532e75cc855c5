"""Scenario file -> JSON artifact -> chapter -> page.

`snakemake all` makes whatever is not what it should be, `snakemake artifacts` the artifacts alone,
`snakemake results/scenarios/NAME.json` one of them; so can every table and figure be asked for.

Content decides what is stale, never time: mlsysim/building/plan.py compares. Inputs of what is fresh
are `ancient`, so they show the graph and no time stamp counts; what is stale has one more input,
which is new. Outputs are `update`: what is there stays until a command replaces it whole.
"""

import sys

sys.path.insert(0, workflow.basedir)  # the code beside this file, whatever is installed

from mlsysim.runtime import loaded

loaded.watch()

from mlsysim.building.plan import Run
from mlsysim.library_hooks import snakemake_runs

RUN = Run(workflow, sys.argv[1:])
PLAN = RUN.plan


def artifacts(names):
    return expand("results/scenarios/{name}.json", name=names)


def made_from(outputs, sources, after=()):
    """The input of a rule: if its outputs are stale they wait for `after`, and there is news."""

    def of(wildcards):
        news = RUN.news(expand(outputs, **wildcards))
        return [*sources, *after, news] if news else ancient(sources)

    return of


rule all:
    input:
        "build/book/index.html",
        "results/artifacts.lock",


rule artifacts:
    input:
        "results/artifacts.lock",
        expand("results/scenarios/{name}.csv", name=PLAN.with_table),


rule solve:
    input:
        ancient("scenarios/{scenario}.toml"),
        made_from("results/scenarios/{scenario}.json", [], after=artifacts(PLAN.first)),
    output:
        update("results/scenarios/{scenario}.json"),
    message:
        "Solve {wildcards.scenario}"
    shell:
        "python -m mlsysim solve {wildcards.scenario}"


# Solving some scenarios leaves a table beside the artifact; one that is missing makes them stale.
rule table:
    input:
        ancient("results/scenarios/{scenario}.json"),
    output:
        update("results/scenarios/{scenario}.csv"),
    wildcard_constraints:
        scenario="|".join(PLAN.with_table) or "(?!)",


# Many stale scenarios share processes, each batch one; first come those whose outputs other values
# follow. Which batches there are depends on the book, what is in them on what is stale.
for name, scenarios, first, options in [
    ("solve_followed", PLAN.first, [], "--compare"),
    *((f"solve_batch_{n}", each, PLAN.first, "") for n, each in enumerate(PLAN.batches, 1)),
]:

    rule:
        name:
            name
        input:
            ancient(expand("scenarios/{name}.toml", name=scenarios)),
            made_from(artifacts(scenarios), [], after=artifacts(first)),
        output:
            update(artifacts(scenarios)),
        params:
            options=options,
            scenarios=scenarios,
        message:
            "Solve {params.scenarios}"
        shell:
            "python -m mlsysim solve {params.options} {params.scenarios}"


# A chapter with its tables and figures. Several that are stale share a process, which imports once
# what all of them import.
for name, chapters in [
    *((f"execute_{chapter}", [chapter]) for chapter in PLAN.chapters),
    *((f"execute_batch_{n}", each) for n, each in enumerate(PLAN.chapter_batches, 1)),
]:

    rule:
        name:
            name
        input:
            ancient(expand("chapters/{chapter}.md", chapter=chapters)),
            made_from(PLAN.made(chapters), artifacts(PLAN.read(chapters))),
        output:
            update(PLAN.made(chapters)),
        threads: max(len(chapters), 1)
        params:
            chapters=chapters,
        message:
            "Execute {params.chapters}"
        shell:
            "python -m mlsysim execute --jobs {threads} {params.chapters:q}"


# A batch that is stale goes before the rules of its chapters.
snakemake_runs.prefer_in_order(
    workflow, ["execute_batch_1", "execute_batch_2", *map("execute_{}".format, PLAN.chapters)]
)


# What no scenario asks for: the lines of the lock in their order, the schemas, nothing left over.
rule lock:
    input:
        made_from("results/artifacts.lock", artifacts(PLAN.scenarios)),
    output:
        update("results/artifacts.lock"),
    message:
        "Put lock and schemas in order"
    shell:
        "python -m mlsysim settle"


rule book:
    input:
        made_from(
            "build/book/index.html",
            artifacts(PLAN.scenarios) + PLAN.made(PLAN.chapters),
            after=["results/artifacts.lock"],
        ),
    output:
        update("build/book/index.html"),
        update("results/quotes.json"),
        update("results/claims.json"),
    threads: workflow.cores
    message:
        "Lay out the book"
    shell:
        "python -m mlsysim book --jobs {threads}"
