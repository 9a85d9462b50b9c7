"""Pooling: units of a window become one unit, between an activation and the coupling above it.

A pool says what the coupling above sees of a window, and turns the fields that come down onto pooled units into fields
on the units themselves. To the algorithms pooled units are units like any other. Windows do not overlap, so that each
unit hears from one pooled unit only; what a window does not fit over at the border is left out.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from cavity.core.channels import Activation, Identity, Sign
from cavity.core.channels.base import Units
from cavity.core.couplings.base import check_sizes
from cavity.core.couplings.conv2d import Sides, pair
from cavity.core.floors import VARIANCE_FLOOR, floored_gain
from cavity.core.messages import Fields, Moments, Preactivation
from cavity.core.special import log_ndtr, tanh_moments
from cavity.util.registry import Registry

#: 1 − e^{−S} has lost two digits here, and its series is exact to 1e-11.
SMALL = 0.01
#: Of what is only compared with ½: its exponential is finite in single precision.
LARGEST_EXPONENT = 80.0


class Pool(ABC):
    """Windows of ``size`` (height, width) units side by side, one number for both."""

    name: ClassVar[str]
    summary: ClassVar[str]

    def __init__(self, size: Sides = 2) -> None:
        self.size = pair("size", size)
        check_sizes(size=min(self.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size[0] if self.size[0] == self.size[1] else self.size})"

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """(channels, height, width) of what is left of units in that shape."""
        if len(shape) != 3:
            raise ValueError(f"{self!r} takes (channels, height, width), got {shape}")
        pooled = (shape[0], shape[1] // self.size[0], shape[2] // self.size[1])
        if min(pooled) < 1:
            raise ValueError(f"{self!r} does not fit into {shape}")
        return pooled

    @abstractmethod
    def units(self, activation: Activation) -> Units:
        """What the coupling above sees; TypeError where such units cannot be pooled."""

    @abstractmethod
    def up(self, activation: Activation, pre: Preactivation) -> Preactivation:
        """Pooled units by what is known from below, as ``units`` reads it, from (ω, V) of the units of a layer."""

    @abstractmethod
    def down(self, activation: Activation, message: Fields, pre: Preactivation) -> Fields:
        """(B, A) on each unit, from those on the pooled units and what the other units of its window are like."""

    @abstractmethod
    def combine(self, units: Moments) -> Moments:
        """Mean and variance of pooled units, from those of independent units (samples, channels, height, width)."""

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Pooled values of known units x (samples, channels, height, width)."""

    def sum(self, x: Tensor) -> Tensor:
        """Σ over each window: (samples, channels, height, width), divided by the size."""
        return F.avg_pool2d(x, self.size, divisor_override=1)

    def spread(self, pooled: Tensor, shape: torch.Size) -> Tensor:
        """The value of its window for each unit; 0 where no window is."""
        wide = pooled.repeat_interleave(self.size[0], dim=2).repeat_interleave(self.size[1], dim=3)
        return F.pad(wide, (0, shape[3] - wide.shape[3], 0, shape[2] - wide.shape[2]))


@dataclass(frozen=True)
class Pooling:
    """A pool on top of its activation, as a layer's place in the chain holds it."""

    pool: Pool
    activation: Activation

    def up(self, pre: Preactivation) -> Preactivation:
        return self.pool.up(self.activation, pre)

    def down(self, message: Fields, pre: Preactivation) -> Fields:
        return self.pool.down(self.activation, message, pre)


class PooledSigns(Units):
    """x = ±1 with half log-odds θ, which stands in the place of ω.

    φ = log Σ_x e^{(B + θ)x}/2cosh θ,   x̂ = tanh(B + θ)
    """

    second_moment: ClassVar[float | None] = 1.0
    uses_precision: ClassVar[bool] = False

    def value(self, message: Fields, pre: Preactivation) -> Tensor:
        B, theta = message.field, pre.mean
        return torch.logaddexp(B + F.logsigmoid(2 * theta), F.logsigmoid(-2 * theta) - B)

    def moments(self, message: Fields | None, pre: Preactivation) -> Moments:
        return Moments(*tanh_moments(pre.mean if message is None else message.field + pre.mean))


