"""`mlsysim check`: each finding with its place and what to write, and silence on honest text."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import jupytext
import pytest

from mlsysim import paths
from mlsysim.artifacts.default_formats import default_form
from mlsysim.artifacts.quotes import printed
from mlsysim.book.check.checking import check
from mlsysim.book.check.known_values import Known, KnownValues, values_of
from mlsysim.book.check.typed_numbers import typed_numbers
from mlsysim.book.pages.page_sources import Page
from mlsysim.book.source.findings import accepts_on_page
from mlsysim.building.solving import solve
from mlsysim.cli.main import main
from mlsysim.declarations.documents import names
from mlsysim.errors import InputError
from tests.books import HEAD
from tests.conftest import REPOSITORY, copy_project

FRONT = "---\nmlsysim:\n  scenarios:\n    step: DenseLLMPretrainingStep\n---\n\n"
FIRST = FRONT.count("\n") + 1  # the line on which the body begins


@pytest.fixture(scope="module")
def solved_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_project(tmp_path_factory.mktemp("check") / "root")
    before = os.environ.get("MLSYSIM_ROOT")
    os.environ["MLSYSIM_ROOT"] = str(root)
    try:
        assert not [done.error for done in solve(names("Scenarios")) if done.error]
    finally:
        os.environ.pop("MLSYSIM_ROOT")
        if before is not None:
            os.environ["MLSYSIM_ROOT"] = before
    return root


@pytest.fixture
def book(solved_once: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A solved root with an empty bibliography and no chapter yet."""
    monkeypatch.setenv("MLSYSIM_ROOT", str(solved_once))
    chapters = solved_once / "chapters"
    kept = {path: path.read_bytes() for path in solved_once.rglob("results/scenarios/*")}
    (chapters / "references.bib").write_text("", encoding="utf-8")
    yield solved_once
    for path in chapters.glob("*.*"):
        path.unlink()
    for path, content in kept.items():
        path.write_bytes(content)


def write(root: Path, body: str, name: str = "01_x", front: str = FRONT) -> None:
    (root / "chapters" / f"{name}.md").write_text(f"{front}{body}\n", encoding="utf-8")
    stems = sorted(path.stem for path in (root / "chapters").glob("0*.md"))
    (root / "chapters" / "index.md").write_text(
        "# Book\n\n```{toctree}\n" + "\n".join(stems) + "\n```\n", encoding="utf-8"
    )


def found(rule: str = "", *, history: bool = False) -> list[str]:
    listed, _ = check(history=history)
    return [str(each) for each in listed if not each.information and rule in ("", each.rule)]


