"""The regressor: values, error bars, noise, odd data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.model_selection import cross_val_score

import cavity
from cavity.estimator.samples import held_out


def small(**changes) -> cavity.MessagePassingRegressor:
    return cavity.MessagePassingRegressor(**{"hidden": (101,), "random_state": 0, **changes})


@pytest.fixture(scope="module")
def friedman() -> tuple[np.ndarray, np.ndarray]:
    return make_friedman1(800, noise=1.0, random_state=0)


@pytest.fixture(scope="module")
def fitted(friedman) -> cavity.MessagePassingRegressor:
    X, y = friedman
    return small().fit(X[:600], y[:600])


def test_it_learns_more_than_a_line(fitted, friedman) -> None:
    """A linear fit explains 0.72 of this function's variance."""
    X, y = friedman
    assert fitted.score(X[600:], y[600:]) > 0.76
    assert np.corrcoef(fitted.predict(X[600:], method="point"), y[600:])[0, 1] ** 2 > 0.74


def test_error_bars_cover_what_they_promise(fitted, friedman) -> None:
    X, y = friedman
    mean, std = fitted.predict(X[600:], return_std=True)
    assert np.array_equal(mean, fitted.predict(X[600:]))
    assert 0.83 < np.mean(np.abs(y[600:] - mean) < 1.645 * std) < 0.97
    assert np.all(std >= fitted.noise_)


@pytest.mark.slow
def test_real_data_by_cross_validation() -> None:
    """Diabetes: a linear model explains 0.49 of the variance, and no model much more."""
    X, y = load_diabetes(return_X_y=True)
    assert cross_val_score(small(), X, y, cv=3).mean() > 0.42


def test_noise_is_estimated_in_units_of_the_target() -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(1500, 5))
    for noise in (50.0, 200.0):
        y = 1000 + 100 * X[:, 0] + noise * generator.normal(size=1500)
        assert small(epochs=10).fit(X, y).noise_ == pytest.approx(noise, rel=0.25)


def test_units_of_the_target_do_not_matter(friedman) -> None:
    X, y = friedman
    one, other = small(epochs=2).fit(X, y), small(epochs=2).fit(X, 1e6 * y - 3e8)
    assert np.allclose(1e6 * one.predict(X) - 3e8, other.predict(X), rtol=1e-3, atol=1e3)


def test_partial_fit_goes_on_from_the_posterior(friedman) -> None:
    X, y = friedman
    model = small()
    scores = [model.partial_fit(X[i : i + 100], y[i : i + 100]).score(X[700:], y[700:]) for i in range(0, 700, 100)]
    assert scores[-1] > 0.6
    assert scores[-1] > scores[0]


def test_early_stopping_restores_the_best_noise_too() -> None:
    generator = np.random.default_rng(1)
    X, y = generator.normal(size=(120, 10)), generator.normal(size=120)
    options = {"early_stopping": True, "validation_fraction": 0.3, "patience": 2, "epochs": 40}
    model = small(calibrate=False, **options).fit(X, y)
    best = min(record.test_nll for record in model.history_)
    assert model.n_epochs_ < 40
    held = np.setdiff1d(np.arange(120), held_out(120, model.validation_fraction, None, model.seed_)[0])
    mean, std = model.predict(X[held], return_std=True)
    z, scale = (y[held] - mean) / std, std / model.y_scale_
    assert np.mean(0.5 * z**2 + np.log(scale * np.sqrt(2 * np.pi))) == pytest.approx(best, rel=1e-4)


def test_draws_scatter_around_the_mean(fitted, friedman) -> None:
    X, _ = friedman
    draws = np.array([fitted.predict_with(X[:50], draw) for draw in fitted.sample(60)])
    assert np.abs(draws.mean(axis=0) - fitted.predict(X[:50])).mean() < 0.5 * draws.std(axis=0).mean()


def test_pickling(fitted, friedman) -> None:
    X, _ = friedman
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_target_without_noise_is_fitted_and_does_not_make_the_fit_run_away(seed: int) -> None:
    X, y = make_friedman1(400, noise=0.0, random_state=seed)
    assert small(epochs=40, random_state=seed).fit(X, y).score(X, y) > 0.8


def test_constant_targets_features_and_a_single_sample() -> None:
    model = small(epochs=3).fit(np.ones((10, 2)), np.full(10, 4.0))
    assert model.predict(np.ones((1, 2))) == pytest.approx([4.0], abs=0.5)
    assert small().fit([[1.0, 2.0]], [3.0]).predict([[1.0, 2.0]]) == pytest.approx([3.0], abs=1.0)


def test_wrong_width_and_nan_are_named(fitted) -> None:
    with pytest.raises(ValueError, match="X has 3 features, but MessagePassingRegressor is expecting 10 features"):
        fitted.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="finite numbers in its 10 columns: row 1, column 9 is NaN"):
        fitted.predict(np.vstack([np.zeros(10), [*[0.0] * 9, np.nan]]))


@pytest.mark.slow
def test_a_compiled_fit_uses_the_noise_it_estimates(friedman) -> None:
    """A kernel is made once, with the first noise; each epoch has another."""
    X, y = friedman[0][:300], friedman[1][:300]
    eager, compiled = (
        cavity.MessagePassingRegressor((31,), epochs=4, random_state=0, compile=compile).fit(X, y)
        for compile in (False, True)
    )
    np.testing.assert_allclose(compiled.predict(X), eager.predict(X), atol=1e-4 * y.std())
    assert compiled.noise_ == pytest.approx(eager.noise_, rel=1e-4)


@pytest.mark.slow
def test_a_stream_has_its_noise_estimated_too() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=4000)
    model = cavity.MessagePassingRegressor((101,), random_state=0)
    seen = []
    for part in np.array_split(np.arange(4000), 40):
        model.partial_fit(X[part], y[part])
        seen.append(model.noise_)
    assert seen[-1] < 0.7 * seen[0]
    residual = np.sqrt(np.mean((y - model.predict(X)) ** 2))
    assert model.noise_ == pytest.approx(residual, rel=0.3)
