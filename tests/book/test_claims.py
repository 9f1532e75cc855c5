"""Claims: what a condition says, when it holds, and how each mistake is refused."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim import paths
from mlsysim.book.claims._condition_tokens import expanded
from mlsysim.book.claims._conditions import keys, parse
from mlsysim.book.claims._evaluation import Evaluation
from mlsysim.book.claims.chapter_claims import examine, split
from mlsysim.book.pages.page_records import read_pages
from mlsysim.book.pages.page_sources import Page, write_records
from mlsysim.book.source.scanner import scan
from mlsysim.errors import InputError, MlsysimError, UnitError, UnknownName
from tests.artifacts.test_quotes import chapter

SHORT = {"step": "DenseLLMPretrainingStep", "a100": "DenseLLMPretrainingStepA100"}

VALUES: dict[str, tuple[Any, str]] = {
    "a.time": (7.7, "s"),
    "a.bubble": (770, "ms"),
    "a.size": (43.75, "GB"),
    "a.share": (0.25, ""),
    "a.error": (2.5, "%"),
    "a.error-of.bloom-176b": (5.0, "%"),
    "a.count": (1536, "seq"),
    "a.zero": (0.0, "s"),
    "a.binding": ("matrix units", ""),
    "a.overlap": (True, ""),
    "a.precision": ("bf16", ""),
    "b.precision": ("bf16", ""),
}


def entry(key: str) -> dict[str, Any]:
    value, unit = VALUES[key]
    return {"value": value, "unit": unit}


def matching(pattern: str) -> list[str]:
    return [key for key in VALUES if fnmatchcase(key, pattern)]


def holds(condition: str) -> bool:
    return Evaluation(entry, matching).truth(parse(condition))


@pytest.mark.parametrize(
    "condition",
    [
        "a.bubble = 0.1 * a.time",
        "a.bubble <= 0.1 * a.time and a.bubble >= 0.1 * a.time",
        "not a.bubble < 0.1 * a.time",
        "0.7 s < a.bubble < 800 ms < a.time",
        "a.time = 8 s within 5 %",
        "a.time = 8 s within 300 ms",
        "a.time / a.bubble = 9 within 15 %",
        "a.share = 25 %",
        "a.share < 0.3",
        "a.error < 5 %",
        "a.error-of.bloom-176b = 2 * a.error",
        "a.error-of.bloom-176b - a.error = 2.5 %",
        "a.error-of.bloom-176b / a.error = 2",
        "max(a.bubble, a.time, 1 s) = a.time",
        "min(a.bubble, a.time) = a.bubble",
        "abs(a.bubble - a.time) > 6 s",
        "a.size / a.time > 5 GB/s",
        "a.size / a.time < 6 * 1 GB / 1 s",
        "(a.time + a.bubble) * 2 > 16 s",
        "a.time < 1 min",
        "a.count = 1536 seq",
        "a.zero = 0 s",
        "a.binding is matrix units",
        "a.binding is 'matrix units' and a.precision is bf16",
        "a.precision is b.precision",
        "a.precision is not fp8",
        "a.overlap",
        "a.overlap is true and not a.overlap is false",
        "a.time < 1 s or (a.time < 8 s and a.share > 20 %)",
        "a.time > -3 s",
        "a.time>1 s",
        "max(a.error*) = a.error-of.bloom-176b and min(a.error*) * 2 = max(a.error*)",
        "max(a.tim*, a.bubble, 7 s) = a.time",
    ],
)
def test_a_condition_holds(condition: str) -> None:
    assert holds(condition)
    assert not holds(f"not ({condition})")


@pytest.mark.parametrize(
    "condition",
    [
        "a.time < 7 s",
        "a.time = 8 s",
        "a.time = 8 s within 3 %",
        "a.time = 8 s within 0.2 s",
        "7 s < a.time < 7.5 s",
        "a.error > 5 %",
        "a.binding is memory",
        "a.time < 1 s or a.time > 9 s",
        "a.zero = 1 s within 99 %",
    ],
)
def test_a_condition_does_not_hold(condition: str) -> None:
    assert not holds(condition)


@given(
    st.lists(st.tuples(st.sampled_from("+-*/"), st.integers(1, 9999)), min_size=1, max_size=6),
    st.integers(1, 9999),
)
def test_arithmetic_is_exact_and_has_the_usual_precedence(
    steps: list[tuple[str, int]], first: int
) -> None:
    text = str(first / 100) + "".join(f" {sign} {number / 100}" for sign, number in steps)
    exact = eval(
        "".join(part if part in "+-*/" else f"Fraction('{part}')" for part in text.split()),
        {"Fraction": Fraction},
    )
    tree: Any = parse(f"{text} = a.share")
    assert Evaluation(entry)._value(tree.sides[0]).magnitude == exact


@given(st.integers(-(10**15), 10**15), st.integers(0, 11))
def test_the_largest_of_values_is_one_of_them_exactly(digits: int, places: int) -> None:
    value = float(f"{digits}e-{places}")
    values = {"a.x": (value, "ms"), "a.y": (value - abs(value) / 2 - 1, "ms"), "b.x": (value, "ms")}
    found = Evaluation(lambda key: dict(zip(("value", "unit"), values[key], strict=True)))
    assert found.truth(parse("max(a.x, a.y) = a.x and a.x = b.x and a.y < a.x"))


@pytest.mark.parametrize(
    ("condition", "kind", "message"),
    [
        ("a.time < a.size", UnitError, "compare `a.time` (s) with `a.size` (GB): their dimensions"),
        ("a.time < 8", UnitError, "`8` (a plain number): their dimensions differ"),
        ("a.share < 8 s", UnitError, "`a.share` (a plain number) with `8 s` (s)"),
        ("a.time + a.size > 1 s", UnitError, "cannot join `a.time` (s) with `a.size` (GB)"),
        ("max(a.time, a.size) > 1 s", UnitError, "cannot compare `a.time` (s) with `a.size` (GB)"),
        ("a.time = 8 s within 1 GB", UnitError, "`1 GB` (GB) with `a.time` (s)"),
        ("a.error < 5", UnitError, "write 5 % or 500 %, as it is meant"),
        ("a.error < 0.05", UnitError, "write 0.05 % or 5 %"),
        ("a.time < 8 sec", UnitError, "write s"),
        ("a.time < 8 GBps", UnitError, "write GB/s"),
        ("a.time - a.size/2 > 1 s", InputError, "write + - * / with a space on either side"),
        ("a.time -1 s > 1 s", InputError, "write + - * / with a space on either side"),
        ("a.count < 1,536 seq", InputError, "without commas"),
        ("max(1,536 seq, a.count) = a.count", InputError, "without commas"),
        ("1 < 2", InputError, "rests on no key"),
        ("a.time", InputError, "`a.time` is no condition; compare it"),
        ("a.time + 1 s", InputError, "is no condition; compare it"),
        ("(a.time < 1 s) + 1 s > 2 s", InputError, "is a condition, and a value was expected"),
        ("a.time < time", InputError, "a key names a scenario and one of its values"),
        ("a.time <", InputError, "the condition ends where a value was expected"),
        ("a.time == 1 s", InputError, "at '=': a key or a number was expected"),
        ("a.time != 1 s", InputError, "'!=' is not understood"),
        ("a.time < 1 s and", InputError, "the condition ends"),
        ("a.time < 1 s a.share", InputError, "at 'a.share': the condition ends before it"),
        ("(a.time < 1 s", InputError, "a ) was expected"),
        ("a.time < 1 s within 5 %", InputError, "`within` belongs to one `=`"),
        ("a.time = 1 s within 5", InputError, "a number with % or another unit"),
        ("a.time = 1 s within a.bubble", InputError, "a number with % or another unit"),
        ("a.time / a.zero = 1", InputError, "`a.zero` is zero, and `a.time / a.zero` divides"),
        ("a.precision = 16", InputError, "a.precision is 'bf16', no number; write a.precision is"),
        ("a.time is long", InputError, "a.time is a number; compare it by"),
        ("a.precision is a.time", InputError, "a.time is a number, and a.precision a word"),
        ("a.precision is", InputError, "after `is` comes a word"),
        ("abs(a.time, a.bubble) > 1 s", InputError, "abs takes one value"),
        ("a.time*2 > 1 s", InputError, "a product is written with a space on either side of *"),
        ("a.prec* is bf16", InputError, "a key with * stands for many"),
        ("max(a.x*) > 1 s", InputError, "no key matches a.x*"),
        ("max(a.*) > 1 s", InputError, "a.binding is 'matrix units', no number"),
        ("max(a.e*, a.time) > 1 s", UnitError, "their dimensions differ"),
        ("max() > a.time", InputError, "a key or a number was expected"),
    ],
)
def test_a_condition_that_cannot_be_tested_says_what_to_write(
    condition: str, kind: type[MlsysimError], message: str
) -> None:
    with pytest.raises(kind) as refused:
        holds(condition)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "condition",
    [
        "step.step_time = step.step_time",
        "step.step_time / DenseLLMPretrainingStep.step_time = 1",
        "step.step_time - step.step_time = 0 s",
        "step.step_time < 1 s or step.step_time >= 1 s",
        "abs(step.step_time) >= 0 s",
        "max(step.step_time, a100.step_time) >= a100.step_time",
        "step.overlap_comm or not step.overlap_comm",
        "step.precision is step.precision",
    ],
)
@pytest.mark.usefixtures("solved")
def test_a_condition_that_holds_whatever_the_values_are_is_refused(condition: str) -> None:
    short = {"step": "DenseLLMPretrainingStep", "a100": "DenseLLMPretrainingStepA100"}
    with pytest.raises(InputError, match="whatever the values are, so it tests nothing"):
        examine(f"phrase if {condition}", short)


@pytest.mark.parametrize(
    "condition",
    [
        "step.step_time > -3 s",
        "step.step_time + 1 s > 0 s",
        "a100.step_time - step.step_time > step.step_time - a100.step_time",
        "max(step.step_time, a100.step_time) = a100.step_time",
        "max(step.result.*_latency) < step.step_time",
        "not step.step_time = 3 s",
        "step.precision is not fp8",
        "step.overlap_comm",
        "step.step_time < 1 s or step.precision is bf16 or step.overlap_comm",
        "step.tensor_parallel = 8",
    ],
)
@pytest.mark.usefixtures("solved")
def test_a_condition_that_other_values_would_make_false_is_none_of_these(condition: str) -> None:
    short = {"step": "DenseLLMPretrainingStep", "a100": "DenseLLMPretrainingStepA100"}
    assert examine(f"phrase if {condition}", short).holds


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("a.time < 1e99999999 s", "'e99999999' is not in the vocabulary"),
        (" + ".join(["a.time"] * 200) + " > 1 s", "more than 1000 characters"),
        ("(" * 40 + "a.time" + ")" * 40 + " < 8 s", "more than 30 ( and not"),
    ],
)
def test_a_condition_beyond_all_proportion_is_refused_at_once(condition: str, message: str) -> None:
    with pytest.raises(MlsysimError) as refused:
        holds(condition)
    assert message in str(refused.value)


def test_the_last_if_divides_phrase_and_condition() -> None:
    assert split("even if  slow if a.b < 1 s") == ("even if slow", "a.b < 1 s")
    for text in ("no condition", "if a.b < 1 s", "phrase if ", " if "):
        with pytest.raises(InputError, match="expected PHRASE if CONDITION"):
            split(text)


def test_keys_are_told_from_what_stands_around_them() -> None:
    text = "max(a.x-1,  b.y.z) - 3 s < 2 * c.d_e within"
    assert (
        expanded(text, lambda key: f"<{key}>") == "max(<a.x-1>, <b.y.z>) - 3 s < 2 * <c.d_e> within"
    )
    found = keys(parse("a.x is not b.y or max(c.z, 3 s) < d.w / 2"))
    assert [key.text for key in found] == ["a.x", "b.y", "c.z", "d.w"]


@pytest.mark.usefixtures("solved")
def test_a_claim_is_tested_on_the_artifacts_with_the_short_names_of_the_chapter() -> None:
    made = examine("slower by far if a100.step_time / step.step_time > 1.5", SHORT)
    assert made.holds
    assert made.phrase == "slower by far"
    assert made.condition == (
        "DenseLLMPretrainingStepA100.step_time / DenseLLMPretrainingStep.step_time > 1.5"
    )
    assert set(made.scenarios) == {"DenseLLMPretrainingStep", "DenseLLMPretrainingStepA100"}
    for text, message in (
        ("x if stp.step_time < 1 s", "short names here: step, a100; did you mean 'step'"),
        ("x if step.steptime < 1 s", "did you mean 'step_time'"),
        ("x if step.step_time-step.step_time < 1 s", "(a minus has a space on either side)"),
        ("x if step.replica is DenseLLMReplica", "refers to Scenarios.DenseLLMReplica"),
    ):
        with pytest.raises((UnknownName, InputError)) as refused:
            examine(text, SHORT)
        assert message in str(refused.value)


def test_of_many_keys_a_report_tells_the_one_that_counts() -> None:
    tried = Evaluation(entry, matching)
    assert not tried.truth(parse("max(a.error*) < 4 %"))
    assert tried.report() == "max(a.error*) = 5 %, a.error-of.bloom-176b = 5 %"


EVERYWHERE = """\
# Heading {claim}`one if a.b < 1`

