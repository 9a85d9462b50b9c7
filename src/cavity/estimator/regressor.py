"""A scikit-learn regressor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from torch import Tensor

from cavity.analysis.metrics import average
from cavity.core.channels import GaussianOutput
from cavity.estimator.base import MessagePassingEstimator
from cavity.estimator.exact import in_float64
from cavity.estimator.samples import Rows, Samples, dropped, merged
from cavity.estimator.undoing import all_or_nothing
from cavity.training.callbacks import Callback, OnEpoch
from cavity.training.recipes import NUMBERS

#: Initial variance of the noise, as a fraction of the target's variance.
FIRST_NOISE = 0.3
#: The least: a network that fits every sample must not become certain.
SMALLEST_NOISE = 1e-3
#: In a stream, the initial noise counts as this many samples,
GUESSED = 10
#: and the noise is averaged over about this many of the latest, unless there is a memory.
REMEMBERED = 1000


class MessagePassingRegressor(RegressorMixin, MessagePassingEstimator):  # type: ignore[misc]
    """A network trained by message passing on y = z + noise, with error bars.

    Parameters and attributes are those of ``MessagePassingClassifier``, without classes. The target is standardised
    internally, and its noise is estimated during training: ``noise_`` is its standard deviation in units of y. Of
    several targets each has its own; training uses what they have in common, error bars each its own.
    """

    _recipe = NUMBERS
    #: Numbers for one target, arrays (targets,) for several.
    y_mean_: Any
    y_scale_: Any

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> MessagePassingRegressor:
        """Train on X (samples, features) and real y (samples,) or (samples, targets), from scratch unless
        ``warm_start``. A sample counts ``sample_weight`` times: 2 is as good as two copies, 0 leaves it out."""
        goes_on = self._goes_on()
        X, y, counts = merged(*self._measured(X, y, sample_weight, reset=not goes_on))
        if not goes_on:
            self._start_with(X, y, counts)
        samples = self._samples(X, self._target(y), counts)
        self._train(samples)
        self._share_noise(samples)
        return self

    @all_or_nothing
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> MessagePassingRegressor:
        """One pass over (X, y) with the current posterior as the prior. The first call fixes the scales of X and y."""
        first = not hasattr(self, "network_")
        X, y, counts = self._measured(X, y, sample_weight, reset=first)
        if first:
            self._start_with(X, y, counts)
        samples = self._samples(X, self._target(y), counts)
        self._pass_once(samples)
        self._follow_noise(samples)
        return self

    def predict(
        self, X: ArrayLike, method: str = "bayes", return_std: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values (samples,) or (samples, targets): the posterior mean ("bayes"), or those of the most probable weights
        ("point").

        ``return_std=True`` adds the standard deviation of y, noise included, under the posterior.
        """
        if not return_std:
            return self._in_units(self._predicted(X, lambda x: in_float64(self.network_).predict(x, method)))

        def both(x: Tensor) -> Tensor:
            values = in_float64(self.network_).predict(x, method).reshape(len(x), -1)
            return torch.stack([values, in_float64(self.network_).predict_moments(x).variance], dim=2)

        mean, V = self._predicted(X, both).unbind(2)
        spread = np.sqrt(V.numpy() + self._gaussian().noise * self.noise_shares_)
        return self._in_units(self._one(mean)), self.y_scale_ * self._one(torch.from_numpy(spread)).numpy()

    def predict_with(self, X: ArrayLike, weights: Sequence[NDArray[np.float32]]) -> NDArray[np.float64]:
        """Values (samples,) predicted with the given weights, such as one draw of ``sample``."""
        return self._in_units(self._predict_with(X, weights))

    @property
    def noise_(self) -> float | NDArray[np.float64]:
        """Standard deviation of the noise on y, of several targets (targets,)."""
        noise: NDArray[np.float64] = np.sqrt(self._gaussian().noise * self.noise_shares_)
        return self.y_scale_ * noise if self._several else float(self.y_scale_ * noise[0])

    @property
    def _several(self) -> bool:
        return np.ndim(self.y_scale_) == 1

    def _one(self, values: Tensor) -> Tensor:
        """Without the axis of targets where there is one only."""
        return values if self._several else values.squeeze(1)

    def _follow_noise(self, samples: Samples) -> None:
        """ν of a stream: a running mean of the squared residual (t − ω)²."""
        remembered = REMEMBERED if self.memory is None else self.memory
        before, here = min(self.n_samples_seen_ + GUESSED, remembered), self._size(samples)
        residual = float(self._residual(samples).mean())
        self._set_noise((before * self._gaussian().noise + here * residual) / (before + here))
        self._share_noise(samples)
        self.n_samples_seen_ += here

    def _size(self, samples: Samples) -> float:
        return len(samples) if samples.counts is None else float(samples.counts.sum())

    def _residual(self, samples: Samples) -> Tensor:
        """Mean of (t − ω)² over samples, (targets,)."""
        total = torch.zeros(())
        for x, t, counts in samples.parts():
            omega = self.network_.predict_moments(x).mean
            total = total + average((t.reshape(omega.shape) - omega).square(), counts) * self._size(
                Samples(x, t, counts)
            )
        return total / self._size(samples)

    def _share_noise(self, samples: Samples) -> None:
        """How much of the common noise each target has, 1 on average."""
        if not self._several:
            self.noise_shares_ = np.ones(1)
            return
        residual = self._residual(samples).double().clamp_min(SMALLEST_NOISE).numpy()
        self.noise_shares_ = residual / residual.mean()

    def _set_noise(self, noise: float) -> None:
        self._gaussian().noise = max(noise, SMALLEST_NOISE)

    def _gaussian(self) -> GaussianOutput:
        output = self.network_.output
        assert isinstance(output, GaussianOutput)
        return output

    def _start_with(self, X: Rows, y: NDArray[np.float64], counts: NDArray[np.float64] | None) -> None:
        """A fresh network, and the standardisation of ``X`` and ``y``."""
        found = [_location(column, counts) for column in y.reshape(len(y), -1).T]
        places, scales = (np.array(part) for part in zip(*found, strict=True))
        self.y_mean_, self.y_scale_ = (places, scales) if y.ndim == 2 else found[0]
        self._start(X, counts)
        self.n_samples_seen_, self.noise_shares_ = 0.0, np.ones(len(scales))

    def _target(self, y: NDArray[np.float64]) -> Tensor:
        if y.shape[1:] != np.shape(self.y_scale_):
            raise ValueError(f"y must have {np.size(self.y_scale_)} targets, got shape {y.shape}")
        return torch.from_numpy(((y - self.y_mean_) / self.y_scale_).astype(np.float32))

    def _in_units(self, z: Tensor) -> NDArray[np.float64]:
        units: NDArray[np.float64] = z.numpy() * self.y_scale_ + self.y_mean_
        return units

    def _output(self) -> tuple[int, GaussianOutput]:
        return int(np.size(self.y_scale_)), GaussianOutput(FIRST_NOISE)

    def _listeners(self, samples: Samples) -> list[Callback]:
        # V + ν, the variance of a prediction, adds the uncertainty of the fit to the mean squared residual ν. This
        # compensates for a ν that is too small because of overfitting.
        return [OnEpoch(lambda trainer, record: self._set_noise(float(self._residual(samples).mean())))]

    def _measured(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, reset: bool
    ) -> tuple[Rows, NDArray[np.float64], NDArray[np.float64] | None]:
        """Checked inputs, targets and counts, without the samples that count 0 times."""
        array, target, counts = self._checked(X, y, sample_weight, reset, y_numeric=True)
        return dropped(array, np.asarray(target, dtype=np.float64), counts)


def _location(y: NDArray[np.float64], counts: NDArray[np.float64] | None = None) -> tuple[float, float]:
    """Mean and standard deviation, of numbers whose sum or squares float64 may not hold; 1 where they do not vary."""
    # A power of two: dividing by it rounds nothing.
    unit = float(np.ldexp(1.0, np.frexp(np.abs(y).max())[1] - 1)) if y.any() else 1.0
    scaled = y / unit
    mean = float(np.average(scaled, weights=counts))
    spread = float(np.sqrt(np.average(np.square(scaled - mean), weights=counts))) * unit
    return mean * unit, spread if spread > 0 and np.isfinite(spread) else 1.0
