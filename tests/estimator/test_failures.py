"""What an estimator is after a fit that failed, and what it says of one that came to nothing."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, make_friedman2
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import cavity
from cavity.training.trainer import Trainer

Estimator = cavity.MessagePassingClassifier | cavity.MessagePassingRegressor
KINDS = {"classifier": cavity.MessagePassingClassifier, "regressor": cavity.MessagePassingRegressor}


def iris() -> tuple[np.ndarray, np.ndarray]:
    return load_iris(return_X_y=True)


def fail_in_step(monkeypatch: pytest.MonkeyPatch, number: int, error: type[BaseException]) -> None:
    """The ``number``-th mini-batch from now on ends in an error."""
    learn, count = Trainer.learn, iter(range(1, 10**6))

    def failing(self: Trainer, *args: Any) -> Any:
        info = learn(self, *args)
        if next(count) == number:
            raise error("no")
        return info

    monkeypatch.setattr(Trainer, "learn", failing)


CALLS: dict[str, Callable[..., Any]] = {
    "fit": lambda model, X, y: model.fit(X, y),
    "partial_fit": lambda model, X, y: model.partial_fit(X, y),
}


@pytest.mark.parametrize("error", [FloatingPointError, KeyboardInterrupt])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_fit_leaves_the_estimator_as_it_was(monkeypatch, kind: str, call: str, error) -> None:
    X, y = iris()
    model = KINDS[kind]((5,), epochs=2, batch_size=16, random_state=0).fit(X, y)
    twin = pickle.loads(pickle.dumps(model))
    other = y if call == "partial_fit" else np.array([7, 8, 9, 10])[np.arange(len(y)) % 4]
    columns = slice(None) if call == "partial_fit" else slice(3)
    fail_in_step(monkeypatch, 5, error)
    with pytest.raises(error):
        CALLS[call](model, X[:, columns], other)
    monkeypatch.undo()
    assert vars(model).keys() == vars(twin).keys()
    for one in (model, twin):
        one.partial_fit(X[::2], y[::2])
    assert np.array_equal(model.predict(X), twin.predict(X))
    assert model.n_features_in_ == 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_first_fit_leaves_it_unfitted(monkeypatch, kind: str) -> None:
    X, y = iris()
    model = KINDS[kind]((5,), epochs=2, batch_size=16)
    before = set(vars(model))
    fail_in_step(monkeypatch, 3, FloatingPointError)
    with pytest.raises(FloatingPointError):
        model.fit(X, y)
    assert set(vars(model)) == before
    with pytest.raises(NotFittedError):
        model.predict(X)


def ruined(kind: str, **options: Any) -> tuple[Estimator, np.ndarray, np.ndarray]:
    """A model whose settings ruin it, and its data."""
    if kind == "classifier":
        X, y = load_digits(return_X_y=True)
        X, y = X[:200], y[:200]
        return KINDS[kind]((21,), weights="binary", activation="sign", rho=3.0, epochs=5, **options), X, y
    X, y = make_friedman2(200, random_state=0)
    chosen = {"activation": "identity", "rho": 2.0, "damping": 0.95, "weights": "binary", "algorithm": "bp"}
    return KINDS[kind]((51,), epochs=5, **chosen, **options), X, y


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_that_diverges_warns_and_names_the_remedy(kind: str) -> None:
    model, X, y = ruined(kind, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"diverged.*constant.*Leave rho, damping and rate out") as said:
        model.fit(X, y)
    assert said[0].filename == __file__
    assert model.score(X, y) < 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_diverges_warns(kind: str) -> None:
    model, X, y = ruined(kind, random_state=0)
    classes = {} if kind == "regressor" else {"classes": np.unique(y)}

    def stream() -> None:
        for part in np.array_split(np.arange(len(X)), 4):
            model.partial_fit(X[part], y[part], **classes)

    with pytest.warns(ConvergenceWarning, match=r"stream is not learnt.*constant") as said:
        stream()
    assert said[0].filename == __file__


@pytest.mark.parametrize("batch", [1, 50])
@pytest.mark.parametrize(("kind", "order"), [*((kind, "mixed") for kind in KINDS), ("classifier", "by class")])
def test_a_stream_that_learns_says_nothing(kind: str, order: str, batch: int) -> None:
    X, y = iris()
    X, y = (X[::3], y[::3]) if batch == 1 else (X, y)
    rows = np.random.default_rng(0).permutation(len(X)) if order == "mixed" else np.arange(len(X))
    model = KINDS[kind]((21,), random_state=0)
    classes = {} if kind == "regressor" else {"classes": [0, 1, 2]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for start in range(0, len(X), batch):
            part = rows[start : start + batch]
            model.partial_fit(X[part], y[part], **classes)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_chance_are_no_divergence(kind: str) -> None:
    X = np.random.default_rng(1).normal(size=(100, 5))
    y = np.random.default_rng(2).permutation(np.repeat([0, 0, 0, 1], 25))
    KINDS[kind]((5,), epochs=5, random_state=0).fit(X, y)


def test_early_stopping_is_judged_by_the_epoch_that_is_kept(monkeypatch) -> None:
    """The last of three epochs is measured to be a disaster: nothing is wrong with the one before, which is kept."""
    X, y = iris()
    measure, judged = Trainer._measure, []

    def measured(self: Trainer, *data: Any) -> Any:
        record = measure(self, *data)
        nll = None if record.test_nll is None else 9.0
        ruined = replace(record, train_error=95.0, train_error_bayes=95.0, test_nll=nll)
        return ruined if record.epoch == 3 else record

    monkeypatch.setattr(Trainer, "_measure", measured)
    monkeypatch.setattr(cavity.MessagePassingClassifier, "_complain", lambda self, text: judged.append(text))
    for early in (True, False):
        cavity.MessagePassingClassifier((5,), epochs=3, random_state=0, early_stopping=early).fit(X, y)
    assert judged[0] is None
    assert "diverged" in judged[1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_value_that_cannot_be_standardised_is_named(kind: str) -> None:
    X, y = iris()
    for value, problem in ((1e300, "too large"), (-1e200, "too large")):
        spoilt = X.copy()
        spoilt[7, 2] = value
        with pytest.raises(ValueError, match=f"row 7, column 2 is {problem} to be standardised"):
            KINDS[kind]((5,), epochs=1).fit(spoilt, y)
    spoilt = X.copy()
    spoilt[:, 1] *= 1e-200
    with pytest.raises(ValueError, match="row 0, column 1 is too small to be standardised"):
        KINDS[kind]((5,), epochs=1).fit(spoilt, y)


@pytest.mark.parametrize("kind", KINDS)
def test_masked_arrays_are_refused(kind: str) -> None:
    X, y = iris()
    model = KINDS[kind]((5,), epochs=1, random_state=0)
    for X_, y_, name in ((np.ma.masked_less(X, 1.0), y, "X"), (X, np.ma.masked_equal(y, 1), "y")):
        for call in (model.fit, model.partial_fit):
            with pytest.raises(ValueError, match=f"{name} must not be a masked array"):
                call(X_, y_)
    model.fit(X, y)
    with pytest.raises(ValueError, match="X must not be a masked array"):
        model.predict(np.ma.masked_less(X, 1.0))


@pytest.mark.parametrize("exponent", [-1000, -500, 500, 1000])
def test_targets_of_any_size_are_learnt_alike(exponent: int) -> None:
    """Powers of two change no digit."""
    X, y = make_friedman2(60, random_state=0)
    model = cavity.MessagePassingRegressor((5,), epochs=2, random_state=0)
    expected = model.fit(X, y).predict(X)
    assert np.array_equal(model.fit(X, np.ldexp(y, exponent)).predict(X), np.ldexp(expected, exponent))


def test_inputs_that_are_not_standardised_must_be_seen() -> None:
    X, y = iris()
    model = cavity.MessagePassingClassifier((5,), epochs=1, standardize=False)
    with pytest.raises(ValueError, match="x must not be all below 1e-06"):
        model.fit(1e-30 * X, y)