# What the artifact of the test root holds: 43.75 GB, 3,145,728 tokens, 175 billion parameters,
# 2,048 tokens of context, 3.35 TB/s, 989.4 TFLOP/s, 0.696 of the peak.
@pytest.mark.parametrize(
    ("text", "typed", "key"),
    [
        ("The state is 43.75 GB large.", "43.75 GB", "step.state_per_gpu as .2f"),
        ("The state is 43.8 GB large.", "43.8 GB", "step.state_per_gpu as .1f"),
        ("The state is 40.75 GiB large.", "40.75 GiB", "step.state_per_gpu in GiB as .2f"),
        ("The state is 43,750 MB large.", "43,750 MB", "step.state_per_gpu in MB as ,.0f"),
        ("The 43.75-GB state", "43.75-GB", "step.state_per_gpu as .2f"),
        (
            "A batch of 3.15 million tokens",
            "3.15 million tokens",
            "step.global_batch_tokens in Mtok as .2f",
        ),
        ("A batch of 3,145,728", "3,145,728", "step.global_batch_tokens`"),
        ("A model of 175 billion parameters", "175 billion parameters", "parameters"),
        ("The state is **43.75** GB large.", "43.75", "step.state_per_gpu as .2f"),
        ("A peak of 989.4 TFLOPS", "989.4 TFLOPS", "rates.bf16 as .1f"),
        ("Memory at 3.35 TB/s", "3.35 TB/s", "memory_bandwidth as .2f"),
        ("The state is 43\u202f750 MB large.", "43\u202f750 MB", "in MB as ,.0f"),
        ("The state is $43\\,750$ MB large.", "43\\,750$ MB", "in MB as ,.0f"),
        ("The state is 4.375 × 10⁴ MB large.", "4.375 × 10⁴ MB", "step.state_per_gpu in MB"),
        ("The state is 43.75e9 B large.", "43.75e9 B", "step.state_per_gpu in B"),
        ("A model of 1.75e11 parameters", "1.75e11 parameters", "parameters"),
        ("Section 43.75 GB", "43.75 GB", "step.state_per_gpu as .2f"),
        ("H{sub}`43.75 GB`", "43.75 GB", "step.state_per_gpu as .2f"),
        ("Memory at 3.35 terabytes per second", "3.35 terabytes per second", "memory_bandwidth"),
        ("Memory at 3.35 TB a second", "3.35 TB a second", "memory_bandwidth as .2f"),
        ("It reaches 69.6% of the peak", "69.6%", "step.local_efficiency in % as .1f"),
        ("It reaches 69.6 percent", "69.6 percent", "step.local_efficiency in % as .1f"),
        ("A share of 0.696", "0.696", "step.local_efficiency as .3f"),
        ("On $43.75\\,\\mathrm{GB}$", "GB", "step.state_per_gpu as .2f"),
        ("| a |\n|---|\n| 43.75 GB |", "43.75 GB", "step.state_per_gpu as .2f"),
        (":::{table} State of 43.75 GB\n| a |\n|---|\n| b |\n:::", "43.75 GB", "state_per_gpu"),
        (":::{figure} x.svg\n:alt: Bar to 43.75 GB\n\nCaption\n:::", "43.75 GB", "state_per_gpu"),
        ("```{code-cell} ipython3\nbar(43.75)\n```", "43.75", 'step.value("state_per_gpu")'),
        (
            '```{code-cell} ipython3\nlabel("of 43.75 GB")\n```',
            "43.75 GB",
            'step.quote("state_per_gpu as .2f").text',
        ),
        ("{claim}`43.75 GB if step.state_per_gpu > 40 GB`", "43.75 GB", "step.state_per_gpu"),
    ],
)
def test_a_typed_number_is_found_with_its_line_and_the_quote_to_write(
    book: Path, text: str, typed: str, key: str
) -> None:
    write(book, f"First.\n\n{text}")
    told = found("typed")
    assert len(told) == 1
    place, message = told[0].split(": ", 1)
    lines = (FRONT + f"First.\n\n{text}").split("\n")
    assert typed.partition(" ")[0].rstrip("GB-") in lines[int(place.rpartition(":")[2]) - 1]
    assert message.startswith('"')
    assert typed in message.partition(" is typed")[0] + '"'
    assert key in message.partition("; write ")[2]


HONEST = """\
In 2020 and in 1974 as in arXiv:2104.04473, doi 10.1145/3458817.3476209, https://x.org/43.75.
GPT-3 175B, Llama 3.1 405B and H100 are names, as is Python 3.13; see Table 2.1 and Section 43.75.
Version 43.75 of page 3072, Eq. (43.75), vol. 3072, No. 2048;
[x](a/43.75 "y"), <https://a.org/43.75> and {cite}`k-43.75`.
The 1990s, 2048B, the 80s, 43.75B; runs of 43, 750 and 2048 MB.
Two copies of {quote}`step.state_per_gpu` in half a second, about 100 steps of 1,000.
(label-43.75)=
1. One
2048. Two

% accept: 43.75 GB was printed once
It was 43.75 GB.

<!-- 43.75 GB -->

:::{figure} ../43.75/x.svg
:width: 43.75 GB
:name: x-43.75
:::

$24\\,b\\,s\\,h^2$ and $x_{43.75}$

| Run | Size |
|:--|--:|
| Theirs {cite}`brown2020` | 43.75 GB |

A step took 12.34 s, and 57.1% of them were slow.

```{code-cell} ipython3
:tags: [hide-input, remove-output]

axes.set_xlim(0, 43.75)
ends = [0, 43.75]
axes.set(xticks=[43.75], ylim=ends, xlabel="a size")
axes.plot("01_x/43.75", color="#3145728", width=3.5, name="run-43.75")
```
"""


