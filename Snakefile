"""Scenario file -> JSON artifact -> chapter -> page.

`snakemake all` makes whatever is not what it should be, `snakemake solve` the artifacts alone.
What is fresh needs no rule: mlsysim/building.py compares contents with results/artifacts.lock and
plans only the rest, so checkouts, time stamps and deleted caches never cause or hide work.
"""

import sys

sys.path.insert(0, workflow.basedir)  # the code beside this file, whatever is installed

from mlsysim import building

PLAN = building.plan(workflow.cores, main=workflow.is_main_process)
PYTHON = sys.executable


def artifacts(names):
    return [f"results/scenarios/{name}.json" for name in names]


rule all:
    input:
        "build/book/index.html",


rule solve:
    input:
        artifacts(glob_wildcards("scenarios/{name}.toml").name),


for number, group in enumerate(PLAN.groups, start=1):

    rule:
        name:
            f"solve_{number}"
        input:
            PLAN.path,
        output:
            update(artifacts(group)),
        params:
            names=group,
        shell:
            "{PYTHON:q} -m mlsysim solve {params.names:q}"


for chapter, waits_for in PLAN.chapters.items():

    rule:
        name:
            f"execute_{chapter}"
        input:
            PLAN.path,
            artifacts(waits_for),
        output:
            update(f"build/executed/{chapter}.ipynb"),
        params:
            chapter=chapter,
        shell:
            "{PYTHON:q} -m mlsysim execute {params.chapter:q}"


if PLAN.page:

    rule book:
        input:
            PLAN.path,
            [artifacts(group) for group in PLAN.groups],
            expand("build/executed/{chapter}.ipynb", chapter=PLAN.chapters),
        output:
            update("build/book/index.html"),
        shell:
            "{PYTHON:q} -m mlsysim book"
