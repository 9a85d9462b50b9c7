"""Figures by matplotlib."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from cavity.report.content import Table
from cavity.report.overview import sections
from cavity.report.plots import draw, save, save_plots
from report.helpers import outcome, record, summary

DOLLARS = "a $\\frac{$ & <run>"


@pytest.mark.parametrize("runs", [[summary()], [summary(DOLLARS), summary("b", 9)]], ids=["one", "several"])
def test_every_figure_is_written_twice(runs, tmp_path):
    paths = save_plots(runs, tmp_path / "plots")
    keys = [f.key for part in sections(runs) for f in part.figures if not isinstance(f.content, Table)]
    assert sorted(path.name for path in paths) == sorted(f"{key}.{kind}" for key in keys for kind in ("png", "svg"))
    for path in paths:
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert min(image.size) > 150
                assert np.asarray(image.convert("L")).std() > 5, f"{path.name} is empty"
        else:
            assert ET.parse(path).getroot().tag.endswith("svg")


def figure(runs, key):
    return next(one for part in sections(runs) for one in part.figures if one.key == key)


def test_names_are_not_formulas(tmp_path):
    _, svg = save(figure([summary(DOLLARS), summary("b")], "test-error"), tmp_path)
    words = [node.text for node in ET.parse(svg).iter() if node.tag.endswith("text")]
    assert DOLLARS in words


@pytest.mark.parametrize("key", ["error", "reliability-1", "most-certain-1"])
def test_files_do_not_change_when_nothing_else_does(key, tmp_path):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    first, second = (save(figure([summary()], key), folder) for folder in folders)
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_curve_goes_on_over_epochs_that_were_not_measured():
    records = (record(1), record(2, test_error=None), record(3))
    (axes,) = draw(figure([summary(records=records)], "error").content).axes
    curves = {line.get_label(): list(line.get_xdata()) for line in axes.lines}
    assert curves["test"] == [1, 3]
    assert curves["train"] == [1, 2, 3]


def test_large_matrices_have_no_numbers():
    few, many = (
        draw(figure([summary(test=outcome(tuple(map(str, range(n)))))], "confusion-1").content).axes[0] for n in (3, 26)
    )
    assert len(few.texts) == 9
    assert len(many.texts) == 0