def test_honest_text_has_no_findings(book: Path) -> None:
    write(book, HONEST)
    assert found() == []


@pytest.fixture(scope="module")
def published() -> KnownValues:
    """The values that the project has published, all that any chapter could read."""
    artifacts = sorted((REPOSITORY / "results/scenarios").glob("*.json"))
    return KnownValues(
        value
        for path in artifacts
        for value in values_of(json.loads(path.read_text(encoding="utf-8")))
    )


def sentences(name: str) -> list[str]:
    """The lines of a file under tests/sentences, with what `\\n` and its like stand for."""
    marks = {r"\\": "\\", r"\n": "\n", r"\u00a0": "\u00a0", r"\u202f": "\u202f"}
    lines = (REPOSITORY / f"tests/sentences/{name}.txt").read_text(encoding="utf-8").splitlines()
    each = re.compile("|".join(map(re.escape, marks)))
    return [each.sub(lambda found: marks[found[0]], line) for line in lines]


def test_of_a_hundred_harmless_sentences_at_most_two_alarm(published: KnownValues) -> None:
    lines = sentences("harmless")
    told = [
        f"{line} ({number.text}: {values[0].path})"
        for line in lines
        for number in typed_numbers(line)
        if (values := published.match(number))
    ]
    assert len(lines) >= 100
    assert len(told) <= 2 * len(lines) // 100, "\n".join(told)


SHORT = {
    "step": "DenseLLMPretrainingStep",
    "old": "DenseLLMPretrainingStepA100",
    "run": "DenseLLMTrainingRun",
}


