"""Charts: what is drawn is where the numbers say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cavity.report.chart import colour_class, finite_points, histogram, legend, line_chart, reliability_chart
from cavity.report.content import Histogram, Line, Lines, Matrix, Reliability
from cavity.report.heatmap import heat_map, opacities, shortened
from cavity.report.palette import LIGHT
from report.helpers import HOSTILE, bins, of_class, parse


def lines(*curves: tuple[float | None, ...], top: float | None = None) -> Lines:
    made = (Line(f"curve {n}", tuple(range(1, len(y) + 1)), y, n, dashed=n == 1) for n, y in enumerate(curves))
    return Lines("epoch", "error (%)", tuple(made), top)


def points(path: str) -> list[list[tuple[float, float]]]:
    """The pieces of a path made of M and L."""
    return [[tuple(map(float, p.split())) for p in piece.split("L")] for piece in path.split("M") if piece]


def test_curve_is_affine_in_its_numbers():
    tree = parse(line_chart(lines((10.0, 0.0, 5.0, 2.5)), "d"))
    (piece,) = points(of_class(tree, "curve")[0].get("d"))
    x, y = np.array(piece).T
    assert np.diff(x) == pytest.approx([np.diff(x)[0]] * 3, abs=0.02)
    bottom, top = y[1], y[0]
    assert y[2:] == pytest.approx([(bottom + top) / 2, bottom + (top - bottom) / 4], abs=0.02)
    assert top < bottom


def test_zero_is_on_the_axis_and_its_tick():
    tree = parse(line_chart(lines((10.0, 0.0)), "d"))
    (piece,) = points(of_class(tree, "curve")[0].get("d"))
    assert float(of_class(tree, "base")[0].get("y1")) == pytest.approx(piece[1][1], abs=0.01)


@pytest.mark.parametrize("values", [(-3.0, -1.0), (0.2, 0.3)])
def test_zero_is_always_on_the_axis(values):
    tree = parse(line_chart(lines(values), "d"))
    assert len(of_class(tree, "base")) == 1


def test_gaps_split_a_curve():
    line = Line("a", (1, 2, 3, 4, 5), (1.0, None, 3.0, float("nan"), 5.0), 0)
    assert finite_points(line) == [[(1, 1.0)], [(3, 3.0)], [(5, 5.0)]]
    tree = parse(line_chart(Lines("epoch", "y", (line,)), "d"))
    assert len(points(of_class(tree, "curve")[0].get("d"))) == 3


def test_a_single_epoch_is_a_visible_dot():
    (dot,) = of_class(parse(line_chart(lines((3.0,)), "d")), "end")
    assert 0 < float(dot.get("cx")) < 440
    assert float(dot.get("r")) > 0


@pytest.mark.parametrize("values", [(), (None,), (float("inf"),)])
def test_no_values_is_said(values):
    assert "no values" in line_chart(lines(values), "d")


@pytest.mark.parametrize("values", [(0.0, 0.0), (5.0, 5.0), (1e30, 2e31), (1e-12, 3e-12), (-4.0, 7.0)])
def test_everything_is_inside_the_view_box(values):
    tree = parse(line_chart(lines(values), "d"))
    width, height = map(float, tree.get("viewBox").split()[2:])
    for path in of_class(tree, "curve"):
        for x, y in points(path.get("d"))[0]:
            assert 0 <= x <= width
            assert 0 <= y <= height


def test_fixed_top_is_kept():
    free = parse(line_chart(lines((0.1, 0.2)), "d"))
    fixed = parse(line_chart(lines((0.1, 0.2), top=1.0), "d"))
    assert "1.0" not in [node.text for node in of_class(free, "tick")]
    assert "1.0" in [node.text for node in of_class(fixed, "tick")]


def test_tooltip_data_has_the_numbers_and_the_places():
    content = Lines("epoch", "y", (Line(HOSTILE, (1, 2), (0.5, 0.25), 3, dashed=True),))
    tree = parse(line_chart(content, "d"))
    (entry,) = json.loads(tree.get("data-lines"))
    (piece,) = points(of_class(tree, "curve")[0].get("d"))
    assert (entry["name"][:20], entry["class"], entry["dashed"]) == (HOSTILE[:20], "c3", True)
    assert [point[:2] for point in entry["points"]] == [[1, 0.5], [2, 0.25]]
    assert [tuple(point[2:]) for point in entry["points"]] == [pytest.approx(p, abs=0.06) for p in piece]


def test_dashes_and_colours_follow_the_line():
    tree = parse(line_chart(lines((1.0, 2.0), (2.0, 1.0)), "d"))
    assert [path.get("class") for path in of_class(tree, "curve")] == ["curve", "curve dashed"]
    assert [group.get("class") for group in tree.iter("g")] == ["c0", "c1"]


def test_legend_lists_what_is_in_it():
    content = lines((1.0,), (2.0,))
    assert [node.text or list(node)[-1].tail for node in parse(legend(content)).iter("li")] == ["curve 0", "curve 1"]
    assert legend(lines((1.0,))) == ""


def test_colours_repeat_fainter():
    assert colour_class(1) == "c1"
    assert colour_class(len(LIGHT) + 1) == "c1 faint"


def test_descriptions_are_announced():
    tree = parse(line_chart(lines((1.0,)), HOSTILE))
    assert tree.get("role") == "img"
    assert tree.get("aria-label").startswith("</title><script>")


def test_histogram_bars_have_the_shares():
    shares = np.array([0.5, 0.0, 0.3, 0.2])
    tree = parse(histogram(Histogram("m", "%", np.linspace(-1, 1, 5), shares, 2), "d"))
    bars = of_class(tree, "bar")
    heights = np.array([float(bar.get("height")) for bar in bars])
    assert heights / heights.sum() == pytest.approx([0.5, 0.3, 0.2], abs=1e-3)
    assert float(bars[1].get("x")) - float(bars[0].get("x")) == pytest.approx(2 * 262 / 4, abs=0.1)
    assert bars[0].find("title").text == "−1.00 to −0.50: 50.0\u00a0%"


def test_reliability_shows_gaps_on_their_side():
    tree = parse(reliability_chart(Reliability(bins(), 0), "d"))
    over, modest = of_class(tree, "gap"), of_class(tree, "modest")
    bars = of_class(tree, "bar")[:3]
    bottom = float(bars[0].get("y")) + float(bars[0].get("height"))
    tall = [bottom - float(bar.get("y")) for bar in bars]
    assert np.array(tall) / tall[2] == pytest.approx([0.3 / 0.9, 0.6 / 0.9, 1.0], abs=1e-3)
    assert len(over) == 1
    assert float(over[0].get("height")) == pytest.approx(0.1 * tall[2] / 0.9, abs=0.02)
    assert [round(float(bar.get("height")), 1) for bar in modest] == [round(0.1 * tall[2] / 0.9, 1), 0.0]


def test_matrix_has_a_number_for_every_count():
    counts = np.array([[9, 1, 0], [0, 7, 3], [0, 0, 0]])
    tree = parse(heat_map(Matrix("truth", "prediction", ("a", "b", HOSTILE), counts), "d"))
    assert [node.text for node in of_class(tree, "count")] == ["9", "1", "7", "3"]
    assert len(of_class(tree, "cell")) == 9
    assert [node.find("title").text for node in of_class(tree, "differ")] == [
        "a taken for b: 1 (10.0\u00a0% of the row)",
        f"b taken for {HOSTILE.replace(chr(7), chr(0xFFFD))}: 3 (30.0\u00a0% of the row)",
    ]


def test_matrix_colours_are_shares_of_the_row():
    strength = opacities(Matrix("t", "p", ("a", "b"), np.array([[3, 1], [0, 4]])))
    assert strength == pytest.approx(np.array([[0.75, 1.0], [0.0, 1.0]]))
    rare = opacities(Matrix("t", "p", ("a", "b"), np.array([[99, 1], [0, 100]])))
    assert rare[0, 1] == pytest.approx(np.sqrt(0.01 / 0.05))


@pytest.mark.parametrize("classes", [1, 2, 26, 100])
def test_matrices_of_any_size_stay_inside(classes):
    names = tuple(f"class {n}" for n in range(classes))
    tree = parse(heat_map(Matrix("t", "p", names, np.eye(classes, dtype=np.int64)), "d"))
    width, height = map(float, tree.get("viewBox").split()[2:])
    for cell in of_class(tree, "cell"):
        assert 0 <= float(cell.get("x")) <= width - float(cell.get("width"))
        assert 0 <= float(cell.get("y")) <= height - float(cell.get("height"))
        assert float(cell.get("width")) > 0


def test_long_names_are_cut():
    assert shortened("ankle boot") == "ankle boot"
    assert shortened("a very long class name") == "a very long…"
