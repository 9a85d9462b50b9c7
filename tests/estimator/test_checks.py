"""scikit-learn's own checks: all of them for small networks, and again with the defaults (slow).

One check of each skips itself: that of array-API inputs, which wants SCIPY_ARRAY_API set before SciPy is imported. The
estimators make no claim to return other arrays than NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import cavity

SMALL = {"hidden": (31,), "epochs": 5}


@parametrize_with_checks([cavity.MessagePassingClassifier(**SMALL), cavity.MessagePassingRegressor(**SMALL)])
def test_scikit_learn(estimator: BaseEstimator, check: Callable[[BaseEstimator], None]) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([cavity.MessagePassingClassifier(), cavity.MessagePassingRegressor()])
def test_scikit_learn_with_the_defaults(estimator: BaseEstimator, check: Callable[[BaseEstimator], None]) -> None:
    check(estimator)
