"""What a change moves on the page, told from the files of two revisions."""

from __future__ import annotations

import json
import math
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlsysim.errors import InputError
from mlsysim.review.comparison import Comparison, Verdict
from mlsysim.review.data import as_data
from mlsysim.review.markdown import markdown
from mlsysim.review.page import page
from mlsysim.review.report import report
from mlsysim.review.terminal import lines
from mlsysim.review.trees import compared
from tests.review.history import PAGE, RATE, History, artifact


def compare(first: str = "", second: str = "", main: str = "") -> Comparison:
    return Comparison(*compared(first, second, main=main))


def test_a_moved_number_is_told_by_place_sentence_table_figure_and_cause(history: History) -> None:
    history.step(7.74, 1.9, parts=(3.0, 4.5), label="7.8 s", cell="longer")
    found = compare("HEAD")
    assert found.verdict == Verdict.PRINTED
    texts = {(each.why, each.old, each.new): each.place for each in found.printed}
    assert {(why, old) for why, old, _ in texts} == {
        ("moved", "7.73 s"),
        ("moved", "7.731 s"),
        ("typed", "long"),
        ("drawn", "7.7 s"),
    }
    text = texts["moved", "7.73 s", "7.74 s"]
    assert (str(text), text.section) == ("chapters/01_step.md:7", "Time")
    assert text.sentence == "One step takes 7.74 s of a minute."
    assert texts["moved", "7.731 s", "7.740 s"].product == "01_step/parts, all, Time"
    assert texts["typed", "long", "longer"].product == "01_step/parts, all, Word"
    assert texts["drawn", "7.7 s", "7.8 s"].product == "01_step/parts"
    (rate,) = found.inputs
    assert (rate.name, str(rate.move), rate.reaches) == (
        RATE,
        "2.0 TB/s -> 1.9 TB/s (−5 %)",
        ("Step",),
    )
    assert rate.is_unexplained
    assert any(RATE in warning for warning in found.warnings)
    (figure,) = found.figures
    assert (figure.column, figure.row, figure.largest) == ("s", "b", pytest.approx(0.5 / 1.5))
    (claim,) = found.claims
    assert (claim.phrase, claim.old, claim.new) == (
        "short",
        pytest.approx(0.2269),
        pytest.approx(0.226),
    )


def test_what_moves_below_the_printed_digits_is_folded_and_counted(history: History) -> None:
    history.step(7.7311)
    found = compare("HEAD")
    assert found.verdict == Verdict.BELOW_THE_DIGITS
    assert (found.printed, [*found.hidden]) == ([], ["Step.time"])
    folded = [each for each in report(found).sections if each.folded]
    assert [(each.title, each.rows, each.folded) for each in folded] == [
        ("Moved below the last printed digit", (), 1)
    ]
    assert all(not each.folded for each in report(found, whole=True).sections)


