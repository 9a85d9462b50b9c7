"""Charts on the page: what is drawn is where the numbers say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cavity.report.content import Figure, Histogram, Line, Lines, Matrix, Reliability, Scatter
from cavity.report.inline import inline
from cavity.report.palette import LIGHT, css_class
from cavity.report.plots import opacities, shortened
from report.helpers import HOSTILE, bins, parse


def lines(*curves: tuple[float | None, ...], top: float | None = None) -> Lines:
    made = (Line(f"curve {n}", tuple(range(1, len(y) + 1)), y, n, dashed=n == 1) for n, y in enumerate(curves))
    return Lines("error (%)", tuple(made), top)


def drawn(content, title="title"):
    """The chart as a tree; raises where it is not well-formed."""
    return parse(inline(Figure("key", title, "Caption.", content)))


def curves(tree):
    """Paths in the colour of a curve."""
    return [path for path in tree.iter("path") if "fill:none;" in path.get("style") and "var(--c" in path.get("style")]


def points(path) -> list[list[tuple[float, float]]]:
    """The pieces of a path made of M and L."""
    d = path.get("d").replace("z", "")
    return [[tuple(map(float, p.split())) for p in piece.split("L")] for piece in d.split("M") if piece]


def places(tree, entry) -> list[tuple[float, float]]:
    """Where the script will find the points of a curve, from the box and the range of the axes."""
    left, top, right, bottom = map(float, tree.get("data-box").split())
    x0, x1, y0, y1 = map(float, tree.get("data-range").split())
    return [
        (left + (x - x0) / (x1 - x0) * (right - left), bottom - (y - y0) / (y1 - y0) * (bottom - top))
        for x, y in entry["points"]
    ]


def words(tree) -> list[str]:
    return [node.text for node in tree.iter("text")]


def bars(tree) -> dict[str, list[tuple[float, float, float, float]]]:
    """(left, top, width, height) of everything that says words when pointed at."""
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for group in tree.iter("g"):
        x, y = np.array(points(group.find("path"))[0]).T
        found.setdefault(group.find("title").text, []).append((x.min(), y.min(), np.ptp(x), np.ptp(y)))
    return found


def test_curve_is_affine_in_its_numbers():
    (piece,) = points(curves(drawn(lines((10.0, 0.0, 5.0, 2.5))))[0])
    x, y = np.array(piece).T
    assert np.diff(x) == pytest.approx([np.diff(x)[0]] * 3, abs=0.02)
    bottom, top = y[1], y[0]
    assert y[2:] == pytest.approx([(bottom + top) / 2, bottom + (top - bottom) / 4], abs=0.02)
    assert top < bottom


@pytest.mark.parametrize("values", [(-3.0, -1.0), (0.2, 0.3), (10.0, 0.0), (0.0, 0.0)])
def test_zero_is_always_on_the_axis(values):
    tree = drawn(lines(values))
    assert any(float(text.replace("−", "-")) == 0 for text in words(tree) if text not in ("epoch", "error (%)"))
    (base,) = [path for path in tree.iter("path") if "var(--base)" in path.get("style")]
    (start, end), (piece,) = points(base)[0], points(curves(tree)[0])
    assert start[1] == end[1]
    for value, (_, y) in zip(values, piece, strict=True):
        assert (y < start[1] - 1, y > start[1] + 1) == (value > 0, value < 0)


def test_gaps_split_a_curve_and_single_points_are_dots():
    line = Line("a", (1, 2, 3, 4, 5, 6), (1.0, None, 3.0, float("nan"), 5.0, 4.0), 0)
    tree = drawn(Lines("y", (line,)))
    assert [len(piece) for path in curves(tree) for piece in points(path) if len(piece) > 1] == [2]
    (entry,) = json.loads(tree.get("data-lines"))
    alone = [places(tree, entry)[place][0] for place in (0, 1, 3)]
    assert [float(dot.get("cx")) for dot in tree.iter("circle")] == pytest.approx(alone, abs=0.06)


def test_a_single_epoch_is_a_visible_dot_over_its_number():
    tree = drawn(lines((3.0,)))
    (dot,) = tree.iter("circle")
    ticks = [node for node in tree.iter("text") if node.text == "1" and "middle" in node.get("style")]
    assert [float(tick.get("x")) for tick in ticks] == pytest.approx([float(dot.get("cx"))], abs=0.02)
    assert float(dot.get("r")) > 0


@pytest.mark.parametrize("values", [(0.0, 0.0), (5.0, 5.0), (1e30, 2e31), (1e-12, 3e-12), (-4.0, 7.0), (1.0, 1e300)])
def test_everything_is_inside_the_view_box(values):
    tree = drawn(lines(values))
    width, height = map(float, tree.get("viewBox").split()[2:])
    for path in tree.iter("path"):
        for x, y in points(path)[0]:
            assert 0 <= x <= width
            assert 0 <= y <= height


def test_fixed_top_is_kept():
    assert "1.0" not in words(drawn(lines((0.1, 0.2))))
    assert "1.0" in words(drawn(lines((0.1, 0.2), top=1.0)))
    beyond = drawn(lines((0.1, 2**63), top=1.0))
    assert all(y >= 0 for path in curves(beyond) for _, y in points(path)[0]), "what is beyond it is still drawn"


def test_tooltip_data_has_the_numbers_and_the_places():
    line = Line(HOSTILE, (1, 2), (0.5, 0.25), 3, dashed=True, in_legend=False, run=4)
    tree = drawn(Lines("y", (line,), 1.0))
    (entry,) = json.loads(tree.get("data-lines"))
    (piece,) = points(curves(tree)[0])
    assert entry.pop("points") == [[1, 0.5], [2, 0.25]]
    assert entry == {"name": HOSTILE, "class": "c3", "run": 4, "dashed": True, "quiet": True}
    entry["points"] = [[1, 0.5], [2, 0.25]]
    assert places(tree, entry) == [pytest.approx(p, abs=0.06) for p in piece]
    assert (tree.get("data-x"), tree.get("data-y"), tree.get("data-top")) == ("epoch", "y", "1")


def test_dashes_and_colours_follow_the_line():
    solid, dashed = (path.get("style") for path in curves(drawn(lines((1.0, 2.0), (2.0, 1.0)))))
    assert "var(--c0)" in solid
    assert "dasharray" not in solid
    assert "var(--c1)" in dashed
    assert "dasharray" in dashed


def test_every_colour_is_the_style_sheet_s():
    matrix = Matrix(("a", "b"), np.array([[9, 1], [4, 7]]))
    histogram = Histogram("m", np.linspace(-1, 1, 5), np.full(4, 0.25), 2)
    scatter = Scatter(np.arange(3.0), np.arange(3.0), np.ones(3), 1)
    for content in (lines((1.0, 2.0), (2.0, -1.0)), histogram, Reliability(bins(), 1), scatter, matrix):
        assert "#" not in inline(Figure("key", "title", "Caption.", content))


def test_colours_repeat_fainter():
    assert css_class(1) == "c1"
    assert css_class(len(LIGHT) + 1) == "c1 faint"
    many = drawn(lines(*[(1.0, 2.0)] * (len(LIGHT) + 1)))
    first, *_, last = (path.get("style") for path in curves(many))
    assert "var(--c0)" in first
    assert "var(--c0)" in last
    assert "opacity" not in first
    assert "opacity" in last


def test_descriptions_are_announced():
    tree = drawn(lines((1.0,)), "</title><script>")
    assert tree.get("role") == "img"
    assert tree.get("aria-label") == "</title><script>. Caption."


def test_letters_that_the_font_of_plots_lacks_are_left_to_the_browser():
    assert "猫" in words(drawn(Matrix(("猫", "犬"), np.eye(2, dtype=np.int64))))


def test_histogram_bars_have_the_shares():
    shares = np.array([0.5, 0.0, 0.3, 0.2])
    found = bars(drawn(Histogram("m", np.linspace(-1, 1, 5), shares, 2)))
    assert list(found) == ["−1.00 to −0.50: 50.0\u00a0%", "0.00 to 0.50: 30.0\u00a0%", "0.50 to 1.00: 20.0\u00a0%"]
    left, _, width, height = np.array([bar for (bar,) in found.values()]).T
    assert height / height.sum() == pytest.approx([0.5, 0.3, 0.2], abs=1e-3)
    assert np.diff(left) == pytest.approx(np.array([2, 1]) * width[0] / 0.94, abs=0.1)


def test_reliability_shows_gaps_on_their_side():
    tree = drawn(Reliability(bins(), 0))
    found = list(bars(tree).values())
    assert len(found) == 3, "an empty bin has no bar"
    (low, *_), (shy, *_), (exact, *_) = found
    tall = np.array([low[3], shy[3], exact[3]])
    assert tall / tall[2] == pytest.approx([0.3 / 0.9, 0.6 / 0.9, 1.0], abs=1e-3)
    for solid, gap, _ in found[:2]:
        assert gap[3] == pytest.approx(0.1 * tall[2] / 0.9, abs=0.02)
        assert gap[1] + gap[3] == pytest.approx(solid[1], abs=0.02), "the gap is on top"
    alarm = [path for path in tree.iter("path") if "var(--differ)" in path.get("style")]
    assert len(alarm) == 1, "only one bin is overconfident"


def test_scattered_points_are_where_their_numbers_are():
    truth, predicted = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 4.0])
    tree = drawn(Scatter(truth, predicted, np.full(3, 0.5), 1))
    x, y = (np.array([float(dot.get(name)) for dot in tree.iter("circle")]) for name in ("cx", "cy"))
    assert (x[1] - x[0]) / (x[2] - x[0]) == pytest.approx(1 / 3, abs=0.01)
    assert (y[1] - y[0]) / (y[2] - y[0]) == pytest.approx(2 / 3, abs=0.01)
    intervals = [points(path)[0] for path in tree.iter("path") if "opacity" in path.get("style")]
    heights = [abs(a[1] - b[1]) for a, b in intervals]
    assert heights == pytest.approx([abs(y[2] - y[0]) / 3] * 3, abs=0.05)


def test_matrix_has_a_number_for_every_count():
    counts = np.array([[9, 1, 0], [0, 7, 3], [0, 0, 0]])
    tree = drawn(Matrix(("a", "b", HOSTILE), counts))
    assert [text for text in words(tree) if text.isdigit()] == ["9", "1", "7", "3"]
    assert list(bars(tree)) == [
        "a, right: 9 (90.0\u00a0% of the row)",
        "a taken for b: 1 (10.0\u00a0% of the row)",
        "b, right: 7 (70.0\u00a0% of the row)",
        f"b taken for {HOSTILE.replace(chr(7), chr(0xFFFD))}: 3 (30.0\u00a0% of the row)",
    ]
    ((row, column),) = [[x, y] for ((x, y, *_),) in [bars(tree)["a taken for b: 1 (10.0\u00a0% of the row)"]]]
    ((right, same),) = [[x, y] for ((x, y, *_),) in [bars(tree)["a, right: 9 (90.0\u00a0% of the row)"]]]
    assert row > right
    assert column == same


def test_matrix_colours_are_shares_of_the_row():
    strength = opacities(Matrix(("a", "b"), np.array([[3, 1], [0, 4]])))
    assert strength == pytest.approx(np.array([[0.75, 1.0], [0.0, 1.0]]))
    rare = opacities(Matrix(("a", "b"), np.array([[99, 1], [0, 100]])))
    assert rare[0, 1] == pytest.approx(np.sqrt(0.01 / 0.05))


@pytest.mark.parametrize("classes", [1, 2, 26, 100])
def test_matrices_of_any_size_stay_inside(classes):
    names = tuple(f"class {n}" for n in range(classes))
    tree = drawn(Matrix(names, np.eye(classes, dtype=np.int64)))
    width, height = map(float, tree.get("viewBox").split()[2:])
    cells = [cell for found in bars(tree).values() for cell in found]
    assert len(cells) == classes
    for x, y, wide, tall in cells:
        assert 0 <= x <= width - wide
        assert 0 <= y <= height - tall
        assert wide > 0


def test_long_names_are_cut():
    assert shortened("ankle boot") == "ankle boot"
    assert shortened("a very long class name") == "a very long…"
