"""What tables bring: weights, duplicates, sparse rows, several targets, and going on from the fit before."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_blobs, make_classification, make_friedman1, make_multilabel_classification
from sklearn.utils import shuffle

import cavity
from cavity.estimator.samples import SparseRows, merged

SMALL = {"hidden": (31,), "epochs": 5, "random_state": 0}


def classifier(**changes) -> cavity.MessagePassingClassifier:
    return cavity.MessagePassingClassifier(**{**SMALL, **changes})


def regressor(**changes) -> cavity.MessagePassingRegressor:
    return cavity.MessagePassingRegressor(**{**SMALL, **changes})


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(240, 5, centers=3, cluster_std=4.0, random_state=0)


@pytest.mark.parametrize("early_stopping", [True, False])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_whole_weights_are_copies_to_the_last_digit(blobs, early_stopping: bool, container) -> None:
    X, y = blobs
    counts = np.random.default_rng(0).integers(0, 4, 240)
    rows = np.repeat(np.arange(240), counts)
    X_mixed, y_mixed, counts_mixed = shuffle(X, y, counts, random_state=1)
    for make in (classifier, regressor):
        copies = make(early_stopping=early_stopping).fit(container(X[rows]), y[rows])
        weighted = make(early_stopping=early_stopping).fit(container(X_mixed), y_mixed, sample_weight=counts_mixed)
        assert np.array_equal(copies.predict(X), weighted.predict(X))
        once = make(early_stopping=early_stopping).fit(container(X), y)
        assert not np.array_equal(once.network_.layers[0].mean, copies.network_.layers[0].mean)


def test_rows_that_are_the_same_are_merged_and_ordered() -> None:
    X = np.array([[1.0, 2.0], [0.0, 3.0], [1.0, 2.0], [-0.0, 3.0], [1.0, 2.0], [2.0, 1.0]])
    y = np.array([0, 1, 0, 1, 1, 0])
    rows, labels, counts = merged(X, y, None)
    assert rows.tolist() == [[0, 3], [1, 2], [1, 2], [2, 1]]
    assert labels.tolist() == [1, 0, 1, 0]
    assert counts.tolist() == [2, 2, 1, 1]
    again = merged(sparse.csr_array(X), y, None)
    assert sorted(zip(again[0].toarray().tolist(), again[1], again[2], strict=True)) == sorted(
        zip(rows.tolist(), labels, counts, strict=True)
    )
    different = X + np.arange(6)[:, None]
    assert merged(different, y, None)[2] is None
    assert np.array_equal(merged(different, y, None)[0], different)


@pytest.mark.parametrize("weights", [None, np.full(240, 2.0)])
def test_partial_fit_counts_too(blobs, weights) -> None:
    X, y = blobs
    plain = classifier().partial_fit(X, y, classes=range(3), sample_weight=weights)
    favoured = classifier().partial_fit(X, y, classes=range(3), sample_weight=np.where(y == 1, 20.0, 1.0))
    assert np.mean(favoured.predict(X) == 1) > np.mean(plain.predict(X) == 1)
    without = classifier().partial_fit(X, y, classes=range(3), sample_weight=np.where(y == 1, 0.0, 1.0))
    left_out = classifier().partial_fit(X[y != 1], y[y != 1], classes=range(3))
    assert np.array_equal(without.predict_proba(X), left_out.predict_proba(X))


def test_class_weights_are_sample_weights(blobs) -> None:
    X, y = blobs
    rare = np.r_[np.flatnonzero(y == 0)[:15], np.flatnonzero(y != 0)]
    X, y = X[rare], y[rare]
    by_class = classifier(class_weight={0: 3.0}).fit(X, y)
    by_sample = classifier().fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0))
    assert np.array_equal(by_class.predict_proba(X), by_sample.predict_proba(X))
    balanced = classifier(class_weight="balanced", epochs=10).fit(X, y)
    plain = classifier(epochs=10).fit(X, y)
    assert np.mean(balanced.predict(X)[y == 0] == 0) > np.mean(plain.predict(X)[y == 0] == 0)
    assert plain.score(X, y, sample_weight=y == 0) == np.mean(plain.predict(X)[y == 0] == 0)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("fair", "class_weight must be a dict, 'balanced' or None, got 'fair'"),
        ({7: 1.0}, r"class_weight names 7, which is no class; there are \[0, 1, 2\]"),
        ({1: -1.0}, "class_weight must be finite numbers of at least 0"),
    ],
)
def test_a_class_weight_that_cannot_be_is_named(blobs, weight, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        classifier(class_weight=weight).fit(*blobs)


def test_sparse_rows_are_never_dense_as_a_whole(monkeypatch) -> None:
    X = sparse.random_array((3000, 200), density=0.05, random_state=0, format="csr")
    y = (X[:, :20].sum(axis=1) > X[:, 20:40].sum(axis=1)).astype(int)
    largest = []
    asked = SparseRows.__getitem__
    monkeypatch.setattr(SparseRows, "__getitem__", lambda rows, at: largest.append(len(got := asked(rows, at))) or got)
    model = classifier(batch_size=100, calibrate=False).fit(X, y)
    # Training errors are measured on 2,000 samples at the most.
    assert max(largest) == 2000
    dense = classifier(batch_size=100, calibrate=False).fit(X.toarray(), y)
    assert np.allclose(model.predict_proba(X), dense.predict_proba(X.toarray()), atol=1e-2)
    assert model.score(X, y) > 0.9


def test_warm_start_goes_on(blobs) -> None:
    X, y = blobs
    model = classifier(warm_start=True, epochs=2).fit(X, y)
    network, steps = model.network_, model.n_steps_
    assert model.fit(X, y).network_ is network
    assert model.n_steps_ == 2 * steps
    with pytest.raises(ValueError, match=r"y must only hold labels from classes \[0 1 2\], got \[5\]"):
        model.fit(X, np.full(240, 5))
    assert classifier(epochs=2).fit(X, y).fit(X, y).n_steps_ == steps


def test_a_generator_of_numpy_is_a_random_state() -> None:
    X, y = load_iris(return_X_y=True)
    one, same = (classifier(random_state=np.random.default_rng(3)).fit(X, y).predict_proba(X) for _ in range(2))
    assert np.array_equal(one, same)
    generator = np.random.default_rng(3)
    first, second = (classifier(random_state=generator).fit(X, y).predict_proba(X) for _ in range(2))
    assert np.array_equal(one, first)
    assert not np.array_equal(first, second)


def test_decisions_and_logarithms_say_what_probabilities_say(blobs) -> None:
    X, y = blobs
    three, two = classifier().fit(X, y), classifier().fit(X, y == 1)
    assert np.allclose(np.exp(three.predict_log_proba(X)), three.predict_proba(X))
    assert np.array_equal(three.decision_function(X).argmax(axis=1), three.predict(X))
    p = two.predict_proba(X)
    assert np.allclose(two.decision_function(X), np.log(p[:, 1]) - np.log(p[:, 0]), atol=1e-6)


class TestSeveralTargets:
    def test_labels_that_are_there_or_not(self) -> None:
        X, Y = make_multilabel_classification(400, 20, n_classes=4, random_state=0)
        model = classifier(epochs=15).fit(X[:300], Y[:300])
        assert model.classes_.tolist() == [0, 1, 2, 3]
        p = model.predict_proba(X[300:])
        assert p.shape == (100, 4)
        assert np.array_equal(model.predict(X[300:]), p > 0.5)
        # MLPClassifier has 0.76 of them right, a constant 0.55.
        assert np.mean(model.predict(X[300:]) == Y[300:]) > 0.7
        assert model.score(X[300:], Y[300:]) == np.mean((model.predict(X[300:]) == Y[300:]).all(axis=1))
        assert model.partial_fit(X, Y).n_epochs_ == 16

    def test_classes_of_several_kinds(self) -> None:
        X, y = make_classification(400, 10, n_informative=6, n_classes=3, random_state=0)
        Y = np.stack([np.array(["a", "b", "c"])[y], np.where(X[:, 0] > 0, "up", "down")], axis=1)
        model = classifier(epochs=15).fit(X, Y)
        assert [names.tolist() for names in model.classes_] == [["a", "b", "c"], ["down", "up"]]
        p = model.predict_proba(X)
        assert [part.shape for part in p] == [(400, 3), (400, 2)]
        assert all(np.allclose(part.sum(axis=1), 1) for part in p)
        right = (model.predict(X) == Y).mean(axis=0)
        assert right[0] > 0.7
        assert right[1] > 0.85
        with pytest.raises(ValueError, match="predictive_entropy is for one target"):
            model.predictive_entropy(X)
        with pytest.raises(ValueError, match="y must have 2 targets"):
            model.partial_fit(X, y)

    def test_numbers_each_with_their_own_noise(self) -> None:
        X, y = make_friedman1(600, noise=0.0, random_state=0)
        rng = np.random.default_rng(0)
        Y = np.stack([y + rng.normal(size=600), 100 * y + 1000 * rng.normal(size=600)], axis=1)
        model = regressor(epochs=20).fit(X, Y)
        mean, std = model.predict(X, return_std=True)
        assert mean.shape == std.shape == (600, 2)
        assert model.noise_[0] == pytest.approx(1.0, rel=1.0)
        assert model.noise_[1] == pytest.approx(1000, rel=0.3)
        inside = np.mean(np.abs(Y - mean) < 1.645 * std, axis=0)
        assert (inside > 0.8).all()
        alone = regressor(epochs=20).fit(X, Y[:, 0])
        assert np.corrcoef(alone.predict(X), mean[:, 0])[0, 1] > 0.95
