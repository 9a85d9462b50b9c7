"""MAPIE takes the fitted estimators as they are, and its sets cover what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits

import cavity

classification = pytest.importorskip("mapie.classification")
regression = pytest.importorskip("mapie.regression")


def test_conformal_sets_of_classes() -> None:
    X, y = load_digits(return_X_y=True)
    clf = cavity.MessagePassingClassifier(hidden=(51,), epochs=3, random_state=0).fit(X[:600], y[:600])
    mapie = classification.SplitConformalClassifier(clf, confidence_level=0.9, prefit=True)
    _, sets = mapie.conformalize(X[600:1200], y[600:1200]).predict_set(X[1200:])
    covered = sets[np.arange(len(sets)), y[1200:], 0].mean()
    # 600 samples to calibrate and as many to test: 0.9 ± 3 standard deviations, and what the order of digits adds
    assert 0.84 < covered < 0.96
    assert sets[:, :, 0].sum(axis=1).mean() < 2.0


def test_conformal_intervals() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = cavity.MessagePassingRegressor(hidden=(51,), epochs=5, random_state=0).fit(X[:200], y[:200])
    mapie = regression.SplitConformalRegressor(model, confidence_level=0.9, prefit=True)
    _, interval = mapie.conformalize(X[200:320], y[200:320]).predict_interval(X[320:])
    covered = np.mean((y[320:] >= interval[:, 0, 0]) & (y[320:] <= interval[:, 1, 0]))
    assert 0.80 < covered < 0.99
