"""What certifies: lines that stay short, that name what changed, and that say their schema."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from mlsysim import bounds, paths
from mlsysim.artifacts import lock as locks
from mlsysim.artifacts.ingredients import Ingredients, short
from mlsysim.artifacts.lock import Certificate, Lock, certify, faults, read_lock
from mlsysim.artifacts.lock_lines import LONGEST
from mlsysim.artifacts.reading import read
from mlsysim.artifacts.staleness import judge, stale
from mlsysim.book.pages.page_records import read_pages
from mlsysim.book.pages.page_sources import Page, write_records
from mlsysim.book.products.product_files import figure_files, table_files
from mlsysim.building.certificates import of_chapter, product_reasons
from mlsysim.building.keys import chapter_key, versioned
from mlsysim.building.solving import solve
from mlsysim.canonical import digest
from mlsysim.declarations.documents import names
from mlsysim.errors import InputError, MlsysimError
from mlsysim.runtime import turns
from tests.conftest import SCENARIOS, Run

STEP = "DenseLLMPretrainingStep"
REPLICA = "DenseLLMReplica"
# What a lock of the first schema held.
BEFORE = (
    "code 0cfc7440211dc4015bc747c5 schema=1 pint=3ecc03c5babf mlsysim=f71cf343d785\n"
    "scenario DenseLLMReplica inputs=160c79c9e2d1102824bc72a0 code=0cfc7440211dc4015bc747c5 "
    "artifact=84cb517b906c09e9d2cd2a46\n"
)


def parts(count: int, **others: str) -> Ingredients:
    """Ingredients of so many modules."""
    modules = {f"mlsysim.module_{number:03}": digest(str(number)) for number in range(count)}
    return Ingredients(tuple(sorted({"inputs": digest("inputs"), **modules, **others}.items())))


@pytest.mark.parametrize("count", [1, 40, 70, 150])
@pytest.mark.parametrize("length", [1, 25, 80, bounds.NAME])
def test_a_line_is_short_and_names_the_module_whatever_the_name_and_the_modules(
    count: int, length: int
) -> None:
    lock, name = Lock(), "N" * length
    lock.put(Certificate("scenario", name, parts(count), digest("made")))
    assert max(map(len, lock.text().splitlines())) <= LONGEST
    (line,) = lock.lines("scenario", name)
    other = parts(count, **{f"mlsysim.module_{count - 1:03}": digest("edited")})
    assert line.changed(parts(count)) == []
    assert line.changed(other) == [f"mlsysim.module_{count - 1:03}"]
    more = parts(count, **{"mlsysim.added": digest("added")})
    assert "mlsysim.added" in line.changed(more)


def test_lines_of_a_chapter_and_its_products_are_short_whatever_they_are_called() -> None:
    lock, chapter = Lock(), "0" * bounds.NAME
    name = chapter + "/" + "n" * (bounds.PRODUCT - bounds.NAME - 1)
    made = {
        f"tables/{name}": dict.fromkeys(table_files("01_x/x"), digest("table")),
        f"figures/{name}": dict.fromkeys(figure_files("01_x/x"), digest("figure")),
    }
    assert lock_text_of(lock, Certificate("chapter", chapter, parts(70), digest(""), made)) == 4
    for path in ("chapters/data.csv", "chapters/" + "data" * 100):
        uses = versioned(chapter, {"files": {path: ""}, "folders": {}})
        assert bool(uses["files"]) == (len(path) < 50)


def lock_text_of(lock: Lock, certificate: Certificate) -> int:
    """How many lines it has then, none too long."""
    lock.put(certificate)
    lines = lock.text().splitlines()
    assert max(map(len, lines)) <= LONGEST
    return len(lines)


def test_lines_that_a_merge_leaves_beside_those_that_changed_are_settled(solved: Path) -> None:
    for path in ("chapters/01_x.md", "results/tables/01_x/one.csv"):
        (solved / path).parent.mkdir(parents=True, exist_ok=True)
        (solved / path).write_text("# One\n", "utf-8")
    certify([of_chapter("01_x", chapter_key("01_x"), {})])
    lock = read_lock()
    right = lock.text()
    lock.products["tables/01_x/one"].add((("csv", short(digest("before"))),))
    lock.products["tables/02_gone/one"] = {(("csv", short(digest("gone"))),)}
    lock.made["scenario", STEP] |= lock.made["scenario", REPLICA]
    paths.lock().write_text(lock.text(), "utf-8")
    assert faults() == [f"merged from two branches, with the lines of both for 01_x, {STEP}"]
    assert stale() == []
    assert product_reasons("01_x", read_lock()) == []
    solve([])
    assert paths.lock().read_text("utf-8") == right
    assert faults() == []


def test_what_jobs_of_a_cluster_certify_in_files_of_their_own_one_brings_into_the_lock(
    solved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = {path: path.read_bytes() for path in sorted((solved / "results").rglob("*.*"))}
    shutil.rmtree(solved / "results")
    monkeypatch.setenv(turns.BUILD, turns.ELSEWHERE)
    monkeypatch.setattr("fcntl.flock", None)
    for name in SCENARIOS:
        assert stale() == [each for each in SCENARIOS if each >= name]
        solve([name])
    assert not paths.lock().exists()
    assert faults() == ["lacks what jobs of a cluster certified; run: snakemake all"]
    assert stale() == [], "it is in force at once"
    with turns.job():
        solve([])
    assert {path: path.read_bytes() for path in sorted((solved / "results").rglob("*.*"))} == right
    assert faults() == []


@pytest.mark.usefixtures("solved")
def test_the_job_that_brings_certificates_together_tells_of_those_that_never_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(turns.BUILD, turns.ELSEWHERE)
    monkeypatch.setattr(locks, "_SECONDS", 0)
    paths.lock().unlink()
    with pytest.raises(MlsysimError, match="did not all come to this node within 0 s"):
        solve([])


# Schemas.


@pytest.mark.parametrize(("schema", "age"), [(1, "older"), (3, "newer")])
@pytest.mark.usefixtures("solved")
def test_a_lock_of_another_schema_is_told_as_that_and_made_anew(schema: int, age: str) -> None:
    right = paths.lock().read_text("utf-8")
    line = f"lock {schema}"
    newer = f"{line} {short(digest(line))[:2]}\n{right.partition(chr(10))[2]}"
    paths.lock().write_text(BEFORE if schema == 1 else newer, "utf-8")
    (told,) = faults()
    assert told.startswith(f"is of schema {schema}, made by {age} code than this, which has 2; ")
    assert told.endswith("run: snakemake all")
    assert stale() == names("Scenarios")
    solve(stale())
    assert paths.lock().read_text("utf-8") == right
    assert faults() == []


@pytest.mark.parametrize(("schema", "age"), [(0, "older"), (2, "newer")])
@pytest.mark.usefixtures("solved")
def test_an_artifact_of_another_schema_is_told_as_that(schema: int, age: str) -> None:
    path = paths.artifact(REPLICA)
    content = {**json.loads(path.read_text("utf-8")), "schema": schema}
    path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    told = f"of schema {schema}, made by {age} code than this, which has 1"
    with pytest.raises(InputError) as refused:
        read(REPLICA)
    assert str(refused.value).startswith(f"results/scenarios/{REPLICA}.json is {told}; ")
    assert str(refused.value).endswith("run: snakemake all")
    assert told in judge(REPLICA, read_lock()).reasons[0]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"01_x": []}', "of schema 1, made by older code than this, which has 2; run: "),
        ('{"schema": 3, "pages": 1}', "of schema 3, made by newer code than this, which has 2; "),
        ('{"schema": 2, "pages": 1}', "damaged; run: snakemake all"),
        ("{", "damaged; run: snakemake all"),
    ],
)
def test_quotes_and_claims_of_another_schema_are_told_as_that(
    content: str, told: str, root: Path
) -> None:
    for path in (paths.quotes(), paths.claims()):
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, "utf-8")
        with pytest.raises(InputError) as refused:
            read_pages(path)
        shown = path.relative_to(root).as_posix()
        assert str(refused.value).startswith(f"{shown} is {told}")


# Old names.


def test_the_old_name_of_a_scenario_is_told_its_new_one_wherever_it_stands(
    solved: Path, run: Run
) -> None:
    old, new = solved / f"scenarios/{REPLICA}A100.toml", solved / "scenarios/Renamed.toml"
    text = old.read_text("utf-8")
    old.unlink()
    new.write_text(text.replace("title =", f'formerly = "{REPLICA}A100"\ntitle =', 1), "utf-8")
    expected = "it was renamed; write 'Renamed'"
    for command in (("show", f"{REPLICA}A100.nodes"), ("solve", f"{REPLICA}A100")):
        assert expected in run(solved, *command).stderr
    done = run(solved, "solve", "--all")
    step = f"scenarios/{STEP}A100.toml refers to Scenarios.{REPLICA}A100: "
    assert f"{step}'{REPLICA}A100' is not in Scenarios; {expected}" in done.stderr
    assert f"removed results/scenarios/{REPLICA}A100.json" in done.stdout
    chapter = "---\nmlsysim:\n  scenarios:\n    old: {0}\n---\n\n# X\n\n{{quote}}`{1}.nodes`\n"
    for short_name, quoted in ((f"{REPLICA}A100", "old"), (STEP, f"{REPLICA}A100")):
        (solved / "chapters/01_x.md").write_text(chapter.format(short_name, quoted), "utf-8")
        with pytest.raises(MlsysimError, match=re.escape(expected)):
            write_records([Page("01_x")])


def test_the_old_name_of_an_output_is_told_its_new_one(
    solved: Path, package: Path, run: Run
) -> None:
    module = package / "engine/scenario_definitions/training.py"
    text = module.read_text("utf-8")
    line = '@output("GB")\n    def state_per_gpu('
    assert line in text
    module.write_text(
        text.replace(line, line.replace('"GB"', '"GB", formerly="state_each"')), "utf-8"
    )
    told = run(solved, "show", f"{STEP}.state_each", package=package)
    assert told.stderr == (
        f"mlsysim: {STEP} has no 'state_each'; it was renamed; write 'state_per_gpu'\n"
    )
