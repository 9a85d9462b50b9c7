"""Estimators with scikit-learn's interface."""

from cavity.estimator.classifier import MessagePassingClassifier
from cavity.estimator.regressor import MessagePassingRegressor

__all__ = ["MessagePassingClassifier", "MessagePassingRegressor"]