class MaxPool(Pool):
    """The largest of ±1 units: −1 only if none of them is +1. With p_j = Φ(u_j) and u = ω/√(V+ν),

        q = P(x = −1) = Π_j (1 − p_j),        θ = ½ log (1 − q)/q,   x̂ = tanh(B + θ)
        B_j = −½ log(1 + q_j (e^{−2B} − 1)),   q_j = q/(1 − p_j): whether x_j matters is whether the others are all −1

    Both are exact: given (ω, V), a window is a factor of its units alone. A probability below the smallest number of
    the type (1e-38) counts as that.
    """

    name: ClassVar[str] = "max"
    summary: ClassVar[str] = "the largest unit of each window; for sign units, exact"

    def units(self, activation: Activation) -> Units:
        _require_sign(activation)
        return PooledSigns()

    def up(self, activation: Activation, pre: Preactivation) -> Preactivation:
        surprise = self.sum(_surprise(activation, pre))
        theta = 0.5 * (_log_one_minus(surprise) + surprise)
        return Preactivation(theta, torch.ones_like(theta))

    def down(self, activation: Activation, message: Fields, pre: Preactivation) -> Fields:
        own, shape = _surprise(activation, pre), pre.mean.shape
        B = self.spread(message.field, shape)
        # −log q_j of the others; at the border, where no window is, B = 0 and anything will do.
        others = (self.spread(self.sum(own), shape) - own).clamp_min(0.0)
        # q_j (e^{−2B} − 1), from 1 − e^{−2|B|} = 2t/(1 + t) with t = tanh|B|.
        t = torch.tanh(B.abs())
        size = torch.exp((-2 * B.clamp_max(0.0) - others).clamp_max(LARGEST_EXPONENT)) * 2 * t / (1 + t)
        small = torch.where(B < 0, size, -size)
        near = -0.5 * torch.log1p(small.clamp(-0.5, 0.5))
        far = 0.5 * (B - torch.logaddexp(-B - others, B + _log_one_minus(others)))
        return Fields(torch.where(small.abs() < 0.5, near, far), None)

    def combine(self, units: Moments) -> Moments:
        q = torch.exp(self.sum(torch.log(0.5 * (1 - units.mean))))
        return Moments(1 - 2 * q, 4 * q * (1 - q))

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(x, self.size)


def _require_sign(activation: Activation) -> None:
    if not isinstance(activation, Sign):
        raise TypeError(
            f"max pooling is for sign units, whose largest is known exactly, not for {activation.name}: use average "
            "pooling, or a stride"
        )


def _surprise(activation: Activation, pre: Preactivation) -> Tensor:
    """−log(1 − p) ≥ 0 of each unit."""
    assert isinstance(activation, Sign)
    return -log_ndtr(-activation.scaled(pre)[0])


def _log_one_minus(surprise: Tensor) -> Tensor:
    """log(1 − e^{−S}) for S ≥ 0. Not by expm1, which compiled code on the CPU computes as e^x − 1: 0 for small x."""
    S = surprise.clamp_min(torch.finfo(surprise.dtype).tiny)
    near = torch.log(S) - S / 2 + S.square() / 24
    return torch.where(S < SMALL, near, torch.log(1 - torch.exp(-S.clamp_min(SMALL))))


class AveragePool(Pool):
    """The mean of n units of any kind, which counts as a Gaussian as the sums of a coupling do. For a few ±1 units that
    is good for one inner iteration, the usual number, and not for many:

    x = (1/n) Σ_j x_j ~ 𝒩(mean of x̂_j, Σ_j Δ_j/n²)
    B_j = (B − A r)/(n (1 + A v)),   A_j = A/(n² (1 + A v)),   r and v mean and variance of x without x_j
    """

    name: ClassVar[str] = "average"
    summary: ClassVar[str] = "the mean of each window"

    def units(self, activation: Activation) -> Units:
        return Identity()

    @property
    def count(self) -> int:
        """n."""
        return math.prod(self.size)

    def up(self, activation: Activation, pre: Preactivation) -> Preactivation:
        mean, variance = self.combine(activation.moments(None, pre))
        assert variance is not None
        # Certain units leave no variance, which no channel takes.
        return Preactivation(mean, variance.clamp_min(VARIANCE_FLOOR))

    def down(self, activation: Activation, message: Fields, pre: Preactivation) -> Fields:
        (x, delta), shape, n = activation.moments(None, pre), pre.mean.shape, self.count
        assert delta is not None
        assert message.precision is not None
        B, A = (self.spread(part, shape) for part in (message.field, message.precision))
        r = (self.spread(self.sum(x), shape) - x) / n
        v = ((self.spread(self.sum(delta), shape) - delta) / n**2).clamp_min(VARIANCE_FLOOR)
        A, gain = floored_gain(A, v)
        return Fields((B - A * r) / (n * gain), A / (n**2 * gain))

    def combine(self, units: Moments) -> Moments:
        x, delta = units
        assert delta is not None
        return Moments(self.sum(x) / self.count, self.sum(delta) / self.count**2)

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool2d(x, self.size)


POOLS: Registry[Pool] = Registry("pool", MaxPool, AveragePool)