def test_nearly_all_numbers_of_the_book_that_are_typed_by_hand_are_found(
    published: KnownValues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLSYSIM_ROOT", str(REPOSITORY))

    def digits(spec: re.Match[str]) -> str:
        found = re.search(r"[\d.,]*\d%?", printed(spec[1], SHORT).text)
        return found[0] if found else ""

    lines = [re.sub(r"<((?:step|old|run)\.[^<>]*)>", digits, line) for line in sentences("guilty")]
    missed = [line for line in lines if not any(map(published.match, typed_numbers(line)))]
    recall = 1 - len(missed) / len(lines)
    assert len(lines) >= 100
    assert recall >= 0.97, f"recall {recall:.1%}, missed:\n" + "\n".join(map(repr, missed))


def test_numbers_behind_a_backtick_directive_have_their_own_lines(book: Path) -> None:
    body = (
        "```{include} ../results/tables/01_x/y.md\n```\n\n"
        "```{note}\n:class: a\n\nOf 43.75 GB.\n```\n"
        "\n> - Of 43.75 GB.\n\n| `a\n\nOf `a\nb` 43.75 GB.\n"
    )
    write(book, body)
    lines = [int(each.partition(": ")[0].rpartition(":")[2]) - FIRST for each in found("typed")]
    assert ["43.75" in body.split("\n")[line] for line in lines] == [True] * 3


def test_what_limits_an_axis_is_excused_and_what_is_written_at_it_is_not(book: Path) -> None:
    cell = (
        'axes.set(xlim=(0, 43.75), title="to 43.75 GB")\n'
        'axes.set_title("of 43.75 GB", fontsize=9)\n'
        'axes.legend(["43.75 GB"])\n'
        "axes.set_yticks([43.75])\n"
        "axes.axhline(43.75)\n"
    )
    write(book, f"```{{code-cell}} ipython3\n{cell}```")
    lines = [int(each.partition(": ")[0].rpartition(":")[2]) - FIRST for each in found("typed")]
    assert lines == [1, 2, 3, 5]


def test_a_scenario_file_that_types_a_value_of_its_own_is_found(book: Path) -> None:
    path = book / "scenarios/DenseLLMReplica.toml"
    text = path.read_text(encoding="utf-8")
    write(book, "Text.")
    try:
        path.write_text(
            "# A state of 43.75 GB.\n" + re.sub("title = .*", 'title = "Of 43.75 GB"', text),
            "utf-8",
        )
        first, second = found("typed")
        assert first.startswith('scenarios/DenseLLMReplica.toml:1: "43.75 GB" is typed, and is ')
        assert "write {quote}`state_per_gpu as .2f`" in first
        assert second.partition('"')[0] == "scenarios/DenseLLMReplica.toml:4: "
        path.write_text(
            "# {quote}`stat_per_gpu`\n# accept: a name\n"
            + re.sub("title = .*", '# accept: a name\ntitle = "Of 43.75 GB"', text),
            "utf-8",
        )
        (wrong,) = found()
        assert wrong.startswith("scenarios/DenseLLMReplica.toml:1: first comment: quote `stat_per")
    finally:
        path.write_text(text, encoding="utf-8")


def test_a_number_beside_a_unit_of_another_kind_is_none() -> None:
    text = "At 7.73 GHz, 43.75 liters, 54.6 V, 3.35 m, 25.4 °C and 12.50 €."
    assert typed_numbers(text) == []
    assert [each.unit for each in typed_numbers("7.73 s, 552 t CO₂e, 3.5 kW")] == [
        "s",
        "tCO2e",
        "kW",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "It costs $3 and a day costs $72.",
        "From $3/h to $5/h.",
        "In US$ or in A$ now.",
        "Text $3 and AU$ x.",
    ],
)
def test_a_price_that_would_be_a_formula_is_refused_with_what_to_write(
    book: Path, text: str
) -> None:
    write(book, f"First.\n\n{text}")
    (told,) = found("build")
    assert told.startswith(f"chapters/01_x.md:{FIRST + 2}: `$")
    assert r"write \$ for a dollar sign" in told
    write(book, "It costs \\$3 and \\$72, $d = 3$, $x$-fold, $t_{\\text{of a step}}$ and $72 more.")
    assert found() == []


def test_a_quote_among_the_words_of_a_formula_prints_there(book: Path) -> None:
    quote = "{quote}`step.state_per_gpu`"
    write(book, f"$x_{{\\text{{of {quote}, a}}}} + {quote}$")
    plain = Page("01_x").plain()
    assert plain.endswith("$x_{\\text{of \\(43.75\\,\\mathrm{GB}\\), a}} + 43.75\\,\\mathrm{GB}$\n")
    write(book, f"$\\text{{of {quote} GB}}$")
    assert "GB" in found("build")[0]  # the unit twice, as in any text


