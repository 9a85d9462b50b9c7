"""What a page shows for which runs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from cavity.report.configuration import configuration
from cavity.report.content import Gallery, Histogram, Lines, Matrix, Reliability, Scatter, Table
from cavity.report.overview import comparison, final_numbers, sections, shared_facts
from cavity.report.summary import FeatureMaps, NumbersSummary
from cavity.report.wording import duration, error, fixed, listed, percent, share
from report.helpers import layer, outcome, record, summary


def contents(runs, kind):
    return {f.key: f.content for part in sections(runs) for f in part.figures if isinstance(f.content, kind)}


def test_one_run_has_every_figure():
    assert [part.key for part in sections([summary()])] == [
        "learning",
        "layers",
        "magnetisations",
        "predictions",
        "examples",
        "first-layer",
        "configuration",
    ]
    assert list(contents([summary()], Lines)) == ["error", "nll", "ece", "seconds", "polarisation", "overlap"]
    assert list(contents([summary()], Histogram)) == ["magnetisation-1-1", "magnetisation-1-2"]
    assert list(contents([summary()], Matrix)) == ["confusion-1"]
    assert list(contents([summary()], Gallery)) == [
        "most-certain-1",
        "least-certain-1",
        "certain-mistakes-1",
        "first-layer-1",
    ]


def test_the_error_figure_has_train_and_test_both_ways():
    chart = contents([summary(epochs=3)], Lines)["error"]
    assert {line.name: line.y[1] for line in chart.lines} == {
        "test": 12.5,
        "test, Bayesian": 11.0,
        "train": 10.0,
        "train, Bayesian": 9.0,
    }
    assert [line.dashed for line in chart.lines] == [False, True, False, True]
    assert all(line.x == (1, 2, 3) for line in chart.lines)


def test_several_runs_share_their_curves():
    runs = [summary("a", 2), summary("b", 5), summary("c", 3)]
    chart = contents(runs, Lines)["test-error"]
    solid = [line for line in chart.lines if not line.dashed]
    assert [(line.name, len(line.x), line.colour) for line in solid] == [("a", 2, 0), ("b", 5, 1), ("c", 3, 2)]
    assert {"polarisation-1", "polarisation-2", "overlap-1", "overlap-2"} <= set(contents(runs, Lines))
    assert set(contents(runs, Reliability)) == {"reliability-1", "reliability-2", "reliability-3"}
    assert sections(runs)[0].key == "summary"


def test_runs_of_different_depth():
    deep = summary("deep", layers=(layer(1), layer(2), layer(3)))
    deep = dataclasses.replace(deep, records=(record(1, polarization=[0.1, 0.2, 0.3], overlap=[0.0, 0.0, 0.0]),))
    third = contents([summary("flat"), deep], Lines)["polarisation-3"]
    assert [line.name for line in third.lines] == ["deep"]


def test_metrics_without_values_have_no_figure():
    nothing = {name: None for name in ("test_error", "test_error_bayes", "test_nll", "test_ece")}
    run = summary(records=(record(1, **nothing), record(2, **nothing)))
    assert "nll" not in contents([run], Lines)
    assert [line.name for line in contents([run], Lines)["error"].lines] == ["train", "train, Bayesian"]
    assert "nll" not in contents([summary(records=(record(1, test_nll=float("nan")),))], Lines)


def test_a_run_before_its_first_epoch():
    keys = [part.key for part in sections([summary(records=())])]
    assert "learning" not in keys
    assert "magnetisations" in keys
    assert final_numbers(summary(records=()))[0].written == "—"


def test_a_run_without_a_test_set_or_images():
    keys = [part.key for part in sections([summary(test=None, first_layer=None)])]
    assert not {"predictions", "examples", "first-layer"} & set(keys)
    table = contents([summary(test=outcome(image=False))], Table)["certain-mistakes-1"]
    assert table.rows == (("7", "cat", "90.0\u00a0%", "dog"),)
    assert table.marked == {(0, 3)}


def test_regression_speaks_of_root_mean_squares():
    run = summary(percent=False, test=None)
    assert contents([run], Lines)["error"].y_label == "root mean square error"
    assert [(number.label, number.written) for number in final_numbers(run)[:5]] == [
        ("Test RMSE", "6.2500"),
        ("Test RMSE, Bayesian", "5.5000"),
        ("Training RMSE", "5.0000"),
        ("Test NLL", "0.250"),
        ("R²", "—"),
    ]


def numbers(samples: int = 500) -> NumbersSummary:
    truth = np.linspace(10, 20, samples)
    return NumbersSummary(truth, truth + 1, np.full(samples, 2.0), 1.25, 1.0, 0.9, 0.875)


def test_predicted_numbers_are_drawn_against_the_truth():
    run = summary(percent=False, test=None, numbers=numbers())
    chart = contents([run], Scatter)["numbers-1"]
    assert len(chart.truth) == 200
    assert (chart.truth[0], chart.truth[-1]) == (10, 20)
    assert chart.predicted == pytest.approx(chart.truth + 1)
    assert chart.reach == pytest.approx(1.6449 * 2)
    caption = next(f.caption for part in sections([run]) for f in part.figures if f.key == "numbers-1")
    assert "200 of 500 test samples" in caption
    assert "87.50\u00a0% of all do" in caption
    assert {number.label: number.written for number in final_numbers(run)}["Coverage"] == "87.50\u00a0%"


def test_polarisation_ends_at_one_only_where_it_must():
    assert contents([summary()], Lines)["polarisation"].top == 1.0
    free = summary(layers=(layer(1, bound=None), layer(2)))
    assert contents([free], Lines)["polarisation"].top is None


def test_the_best_of_each_error_is_marked():
    good, bad = summary("good", 10), summary("bad", 2)
    table = comparison([good, bad]).figures[0].content
    assert table.head[1] == "Test error"
    assert table.rows[0][:2] == ("good", "2.50\u00a0%")
    assert (0, 1) in table.marked
    assert not any(row == 1 for row, _ in table.marked)
    assert table.values[0][1] == 2.5
    assert table.runs == (0, 1)
    ece = table.head.index("ECE")
    assert (0, ece) not in table.marked, "both are equal, so none is the best"
    assert (0, table.head.index("Training time")) not in table.marked


def test_runs_that_differ_have_a_row_each():
    a = summary("a", 4, chosen=frozenset({"dataset"}))
    b = summary("b", 5, config=(("epochs", "5"), ("dataset", "pets"), ("bias", "yes")), chosen=frozenset({"bias"}))
    differing, chosen = (figure.content for figure in configuration([a, b]).figures)
    assert (differing.head, differing.rows) == (("Run", "epochs", "bias"), (("a", "4", "—"), ("b", "5", "yes")))
    assert differing.marked == {(1, 2)}
    assert chosen.rows == (("dataset", "pets"),)


def test_what_was_chosen_stands_before_what_was_left_to_its_default():
    chosen, defaults = configuration([summary(chosen=frozenset({"epochs"}))]).figures
    assert (chosen.content.rows, chosen.content.folded) == ((("epochs", "4"),), False)
    assert (defaults.content.rows, defaults.content.folded) == ((("dataset", "pets"),), True)
    (everything,) = configuration([summary()]).figures
    assert everything.content.rows == (("dataset", "pets"), ("epochs", "4")), "nobody knows what was chosen"


def test_means_over_seeds_are_those_of_the_runs():
    seeds = [(("dataset", "pets"), ("seed", str(n))) for n in range(3)]
    runs = [summary(f"mf-seed{n}", epochs, config=seeds[n]) for n, epochs in enumerate((5, 10, 10))]
    runs.append(summary("other", 5, config=(("dataset", "pets"), ("seed", "0"), ("bias", "yes"))))
    table = next(f.content for f in comparison(runs).figures if f.key == "seeds")
    errors = np.array([5.0, 2.5, 2.5])
    expected = f"{errors.mean():.2f}\u00a0±\u00a0{errors.std(ddof=1):.2f}\u00a0%"
    assert table.rows[0][:3] == ("mf", "3", expected)
    assert table.rows[1][:3] == ("other", "1", "5.00\u00a0%")
    assert table.values[0][2] == pytest.approx(errors.mean())
    assert table.runs == (0, 3)
    assert not [f for f in comparison(runs[2:]).figures if f.key == "seeds"]


def test_facts_that_differ_have_a_row_for_each_run():
    common, hosts = ("Algorithm", "mf"), (("Machine", "a"), ("Machine", "b"))
    runs = [summary(name, facts=(common, host)) for name, host in zip("xy", hosts, strict=True)]
    assert shared_facts(runs) == [common]
    table = next(f.content for f in comparison(runs).figures if f.key == "origins")
    assert (table.head, table.rows) == (("Run", "Machine"), (("x", "a"), ("y", "b")))


def test_the_last_epoch_that_was_measured_counts():
    nothing = dict.fromkeys(("test_error", "test_error_bayes", "train_error", "train_error_bayes", "test_nll"))
    assert final_numbers(summary(records=(record(1), record(2, **nothing))))[0].written == "25.00\u00a0%"


def test_feature_maps_have_a_row_for_each_image():
    maps = FeatureMaps("Layer 1", "sign", (3, 5), np.linspace(-1, 1, 2 * 3 * 4).reshape(2, 3, 2, 2), 7)
    images = (np.zeros((8, 8), np.uint8),) * 2
    gallery = contents([summary(maps=(maps,), map_images=images)], Gallery)["maps-1-1"]
    assert gallery.columns == 4
    assert [tile.description for tile in gallery.tiles[3:6]] == [
        "channel 3 on test image 3",
        "test image 5",
        "channel 1 on test image 5",
    ]


def test_captions_name_the_commonest_confusion():
    test = dataclasses.replace(outcome(), confusion=np.array([[8, 0], [5, 7]]), samples=20)
    figure = next(f for p in sections([summary(test=test)]) for f in p.figures if f.key == "confusion-1")
    assert "15 of 20" in figure.caption
    assert "“dog” taken for “cat”, 5 times" in figure.caption


@pytest.mark.parametrize("runs", [[summary()], [summary("a"), summary("b")]])
def test_every_figure_has_a_title_and_says_what_to_look_for(runs):
    figures = [figure for part in sections(runs) for figure in part.figures]
    assert all(figure.title and figure.caption.endswith(".") for figure in figures)
    assert len({figure.key for figure in figures}) == len(figures)


def test_numbers_as_people_read_them():
    assert (fixed(-0.5, 2), fixed(None, 2), fixed(float("inf"), 2), fixed(2e9, 1)) == ("−0.50", "—", "—", "2.00e+09")
    assert (error(3.14159, True), error(3.14159, False)) == ("3.14\u00a0%", "3.1416")
    assert [share(v) for v in (0, 1e-5, 0.5, 0.99999, 1)] == [
        f"{v}\u00a0%" for v in ("0.0", "<0.1", "50.0", ">99.9", "100.0")
    ]
    assert percent(0.01234) == "1.23\u00a0%"
    assert [duration(v) for v in (3.21, 61, 7260, float("inf"))] == [
        *("3.2\u00a0s", "1\u00a0min 01\u00a0s", "2\u00a0h 01\u00a0min", "—")
    ]
    assert [listed(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
