"""Each hook into a library has its effect; what fails here was broken by an upgrade."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file
from jupyter_client.manager import AsyncKernelManager
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig
from pybtex.backends import plaintext
from pybtex.plugin import find_plugin
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from mlsysim.library_hooks import (
    changed,
    jupyter_kernels,
    myst_nb_pages,
    need,
    sphinx_pages,
)
from mlsysim.library_hooks.pint_units import ExactRegistry
from mlsysim.library_hooks.pybtex_plugins import find_plain_text_at_once
from tests.conftest import REPOSITORY


def python(code: str, *arguments: str) -> str:
    """What a process of its own prints, which may fork."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_need_names_the_library_both_versions_and_what_is_missing() -> None:
    need("pint", "0.25.3", ExactRegistry, "convert")
    with pytest.raises(RuntimeError, match=r"^ExactRegistry.gone, as in pint 0.1: .* pint 0\.25"):
        need("pint", "0.1", ExactRegistry, "convert", "gone")
    assert isinstance(changed("pint", "0.1", "what"), RuntimeError)


def test_exact_registry_rounds_a_conversion_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = tmp_path / "units.txt"
    units.write_text("nano- = 1e-9 = n-\nmeter = [length] = m\n", "utf-8")
    exact = ExactRegistry(str(units), non_int_type=Fraction)
    length = exact.Quantity(0.1, "nm")
    assert length.to("m").magnitude == 1e-10
    assert exact.Quantity(np.array([0.1]), "nm").to("m").magnitude.dtype == float
    monkeypatch.setattr("pint.UnitRegistry.convert", lambda *_: 1e-9)
    with pytest.raises(RuntimeError, match=r"as in pint 0\.25\.3: .* and pint 0"):
        length.to("m")


@pytest.mark.parametrize("module", jupyter_kernels.IMPORTED)
def test_import_what_kernels_import_finds_its_modules(module: str) -> None:
    assert importlib.util.find_spec(module)


def test_run_kernel_answers_as_its_connection_file_says() -> None:
    code = "import sys; from mlsysim.library_hooks import jupyter_kernels as j; "
    code += "j.run_kernel(sys.argv[1])"
    with tempfile.TemporaryDirectory() as folder:  # the path of a socket must be short
        file = Path(folder) / "kernel.json"
        write_connection_file(str(file), transport="ipc", ip=str(Path(folder) / "s"), key=b"key")
        kernel = subprocess.Popen([sys.executable, "-c", code, str(file)], cwd=REPOSITORY)
        client = BlockingKernelClient(connection_file=str(file))
        try:
            client.load_connection_file()
            client.start_channels()
            client.wait_for_ready(timeout=60)
            told = client.execute("1 + 1", reply=True, timeout=60)
            assert told["content"]["status"] == "ok"
        finally:
            client.stop_channels()
            kernel.kill()
            kernel.wait()


def test_provisioner_tells_whether_a_kernel_that_was_not_started_by_its_manager_lives() -> None:
    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    process.start()
    manager = AsyncKernelManager()
    manager.provisioner = jupyter_kernels.provisioner(process)
    try:
        assert asyncio.run(manager.is_alive())
    finally:
        process.kill()
        process.join()
    assert not asyncio.run(manager.is_alive())


def sphinx(source: Path, out: Path, builder: str, *extensions: str) -> Sphinx:
    return Sphinx(
        source,
        None,
        out,
        out / "doctrees",
        builder,
        confoverrides={"extensions": extensions},
        status=None,
        warning=io.StringIO(),
        warningiserror=True,
    )


def test_add_pages_from_elsewhere_lays_out_a_page_of_another_folder(tmp_path: Path) -> None:
    source, page = tmp_path / "source", tmp_path / "elsewhere.rst"
    source.mkdir()
    (source / "index.rst").write_text("Book\n====\n\n.. toctree::\n\n   made/page\n", "utf-8")
    page.write_text("Page\n====\n\nFrom elsewhere.\n", "utf-8")
    with docutils_namespace():
        app = sphinx(source, tmp_path / "out", "text")
        sphinx_pages.add_pages_from_elsewhere(app, partial(dict, {"made/page": page}))
        app.build()
    assert "From elsewhere." in (tmp_path / "out/made/page.txt").read_text("utf-8")
    assert app.env.doc2path("made/page") == page


def search_of(source: Path, out: Path, collect: Callable[[Sphinx], list[object]]) -> bytes:
    with docutils_namespace():
        app = sphinx(source, out, "html")
        app.connect("html-collect-pages", collect)
        app.build()
    return (out / "searchindex.js").read_bytes()


def test_tidy_search_gives_a_book_that_was_built_again_the_search_of_a_first_build(
    tmp_path: Path,
) -> None:
    def tidy(app: Sphinx) -> list[object]:
        sphinx_pages.tidy_search(getattr(app.builder, "indexer", None))
        return []

    index, other = tmp_path / "index.rst", tmp_path / "other.rst"
    found = {}
    for name, collect in (("tidy", tidy), ("as it is", lambda _: [])):
        index.write_text("Book\n====\n\nZebra.\n\n.. toctree::\n\n   other\n", "utf-8")
        other.write_text("Other\n=====\n\n.. py:function:: f()\n", "utf-8")
        search_of(tmp_path, tmp_path / name, collect)
        index.write_text(index.read_text("utf-8").replace("Zebra", "Horse"), "utf-8")
        again = search_of(tmp_path, tmp_path / name, collect)
        found[name] = again == search_of(tmp_path, tmp_path / f"{name} anew", collect)
    assert found == {"tidy": True, "as it is": False}