def test_numbers_are_compared_at_the_precision_that_was_typed() -> None:
    known = KnownValues(
        [
            Known("S", "time", 7.72064, "s"),
            Known("S", "share", 0.0646, ""),
            Known("S", "count", 3145728, "tok"),
            Known("S", "bias", -2.5, "%"),
            Known("S", "exact", 8.0, "GB"),
            Known("S", "energy", 1234.0, "kWh"),
            Known("S", "gas", 0.392, "kgCO2e/kWh"),
            *(Known("S", f"many.{number}", 100.0 + number, "s") for number in range(50)),
        ]
    )
    for text, keys in (
        ("7.72 s", ["time"]),
        ("7.7 s", []),  # two digits say little
        ("A time of 7.7 s", ["time"]),
        ("7.73 s", []),
        ("7,721 ms", ["time"]),
        ("7,720 ms", ["time"]),  # a zero at the end may be a digit or not
        ("7.720 s", []),
        ("8 s", []),  # one digit says nothing
        ("An exact size of 8 GB", ["exact"]),
        ("6.46%", ["share"]),
        ("A share of 6.5 %", ["share"]),
        ("0.0646", []),
        ("A share of 0.0646", ["share"]),
        ("3.15 million", ["count"]),
        ("A count of 3.1 million tokens", ["count"]),
        ("3.2 million tokens", []),
        ("3,145,728", []),  # three times a power of two
        ("A count of 3,145,728", ["count"]),
        ("2.50 percent", ["bias"]),
        ("1.23 MWh", ["energy"]),
        ("Of the gas 0.392", ["gas"]),
        ("137 s", ["many.37"]),
        ("137", []),  # near to one of many
        ("137.0", ["many.37"]),
    ):
        (number,) = typed_numbers(text)
        assert sorted(each.key for each in known.match(number)) == keys, text


def test_a_typed_number_is_exact_with_the_size_of_its_last_digit() -> None:
    (number,) = typed_numbers("Of 4.50\\times 10^{17} FLOP")
    assert (number.value, number.last, number.significant, number.unit) == (
        Fraction(45 * 10**16),
        Fraction(10**15),
        3,
        "FLOP",
    )


def test_a_finding_is_accepted_in_place_with_a_reason(book: Path) -> None:
    body = (
        "% accept: the paper's own number\nOf 43.75 GB,\nor 3,145,728.\n\nOf 43.75 GB.\n\n"
        "% accept: a table of the paper\n:::{table} T\n| a |\n|---|\n\n| 43.75 GB |\n:::\n\n"
        "```{code-cell} ipython3\n:tags: [hide-input, remove-output]\n"
        "# accept: limits of the axis\nx = 43.75\n\n"
        "y = 43.75  # accept: the same\nz = 43.75\n```\n"
    )
    write(book, body)
    lines = [int(each.partition(": ")[0].rpartition(":")[2]) - FIRST for each in found()]
    assert [body.split("\n")[line] for line in lines] == ["Of 43.75 GB.", "z = 43.75"]


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("% accept:\nOf 43.75 GB.", 0, "an accept without a reason"),
        ("% accept\nOf 43.75 GB.", 0, "an accept without a reason"),
        ("Text.\n\n% accept: was once wrong\nNo number.", 2, "accepts nothing (any longer): 'was"),
    ],
)
def test_an_accept_that_says_or_does_nothing_is_a_finding(
    book: Path, body: str, line: int, message: str
) -> None:
    write(book, body)
    told = found("accept")
    assert len(told) == 1
    assert told[0].startswith(f"chapters/01_x.md:{FIRST + line}: {message}")


def test_jupyter_keeps_what_accepts_byte_for_byte() -> None:
    body = "% accept: a\nOne.\n\n% accept: b\n:::{table} T\n| a |\n|---|\n:::\n\n"
    text = HEAD + body + "```{code-cell} ipython3\n# accept: c\nx = 1  # accept: d\n```\n"
    assert jupytext.writes(jupytext.reads(text, fmt="md:myst"), fmt="md:myst") == text


def test_an_accept_covers_the_block_below_it() -> None:
    text = "% accept: a\none\ntwo\n\n% accept: b\n```{note}\nx\n\ny\n```\nz\n"
    text += "```{code-cell}\nx = 1  # accept: c\n```\n# accept: a heading, which a reader sees\n"
    found = [(each.first, each.last) for each in accepts_on_page(text)]
    assert found == [(2, 3), (6, 10), (13, 13)]


