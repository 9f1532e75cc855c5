"""The text of a chapter as a notebook previews it: quotes printed, tables filled in, no cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlsysim import preview, read
from mlsysim.book.products.tables import save_table
from mlsysim.book.source import cells
from mlsysim.errors import InputError, MlsysimError, UnknownName
from mlsysim.runtime.turns import BUILD
from tests.books import line_of, write

STEP = "DenseLLMPretrainingStep"
TEXT = """\
 A step takes {quote}`step.step_time in s as .2f`, {claim}`under a minute if step.step_time < 60 s`:

$$
T = {quote}`step.step_time in s as .2f`
$$

:::{table} Parts.
```{include} ../results/tables/01_small/parts.md
```
:::
"""


@pytest.fixture
def root(solved: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A solved root in which nobody builds."""
    monkeypatch.delenv(BUILD)
    return solved


def test_a_preview_is_the_text_with_its_numbers_and_tables_and_without_cells(root: Path) -> None:
    import pandas as pd

    write(root, 'secret = "a cell"', TEXT)
    assert "01_small/parts is not saved yet: run its cell" in repr(preview("01_small"))
    time = read(STEP).quote("step_time in s as .2f")
    save_table("01_small/parts", pd.DataFrame({"Part": ["all of it"], "Time": [time]}))
    number = time.text.partition("\N{NO-BREAK SPACE}")[0]
    text = repr(preview("01_small"))
    assert text == preview("01_small")._repr_markdown_()
    assert text == (
        f"# Small\n\n\nA step takes {time}, under a minute:\n\n"
        f"$$\nT = {number}\\,\\mathrm{{s}}\n$$\n\n"
        f":::{{table}} Parts.\n| Part | Time |\n| :-- | --: |\n| all of it | {time} |\n:::\n"
    )


def test_a_preview_says_first_what_is_stale(root: Path) -> None:
    write(root, TEXT)
    path = root / f"scenarios/{STEP}.toml"
    path.write_text(path.read_text("utf-8").replace("value = 0.696", "value = 0.5"), "utf-8")
    assert repr(preview("01_small")).startswith("STALE, run snakemake artifacts: inputs changed")
    assert preview("01_small")._repr_markdown_().startswith("**STALE, run snakemake artifacts: ")


def test_a_preview_names_every_quote_that_cannot_be_printed_with_its_line(root: Path) -> None:
    text = write(root, " One {quote}`step.step_tim`.\nTwo {quote}`step.none`.")
    with pytest.raises(MlsysimError) as error:
        preview("01_small")
    for part in ("step.step_tim", "step.none"):
        assert f"chapters/01_small.md:{line_of(text, part)}: quote `{part}`" in str(error.value)
    with pytest.raises(UnknownName, match="'01_smal' is no chapter; did you mean '01_small'"):
        preview("01_smal")


def test_a_chapter_in_which_a_preview_is_left_is_refused_with_the_line(root: Path) -> None:
    text = write(root, 'from mlsysim import preview\npreview("01_small")')
    with pytest.raises(InputError, match=r"cannot import mlsysim\.preview") as error:
        cells.uses("01_small")
    assert f"chapters/01_small.md:{line_of(text, 'from mlsysim')}: " in str(error.value)
