"""The classifier: labels, tools of scikit-learn, continual learning, probabilities, odd data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_blobs, make_classification
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import cavity
from cavity.core.priors import PRIORS
from cavity.estimator.samples import held_out

SMALL = {"hidden": (51,), "epochs": 5, "random_state": 0}


def small(**changes) -> cavity.MessagePassingClassifier:
    return cavity.MessagePassingClassifier(**{**SMALL, **changes})


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray]:
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def fitted(iris) -> cavity.MessagePassingClassifier:
    return small().fit(*iris)


@pytest.mark.parametrize(
    "names", [["setosa", "versicolor", "virginica"], [-3, 0, 70], [-1.0, 0.0, 8.0], [False, True, True]]
)
def test_labels_of_any_type_come_back(iris, names: list) -> None:
    X, y = iris
    labels = np.array(names)[y]
    clf = small().fit(X, labels)
    assert clf.classes_.tolist() == sorted(set(names))
    assert clf.predict(X).dtype == labels.dtype
    assert clf.score(X, labels) > 0.93
    assert clf.predict(X, method="point").dtype == labels.dtype


@pytest.mark.parametrize("weights", PRIORS)
def test_every_kind_of_weights_learns(weights: str) -> None:
    X, y = make_blobs(300, 20, centers=3, cluster_std=3.0, random_state=0)
    clf = small(weights=weights).fit(X[:200], y[:200])
    assert clf.score(X[200:], y[200:]) > 0.95
    assert np.mean(clf.predict(X[200:], method="point") == y[200:]) > 0.95


def test_relu_units_do_not_run_away() -> None:
    """Without a floor under their precision, weights below ReLU units lose it all here, and with it what was learnt."""
    X, y = load_digits(return_X_y=True)
    assert small(activation="relu", epochs=8).fit(X, y).score(X, y) > 0.9


def test_bayesian_is_the_default_and_says_what_predict_proba_says(fitted, iris) -> None:
    X, _ = iris
    p = fitted.predict_proba(X)
    assert p.shape == (150, 3)
    assert np.abs(p.sum(axis=1) - 1).max() < 1e-12
    assert np.array_equal(fitted.predict(X), p.argmax(axis=1))
    assert np.array_equal(fitted.predict(X), fitted.predict(X, method="bayes"))
    with pytest.raises(ValueError, match="method must be 'point' or 'bayes', got 'map'"):
        fitted.predict(X, method="map")


def test_the_same_seed_gives_the_same_network_and_another_another(iris) -> None:
    one, same, other = (small(random_state=seed).fit(*iris).predict_proba(iris[0]) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_scale_and_offset_of_the_features_do_not_matter_unless_told(iris) -> None:
    X, y = iris
    moved = 1000 * X - 5e5
    assert np.allclose(small().fit(X, y).predict_proba(X), small().fit(moved, y).predict_proba(moved), atol=1e-3)
    raw = small(standardize=False).fit(X, y)
    assert raw.scaler_ is None
    assert not np.allclose(raw.predict_proba(X), small().fit(X, y).predict_proba(X), atol=1e-3)


def test_pickling_keeps_predictions_and_the_way_on(fitted, iris) -> None:
    X, y = iris
    copy = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copy.predict_proba(X), fitted.predict_proba(X))
    once_more = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copy.partial_fit(X, y).predict_proba(X), once_more.partial_fit(X, y).predict_proba(X))
    assert not np.array_equal(copy.predict_proba(X), fitted.predict_proba(X))


def test_clone_pipeline_grid_search_and_cross_validation(iris) -> None:
    X, y = iris
    assert clone(small(weights="ternary")).get_params() == small(weights="ternary").get_params()
    pipeline = make_pipeline(PolynomialFeatures(2), small(epochs=3, batch_size=10))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9
    search = GridSearchCV(small(), {"epochs": [1, 3]}, cv=2).fit(X, y)
    assert search.best_params_["epochs"] in (1, 3)
    assert search.best_score_ > 0.85


def test_data_frames_give_their_names(iris) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True, as_frame=True)
    clf = small().fit(X, y)
    assert clf.feature_names_in_.tolist() == X.columns.tolist()
    assert clf.n_features_in_ == 4
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(pandas.DataFrame(X.to_numpy(), columns=list("abcd")))


def test_early_stopping_keeps_the_best_epoch() -> None:
    X, y = make_classification(300, 20, flip_y=0.4, random_state=0)
    options = {"early_stopping": True, "validation_fraction": 0.3, "patience": 2, "epochs": 40}
    clf = small(calibrate=False, **options).fit(X, y)
    nll = [record.test_nll for record in clf.history_]
    assert clf.n_epochs_ == len(nll) < 40
    assert min(nll) not in nll[-2:]
    held = np.setdiff1d(np.arange(300), held_out(300, clf.validation_fraction, y, clf.seed_)[0])
    assert len(held) == 90
    p = clf.predict_proba(X[held])[np.arange(90), y[held]]
    assert -np.log(p).mean() == pytest.approx(min(nll), rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden": 51}, r"hidden must be a sequence of widths such as \(501,\), got 51"),
        ({"hidden": (51, 0)}, "a width in hidden must be a whole number of at least 1, got 0"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1, got 0"),
        ({"epochs": 2.5}, "epochs must be a whole number of at least 1, got 2.5"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"patience": 0}, "patience must be a whole number of at least 1, got 0"),
        ({"weights": "int8"}, "weights must be one of binary, gaussian, ternary, got 'int8'"),
        ({"algorithm": "sgd"}, "algorithm must be one of"),
        ({"rho": (1.0, 1.0, 0.9)}, "rho must be one number or 2, one for each layer, got 3"),
        ({"damping": 1.0}, r"damping must be in \[0, 1\), got 1.0"),
    ],
)
def test_a_parameter_out_of_range_is_named(iris, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**changes).fit(*iris)


def test_numbers_of_numpy_are_numbers(iris) -> None:
    X, y = iris
    clf = small(hidden=np.array([21, 11]), epochs=np.int64(2), batch_size=np.int32(10), calibrate=False).fit(X, y)
    assert [w.shape for w in clf.sample()[0]] == [(21, 5), (11, 22), (3, 12)]
    # One of the 150 flowers is there twice, and counts twice.
    assert clf.n_steps_ == 28


def test_early_stopping_needs_a_fraction_that_leaves_samples(iris) -> None:
    with pytest.raises(ValueError, match=r"validation_fraction must be in \(0, 1\).*got 1.5"):
        small(early_stopping=True, validation_fraction=1.5).fit(*iris)


def test_verbose_prints_a_line_for_each_epoch(iris, capsys) -> None:
    small(verbose=True, epochs=2).fit(*iris)
    shown = capsys.readouterr().out
    assert "epoch 1/2" in shown
    assert "epoch 2/2" in shown
    small(epochs=2).fit(*iris)
    assert capsys.readouterr().out == ""


def test_verbose_says_how_long_a_fit_of_more_than_two_seconds_will_take(iris, capsys, monkeypatch) -> None:
    clock = iter(np.arange(0.0, 100.0, 1.5))
    monkeypatch.setattr("cavity.estimator.listeners.monotonic", lambda: float(next(clock)))
    small(verbose=True, epochs=5).fit(*iris)
    lines = capsys.readouterr().out.splitlines()
    # the clock is read at the start and after each epoch: 1.5 s, 3 s, …
    assert [line for line in lines if "left" in line] == ["0:04 left", "0:02 left"]


def test_a_terminal_shows_a_growing_table(iris, capsys, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    # Narrower ones have fewer columns (tests/cli/test_width.py).
    monkeypatch.setenv("COLUMNS", "120")
    small(verbose=True, epochs=2).fit(*iris)
    shown = capsys.readouterr().out
    assert "polarization" in shown
    assert "left" in shown


def test_draws_predict_and_their_doubt_splits(fitted, iris) -> None:
    X, y = iris
    draws = fitted.sample(5)
    assert [w.shape for w in draws[0]] == [(51, 5), (3, 52)]
    assert np.mean([fitted.predict_with(X, draw) == y for draw in draws]) > 0.75
    total, aleatoric, epistemic = fitted.predictive_entropy(X, n=10)
    assert total.shape == (150,)
    assert np.allclose(total, aleatoric + epistemic)
    assert epistemic.min() >= 0
    # setosa stands apart, the other two touch
    assert total[y == 0].mean() < 0.5 * total[y > 0].mean()
    assert np.array_equal(total, fitted.predictive_entropy(X, n=10).total)
    assert not np.array_equal(total, fitted.predictive_entropy(X, n=10, random_state=1).total)


class TestPartialFit:
    def test_learning_in_parts_is_learning(self, iris) -> None:
        X, y = iris
        clf, order = small(), np.random.default_rng(0).permutation(150)
        for part in np.array_split(order, 3) * 2:
            clf.partial_fit(X[part], y[part], classes=[0, 1, 2])
        assert clf.score(X, y) > 0.9
        assert clf.n_epochs_ == 6

    def test_a_second_task_does_not_wipe_out_the_first(self) -> None:
        """The same classes behind permuted features, as the paper has it: the posterior remembers both tasks."""
        X, y = make_blobs(1200, 60, centers=3, cluster_std=12.0, random_state=1)
        permuted = X[:, np.random.default_rng(0).permutation(60)]
        clf = small(hidden=(201,)).partial_fit(X[:600], y[:600], classes=range(3))
        before = clf.score(X[600:], y[600:])
        assert clf.score(permuted[600:], y[600:]) < 0.6 < 0.9 < before
        clf.partial_fit(permuted[:600], y[:600])
        assert clf.score(permuted[600:], y[600:]) > 0.9
        assert clf.score(X[600:], y[600:]) > 0.75

    def test_every_sample_counts_also_in_the_last_incomplete_batch(self, iris) -> None:
        X, y = iris
        clf = small(batch_size=100).partial_fit(X, y, classes=[0, 1, 2])
        assert clf.n_steps_ == 2

    def test_a_first_call_that_names_classes_keeps_to_them(self, iris) -> None:
        X, y = iris
        with pytest.raises(ValueError, match=r"y must only hold labels from classes \[0 1\], got \[2\]"):
            small().partial_fit(X, y, classes=[0, 1])


class TestOddData:
    @pytest.mark.parametrize(
        "X", [np.full((1, 4), np.nan), np.array([[1.0, np.inf, 0, 0]]), np.array([[1e300, 0.0, 0, 0]])]
    )
    def test_what_is_not_finite_is_named_with_the_columns(self, fitted, X) -> None:
        with pytest.raises(ValueError, match=r"X must hold finite numbers in its 4 columns: row 0, column [01] is"):
            fitted.predict(X)

    @pytest.mark.parametrize("method", ["predict", "predict_proba", "predictive_entropy"])
    def test_a_wrong_width_names_both_counts(self, fitted, method: str) -> None:
        with pytest.raises(ValueError, match="X has 3 features, but MessagePassingClassifier is expecting 4 features"):
            getattr(fitted, method)(np.zeros((2, 3)))

    def test_one_class_is_predicted_with_certainty(self) -> None:
        X = np.random.default_rng(0).normal(size=(30, 3))
        clf = small().fit(X, ["only"] * 30)
        assert set(clf.predict(X)) == set(clf.predict(X, method="point")) == {"only"}
        assert np.array_equal(clf.predict_proba(X), np.ones((30, 1)))
        assert not np.any(clf.predictive_entropy(X, n=2).total)

    def test_one_sample(self) -> None:
        clf = small().fit([[1.0, 2.0]], ["a"])
        assert clf.predict([[5.0, -2.0]]).tolist() == ["a"]

    @pytest.mark.parametrize("weights", ["gaussian", "binary"])
    def test_constant_features_do_no_harm(self, weights: str) -> None:
        X, y = make_blobs(300, 20, centers=3, cluster_std=3.0, random_state=0)
        X = np.hstack([X, np.full((300, 2), 7.3)])
        assert small(weights=weights).fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.95
        alone = small(weights=weights).fit(np.ones((20, 3)), np.arange(20) % 2)
        assert np.isfinite(alone.predict_proba(np.ones((2, 3)))).all()

    def test_a_hundred_samples_of_ten_thousand_features(self) -> None:
        X, y = make_blobs(100, 10_000, centers=2, cluster_std=20.0, random_state=0)
        clf = small(epochs=3).fit(X[:80], y[:80])
        assert clf.score(X[80:], y[80:]) > 0.9
        assert np.isfinite(clf.predict_proba(X)).all()

    def test_features_of_very_different_size(self, iris) -> None:
        X, y = iris
        X = X * np.array([1e-12, 1e12, 1.0, 1e6])
        assert small().fit(X, y).score(X, y) > 0.93

    def test_an_outlier_leaves_probabilities(self, iris) -> None:
        X, y = iris
        X = X.copy()
        X[0] *= 1e6
        assert np.isfinite(small().fit(X, y).predict_proba(X)).all()


def test_a_first_partial_fit_that_failed_leaves_no_classes(iris) -> None:
    X, y = iris
    classifier = cavity.MessagePassingClassifier((21,), random_state=0)
    with pytest.raises(ValueError, match="y must only hold labels from classes"):
        classifier.partial_fit(X, y, classes=[0, 1])
    classifier.partial_fit(X, y, classes=[0, 1, 2])
    assert list(classifier.classes_) == [0, 1, 2]


@pytest.mark.parametrize("weights", PRIORS)
def test_a_stream_that_says_nothing_changes_nothing(weights: str) -> None:
    """Inputs of 0 carry no evidence: the posterior is the prior, however often that is said."""
    X, y = np.zeros((5, 7)), np.arange(5) % 2
    classifier = cavity.MessagePassingClassifier((21,), weights=weights, bias=False, standardize=False, random_state=0)
    classifier.partial_fit(X, y, classes=[0, 1])
    before = classifier.network_.layers[0].field.clone()
    for _ in range(20):
        classifier.partial_fit(X, y)
    np.testing.assert_allclose(classifier.network_.layers[0].field, before, rtol=1e-5)
