"""Figures: the same bytes on every run, readable in print, in grey and with any colour vision."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from mlsysim import paths
from mlsysim.book import new_figure, save_figure, stacked_bars, timeline, waterfall
from mlsysim.book.products.figures import PALETTE
from mlsysim.book.products.product_files import print_file, print_record
from mlsysim.errors import InputError

NAME = "01_x/parts"

DRAW = """
import pandas as pd
from mlsysim.book import new_figure, save_figure, waterfall
figure, axes = new_figure(height=2.5)
texts = ["1 s", "2 s", "1 s"]
waterfall(axes, ["one", "two", "three"], [1.0, 2.0, 0.5], kinds=["a", "b", "c"], texts=texts)
axes.set_xlabel("time (s)")
save_figure("01_x/parts", figure, data=pd.DataFrame({"part": ["one"], "seconds": [0.1 + 0.2]}))
"""


def draw(root: Path, seed: str, settings: Path) -> dict[str, bytes]:
    """The files that drawing in a process of its own makes."""
    environment = {
        **os.environ,
        "MLSYSIM_ROOT": str(root),
        "PYTHONHASHSEED": seed,
        "PYTHONPATH": str(paths.PACKAGE.parent),
        "MATPLOTLIBRC": str(settings),
    }
    subprocess.run([sys.executable, "-W", "error", "-c", DRAW], env=environment, check=True)
    made = [*root.glob("results/figures/01_x/*"), *root.glob("build/figures/01_x/*")]
    return {path.name: path.read_bytes() for path in made}


def test_a_figure_has_the_same_bytes_whatever_the_run_and_the_persons_settings(
    root: Path, tmp_path: Path
) -> None:
    plain, own = tmp_path / "plain" / "matplotlibrc", tmp_path / "own" / "matplotlibrc"
    for path, text in ((plain, ""), (own, "font.size: 20\nsvg.fonttype: none\naxes.grid: False\n")):
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
    first = draw(root, "1", plain)
    assert set(first) == {"parts.svg", "parts.csv", "parts.pdf", "parts.drawn"}
    for path in root.glob("*/figures/01_x/*"):
        path.unlink()
    assert draw(root, "2", own) == first
    assert first["parts.csv"] == b"part,seconds\none,0.3\n"
    for content in first.values():
        assert mpl.__version__.encode() not in content
        assert b"Matplotlib" not in content
        assert not re.search(rb"20\d\d-\d\d-\d\d|/CreationDate", content)


@pytest.mark.usefixtures("root")
def test_a_figure_is_drawn_for_print_again_only_if_it_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn, kinds = Figure.savefig, list[str]()

    def noting(figure: Figure, place: Any, **options: Any) -> None:
        kinds.append(options["format"])
        drawn(figure, place, **options)

    def save(height: float) -> tuple[list[str], bytes]:
        kinds.clear()
        figure, axes = new_figure(height=2.0)
        axes.plot([0, height], [0, 1])
        save_figure(NAME, figure, data=pd.DataFrame({"x": [0, height]}))
        return [*kinds], print_file(NAME).read_bytes()

    monkeypatch.setattr(Figure, "savefig", noting)
    made, first = save(1.0)
    assert made == ["svg", "pdf"]
    assert save(1.0) == (["svg"], first)
    print_file(NAME).write_bytes(b"torn")
    assert save(1.0) == (["svg", "pdf"], first)
    print_file(NAME).unlink()
    assert save(1.0) == (["svg", "pdf"], first)
    made, other = save(2.0)
    assert made == ["svg", "pdf"]
    assert other != first
    print_record(NAME).write_text("drawn by another version", encoding="utf-8")
    assert save(2.0) == (["svg", "pdf"], other)


@pytest.mark.usefixtures("root")
def test_the_drawing_is_an_image_of_the_size_it_is_printed_in() -> None:
    figure, axes = new_figure(width=5.5, height=2.0)
    axes.plot([0, 1], [0, 1])
    shown = save_figure(NAME, figure, data=pd.DataFrame({"x": [0, 1], "y": [0, 1]}))
    svg = ET.fromstring(shown._repr_svg_())
    assert svg.get("width") == "396pt"
    assert svg.get("height") == "144pt"
    assert not re.search(r"[ \t]+$", shown.svg, re.MULTILINE)


def test_no_text_of_a_figure_is_too_small_to_print() -> None:
    figure, axes = new_figure()
    parts = ["one", "two"]
    waterfall(axes, parts, [1.0, 2.0], kinds=["a", "b"], texts=["1 s", "2 s"])
    axes.set_xlabel("time (s)")
    figure.draw_without_rendering()
    assert {text.get_fontsize() for text in figure.findobj(Text) if text.get_text()} == {9.0}


def luminance(color: tuple[float, float, float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_colours_differ_in_grey_and_the_hatches_too() -> None:
    for (one, hatch), (other, other_hatch) in combinations(PALETTE, 2):
        dark, light = sorted((luminance(to_rgb(one)), luminance(to_rgb(other))))
        assert (light + 0.05) / (dark + 0.05) > 1.8
        assert hatch != other_hatch


def test_the_bars_of_a_waterfall_join_up_to_the_sum() -> None:
    _, axes = new_figure()
    waterfall(
        axes, ["a", "b", "c"], [1.0, 2.0, 0.5], kinds=["x", "y", "x"], texts=["1", "2", "0.5"]
    )
    bars = [bar for bar in axes.patches if bar.get_width()]  # type: ignore[attr-defined]
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars]  # type: ignore[attr-defined]
    assert ends == [(0.0, 1.0), (1.0, 3.0), (3.0, 3.5)]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["x", "y"]


def test_stacked_bars_stand_on_each_other() -> None:
    _, axes = new_figure()
    tops = stacked_bars(axes, {"low": [1.0, 2.0], "high": [0.5, 3.0]})
    assert tops == [1.5, 5.0]
    bars = [(bar.get_y(), bar.get_height()) for bar in axes.patches]  # type: ignore[attr-defined]
    assert bars == [(0.0, 1.0), (0.0, 2.0), (1.0, 0.5), (2.0, 3.0)]
    assert len({bar.get_hatch() for bar in axes.patches}) == 2
    with pytest.raises(InputError, match="5 parts"):
        stacked_bars(axes, {name: [1.0] for name in "abcde"})


def test_a_timeline_has_a_box_for_each_pass_with_the_first_stage_on_top() -> None:
    figure, axes = new_figure()
    passes = [(1, 0.0, 1.0, "1", ("#004488", "white")), (2, 1.0, 3.0, "2", ("#DDAA33", "black"))]
    timeline(axes, passes)
    boxes = [(box.get_x(), box.get_width()) for box in axes.patches]  # type: ignore[attr-defined]
    assert boxes == [(0.0, 1.0), (1.0, 2.0)]
    low, high = axes.get_ylim()
    assert low > 2 > 1 > high
    texts = [text for text in figure.findobj(Text) if text.get_text() in "12" and text.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 7


def test_more_kinds_than_a_reader_can_tell_apart_are_refused() -> None:
    _, axes = new_figure()
    with pytest.raises(InputError, match="5 kinds"):
        waterfall(axes, list("abcde"), [1.0] * 5, kinds=list("vwxyz"), texts=list("11111"))


def test_lines_take_the_palette_in_turn_with_dashes_of_their_own() -> None:
    _, axes = new_figure()
    lines = [axes.plot([0, 1], [0, 1])[0] for _ in PALETTE]
    assert [line.get_color() for line in lines] == [color for color, _ in PALETTE]
    assert len({str(line.get_linestyle()) for line in lines}) == len(PALETTE)


@pytest.mark.usefixtures("root")
def test_a_figure_without_its_data_is_refused() -> None:
    figure, _ = new_figure()
    with pytest.raises(InputError, match="column 'y', row 1: a value is missing"):
        save_figure(NAME, figure, data=pd.DataFrame({"x": [1], "y": [float("nan")]}))
    with pytest.raises(InputError, match="nothing in it"):
        save_figure(NAME, figure, data=pd.DataFrame({"x": []}))
    assert not (paths.results() / "figures").exists()
