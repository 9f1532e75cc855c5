"""Quotes: what they print, where they are found, and how each mistake is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsysim import paths
from mlsysim.artifacts.numbers import NBSP, format_number, with_unit
from mlsysim.artifacts.quotes import printed
from mlsysim.artifacts.reading import read
from mlsysim.book.pages.page_records import read_pages
from mlsysim.book.pages.page_sources import Page, pages, write_records
from mlsysim.book.products.latex import in_math
from mlsysim.book.source.scanner import scan
from mlsysim.errors import InputError, MlsysimError, UnitError, UnknownName

SHORT = {"step": "DenseLLMPretrainingStep"}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("step.global_batch_tokens", "3,145,728 tokens"),
        ("step.global_batch_tokens in Mtok as .2f", "3.15 million tokens"),
        ("step.global_batch_sequences", "1,536 sequences"),
        ("step.sequences_per_microbatch", "1 sequence"),
        ("step.sequences_per_microbatch as .1f", "1.0 sequences"),
        ("step.tensor_parallel", "8"),
        ("step.state_per_gpu", "43.75 GB"),
        ("step.state_per_gpu in GiB as .2f", "40.75 GiB"),
        ("DenseLLMPretrainingStep.state_per_gpu in B as ,d", "43,750,000,000 B"),
        ("step.replica.workload.parameters in Gparam as .0f", "175 billion parameters"),
        ("step.fleet.node.accelerator.rates.bf16", "989.4 TFLOP/s"),
        ("step.fleet.node.link_latency in us", "3.4 µs"),
        ("step.local_efficiency in % as .0f", "70%"),
        ("step.local_efficiency as .0%", "70%"),
        ("step.precision", "bf16"),
        ("step.overlap_comm", "true"),
    ],
)
@pytest.mark.usefixtures("solved")
def test_a_quote_prints_the_value_with_its_unit(spec: str, text: str) -> None:
    assert printed(spec, SHORT).text == text.replace(" ", NBSP)


@pytest.mark.usefixtures("solved")
def test_a_printed_value_keeps_key_value_and_unit_of_the_artifact() -> None:
    value = printed("step.state_per_gpu in GiB as .1f", SHORT)
    assert (value.key, value.value, value.unit) == (
        "DenseLLMPretrainingStep.state_per_gpu",
        43.75,
        "GB",
    )
    assert printed(value.spec).text == value.text


@pytest.mark.usefixtures("solved")
def test_an_artifact_quotes_its_own_values() -> None:
    step = read("DenseLLMPretrainingStep")
    assert step.quote("state_per_gpu as .1f") == printed(
        "DenseLLMPretrainingStep.state_per_gpu as .1f"
    )


@pytest.mark.parametrize(
    ("spec", "kind", "message"),
    [
        ("stp.step_time", UnknownName, "short names here: step; did you mean 'step'?"),
        ("x.step_time", UnknownName, "'x' is no scenario; short names here: step; known: Dense"),
        ("DenseLLMPretrainStep.step_time", UnknownName, "mean 'DenseLLMPretrainingStep'"),
        ("step.steptime", UnknownName, "did you mean 'step_time'"),
        ("step.result.bubble", UnknownName, "no 'result.bubble'"),
        ("step", InputError, "say which of its values, such as step.step_time"),
        ("", InputError, "expected KEY"),
        ("step.step_time ms", InputError, "KEY in UNIT as FORMAT"),
        ("step.step_time in ms as", InputError, "KEY in UNIT as FORMAT"),
        ("step.step-time", UnknownName, "did you mean 'step_time'"),
        ("step.-step", InputError, "'step.-step' is no key"),
        ("step.replica", InputError, "refers to Scenarios.DenseLLMReplica"),
        ("step.fleet.node", InputError, "quote one of its values, such as step.fleet.node.acc"),
        ("step.step_time in GB", UnitError, "step_time: the value is in s; cannot print s in GB"),
        ("step.step_time in sec", UnitError, "write s"),
        ("step.step_time in msec", UnitError, "'msec'"),
        ("step.tensor_parallel in GB", UnitError, "plain number"),
        ("step.step_time as 5.2f", InputError, "'5.2f' is no format of a number"),
        ("step.step_time as s", InputError, "no format of a number"),
        ("step.step_time as {}", InputError, "no format of a number"),
        ("step.step_time as d", InputError, "for whole numbers"),
        ("step.step_time in h as .1f", InputError, "give it more digits"),
        ("step.step_time as .13f", InputError, "12 significant digits"),
        ("step.step_time as .0%", InputError, "is for shares of one, and this is in s"),
        ("step.result.model_flops as .3g", InputError, "write ',.0f'"),
        ("step.precision as .1f", InputError, "no number"),
        ("step.overlap_comm in s", InputError, "no number"),
    ],
)
@pytest.mark.usefixtures("solved")
def test_a_quote_that_cannot_be_printed_says_what_to_write(
    spec: str, kind: type[MlsysimError], message: str
) -> None:
    with pytest.raises(kind) as refused:
        printed(spec, SHORT)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("value", "form", "digits"),
    [
        (123456789.0, "", "123,456,789"),
        (1e-11, "", "1×10⁻¹¹"),
        (4.5e17, "", "4.5×10¹⁷"),
        (0.0, "", "0"),
        (-0.0, ".1f", "0.0"),
        (-3.25, ".1f", "−3.2"),
        (999.96, "", "1,000"),
        (0.0012345, "", "0.001234"),
        (1.5e-7, ".1e", "1.5×10⁻⁷"),
        (7, ".1f", "7.0"),
    ],
)
def test_digits_look_as_in_print(value: float, form: str, digits: str) -> None:
    assert format_number(value, form) == digits


@given(st.floats(min_value=1e-3, max_value=1e15, exclude_max=True))
def test_without_a_format_no_exponent_is_printed_and_four_digits_are_right(value: float) -> None:
    digits = format_number(value)
    assert "×" not in digits
    assert math.isclose(float(digits.replace(",", "")), value, rel_tol=5.001e-4)


@given(st.floats(min_value=-1e12, max_value=1e12).filter(bool), st.integers(0, 4))
def test_a_value_that_is_not_zero_never_prints_as_zero(value: float, decimals: int) -> None:
    try:
        digits = format_number(value, f",.{decimals}f")
    except InputError:
        return
    assert any(digit in digits for digit in "123456789")


@pytest.mark.parametrize(
    ("digits", "unit", "text"),
    [
        ("2.50", "USD/h", "$2.50/h"),
        ("−3", "USD", "−$3"),
        ("3.2", "MUSD", "$3.2 million"),
        ("16", "B/param", "16 B/parameter"),
        ("9.8", "m/s**2", "9.8 m/s²"),
        ("12", "W*h", "12 W·h"),
        ("5", "kgCO2e", "5 kg CO₂e"),
        ("91", "tCO2", "91 t CO₂"),
        ("552", "tCO2e", "552 t CO₂e"),
        ("0.3", "1/s", "0.3 per s"),
    ],
)
def test_units_look_as_in_print(digits: str, unit: str, text: str) -> None:
    assert with_unit(digits, unit) == text.replace(" ", NBSP)


def test_in_a_formula_a_number_is_set_for_math_mode() -> None:
    assert in_math("−$1,234.5/h") == r"-\$1{,}234.5\mathrm{/h}"
    assert in_math("4.5×10¹⁷ FLOP".replace(" ", NBSP)) == r"4.5\times 10^{17}\,\mathrm{FLOP}"


EVERYWHERE = """\
---
a: 1
---