def test_a_key_printed_in_two_ways_in_two_chapters_is_found(book: Path) -> None:
    write(book, "{quote}`step.state_per_gpu as .1f`, {quote}`step.state_per_gpu in GiB as .1f`.")
    two = "{quote}`step.state_per_gpu in GiB as .1f`.\n{quote}`step.state_per_gpu as .2f`."
    write(book, two, "02_y")
    told = found("rounding")
    assert len(told) == 1
    assert told[0].replace("\u00a0", " ") == (
        f"chapters/02_y.md:{FIRST + 1}: DenseLLMPretrainingStep.state_per_gpu is printed as "
        '"43.75 GB", and as "43.8 GB" in chapters/01_x.md; write '
        "{quote}`step.state_per_gpu as .1f`, or accept the difference"
    )
    write(book, f"% accept: its digits are the point\n{two}", "02_y")
    assert found() == []


CELL = """\
```{code-cell} ipython3
:tags: [remove-output]

from mlsysim.book import save_figure, save_table
save_table("01_x/shown", 1)
save_table("01_x/hidden", 1)
save_figure("01_x/drawn", 1, data=1)
```

```{include} ../results/tables/01_x/shown.md
```
"""


def test_what_is_saved_and_never_shown_is_found(book: Path) -> None:
    write(book, CELL)
    first, second = found("unshown")
    assert first.startswith(f"chapters/01_x.md:{FIRST + 5}: table 01_x/hidden is saved and never")
    assert second.endswith("show it by {figure} ../results/figures/01_x/drawn.svg")
    write(book, CELL.replace(":tags: [remove-output]\n\n", ""))
    assert found("unshown") == []


def test_a_reference_that_nothing_cites_and_a_chapter_out_of_the_contents_are_found(
    book: Path,
) -> None:
    write(book, "See {cite:t}`one2020` and {cite}`two2020, three2020`.")
    keys = ("one2020", "two2020", "three2020", "brown2020", "four2020")
    entries = [f"@misc{{{key},\n  note = {{Not read: a record}}\n}}\n\n" for key in keys]
    (book / "chapters" / "references.bib").write_text("".join(entries), encoding="utf-8")
    (told,) = found()  # a scenario has brown2020 as its source
    assert told.startswith("chapters/references.bib:17: four2020 is cited by no page, scenario or")
    (book / "chapters" / "index.md").write_text("# Book\n", encoding="utf-8")
    assert [each.partition(";")[0] for each in found("contents")] == [
        "chapters/01_x.md: in no table of contents"
    ]


def test_a_reference_that_does_not_say_what_was_read_is_found(book: Path) -> None:
    write(book, "See {cite}`one2020, two2020, three2020`.")
    (book / "chapters" / "references.bib").write_text(
        "@misc{one2020,\n  title = {Read: a novel}\n}\n"
        "@misc{two2020,\n  note         = {Read: the abstract},\n}\n"
        "@misc{three2020,\n  note = {Table 2 not read}\n}\n",
        "utf-8",
    )
    assert [each.partition(";")[0] for each in found("note")] == [
        f"chapters/references.bib:{line}: {key} does not say what was read"
        for line, key in ((1, "one2020"), (7, "three2020"))
    ]


def test_a_scenario_that_does_not_fit_is_told_once_a_page_with_its_reason(book: Path) -> None:
    path = paths.artifact("DenseLLMPretrainingStep")
    content = json.loads(path.read_text(encoding="utf-8"))
    content["feasibility"] = {"feasible": False, "reason": "9.0 GB more than 85.5 GB"}
    path.write_text(json.dumps(content), encoding="utf-8")
    write(
        book,
        "{quote}`step.step_time`, {quote}`step.state_per_gpu`, {claim}`a if step.step_time > 1 s`",
    )
    [told] = found("build")
    assert told.startswith(f"chapters/01_x.md:{FIRST}: quote `step.step_time`: ")
    assert "DenseLLMPretrainingStep is infeasible: 9.0 GB more than 85.5 GB. Only" in told


