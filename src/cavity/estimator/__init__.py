"""Message passing in scikit-learn's manners."""

from cavity.estimator.classifier import MessagePassingClassifier
from cavity.estimator.regressor import MessagePassingRegressor

__all__ = ["MessagePassingClassifier", "MessagePassingRegressor"]