First, `` {claim}`literal` ``
then {claim}`two if a.b < 1`.

- item {claim}`three if a.b < 1`

| a | b |
|---|--:|
| {claim}`four if a.b < 1` | {quote}`a.b` {claim}`five if a.b < 1` |

:::{figure} a.svg
:alt: Seen {claim}`six if a.b < 1`

Caption {claim}`seven if a.b < 1`
:::

:::{table} Title {claim}`eight if a.b < 1`
| a |
|---|
:::

Text[^1].

[^1]: Note {claim}`nine if a.b < 1`

```{code-cell} ipython3
"{claim}`code`"
```
"""


def test_claims_are_found_where_quotes_are_with_their_lines() -> None:
    lines = EVERYWHERE.split("\n")
    found = [role for role in scan("x", EVERYWHERE) if role.name == "claim"]
    words = "one two three four five six seven eight nine"
    assert [split(role.spec)[0] for role in found] == words.split()
    for role in found:
        assert lines[role.line - 1][role.column :].startswith(role.raw)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("One\ntwo {claim}`a if b.c < 1", 2, "no complete claim; write {claim}`PHRASE if"),
        ("One {claim}`a if\nb.c < 1`", 1, "no complete claim"),
        ("| a |\n|---|\n| {claim}`a|b if c.d < 1` |", 3, "| cuts a claim"),
        ("<div>\n{claim}`a if b.c < 1`</div>", 2, "HTML cannot hold a claim"),
        ("![Alt {claim}`a if b.c < 1`](x.svg)", 1, "use {figure} with :alt:"),
        ("$x$ and $y = {claim}`a if b.c < 1`$", 1, "a formula cannot hold a claim"),
        ("{claim}`about {quote}`b.c` if b.c < 1`", 1, "cannot stand inside another role"),
        (":::{figure} x.svg\n:width: {claim}`a if b.c < 1`\n:::", 2, "only :alt: can hold a claim"),
    ],
)
def test_a_claim_that_the_page_would_lose_is_refused_with_its_line(
    text: str, line: int, message: str
) -> None:
    with pytest.raises(InputError) as refused:
        scan("01_x", text)
    assert str(refused.value).startswith(f"chapters/01_x.md:{line}: ")
    assert message in str(refused.value)


TRUE = "{claim}`more than a second if step.step_time > 1 s and step.precision is bf16`"
FALSE = "{claim}`under a second if step.state_per_gpu < 1 GB`"


def test_a_false_claim_is_told_with_line_phrase_condition_and_values(solved: Path) -> None:
    page = chapter(solved, f"A {TRUE}.\n\nB {FALSE}, {{quote}}`step.steptime`.")
    with pytest.raises(MlsysimError) as refused:
        write_records([page])
    assert str(refused.value).endswith(
        '\nchapters/01_x.md:8: the claim "under a second" is false: it needs '
        "step.state_per_gpu < 1 GB, and step.state_per_gpu = 43.75 GB"
    )
    assert str(refused.value).startswith("chapters/01_x.md:8: quote `step.steptime`: ")
    assert not paths.quotes().exists()
    assert not paths.claims().exists()


def test_the_record_holds_phrase_and_condition_and_no_value(solved: Path) -> None:
    page = chapter(solved, f"A {TRUE}.")
    assert write_records([page])
    assert read_pages(paths.claims()) == {
        "01_x": [
            {
                "claim": "more than a second",
                "if": "DenseLLMPretrainingStep.step_time > 1 s and "
                "DenseLLMPretrainingStep.precision is bf16",
            }
        ]
    }
    path = paths.artifact("DenseLLMPretrainingStep")
    content = json.loads(path.read_text(encoding="utf-8"))
    content["outputs"]["step_time"]["value"] = 3.25
    path.write_text(json.dumps(content), encoding="utf-8")
    assert not write_records([chapter(solved, f"Moved.\n\nA {TRUE}.")])
    content["outputs"]["step_time"]["value"] = 0.5
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(MlsysimError, match=r"step.step_time = 0.5 s, step.precision = bf16"):
        write_records([chapter(solved, f"A {TRUE}.")])


def test_a_claim_on_results_that_do_not_fit_is_refused_as_a_quote_is(solved: Path) -> None:
    path = paths.artifact("DenseLLMPretrainingStep")
    content = json.loads(path.read_text(encoding="utf-8"))
    content["feasibility"] = {"feasible": False, "reason": "9.0 GB more than 85.5 GB"}
    path.write_text(json.dumps(content), encoding="utf-8")
    named = "scenarios: {step: DenseLLMPretrainingStep}"
    assert len(chapter(solved, "{claim}`x if step.fleet.node_count > 1`", named).claims) == 1
    body = "A {claim}`x if step.step_time > 1 s`."
    with pytest.raises(InputError, match=r"01_x.md:6: claim .* is infeasible"):
        chapter(solved, body, named).claims  # noqa: B018  looking is what raises
    accepted = chapter(solved, body, f"infeasible: [DenseLLMPretrainingStep]\n  {named}")
    assert len(accepted.claims) == 1


def test_a_page_in_plain_text_shows_phrases_and_numbers_in_their_places(solved: Path) -> None:
    body = f"# At {TRUE}\n\n{{quote}}`step.precision` {TRUE} {{quote}}`step.precision` {TRUE}"
    assert isinstance(page := chapter(solved, body), Page)
    assert page.plain().split("---\n")[-1] == (
        "\n# At more than a second\n\nbf16 more than a second bf16 more than a second\n"
    )
