"""Classification in scikit-learn's manners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data
from torch import Tensor

from cavity.analysis.uncertainty import Uncertainty, predictive_entropy
from cavity.estimator.base import MessagePassingEstimator
from cavity.training.callbacks import Callback

Entropies = Uncertainty[NDArray[np.float64]]

#: An argmax needs somebody to win against: with one class in the data there is a second unit, of no class.
FEWEST_UNITS = 2


class MessagePassingClassifier(ClassifierMixin, MessagePassingEstimator):  # type: ignore[misc]
    """A network trained by message passing, for labels of any type.

    The defaults suit tables: one hidden layer of 501 sign units with real (Gaussian) weights. ``weights="binary"`` is
    the network of ±1 weights that ships as bits; it likes wide data such as images, because a ±1 weight cannot ignore
    a feature that is only noise.

    Parameters
    ----------
    hidden : widths of the hidden layers. For ±1 weights odd ones, so that a sum of votes is never 0.
    weights : "gaussian", "binary" or "ternary".
    activation : "sign", "relu", "identity", "step", "gate", "leaky-relu", "hard-tanh" or "abs". ReLU costs about three
        times as much as sign.
    algorithm : "mf", "amp", "bpi" or "bp": the order in which they cost more. "mf" is the default because with real
        weights and several epochs the others are more certain of themselves, and no more accurate.
    epochs : passes over the data.
    batch_size : samples per mini-batch; None is 32, less for small data and up to 128 for large.
    rho : power of the posterior as the next prior, one number or one per layer; None is 1 for Gaussian weights and in
        ``partial_fit``, else what polarises the weights within ``epochs``, and 0.9 for the last layer.
    damping : of the weight means, one number or one per layer.
    inner_iterations : message passing iterations in a mini-batch.
    bias : a threshold for each unit; None: for Gaussian weights.
    density : fraction of the weights that exist.
    init : spread of the initial weights.
    standardize : whether inputs are brought to mean 0 and variance 1, with the statistics of the first call of ``fit``
        or ``partial_fit``.
    early_stopping : hold out ``validation_fraction`` of the samples, stop when their NLL has not improved for
        ``patience`` epochs, and keep the best epoch.
    compile : whether to fuse elementwise work by torch.compile; "auto": if the run is long enough to earn it back.
    random_state : seed of the initial weights, of the order of samples and of the validation split.
    verbose : show the progress of ``fit``, with the time left.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ (for data with column names), network_ (a ``cavity.Network``), scaler_
    (a ``StandardScaler`` or None), history_ (one ``cavity.metrics.EpochRecord`` an epoch of ``fit``), n_steps_,
    n_epochs_.
    """

    classes_: NDArray[Any]

    def fit(self, X: ArrayLike, y: ArrayLike) -> MessagePassingClassifier:
        """Train anew on X (samples, features) and labels y (samples,)."""
        X, y = self._labelled(X, y, reset=True)
        self.classes_, indices = np.unique(y, return_inverse=True)
        self._start(X)
        x, t = self._inputs(X), torch.from_numpy(indices)
        train, held = self._held_out(len(x), indices)
        self._train(x[train], t[train], None if held is None else (x[held], t[held]))
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> MessagePassingClassifier:
        """One pass over (X, y) with the posterior so far as the prior; nothing else is remembered of earlier data.

        The first call needs all ``classes`` that will ever come, and fixes the standardisation by its own X: give it
        more than a few samples, or standardise yourself.
        """
        first = not hasattr(self, "network_")
        X, y = self._labelled(X, y, reset=first)
        if first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit")
            known = np.unique(column_or_1d(np.asarray(classes)))
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
                raise ValueError(f"classes must be those of the first call, {known}, got {classes}")
        unknown = np.setdiff1d(y, known)
        if len(unknown):
            raise ValueError(f"y must hold labels out of classes {known}, got {unknown}")
        if first:
            self.classes_ = known
            self._start(X)
        self._pass_once(self._inputs(X), torch.from_numpy(np.searchsorted(self.classes_, y)))
        return self

    def predict(self, X: ArrayLike, method: str = "bayes") -> NDArray[Any]:
        """Labels (samples,): the most probable under the posterior ("bayes") or of the most probable weights ("point").

        "bayes" is the default: it is what ``predict_proba`` says. "point" is what a network exported as bits says.
        """
        x = self._checked(X)
        if method == "bayes":
            return self._labels(self._proba(x).argmax(dim=1))
        return self._labels(self._exact().predict(x, method))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Bayesian probabilities (samples, classes), in the order of ``classes_``: one pass of the moments."""
        return self._proba(self._checked(X)).numpy()

    def predictive_entropy(self, X: ArrayLike, n: int = 30, random_state: int | None = None) -> Entropies:
        """Entropy of the predictions (samples,) in nats, as (total, aleatoric, epistemic), from ``n`` weight draws.

        The epistemic part is the mutual information of label and weights: see ``cavity.analysis.uncertainty``.
        """
        x = self._checked(X)
        if len(self.classes_) == 1:
            return Uncertainty(*np.zeros((3, len(x))))
        parts = predictive_entropy(self._exact(), x, n, self._generator(random_state))
        return Uncertainty(*(part.numpy() for part in parts))

    def predict_with(self, X: ArrayLike, weights: Sequence[NDArray[np.float32]]) -> NDArray[Any]:
        """Labels (samples,) of the network with the given weights, such as one draw of ``sample``."""
        return self._labels(self._predict_with(X, weights))

    def _labels(self, indices: Tensor) -> NDArray[Any]:
        # With known weights the unit of no class may win; there is only one class to predict then.
        labels: NDArray[Any] = self.classes_[indices.clamp_max(len(self.classes_) - 1).numpy()]
        return labels

    def _proba(self, x: Tensor) -> Tensor:
        p = self._exact().predict_proba(x)[:, : len(self.classes_)]
        return p / p.sum(dim=1, keepdim=True)

    def _output(self) -> tuple[int, str]:
        return max(len(self.classes_), FEWEST_UNITS), "argmax"

    def _listeners(self, x: Tensor, y: Tensor) -> list[Callback]:
        return []

    def _labelled(self, X: ArrayLike, y: ArrayLike, reset: bool) -> tuple[NDArray[np.float64], NDArray[Any]]:
        array, labels = validate_data(self, X, y, dtype=np.float64, reset=reset)
        check_classification_targets(labels)
        return array, column_or_1d(labels, warn=True)
