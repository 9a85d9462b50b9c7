"""A scikit-learn classifier."""

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
from cavity.estimator.base import MessagePassingEstimator, all_or_nothing, refuse_masked

Entropies = Uncertainty[NDArray[np.float64]]

#: An argmax needs two units: with only one class in the data, the second unit stands for no class.
FEWEST_UNITS = 2


class MessagePassingClassifier(ClassifierMixin, MessagePassingEstimator):  # type: ignore[misc]
    """A network trained by message passing, for labels of any type.

    The defaults suit tabular data: one hidden layer of 101 ReLU units with real (Gaussian) weights.
    ``weights="binary"`` gives ±1 weights, which can be exported as bits. It suits wide data such as images, because a
    ±1 weight cannot ignore a noisy feature.

    Parameters
    ----------
    hidden : widths of the hidden layers. For ±1 weights odd ones, so that a sum of votes is never 0.
    weights : a kind of weights by name, such as "gaussian" or "binary" (docs/names.md lists them all).
    activation : of the hidden units, by name. ReLU costs about three times as much as sign.
    algorithm : message passing by name. The cheapest is the default because with real weights and several epochs the
        others are more certain of themselves, and no more accurate.
    epochs : passes over the data.
    batch_size : samples per mini-batch; None means half of the data, and 1024 at most; 32 at most in
        ``partial_fit``.
    rho : the posterior is raised to this power to become the next prior; one number, or one per layer. None means 1 for
        Gaussian weights and in ``partial_fit``; else 0.9 for the last layer, and a value that polarises the weights
        within ``epochs`` for the others.
    damping : how much of the old weight means is kept; one number, or one per layer.
    inner_iterations : message passing iterations per mini-batch.
    bias : whether units have a bias; None means only with Gaussian weights.
    threshold : whether units have a real threshold, whatever the weights; it begins where the data balance them.
    layers : instead of ``hidden``, what the network is made of, such as "conv:16:3,pool:2,dense:65" (docs/names.md). X
        are then images (samples, channels, height, width), or rows.
    image_shape : (channels, height, width) of images that are given as rows.
    density : fraction of the weights that exist.
    init : spread of the initial weights.
    standardize : whether to scale inputs to mean 0 and variance 1, with the statistics of the first call of ``fit`` or
        ``partial_fit``.
    early_stopping : hold out ``validation_fraction`` of the samples, stop when their NLL has not improved for
        ``patience`` epochs, and keep the best epoch.
    calibrate : with real weights, choose on ``validation_fraction`` of the samples how sure predictions are. They are
        held back for the first part of the epochs only; nothing is chosen on fewer than 10 of them.
    compile : whether to use torch.compile; "auto" does if the run is long enough for it to pay.
    random_state : seed of the initial weights, the order of samples and the validation split.
    verbose : show the progress of ``fit``, with the time left.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ (for data with column names), network_ (a ``cavity.Network``), scaler_
    (a ``StandardScaler`` or None), history_ (one ``cavity.metrics.EpochRecord`` per epoch of ``fit``, with errors of
    the last one only unless ``verbose`` or ``early_stopping``), n_steps_, n_epochs_.
    """

    classes_: NDArray[Any]

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike) -> MessagePassingClassifier:
        """Train from scratch on X (samples, features) and labels y (samples,)."""
        X, y = self._labelled(X, y, reset=True)
        self.classes_, indices = np.unique(y, return_inverse=True)
        self._start(X)
        self._train(self._inputs(X), torch.from_numpy(indices), indices)
        return self

    @all_or_nothing
    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> MessagePassingClassifier:
        """One pass over (X, y) with the current posterior as the prior; no earlier data are kept.

        The first call must list all ``classes`` that will ever occur. It also fixes the standardisation from its own X,
        so give it more than a few samples, or standardise the data yourself.
        """
        first = not hasattr(self, "network_")
        X, y = self._labelled(X, y, reset=first)
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit")
        known = np.unique(column_or_1d(np.asarray(classes))) if first else self.classes_
        if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
            raise ValueError(f"classes must be those of the first call, {known}, got {classes}")
        unknown = np.setdiff1d(y, known)
        if len(unknown):
            raise ValueError(f"y must only hold labels from classes {known}, got {unknown}")
        if first:
            self.classes_ = known
            self._start(X)
        self._pass_once(self._inputs(X), torch.from_numpy(np.searchsorted(self.classes_, y)))
        return self

    def predict(self, X: ArrayLike, method: str = "bayes") -> NDArray[Any]:
        """Labels (samples,), from the posterior ("bayes") or from the most probable weights ("point").

        "bayes" agrees with ``predict_proba``, "point" with a network exported as bits.
        """
        x = self._checked(X)
        return self._labels(self._proba(x).argmax(dim=1) if method == "bayes" else self._exact().predict(x, method))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Bayesian probabilities (samples, classes), in the order of ``classes_``, from one pass of the moments."""
        return self._proba(self._checked(X)).numpy()

    def predictive_entropy(self, X: ArrayLike, n: int = 30, random_state: int | None = None) -> Entropies:
        """Entropy of the predictions (samples,) in nats, as (total, aleatoric, epistemic), from ``n`` weight draws.

        The epistemic part is the mutual information of label and weights; see ``cavity.uncertainty``.
        """
        x = self._checked(X)
        if len(self.classes_) == 1:
            return Uncertainty(*np.zeros((3, len(x))))
        parts = predictive_entropy(self._exact(), x, n, self._generator(random_state))
        return Uncertainty(*(part.numpy() for part in parts))

    def predict_with(self, X: ArrayLike, weights: Sequence[NDArray[np.float32]]) -> NDArray[Any]:
        """Labels (samples,) predicted with the given weights, such as one draw of ``sample``."""
        return self._labels(self._predict_with(X, weights))

    def _labels(self, indices: Tensor) -> NDArray[Any]:
        # With a single class, the unit that stands for no class may win; there is only one class to predict then.
        labels: NDArray[Any] = self.classes_[indices.clamp_max(len(self.classes_) - 1).numpy()]
        return labels

    def _proba(self, x: Tensor) -> Tensor:
        p = self._exact().predict_proba(x)[:, : len(self.classes_)]
        return p / p.sum(dim=1, keepdim=True)

    def _output(self) -> tuple[int, str]:
        return max(len(self.classes_), FEWEST_UNITS), "argmax"

    def _labelled(self, X: ArrayLike, y: ArrayLike, reset: bool) -> tuple[NDArray[np.float64], NDArray[Any]]:
        refuse_masked(X=X, y=y)
        array, labels = validate_data(self, self._flat(X, reset), y, dtype=np.float64, reset=reset)
        check_classification_targets(labels)
        return array, column_or_1d(labels, warn=True)