def test_a_revision_and_itself_differ_in_nothing_whatever_the_line_ends(history: History) -> None:
    assert compare("HEAD", "HEAD").verdict == Verdict.NOTHING
    for path in history.path.rglob("*.md"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    found = compare("HEAD")
    assert (found.verdict, report(found).sections) == (Verdict.NOTHING, ())


def test_two_comparisons_of_the_same_revisions_mirror_each_other(history: History) -> None:
    history.step(9.0, 1.5, parts=(5.0, 4.0), label="9.0 s", cell="longer")
    history.commit()
    there, back = compare("HEAD~1", "HEAD"), compare("HEAD", "HEAD~1")
    assert sorted((e.old, e.new) for e in there.printed) == sorted(
        (e.new, e.old) for e in back.printed
    )
    for one, other in ((there.inputs, back.inputs), (there.outputs, back.outputs)):
        assert [(e.name, e.move.old, e.move.new) for e in one] == [
            (e.name, e.move.new, e.move.old) for e in other
        ]
    assert [(e.old, e.new) for e in there.claims] == [(e.new, e.old) for e in back.claims]
    assert [e.largest for e in there.figures] == [e.largest for e in back.figures]


def test_a_claim_that_fell_or_came_near_to_falling_is_told(history: History) -> None:
    history.step(9.9)
    found = compare("HEAD")
    assert any('"short" came near to falling' in each for each in found.warnings)
    history.step(10.5)
    found = compare("HEAD")
    assert found.verdict == Verdict.CLAIMS_FELL
    assert any('"short" is false now' in each for each in found.warnings)
    assert found.claims[0].new == pytest.approx(-0.5 / 10.5)


def test_what_follows_a_moved_input_is_under_it(history: History) -> None:
    constant = {"unit": "", "source": "assumption: fitted", "follows": "Scenarios.Fit.constant"}

    def fit(rate: float, value: float) -> None:
        entry = {"value": rate, "unit": "TB/s", "source": f"assumption: {rate}"}
        given = {RATE: entry}
        history.write(
            {
                "results/scenarios/Fit.json": artifact("Fit", {"constant": value}, given),
                "results/scenarios/Step.json": artifact(
                    "Step",
                    {"time": 7.731},
                    given | {"Hardware.Fast.constant": {"value": value, **constant}},
                ),
            }
        )

    fit(2.0, 0.5)
    history.commit()
    fit(1.9, 0.6)
    (root,) = compare("HEAD").inputs
    assert (root.name, root.is_unexplained, len(root.reaches)) == (RATE, False, 2)
    assert [each.name for each in root.under] == ["Hardware.Fast.constant"]


def test_scenarios_and_outputs_that_came_went_or_were_renamed_are_told_as_that(
    history: History,
) -> None:
    history.write(
        {
            "scenarios/New.toml": 'title = "New"\n',
            "results/scenarios/New.json": artifact("New", {"a": 1.0}),
            "results/scenarios/Old.json": artifact("Old", {"b": 2.0, "c": 3.0}),
        }
    )
    history.commit()
    history.write(
        {
            "results/scenarios/New.json": None,
            "results/scenarios/Old.json": None,
            "scenarios/Renamed.toml": 'title = "Renamed"\nformerly = "Old"\n',
            "results/scenarios/Renamed.json": artifact("Renamed", {"b": 2.5, "d": 3.0}),
            "results/scenarios/More.json": artifact("More", {"a": 4.0}),
        }
    )
    found = compare("HEAD")
    assert (found.pairs.added, found.pairs.removed) == (["More"], ["New"])
    assert found.pairs.scenarios == {"Renamed": "Old"}
    assert found.pairs.outputs == {"Renamed.d": "c"}
    assert [(each.name, str(each.move)) for each in found.outputs] == [
        ("Renamed.b", "2.0 s -> 2.5 s (+25 %)")
    ]


def test_units_sources_equations_and_feasibility_are_each_told_as_what_they_are(
    history: History,
) -> None:
    changed = {"value": 7731.0, "unit": "ms", "equation": "another"}
    rate = {"value": 2.0, "unit": "TB/s", "source": "brown2020, Table 2"}
    unfit = {"feasibility": {"feasible": False, "reason": "too large"}}
    history.write(
        {"results/scenarios/Step.json": artifact("Step", {"time": changed}, {RATE: rate}, **unfit)}
    )
    told = {each.what: (each.old, each.new) for each in compare("HEAD").facts}
    assert told["unit"] == ("s", "ms")
    assert told["equation"] == ("assumption: a case", "another")
    assert told["source"] == ("assumption: a data sheet", "brown2020, Table 2")
    assert told["feasibility"] == ("feasible: fits", "infeasible: too large")


def test_a_line_that_moved_or_a_quote_that_asks_for_another_form_is_no_moved_number(
    history: History,
) -> None:
    history.write({"chapters/01_step.md": PAGE.replace("## Time", "A new line.\n\n## Time")})
    assert compare("HEAD").verdict == Verdict.NOTHING
    quotes = json.loads((history.path / "results/quotes.json").read_text())
    quotes["pages"]["01_step"][0] |= {"spec": "Step.time in s as .3f", "printed": "7.731 s"}
    history.write({"results/quotes.json": json.dumps(quotes)})
    found = compare("HEAD")
    assert [(each.why, each.old, each.new) for each in found.printed] == [
        ("printed otherwise", "7.73 s", "7.731 s")
    ]
    assert found.moved_numbers == []


def test_a_quote_of_a_renamed_scenario_is_the_same_quote(history: History) -> None:
    quotes = (history.path / "results/quotes.json").read_text()
    moved = {"time": 7.74}
    history.write(
        {
            "results/scenarios/Step.json": None,
            "results/scenarios/Pace.json": artifact("Pace", moved),
            "scenarios/Pace.toml": 'title = "A step"\nformerly = "Step"\n',
            "results/quotes.json": quotes.replace("Step.time", "Pace.time").replace(
                "7.73 s", "7.74 s"
            ),
        }
    )
    found = compare("HEAD")
    assert found.pairs.scenarios == {"Pace": "Step"}
    assert ("Pace.time", "7.73 s", "7.74 s", "moved") in {
        (each.key, each.old, each.new, each.why) for each in found.printed
    }
    assert not any(each.what == "quote" for each in found.texts)


def test_a_figure_that_is_only_drawn_otherwise_is_told_as_that(history: History) -> None:
    history.step(style=1)
    (figure,) = compare("HEAD").figures
    assert figure.style_only
    history.step(parts=(3.0, 4.0))
    history.write({"results/figures/01_step/parts.csv": "part,s\na,3.0\nb,4.0\nc,1.0\n"})
    (figure,) = compare("HEAD").figures
    assert (figure.rows, figure.style_only) == (("+c",), False)


def test_results_that_are_damaged_are_named_and_told_apart(history: History) -> None:
    path = history.path / "results/scenarios/Step.json"
    path.write_text(path.read_text()[:40])
    found = compare("HEAD")
    assert found.verdict == Verdict.NOT_ITS_SOURCES
    assert "results/scenarios/Step.json is no JSON" in found.warnings
    history.git("checkout", "--quiet", "results")
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 9'))
    (told,) = [each for each in compare("HEAD").warnings if "schema 9" in each]
    assert "made by newer code" in told


def test_records_of_the_first_schema_are_read_as_what_they_were(history: History) -> None:
    new = (history.path / "results/quotes.json").read_text()
    history.write({"results/quotes.json": json.dumps(json.loads(new)["pages"])})
    history.commit()
    history.write({"results/quotes.json": new})
    assert compare("HEAD").verdict == Verdict.NOTHING
    history.step(8.0)
    assert {each.old for each in compare("HEAD").printed} >= {"7.73 s", "7.7 s"}


def test_a_refactor_names_its_functions_and_a_library_its_versions(history: History) -> None:
    history.write(
        {
            "mlsysim/a.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n",
            "requirements.lock": "a==1\n",
        }
    )
    history.commit()
    history.write(
        {"mlsysim/a.py": 'def f():\n    """Words."""\n    return 1\n\n\ndef g():\n    return 3\n'}
    )
    history.write({"requirements.lock": "a==2\n"})
    found = compare("HEAD")
    assert [(each.name, each.parts) for each in found.modules] == [("mlsysim.a", ("g",))]
    assert [(each.name, each.old, each.new) for each in found.libraries] == [("a", "1", "2")]


def test_the_base_is_where_the_branch_left_the_main_one(history: History) -> None:
    history.git("switch", "--quiet", "--create", "branch")
    history.step(8.0)
    history.commit()
    history.git("switch", "--quiet", "main")
    history.step(9.0)
    history.commit("Somebody else's")
    history.git("switch", "--quiet", "branch")
    assert {each.new for each in compare().printed} >= {"8.00 s"}
    assert {each.old for each in compare().printed} >= {"7.73 s"}
    history.git("switch", "--quiet", "--detach", "branch")
    assert {each.old for each in compare("main...branch").printed} >= {"7.73 s"}
    assert {each.old for each in compare("main..branch").printed} >= {"9.00 s"}


def test_a_name_that_is_no_revision_is_told_with_the_nearest(history: History) -> None:
    history.git("tag", "edition-1")
    with pytest.raises(InputError, match=r"'editon-1' is no revision.*did you mean 'edition-1'"):
        compare("editon-1")
    with pytest.raises(InputError, match="without results/"):
        compare(str(history.path / "chapters"))
    assert compare(str(history.path)).verdict == Verdict.NOTHING


def test_a_shallow_clone_without_the_base_says_what_to_fetch(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.git("switch", "--quiet", "--create", "branch")
    history.commit("One")
    history.git("switch", "--quiet", "main")
    history.commit("Two")
    shallow = history.path.with_name("shallow")
    clone = ["git", "clone", "--quiet", "--depth=1", "--no-single-branch", f"file://{history.path}"]
    subprocess.run([*clone, str(shallow)], check=True)
    monkeypatch.setenv("MLSYSIM_ROOT", str(shallow))
    with pytest.raises(InputError, match="shallow, so run: git fetch --unshallow"):
        compare("origin/branch...origin/main")


def test_the_forms_say_the_same_and_markdown_keeps_to_its_limit(history: History) -> None:
    names = [f"Many{number}" for number in range(60)]
    for value in (1.0, 2.0):
        for name in names:
            path = f"results/scenarios/{name}.json"
            history.write({path: artifact(name, {f"out_{n}": value + n for n in range(9)})})
        history.step(7.0 + value)
        history.commit()
    found = compare("HEAD~1", "HEAD")
    told = report(found, whole=True)
    text = "\n".join(lines(told, width=200))
    whole = markdown(told, most=10**6)
    html = page(found)
    for name in ("Many59.out_8", "8.00 s", "9.00 s", "chapters/01_step.md:7"):
        assert name in text
        assert name.replace("_", r"\_") in whole or name in whole
        assert name in html
    short = markdown(told, most=5000)
    assert len(short) <= 5000
    assert "9.00 s" in short
    assert "lists them" in short
    assert json.dumps(as_data(found), allow_nan=False)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(
    st.lists(
        st.tuples(
            st.floats(-1e6, 1e6, allow_subnormal=False), st.floats(-1e6, 1e6, allow_subnormal=False)
        ),
        min_size=1,
        max_size=6,
    )
)
def test_nothing_that_changed_is_missing_and_nothing_else_is_told(
    history: History, values: list[tuple[float, float]]
) -> None:
    for side in (0, 1):
        outputs = {f"out_{number}": pair[side] for number, pair in enumerate(values)}
        history.write({"results/scenarios/Step.json": artifact("Step", outputs)})
        history.commit()
    found = compare("HEAD~1", "HEAD")
    told = {each.name: each.move for each in found.outputs}
    assert set(told) == {
        f"Step.out_{number}" for number, (old, new) in enumerate(values) if old != new
    }
    for move in told.values():
        assert move.difference is not None
        assert math.isfinite(move.difference)
