"""Linear channels: the identity activation and the Gaussian output of regression.

identity:  x = z            x̂ = (ω + BV)/(1+AV)   Δ = V/(1+AV)   g = (B − Aω)/(1+AV)   Γ = A/(1+AV)
output:    y ~ 𝒩(z, ν)      φ = log 𝒩(y; ω, V+ν)   g = (y − ω)/(V+ν)   Γ = 1/(V+ν)
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from cavity.core.channels.base import Activation, UnitOutput
from cavity.core.floors import floored_gain, floored_gains
from cavity.core.messages import Fields, Moments, Preactivation, Response, Target


class Identity(Activation):
    """x = z: the piecewise-linear unit of one piece, tens of times faster than as one of that family."""

    name: ClassVar[str] = "identity"
    summary: ClassVar[str] = "linear unit, z"

    def value(self, message: Fields, pre: Preactivation) -> Tensor:
        A, r = floored_gain(message.precision, pre.variance)
        exponent = message.field * (2 * pre.mean + message.field * pre.variance) - A * pre.mean.square()
        return 0.5 * (exponent / r - torch.log(r))

    def moments(self, message: Fields | None, pre: Preactivation) -> Moments:
        if message is None:
            return Moments(pre.mean, pre.variance)
        _, r = floored_gain(message.precision, pre.variance)
        return Moments((pre.mean + message.field * pre.variance) / r, pre.variance / r)

    def gradient(self, message: Fields, pre: Preactivation) -> Tensor:
        A, r = floored_gain(message.precision, pre.variance)
        return (message.field - A * pre.mean) / r

    def response(self, message: Fields, pre: Preactivation) -> Response:
        A, r = floored_gain(message.precision, pre.variance)
        return Response((message.field - A * pre.mean) / r, (A / r).expand_as(pre.mean))

    def forward(self, z: Tensor) -> Tensor:
        return z

    def clamped(self, message: Fields, pre: Preactivation) -> Tensor:
        return floored_gains(message.precision, pre.variance)


class GaussianOutput(UnitOutput):
    """y = z + √noise·ξ, one real number for each output unit; noise is a variance > 0.

    It may be changed between mini-batches: the target takes it along as a tensor, which a compiled kernel reads anew.
    """

    name: ClassVar[str] = "gaussian"
    summary: ClassVar[str] = "real numbers with Gaussian noise, for regression"
    phrase: ClassVar[str] = "a Gaussian output"
    curvature_stays: ClassVar[bool] = True

    def __init__(self, noise: float = 1.0) -> None:
        if not (math.isfinite(noise) and noise > 0):
            raise ValueError(f"noise must be a finite variance > 0, got {noise}")
        self.noise = float(noise)

    def _spread(self, message: Target, pre: Preactivation) -> Tensor:
        """V + ν, with the ν of the target."""
        return pre.variance + (self.noise if message.noise is None else message.noise)

    def value(self, message: Target, pre: Preactivation) -> Tensor:
        spread = self._spread(message, pre)
        return -0.5 * ((message.labels - pre.mean).square() / spread + torch.log(2 * math.pi * spread))

    def response(self, message: Target, pre: Preactivation) -> Response:
        spread = self._spread(message, pre)
        return Response((message.labels - pre.mean) / spread, spread.reciprocal())

    def target(self, y: Tensor, pre: Preactivation, generator: torch.Generator | None) -> Target:
        labels = y.to(pre.mean.dtype).reshape(pre.mean.shape)
        return Target(labels, torch.full_like(labels, self.noise))

    def check_values(self, y: Tensor, outputs: int) -> None:
        if not bool(torch.isfinite(y).all()):
            raise ValueError("y must be finite for a Gaussian output, it holds NaN or infinity")

    def probabilities(self, pre: Preactivation) -> Tensor:
        raise ValueError("a Gaussian output has no classes: use predict_moments for its mean and variance")
