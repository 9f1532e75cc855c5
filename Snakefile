"""Scenario file -> JSON artifact -> chapter -> page.

`snakemake all` makes whatever is not what it should be, `snakemake solve` the artifacts alone.
A rule whose output is fresh has no input, so nothing calls for it. mlsysim/building/plan.py compares
contents with results/artifacts.lock, and gives the rest the plan as input; checkouts, time stamps
and deleted caches never cause or hide work.
"""

import os
import sys

sys.path.insert(0, workflow.basedir)  # the code beside this file, whatever is installed

from mlsysim.runtime import loaded

loaded.watch()

from mlsysim.building import plan
from mlsysim.runtime import turns

os.environ[turns.BUILD] = "1"  # jobs of this build do not wait for it
PLAN = plan.plan(workflow.cores, main=workflow.is_main_process)
PYTHON = sys.executable


def artifacts(names):
    return [f"results/scenarios/{name}.json" for name in names]


rule all:
    input:
        "build/book/index.html",


rule solve:
    input:
        artifacts(PLAN.scenarios),


for number, group in enumerate([PLAN.fresh, *PLAN.groups]):

    rule:
        name:
            f"solve_{number}"
        input:
            PLAN.path if number else [],
            artifacts(PLAN.first) if number and group != PLAN.first else [],
        output:
            update(artifacts(group)),
        params:
            compare="--compare" if number and group == PLAN.first else [],
            names=group,
        shell:
            "{PYTHON:q} -m mlsysim solve {params.compare} {params.names:q}"


for number, (chapters, waits_for) in enumerate([(PLAN.fresh_chapters, []), *PLAN.executions]):

    rule:
        name:
            f"execute_{number}"
        input:
            PLAN.path if number else [],
            artifacts(waits_for),
        output:
            update(expand("build/executed/{chapter}.ipynb", chapter=chapters)),
        threads: workflow.cores
        params:
            chapters=chapters,
        shell:
            "{PYTHON:q} -m mlsysim execute --jobs {threads} {params.chapters:q}"


rule book:
    input:
        PLAN.path if PLAN.page else [],
        [artifacts(group) for group in PLAN.groups],
        expand("build/executed/{chapter}.ipynb", chapter=PLAN.stale_chapters),
    output:
        update("build/book/index.html"),
    threads: workflow.cores
    shell:
        "{PYTHON:q} -m mlsysim book --jobs {threads}"