def test_nothing_is_called_unused_while_a_page_cannot_be_read(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (book / "chapters" / "references.bib").write_text(
        "@misc{unused,\n}\n\n% accept: kept for the next edition\n@misc{kept,\n}\n", "utf-8"
    )
    write(book, "It takes {quote}`step.step_time`.", "01_whole")
    write(book, "It takes {quote}`step.step_tim`, see {cite}`unused`.", "02_broken")
    listed, _ = check()
    rules = [each.rule for each in listed]
    assert rules == ["build", "unlooked"]  # no uncited, unread, unquoted; no accept called idle
    assert main(["check"]) == 1
    *told, last = capsys.readouterr().out.splitlines()
    assert len(told) == 1
    assert last == (
        "1 finding; what nothing uses or cites is not looked for while these cannot be read: "
        "chapters/02_broken.md"
    )
    write(book, "It takes {quote}`step.step_time`.", "02_broken")
    assert {each.rule for each in check()[0]} >= {"uncited", "unread", "unquoted"}


def test_what_the_build_refuses_is_told_with_its_line_too(book: Path) -> None:
    write(book, "Of {quote}`step.steptime`,\n{claim}`x if step.state_per_gpu > 50 GB`.")
    first, second = found()
    assert first.startswith(f"chapters/01_x.md:{FIRST}: quote `step.steptime`: ")
    assert second.startswith(f'chapters/01_x.md:{FIRST + 1}: the claim "x" is false')


def git(root: Path, *arguments: str) -> None:
    person = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *person, *arguments], cwd=root, check=True, capture_output=True)


def test_the_history_finds_what_was_published_once(book: Path, tmp_path: Path) -> None:
    write(book, "Of 41.25 GB.")
    assert check(history=True)[1].startswith("this is no git repository")
    path = paths.artifact("DenseLLMPretrainingStep")
    now = path.read_text(encoding="utf-8")
    git(book, "init", "-q")
    path.write_text(now.replace("43.75", "41.25"), encoding="utf-8")
    git(book, "add", "-A")
    git(book, "commit", "-qm", "then")
    path.write_text(now, encoding="utf-8")
    git(book, "commit", "-qam", "now")
    try:
        assert found() == []
        (told,) = found(history=True)
        assert told.startswith(f'chapters/01_x.md:{FIRST}: "41.25 GB" is typed, and was DenseLLMP')
        assert "41.25 GB in revision " in told
        assert "write {quote}`step.state_per_gpu as .2f`" in told
        write(book, "% accept: printed in the first edition\nOf 41.25 GB.")
        assert found() == found(history=True) == []  # without the history it may be needed still
        shallow = tmp_path / "shallow"
        git(tmp_path, "clone", "-q", "--depth", "1", f"file://{book}", str(shallow))
        os.environ["MLSYSIM_ROOT"] = str(shallow)
        assert "the clone is shallow" in check(history=True)[1]
    finally:
        os.environ["MLSYSIM_ROOT"] = str(book)
        subprocess.run(["rm", "-rf", str(book / ".git")], check=True)