def test_raised_in_fork_tells_kind_and_message() -> None:
    code = """
from mlsysim.errors import InputError
from mlsysim.library_hooks.sphinx_pages import raised_in_fork
from sphinx.errors import SphinxParallelError
from sphinx.util.parallel import ParallelTasks

def work(argument):
    raise InputError("chapters/x.md:3: no: really")

tasks = ParallelTasks(2)
tasks.add_task(work, 1)
try:
    tasks.join()
except SphinxParallelError as error:
    print(raised_in_fork(error))
"""
    assert python(code) == "('mlsysim.errors', 'InputError', 'chapters/x.md:3: no: really')\n"


@pytest.mark.parametrize("blank", [0, 1, 3])
def test_mend_source_map_counts_the_line_of_each_cell(blank: int) -> None:
    cell = "```{code-cell}\n1\n```\n"
    lines = f"---\nkernelspec: {{name: python3}}\n---\nA\n\n{cell}{blank * chr(10)}B\n".split("\n")
    notebook = read_myst_markdown_notebook(
        "\n".join(lines), config=MdParserConfig(), add_source_map=True
    )
    myst_nb_pages.mend_source_map(notebook, lines)
    begins = zip(notebook.cells, notebook.metadata["source_map"], strict=True)
    texts = {cell.source.strip(): line for cell, line in begins if cell.cell_type == "markdown"}
    # What a warning names is a line of the cell and one more than this.
    assert texts == {"A": lines.index("A") - 1, "B": lines.index("B") - 1}


def test_write_style_sheet_does_so_before_the_pages(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("# Book\n", "utf-8")
    with docutils_namespace():
        app = sphinx(tmp_path, tmp_path / "out", "html", "myst_nb")
        static = tmp_path / "out/_static"
        static.mkdir(exist_ok=True)
        assert not [*static.glob("mystnb.*.css")]
        myst_nb_pages.write_style_sheet(app)
        assert [*static.glob("mystnb.*.css")]


def test_first_in_each_fork_runs_in_forks_of_the_block_alone() -> None:
    code = """
import multiprocessing
from mlsysim.library_hooks.python_processes import first_in_each_fork

def fork(name):
    process = multiprocessing.get_context("fork").Process(
        target=print, args=(name,), kwargs={"flush": True}
    )
    process.start()
    process.join()

with first_in_each_fork(lambda: print("first", flush=True)):
    fork("inside")
fork("outside")
"""
    assert python(code).split() == ["first", "inside", "outside"]


def test_without_collector_looks_for_no_garbage_and_leaves_what_was_made() -> None:
    code = """
import gc
from mlsysim.library_hooks.python_processes import without_collector

looked = []
gc.callbacks.append(lambda phase, _: looked.append(phase))
with without_collector():
    made = [[] for _ in range(100_000)]
print(len(looked), gc.isenabled(), gc.get_freeze_count() > 100_000)
"""
    assert python(code) == "0 True True\n"


def test_find_plain_text_at_once_looks_among_no_installed_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find_plain_text_at_once()
    monkeypatch.setattr("pybtex.plugin.entry_points", None)
    assert find_plugin("pybtex.backends", "plaintext") is plaintext.Backend


SNAKEFILE = """
import sys
sys.path.insert(0, "{repository}")
from pathlib import Path
from mlsysim.library_hooks import snakemake_runs as hooks

def told(wildcards):
    Path("told").write_text(f"first {{hooks.is_first_process(workflow)}} "
        f"nodes {{hooks.has_nodes(workflow)}} builds {{hooks.builds(workflow)}}")
    return []

rule one:
    output: "made"
    input: told
    shell: "echo one > {{output}}"

rule two:
    output: "made"
    input: told
    shell: "echo two > {{output}}"

hooks.prefer_in_order(workflow, ["two", "one"])
"""


@pytest.fixture(scope="module")
def snakemake(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the hooks tell a dry run and a build, and which of two rules made a file."""
    folder, found = tmp_path_factory.mktemp("snakemake"), {}
    (folder / "Snakefile").write_text(SNAKEFILE.format(repository=REPOSITORY), "utf-8")
    for name, options in (("dry run", ["-n"]), ("build", [])):
        subprocess.run(
            [sys.executable, "-m", "snakemake", "made", "--cores", "1", *options],
            cwd=folder,
            check=True,
            capture_output=True,
        )
        found[name] = (folder / "told").read_text("utf-8")
    return found | {"made": (folder / "made").read_text("utf-8")}


def test_is_first_process_of_a_run_that_plans(snakemake: dict[str, str]) -> None:
    assert "first True" in snakemake["build"]


def test_has_nodes_not_on_one_machine(snakemake: dict[str, str]) -> None:
    assert "nodes False" in snakemake["build"]


def test_builds_tells_a_build_from_a_dry_run(snakemake: dict[str, str]) -> None:
    assert "builds True" in snakemake["build"]
    assert "builds False" in snakemake["dry run"]


def test_prefer_in_order_takes_the_first_rule(snakemake: dict[str, str]) -> None:
    assert snakemake["made"] == "two\n"
