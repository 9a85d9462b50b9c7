"""Piecewise-linear activations: intervals with a slope and an offset each; ``mixture.py`` has the formulas.

The noise is added to z before the function, x = f(z + √ν·ξ) with ξ standard normal. It only widens what the function is
given: V + ν takes the place of V, exactly, in φ and all of its derivatives.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from cavity.core.channels.base import Activation, check_noise
from cavity.core.channels.mixture import Mixture, mixture
from cavity.core.channels.pieces import Line, Unit
from cavity.core.floors import floored_gain, floored_gains
from cavity.core.messages import Fields, Moments, Preactivation, Response


class PiecewiseLinear(Activation):
    """x = slopes[j]·z + offsets[j] between edges[j−1] and edges[j], with z + √noise·ξ in place of z.

    A subclass declares the three; the function may jump at the edges, where the piece above counts.
    """

    edges: tuple[float, ...]
    slopes: tuple[float, ...]
    offsets: tuple[float, ...]

    def __init__(self, noise: float = 0.0) -> None:
        self.noise = check_noise(noise)

    def _lines(self) -> list[Line]:
        ends = (-math.inf, *self.edges, math.inf)
        return [Line(*line) for line in zip(ends[:-1], ends[1:], self.slopes, self.offsets, strict=True)]

    def _mixture(self, message: Fields | None, pre: Preactivation) -> Mixture:
        V = pre.variance + self.noise if self.noise else pre.variance
        steepest = max(map(abs, self.slopes))
        gain = zero = V.new_zeros(())
        B, A = (zero, None) if message is None else message
        if steepest and message is not None:
            A, gain = floored_gain(A, steepest**2 * V)
        unit = Unit(B, zero if A is None else A, pre.mean, V, torch.sqrt(V), silent=message is None)
        return mixture(self._lines(), unit, steepest, gain)

    def value(self, message: Fields, pre: Preactivation) -> Tensor:
        return self._mixture(message, pre).value()

    def moments(self, message: Fields | None, pre: Preactivation) -> Moments:
        return Moments(*self._mixture(message, pre).moments())

    def gradient(self, message: Fields, pre: Preactivation) -> Tensor:
        return self._mixture(message, pre).gradient()

    def response(self, message: Fields, pre: Preactivation) -> Response:
        found = self._mixture(message, pre)
        return Response(found.gradient(), found.curvature() / found.unit.V)

    def forward(self, z: Tensor) -> Tensor:
        x = z
        for line in self._lines():
            x = torch.where(z >= line.low, line.slope * z + line.offset, x)
        return x

    def clamped(self, message: Fields, pre: Preactivation) -> Tensor | None:
        steepest = max(map(abs, self.slopes))
        return floored_gains(message.precision, steepest**2 * (pre.variance + self.noise)) if steepest else None


class LeakyReLU(PiecewiseLinear):
    """x = z for z > 0, slope·z below."""

    name: ClassVar[str] = "leaky-relu"
    summary: ClassVar[str] = "leaky rectified linear unit, z above 0 and 0.1 z below"
    edges, offsets = (0.0,), (0.0, 0.0)

    def __init__(self, slope: float = 0.1, noise: float = 0.0) -> None:
        super().__init__(noise)
        if not math.isfinite(slope):
            raise ValueError(f"slope must be a finite number, got {slope}")
        self.slopes = (float(slope), 1.0)


class HardTanh(PiecewiseLinear):
    """x = z within ±1, −1 and +1 beyond."""

    name: ClassVar[str] = "hard-tanh"
    summary: ClassVar[str] = "z cut to the interval from -1 to 1"
    edges, slopes, offsets = (-1.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 1.0)


class Absolute(PiecewiseLinear):
    """x = |z|."""

    name: ClassVar[str] = "abs"
    summary: ClassVar[str] = "absolute value, |z|"
    edges, slopes, offsets = (0.0,), (-1.0, 1.0), (0.0, 0.0)


class Step(PiecewiseLinear):
    """x = 1 for z > 0, else 0."""

    name: ClassVar[str] = "step"
    summary: ClassVar[str] = "1 above 0, 0 below"
    edges, slopes, offsets = (0.0,), (0.0, 0.0), (0.0, 1.0)


class Gate(PiecewiseLinear):
    """x = 1 where |z| > threshold, else 0."""

    name: ClassVar[str] = "gate"
    summary: ClassVar[str] = "1 where |z| exceeds a threshold of 1, else 0"
    slopes, offsets = (0.0, 0.0, 0.0), (1.0, 0.0, 1.0)

    def __init__(self, threshold: float = 1.0, noise: float = 0.0) -> None:
        super().__init__(noise)
        if not (math.isfinite(threshold) and threshold > 0):
            raise ValueError(f"threshold must be a finite number > 0, got {threshold}")
        self.edges = (-float(threshold), float(threshold))


class RelativeGate(Gate):
    """x = 1 where |z| exceeds the threshold times the usual size of z, else 0; a network knows that size."""

    name: ClassVar[str] = "relative-gate"
    summary: ClassVar[str] = "1 where |z| exceeds its usual size, else 0"

    def __init__(self, threshold: float = 1.0, noise: float = 0.0) -> None:
        super().__init__(threshold, noise)
        self.threshold = float(threshold)

    def at_size(self, size: float) -> Gate:
        return Gate(self.threshold * size, self.noise)