def test_the_command_fails_with_findings_and_not_for_information(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(book, "Of {quote}`step.state_per_gpu`.")
    assert main(["check"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("0 findings; for information: 3 artifacts that no chapter reads, ")
    assert main(["check", "--verbose"]) == 0
    told = capsys.readouterr().out
    assert "results/scenarios/DenseLLMReplica.json: no chapter reads it\n" in told
    assert "DenseLLMPretrainingStep.json: nobody quotes step_time\n" in told
    assert "nobody quotes state_per_gpu" not in told
    write(book, "Of 43.75 GB.")
    assert main(["check", "--json"]) == 1
    listed = json.loads(capsys.readouterr().out)["findings"]
    (wrong,) = [each for each in listed if not each["information"]]
    assert (wrong["rule"], wrong["file"], wrong["line"]) == ("typed", "chapters/01_x.md", FIRST)


def test_a_quote_without_a_form_has_that_of_its_key(book: Path) -> None:
    short = {"step": "DenseLLMPretrainingStep"}
    formats = book / "chapters" / "formats.toml"
    assert printed("step.state_per_gpu", short).text == "43.75\u00a0GB"
    formats.write_text(
        '"*Step.state_per_gpu" = "in GiB as .1f"\n"*.state_per_gpu" = "as .1f"\n', encoding="utf-8"
    )
    value = printed("step.state_per_gpu", short)
    assert value.text == "40.7\u00a0GiB"
    assert value.printed_unit == "GiB"
    assert printed(value.spec).text == value.text
    assert printed("DenseLLMReplica.state_per_gpu").text == "43.8\u00a0GB"
    assert printed("step.state_per_gpu as .2f", short).text == "43.75\u00a0GB"
    assert printed("step.precision", short).text == "bf16"
    for text, message in (
        ('"*.x" = "GiB"', 'formats.toml: *.x: .* expected "in UNIT as FORMAT"'),
        ('"*.x" = 3', "formats.toml: *.x: 3 is no form of a number"),
        ("x", "formats.toml: not valid TOML"),
    ):
        formats.write_text(text + "\n", encoding="utf-8")
        with pytest.raises(InputError, match=message.replace("*", r"\*").replace(r".\*", ".*")):
            default_form("S", "x")
    formats.unlink()
    write(book, "Of {quote}`step.state_per_gpu`.")
    assert len(Page("01_x").quotes) == 1


SHOWN = "```{{code-cell}} ipython3\n{tags}\n1 + 1\n```\n"


@pytest.mark.parametrize(
    ("tags", "what"),
    [
        ("", "code and the output"),
        (":tags: [remove-output]\n", "code"),
        (":tags: [hide-input]\n", "output"),
        (":tags: [hide_input, remove-output]\n", "code"),
        ("---\ntags: [hide-input, remove-output]\n---\n", None),
        (":tags: [remove-cell]\n", None),
    ],
)
def test_a_cell_that_lost_its_tags_is_told_with_what_to_write(
    book: Path, tags: str, what: str | None
) -> None:
    write(book, SHOWN.format(tags=tags))
    told = (
        f"chapters/01_x.md:{FIRST}: the page shows the {what} of this cell; write under this line "
        "`:tags: [hide-input, remove-output]`, or accept it"
    )
    assert found("shown") == ([told] if what else [])
    write(book, "% accept: the reader shall see it\n" + SHOWN.format(tags=tags))
    assert found("shown") == []


def test_a_lost_block_of_short_names_is_one_finding(book: Path) -> None:
    body = (
        "```{code-cell} ipython3\n:tags: [hide-input, remove-output]\n\n"
        'from mlsysim import read\nstep = read("DenseLLMPretrainingStep")\n```\n\n'
        "{quote}`step.step_time as .2f`, {quote}`old.step_time`, "
        "{claim}`short if step.step_time < old.step_time`."
    )
    write(book, body, front="")
    [told] = found()
    assert told == (
        "chapters/01_x.md: front matter: 'old' and 'step' are no short names, but 4 uses rest on "
        "it; write under kernelspec `mlsysim:`, `  scenarios:`, `    old: NAME_OF_SCENARIO`, "
        "`    step: DenseLLMPretrainingStep`"
    )
    # One of several that is lost, which a cell still gives; a slip of the pen stays a slip.
    write(book, body, front=FRONT.replace("step:", "old:"))
    [told] = found()
    assert told == (
        "chapters/01_x.md: front matter: 'step' is no short name, but 2 uses rest on it; write "
        "under mlsysim: scenarios: `    step: DenseLLMPretrainingStep`"
    )
    write(book, "{quote}`stpe.step_time as .2f`")
    [told] = found()
    assert "01_x.md:7: quote" in told
    assert "did you mean" in told
