"""Inputs that are too large, too deep, or meant for a terminal: refused in a short line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mlsysim import bounds, files, naming, units
from mlsysim.building import plan
from mlsysim.cli.main import main
from mlsysim.declarations.documents import Known, document, names
from mlsysim.engine.scenarios import scenario
from mlsysim.errors import InputError, MlsysimError, UnitError, printable
from tests.conftest import REPOSITORY

STEP = 'base = "Scenarios.DenseLLMPretrainingStep"\ntitle = "A variant"\n'
COLORED = r'"red \u001b[31m, \u009b2J and \u202e;\nsecond: line"'


def field(name: str, value: str, source: str = '"assumption: a test"') -> str:
    return f"{STEP}\n[{name}]\nvalue = {value}\nsource = {source}\n"


def sweep(values: int, second: int = 1) -> str:
    """A sweep of the reference step over some rates and batch divisors."""
    rates = ", ".join(f'"{25 + number} Gb/s"' for number in range(values))
    counts = ", ".join(str(512 + number) for number in range(second))
    text = (REPOSITORY / "scenarios/NetworkRateSweep.toml").read_text("utf-8")
    text = re.sub(r'value = \["25.*', f"value = [{rates}]", text)
    text = text.replace('"overlap_comm"', '"batch_divisor"')
    return text.replace("value = [true, false]", f"value = [{counts}]")


LARGE: dict[str, tuple[str, str]] = {
    "tables in tables": (
        f"{STEP}\n[{'.'.join('a' * 900)}]\nvalue = 1\n",
        f"a key of more than {bounds.NESTING} tables",
    ),
    "a key of many dots": (f"{STEP}{'.'.join('a' * 20_000)} = 1\n", "a key of more than"),
    "a quoted key of many dots": (
        STEP + ".".join(['"a"'] * 20_000) + " = 1\n",
        "a key of more than",
    ),
    "many dots within braces": (
        f"{STEP}x = {{{'.'.join('a' * 20_000)} = 1}}\n",
        "a key of more than",
    ),
    "a table within a table of values": (
        f"{STEP}[precision.a.b]\nvalue = 1\n",
        "precision.a.b: unknown key",
    ),
    "lists in lists": (field("precision", "[" * 900 + "]" * 900), "nested too deeply"),
    "a long list": (
        field("batch_divisor", str(list(range(1_001)))),
        "a list of 1,001 values; expected at most 1,000",
    ),
    "combinations": (
        sweep(40, 26),
        "values and second_values make 1,040 combinations; expected at most 1,000",
    ),
    "a long title": (
        STEP.replace("A variant", "word " * 1_000),
        "title: 5,000 characters; expected at most 4,000",
    ),
    "a long source": (
        field("precision", '"bf16"', f'"assumption: {"word " * 1_000}"'),
        "precision.source: 5,012 characters; expected at most 4,000",
    ),
    "a long value": (field("precision", f'"{"x" * 5_000}"'), "precision.value: 5,000 characters"),
    "a long whole number": (field("batch_divisor", "9" * 4_000), "a number of 64 bits"),
    "a longer whole number": (field("batch_divisor", "9" * 5_000), "not usable TOML"),
    "a long name to follow": (STEP.replace("DenseLLMPretrainingStep", "x" * 300), "is not in"),
    "a long name of a table": (field("precision", f'"{"x" * 300}.csv"'), "there is no file"),
    "a table elsewhere": (field("precision", '"../chapters/a.csv"'), "there is no file"),
    "a title in color": (STEP.replace('"A variant"', COLORED) + "x = 1\n", "expected a table"),
    "a value in color": (field("precision", COLORED), "expected one of bf16"),
    "a source in color": (field("precision", '"bf16"', COLORED), "references.bib"),
    "a key in color": (STEP + COLORED + " = 1\n", "unknown key"),
    "a base in color": (STEP.replace('"Scenarios.DenseLLMPretrainingStep"', COLORED), "base = "),
}


@pytest.mark.parametrize("case", LARGE)
def test_what_is_too_large_or_meant_for_a_terminal_is_refused_in_a_short_line(
    case: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, fragment = LARGE[case]
    (root / "scenarios/Hostile.toml").write_text(text, "utf-8")
    assert main(["solve", "Hostile"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("mlsysim: Hostile: scenarios/Hostile.toml")
    assert fragment in told
    assert told.count("\n") == 1
    assert len(told) < 800
    assert printable(told[:-1]) == told[:-1]


def test_lists_and_sweeps_up_to_the_bound_are_taken(root: Path) -> None:
    (root / "scenarios/Wide.toml").write_text(sweep(40, 25).replace("512,", "511,"), "utf-8")
    assert len(document("Scenarios.Wide").fields["values"]["value"]) == 40
    table = field("precision", '"bf16"').replace("value", "# 1.2.3.4.5.6.7.8.9.10.11.12\nvalue")
    (root / "scenarios/Commented.toml").write_text(table, "utf-8")
    assert scenario(document("Scenarios.Commented")).precision == "bf16"


def test_a_chain_of_bases_has_a_bound_whichever_end_is_read_first(root: Path) -> None:
    for number in range(40):
        base = f"C{number - 1}" if number else "DenseLLMReplica"
        text = f'base = "Scenarios.{base}"\ntitle = "Link {number}"\n'
        (root / f"scenarios/C{number}.toml").write_text(text, "utf-8")
    chain = [name for name in names("Scenarios") if name.startswith("C")]
    of_base = document("Scenarios.DenseLLMReplica").depth
    refused = {}
    for order in (chain, chain[::-1]):
        known = Known()
        for name in order:
            told = ""
            try:
                depth = document(f"Scenarios.{name}", known).depth
            except InputError as error:
                told, depth = str(error), 0
            assert depth in (0, of_base + 1 + int(name[1:]))
            assert refused.setdefault(name, told) == told
    taken = bounds.CHAIN - of_base
    assert [name for name in refused if not refused[name]] == [
        name for name in chain if int(name[1:]) < taken
    ]
    assert refused["C39"] == (
        f"scenarios/C39.toml: more than {bounds.CHAIN} files follow from one another by base or "
        "reference, this one first"
    )


def test_each_file_of_a_circle_is_parsed_once_and_the_circle_names_a_file(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        text = f'base = "Scenarios.C{(number + 1) % 300}"\ntitle = "Link"\n'
        (root / f"scenarios/C{number}.toml").write_text(text, "utf-8")
    for name, other in (("One", "Other"), ("Other", "One")):
        text = f'base = "Scenarios.{other}"\ntitle = "One of two"\n'
        (root / f"scenarios/{name}.toml").write_text(text, "utf-8")
    parsed: list[Path] = []
    read = files.toml
    monkeypatch.setattr(files, "toml", lambda path: (parsed.append(path), read(path))[1])
    assert main(["list"]) == 0
    assert len(parsed) == len(set(parsed))
    with pytest.raises(InputError) as refused:
        document("Scenarios.One")
    assert str(refused.value) == (
        "scenarios/Other.toml: these refer to each other in a circle: "
        "Scenarios.One -> Scenarios.Other -> Scenarios.One"
    )


def test_a_kind_that_is_no_class_is_told_with_its_file(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "scenarios/Odd.toml").write_text('kind = "Nothing"\ntitle = "Odd"\n', "utf-8")
    assert main(["status"]) == 1
    assert (
        "cannot be solved: scenarios/Odd.toml: kind 'Nothing' is no scenario class"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    "text",
    [
        "1" + " " * 300_000 + "GB x",
        "1 GB" + " " * 300_000 + "x",
        "9" * 300_000 + " 5",
        "1 " * 300_000,
    ],
)
def test_the_work_of_reading_a_quantity_is_that_of_its_length(text: str) -> None:
    # A pattern that backtracks takes hours for texts of this length.
    for read in (units.quantity, units.number):
        with pytest.raises(UnitError) as refused:
            read(text)
        assert len(str(refused.value)) < 600


@pytest.mark.parametrize(
    "text", ["  400 Gb/s ", "400Gb/s", "4e2\tGb/s", "+400. Gb/s", "400 Gb/s\n"]
)
def test_blanks_around_a_quantity_and_its_unit_mean_nothing(text: str) -> None:
    assert units.quantity(text) == units.quantity("400 Gb/s")


NAMED = {
    "hardware": "Hardware means something else here",
    "scenarios": "Scenarios means something else here",
    "TODO": "TODO means something else here",
    "lambda": "a word of Python",
    "None": "a word of Python",
    "two words": "expected letters, digits and _",
    "x" * 101: "longer than 100 characters",
    "denseLLMReplica": "differs from DenseLLMReplica.toml in case alone",
}


@pytest.mark.parametrize("name", NAMED)
def test_a_name_that_cannot_be_used_is_refused_when_new_and_when_put_there_by_hand(
    name: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = root / f"scenarios/{name}.toml"
    assert main(["new", "scenario", name]) == 1
    assert NAMED[name] in capsys.readouterr().err
    assert not path.exists()
    path.write_text(field("precision", '"bf16"'), "utf-8")
    place = f"scenarios/{name}.toml"
    assert NAMED[name] in naming.misnamed()[place]
    assert name not in names("Scenarios")
    for command in (["solve", name], ["show", name]):
        assert main(command) == 1
        told = capsys.readouterr().err
        assert told.startswith(f"mlsysim: {place}: ")
        assert NAMED[name] in told
    assert main(["status"]) == 1
    assert f"stale: {place}\n" in capsys.readouterr().out
    first = next(iter(naming.misnamed().values()))
    with pytest.raises(MlsysimError, match=re.escape(first)):
        plan.plan()


def test_files_that_differ_in_case_alone_keep_their_artifacts(solved: Path) -> None:
    twin = solved / "scenarios/denseLLMReplica.toml"
    twin.write_text((solved / "scenarios/DenseLLMReplica.toml").read_text("utf-8"), "utf-8")
    assert main(["solve", "DenseLLMPretrainingStep"]) == 0
    assert (solved / "results/scenarios/DenseLLMReplica.json").is_file()


def test_a_terminal_obeys_nothing_of_what_is_listed_and_shown(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = field("precision", '"bf16"', '"assumption: ' + COLORED[1:])
    text = text.replace('"A variant"', COLORED)
    (root / "scenarios/Colored.toml").write_text(text, "utf-8")
    bell = root / "scenarios/a\n\x1b[31m.toml"
    bell.write_text(text, "utf-8")
    for command in (
        ["list"],
        ["list", "--json"],
        ["solve", "Colored"],
        ["show", "Colored"],
        ["show", "Colored.precision"],
        ["show", "Colored", "--json"],
        ["status"],
        ["status", "--json"],
        ["verify"],
    ):
        main(command)
        printed = capsys.readouterr()
        for line in (printed.out + printed.err).split("\n"):
            assert printable(line) == line, command
    main(["list"])
    assert r"red \u001b[31m, \u009b2J and \u202e;\u000asecond: line" in capsys.readouterr().out
    main(["list", "--json"])
    [found] = [e for e in json.loads(capsys.readouterr().out) if e["name"] == "Colored"]
    assert found["title"] == json.loads(COLORED)


def test_every_command_prints_through_what_escapes() -> None:
    source = (REPOSITORY / "mlsysim/cli/main.py").read_text("utf-8")
    calls = re.findall(r"(?<![_\w])print\((.*)", source)
    assert len(calls) == 3
    assert all("for_terminal" in c or "printable" in c or "as_text" in c for c in calls), calls