# Heading {quote}`k.heading`

First line,
second {quote}`k.second as .1f` and `` {quote}`k.literal` ``
and [link {quote}`k.link`](x) $y={quote}`k.math`$.

> Quoted,
> then {quote}`k.quoted`

- item
  with {quote}`k.item`

| a | b |
|---|--:|
| `{quote}x` {quote}`k.cell` | {quote}`k.other` |

:::{figure} a.svg
:alt: Seen {quote}`k.alt`

Caption {quote}`k.caption`
:::

:::{table} Title {quote}`k.title`
| a |
|---|
| {quote}`k.inner` |
:::

````{note}
```{warning}
Deep {quote}`k.deep`
```
````

$$
z = {quote}`k.block`
$$

Text[^1].

[^1]: Note {quote}`k.note`

```{code-cell} ipython3
"{quote}`k.code`"
```

```text
{quote}`k.fence`
```

% {quote}`k.comment`
"""


def test_quotes_are_found_wherever_the_page_resolves_them_and_nowhere_else() -> None:
    lines = EVERYWHERE.split("\n")
    found = scan("x", EVERYWHERE)
    assert [quote.spec.split()[0].removeprefix("k.") for quote in found] == [
        *("heading", "second", "link", "math", "quoted", "item", "cell", "other", "alt"),
        *("caption", "title", "inner", "deep", "block", "note"),
    ]
    for quote in found:
        assert lines[quote.line - 1][quote.column :].startswith(quote.raw)
    assert {q.spec: q.where for q in found if q.where != "text"} == {
        "k.heading": "heading",
        "k.math": "math",
        "k.alt": "alt",
        "k.block": "math",
    }


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("One\ntwo {quote}`a.b", 2, "no complete quote"),
        ("One {quote}`a.b\nas .1f`", 1, "no complete quote"),
        ("One {quote} `a.b`", 1, "no complete quote"),
        ("| a |\n|---|\n| {quote}`a.b|c` |", 3, "| cuts a quote"),
        ("| a |\n|---|\n| x | {quote}`a.b` and {quote}`a.b|c` |", 3, "| cuts a quote"),
        ("<div>{quote}`a.b`</div>", 1, "HTML"),
        ("Text <b>{quote}`a.b`</b> <i x='{quote}'>", 1, "HTML"),
        ("![Alt {quote}`a.b`](x.svg)", 1, "use {figure} with :alt:"),
        ("Text\n\n```{note} Title {quote}`a.b`\nbody\n```", 3, "write :::{note}"),
        (":::{figure} x.svg\n:width: {quote}`a.b`\n:::", 2, "only :alt:"),
        ("| a |\n|---|\n| x | {quote}`a.b` |", 3, "a cell beyond the columns"),
        ('[x](y "z {quote}`a.b`")', 1, "a link's title"),
        ('A\n\n[x]: y "z {quote}`a.b`"', 3, "a link's title"),
        ("[{quote}`a.b`]: x", 1, "the page would lose this quote"),
        ("+++ {quote}`a.b`", 1, "the page would lose this quote"),
        ("---\nt: '{quote}`a.b`'\n---\n", 2, "the front matter"),
        ("An {abbr}``HBM ({quote}`a.b`)``", 1, "a quote cannot stand inside another role"),
        ("{ref}``x {quote}`a.b` <y>``", 1, "a quote cannot stand inside another role"),
        ("<!--\n{quote}`a.b` -->", 2, "HTML"),
        (":::{raw} html\n{quote}`a.b`\n:::", 2, "{raw} cannot hold a quote"),
        (":::{only} latex\n\n{quote}`a.b`\n:::", 3, "{only} cannot hold a quote"),
        ("```{eval-rst}\n{claim}`a if b.c < 1`\n```", 2, "{eval-rst} cannot hold a claim"),
        (":::{header}\n{quote}`a.b`\n:::", 2, "{header} cannot hold a quote"),
        (":::{footer}\n{claim}`a if b.c < 1`\n:::", 2, "{footer} cannot hold a claim"),
        ("One\n\n    two {quote}`a.b`", 3, "an indented block would show this quote"),
        ("- One\n\n        {claim}`a if b.c < 1`", 3, "an indented block would show this claim"),
    ],
)
def test_a_quote_that_the_page_would_lose_is_refused_with_its_line(
    text: str, line: int, message: str
) -> None:
    with pytest.raises(InputError) as refused:
        scan("01_x", text)
    assert str(refused.value).startswith(f"chapters/01_x.md:{line}: ")
    assert message in str(refused.value)


def chapter(
    root: Path, body: str, front: str = "scenarios: {step: DenseLLMPretrainingStep}"
) -> Page:
    text = f"---\nmlsysim:\n  {front}\n---\n\n{body}\n"
    (root / "chapters" / "01_x.md").write_text(text, encoding="utf-8")
    return Page("01_x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{quote}`runs.mean_error` percent", 'prints "3%" with its unit, and "percent" is typed'),
        ("{quote}`step.local_efficiency as .0%` %", 'and "%" is typed beside it'),
        ("${quote}`step.local_efficiency as .0%`\\%$", '"\\%" is typed beside it'),
        ("{quote}`step.local_efficiency as .0%` per cent", 'and "per cent" is typed'),
        (
            "{quote}`step.local_efficiency` %",
            'a plain number, and "%" is typed beside it; write `as',
        ),
        ("{quote}`step.local_efficiency` percent", "write `as .0%` for a share"),
        (
            "{quote}`step.state_per_gpu in GiB as .1f` GB",
            'prints "40.7 GiB" with its unit, and "GB"',
        ),
        ("{quote}`step.state_per_gpu`-GB", 'and "GB" is typed beside it'),
        ("${quote}`step.state_per_gpu in GiB`\\,\\mathrm{GB}$", 'and "GB" is typed beside it'),
        ("{quote}`step.step_time as .0f` seconds", 'and "seconds" is typed beside it'),
        ("{quote}`step.global_batch_tokens` tokens", 'and "tokens" is typed beside it'),
        (
            "{quote}`step.tensor_parallel` GB",
            'a plain number, and "GB" is typed beside it; it has no',
        ),
    ],
)
def test_a_unit_typed_beside_a_quote_is_refused(solved: Path, text: str, message: str) -> None:
    path = paths.artifact("DenseLLMReplica")
    content = json.loads(path.read_text(encoding="utf-8"))
    content["outputs"]["mean_error"] = {**content["outputs"]["state_per_gpu"], "value": 3}
    content["outputs"]["mean_error"]["unit"] = "%"
    path.write_text(json.dumps(content), encoding="utf-8")
    front = "scenarios: {runs: DenseLLMReplica, step: DenseLLMPretrainingStep}"
    with pytest.raises(InputError) as refused:
        chapter(solved, f"It is {text}.", front).quotes  # noqa: B018  looking is what raises
    told = str(refused.value).replace(NBSP, " ")
    assert told.startswith("chapters/01_x.md:6: quote `")
    assert message in told


def test_words_that_only_look_like_units_may_follow_a_quote(solved: Path) -> None:
    for after in ("GPUs", "of a step", "sequences", "a day", "s", "in", "-fold", "is", "min"):
        for key in ("tensor_parallel", "precision"):
            assert len(chapter(solved, f"{{quote}}`step.{key}` {after}").quotes) == 1
    assert len(
        chapter(solved, "{quote}`step.step_time` a step in ${quote}`step.step_time` s$").quotes
    )


@pytest.mark.usefixtures("solved")
def test_every_value_with_a_unit_prints_it_in_text_and_in_formulas() -> None:
    for name in ("DenseLLMPretrainingStep", "DenseLLMReplica"):
        artifact = read(name)
        for key, entry in {**artifact.inputs, **artifact.outputs}.items():
            if not entry["unit"]:
                continue
            text = artifact.quote(key).text
            assert not text[-1].isdigit() or text.startswith("$")
            assert text.endswith("%") or "mathrm" in in_math(text)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_not_printed(value: float) -> None:
    for form in ("", ".1f", ".0%"):
        with pytest.raises(InputError, match="is no number to print"):
            format_number(value, form)


@pytest.mark.usefixtures("solved")
def test_in_a_cell_a_quote_refuses_what_it_refuses_in_text() -> None:
    step = read("DenseLLMPretrainingStep")
    for spec, message in (
        ("replica", "refers to Scenarios.DenseLLMReplica, which is no number; quote one of its"),
        ("step_time in h as .1f", "give it more digits"),
        ("steptime", "did you mean 'step_time'"),
    ):
        with pytest.raises(MlsysimError) as refused:
            step.quote(spec)
        assert message in str(refused.value)


def test_every_wrong_quote_of_a_page_is_told_at_once_with_its_line(solved: Path) -> None:
    page = chapter(solved, "A {quote}`step.steptime`.\n\nB {quote}`step.step_time in GB`.")
    with pytest.raises(MlsysimError) as refused:
        write_records([page])
    first, second = str(refused.value).split("\n")
    assert first.startswith("chapters/01_x.md:6: quote `step.steptime`: ")
    assert "did you mean 'step_time'" in first
    assert second.startswith("chapters/01_x.md:8: quote `step.step_time in GB`: ")
    assert not paths.quotes().exists()


@pytest.mark.parametrize(
    ("front", "message"),
    [
        ("scenarios: {step: DenseLLMPretrainStep}", "mean 'DenseLLMPretrainingStep'"),
        ("scenarios: {DenseLLMReplica: DenseLLMPretrainingStep}", "is no short name"),
        ("scenarios: [DenseLLMReplica]", "a map of short names"),
        ("scenario: {step: DenseLLMPretrainingStep}", "mlsysim holds scenarios"),
        ("infeasible: DenseLLMReplica", "a list of scenarios"),
        ("infeasible: [DenseLLMReplic]", "mean 'DenseLLMReplica'"),
        ("scenarios: {step", "chapters/01_x.md:"),
    ],
)
def test_front_matter_that_cannot_be_is_refused(solved: Path, front: str, message: str) -> None:
    page = chapter(solved, "A {quote}`step.step_time`.", front)
    with pytest.raises(InputError) as refused:
        page.quotes  # noqa: B018  looking is what raises
    assert str(refused.value).startswith("chapters/01_x.md")
    assert message in str(refused.value)


def test_results_that_do_not_fit_are_quoted_only_on_purpose(solved: Path) -> None:
    path = paths.artifact("DenseLLMPretrainingStep")
    content = json.loads(path.read_text(encoding="utf-8"))
    content["feasibility"] = {"feasible": False, "reason": "9.0 GB more than 85.5 GB"}
    path.write_text(json.dumps(content), encoding="utf-8")
    named = "scenarios: {step: DenseLLMPretrainingStep}"
    body = "A {quote}`step.batch_tokens` and {quote}`step.fleet.node_count`."
    assert len(chapter(solved, body, named).quotes) == 2  # inputs are what they are
    body = "A {quote}`step.step_time`."
    with pytest.raises(InputError) as refused:
        chapter(solved, body, named).quotes  # noqa: B018  looking is what raises
    assert "chapters/01_x.md:6: quote `step.step_time`: " in str(refused.value)
    reason = "DenseLLMPretrainingStep is infeasible: 9.0 GB more than 85.5 GB. Only if the text is "
    assert reason in str(refused.value)
    assert "infeasible: [DenseLLMPretrainingStep]" in str(refused.value)
    accepted = chapter(solved, body, f"infeasible: [DenseLLMPretrainingStep]\n  {named}")
    assert len(accepted.quotes) == 1


def test_the_record_holds_each_quote_in_order_without_lines_or_sentences(solved: Path) -> None:
    page = chapter(solved, "It takes {quote}`step.state_per_gpu as .1f`, {quote}`step.precision`.")
    assert write_records([page])
    assert read_pages(paths.quotes()) == {
        "01_x": [
            {
                "key": "DenseLLMPretrainingStep.state_per_gpu",
                "spec": "DenseLLMPretrainingStep.state_per_gpu as .1f",
                "printed": f"43.8{NBSP}GB",
            },
            {
                "key": "DenseLLMPretrainingStep.precision",
                "spec": "DenseLLMPretrainingStep.precision",
                "printed": "bf16",
            },
        ]
    }
    moved = chapter(
        solved, "More.\n\nA {quote}`step.state_per_gpu as .1f`. B {quote}`step.precision`."
    )
    assert not write_records([moved])


def test_a_page_in_plain_text_shows_the_numbers_in_their_places(solved: Path) -> None:
    page = chapter(
        solved,
        "# At {quote}`step.state_per_gpu`\n\n$x = {quote}`step.state_per_gpu`$ or `{quote}`.\n\n"
        ":::{figure} x.svg\n:alt: {quote}`step.precision`\n:::",
    )
    body = page.plain().split("---\n")[-1]
    assert body == (
        f"\n# At 43.75{NBSP}GB\n\n$x = 43.75\\,\\mathrm{{GB}}$ or `{{quote}}`.\n\n"
        ":::{figure} x.svg\n:alt: bf16\n:::\n"
    )


def test_pages_are_the_chapters_in_order_and_then_the_others(root: Path) -> None:
    for name in ("index", "02_b", "01_a", "appendix"):
        (root / "chapters" / f"{name}.md").write_text("# T\n", encoding="utf-8")
    assert [page.name for page in pages()] == ["01_a", "02_b", "appendix", "index"]
