"""A scikit-learn regressor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import column_or_1d, validate_data
from torch import Tensor

from cavity.core.channels import GaussianOutput
from cavity.estimator.base import MessagePassingEstimator, all_or_nothing, refuse_masked
from cavity.training.callbacks import Callback, OnEpoch
from cavity.training.recipes import NUMBERS

#: Initial variance of the noise, as a fraction of the target's variance.
FIRST_NOISE = 0.3
#: The least: a network that fits every sample must not become certain.
SMALLEST_NOISE = 1e-3
#: In a stream, the initial noise counts as this many samples,
GUESSED = 10
#: and the noise is averaged over about this many of the latest.
REMEMBERED = 1000


class MessagePassingRegressor(RegressorMixin, MessagePassingEstimator):  # type: ignore[misc]
    """A network trained by message passing on y = z + noise, with error bars.

    Parameters and attributes are those of ``MessagePassingClassifier``, without classes. The target is standardised
    internally, and its noise is estimated during training: ``noise_`` is its standard deviation in units of y.
    """

    _recipe = NUMBERS

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike) -> MessagePassingRegressor:
        """Train from scratch on X (samples, features) and real y (samples,)."""
        X, y = self._measured(X, y, reset=True)
        self._start_with(X, y)
        self._train(self._inputs(X), self._target(y))
        return self

    @all_or_nothing
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> MessagePassingRegressor:
        """One pass over (X, y) with the current posterior as the prior. The first call fixes the scales of X and y."""
        first = not hasattr(self, "network_")
        X, y = self._measured(X, y, reset=first)
        if first:
            self._start_with(X, y)
        x, t = self._inputs(X), self._target(y)
        self._pass_once(x, t)
        self._follow_noise(x, t)
        return self

    def predict(
        self, X: ArrayLike, method: str = "bayes", return_std: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values (samples,): the posterior mean ("bayes"), or those of the most probable weights ("point").

        ``return_std=True`` adds the standard deviation of y, noise included, under the posterior.
        """
        x = self._checked(X)
        mean = self._in_units(self._exact().predict(x, method))
        if not return_std:
            return mean
        V = self._exact().predict_moments(x).variance.squeeze(1).numpy()
        return mean, self.y_scale_ * np.sqrt(V + self._gaussian().noise)

    def predict_with(self, X: ArrayLike, weights: Sequence[NDArray[np.float32]]) -> NDArray[np.float64]:
        """Values (samples,) predicted with the given weights, such as one draw of ``sample``."""
        return self._in_units(self._predict_with(X, weights))

    @property
    def noise_(self) -> float:
        """Standard deviation of the noise on y."""
        return float(self.y_scale_ * np.sqrt(self._gaussian().noise))

    def _follow_noise(self, x: Tensor, t: Tensor) -> None:
        """ν of a stream: a running mean of the squared residual (t − ω)²."""
        before = min(self.n_samples_seen_ + GUESSED, REMEMBERED)
        self._set_noise((before * self._gaussian().noise + len(x) * self._residual(x, t)) / (before + len(x)))
        self.n_samples_seen_ += len(x)

    def _residual(self, x: Tensor, t: Tensor) -> float:
        """Mean of (t − ω)² over samples."""
        return float((t - self.network_.predict_moments(x).mean.squeeze(1)).square().mean())

    def _set_noise(self, noise: float) -> None:
        self._gaussian().noise = max(noise, SMALLEST_NOISE)

    def _gaussian(self) -> GaussianOutput:
        output = self.network_.output
        assert isinstance(output, GaussianOutput)
        return output

    def _start_with(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """A fresh network, and the standardisation of ``X`` and ``y``."""
        self._start(X)
        self.y_mean_, self.y_scale_ = _location(y)
        self.n_samples_seen_ = 0

    def _target(self, y: NDArray[np.float64]) -> Tensor:
        return torch.from_numpy(((y - self.y_mean_) / self.y_scale_).astype(np.float32))

    def _in_units(self, z: Tensor) -> NDArray[np.float64]:
        return z.numpy() * self.y_scale_ + self.y_mean_

    def _output(self) -> tuple[int, GaussianOutput]:
        return 1, GaussianOutput(FIRST_NOISE)

    def _listeners(self, x: Tensor, y: Tensor) -> list[Callback]:
        # V + ν, the variance of a prediction, adds the uncertainty of the fit to the mean squared residual ν. This
        # compensates for a ν that is too small because of overfitting.
        return [OnEpoch(lambda trainer, record: self._set_noise(self._residual(x, y)))]

    def _measured(self, X: ArrayLike, y: ArrayLike, reset: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        refuse_masked(X=X, y=y)
        array, target = validate_data(self, self._flat(X, reset), y, dtype=np.float64, y_numeric=True, reset=reset)
        return array, column_or_1d(target, warn=True, dtype=np.float64)


def _location(y: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard deviation, of numbers whose sum or squares float64 may not hold; 1 where they do not vary."""
    # A power of two: dividing by it rounds nothing.
    unit = float(np.ldexp(1.0, np.frexp(np.abs(y).max())[1] - 1)) if y.any() else 1.0
    scaled = y / unit
    spread = float(scaled.std()) * unit
    return float(scaled.mean()) * unit, spread if spread > 0 and np.isfinite(spread) else 1.0
