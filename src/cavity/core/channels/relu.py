"""The rectified linear unit x = max(0, z): the family's formulas for its two pieces (``mixture.py``), with what is 0 or
in common left out. They are several times faster so, and tables and most networks of real weights use them.

With u = ω/s, s = √V, a = |u|, R the Mills ratio, T = N(a) R(a) = Q(a) and R = 1/(a + h), h = 1/(a + J),

    x̂ = s (u₊ + Th),      Δ = V (Th(J − Th) + erf(u/√2)₊)                                nothing has come down yet

because max(0, z) = z + max(0, −z), Var[max(0, −z)] = V Th(J − Th) for u > 0, and Cov[z, max(0, −z)] = −VT.

With r = 1 + AV and q = −(u + sB)/√r the piece above 0 has W₁ = e^G r^{−½} Q(q), the one below W₀ = Q(u), and

    c = B − Am,   m = s(𝒦(q) − q)/√r,      g = p₁c
    VΓ = p₁(AVτ/r − sc 𝒦(q)√r) − p₀p₁ V c²
    VΓ = p₁(AV + 1 − τ)/r + p₀𝒦'(u) − p₀p₁ (𝒦(u) − u + (𝒦(q) − q)/√r)²
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from cavity.core.arrays import Array, kept, library, negative, pick
from cavity.core.channels.piecewise import PiecewiseLinear
from cavity.core.floors import can_be_seen, floored_gain
from cavity.core.messages import Fields, Moments, Preactivation, Response
from cavity.core.special import SQRT_2, lower_tail, upper_tail

#: Up to this many units NumPy is faster.
FEW = 65536


class ReLU(PiecewiseLinear):
    """x = max(0, z)."""

    name: ClassVar[str] = "relu"
    summary: ClassVar[str] = "rectified linear unit, max(0, z)"
    edges, slopes, offsets = (0.0,), (0.0, 1.0), (0.0, 0.0)

    def moments(self, message: Fields | None, pre: Preactivation) -> Moments:
        if message is not None:
            return super().moments(message, pre)
        return Moments(*_evaluated(_moments, pre.mean, self._variance(pre)))

    def gradient(self, message: Fields, pre: Preactivation) -> Tensor:
        return self.response(message, pre).gradient

    def response(self, message: Fields, pre: Preactivation) -> Response:
        V = self._variance(pre)
        A, r = floored_gain(message.precision, V)
        return Response(*_evaluated(_response, pre.mean, V, message.field, A, r))

    def _variance(self, pre: Preactivation) -> Tensor:
        """V of what the unit is given, noise included."""
        return pre.variance + self.noise if self.noise else pre.variance


def _evaluated(function: Callable[..., tuple[Array, Array]], *parts: Tensor) -> tuple[Tensor, Tensor]:
    """The function of these tensors, by NumPy where they are so few that the number of calls counts."""
    # What NumPy makes of 0-dimensional arrays are no arrays.
    if not (can_be_seen(parts[0]) and parts[0].ndim and max(part.numel() for part in parts) <= FEW):
        return function(*parts)
    with np.errstate(all="ignore"):
        first, second = function(*(part.numpy() for part in parts))
    return torch.from_numpy(first), torch.from_numpy(second)


def _moments(omega: Array, V: Array) -> tuple[Array, Array]:
    """x̂ and Δ before anything has come down."""
    xp = library(V)
    s = xp.sqrt(V)
    u = omega / s
    below, J = lower_tail(xp.abs(u))
    spread = (J - below) * below + _erf(u / SQRT_2).clip(min=0)
    return (u.clip(min=0) + below) * s, spread * V


def _response(omega: Array, V: Array, B: Array, A: Array, r: Array) -> tuple[Array, Array]:
    """g and Γ, where r = 1 + AV."""
    xp = library(V)
    s, root = xp.sqrt(V), xp.sqrt(r)
    u = omega / s
    q = -(u + s * B) / root
    above, below, inner, outer = upper_tail(q), upper_tail(u), negative(q), negative(u)
    # Both modes inside: the squares would cancel where G does not.
    edges = 0.5 * (kept(inner, q) * q - kept(outer, u) * u)
    G = (B * (omega + 0.5 * V * B) - 0.5 * A * omega * omega) / r
    lead = pick(inner & outer, G, edges) + xp.log(above.mass / (below.mass * root))
    p, rest = _sigmoid(lead), _sigmoid(-lead)

    step = A * s / root
    c = pick(inner, (B - A * omega) / r - step * above.hazard, B - step * above.excess)
    sc, flat, pp = s * c, p * (A * V / r), p * rest
    square, pull, held = pp * sc * sc, p * sc * above.hazard * root, flat * above.variance
    apart = below.excess + above.excess / root
    bend = p * (above.hazard * above.excess / r) + rest * (below.hazard * below.excess)
    between = pp * apart * apart
    # The form whose terms are smaller.
    second = negative(xp.abs(flat) + bend + between - (xp.abs(held) + xp.abs(pull) + square))
    return p * c, pick(second, flat + bend - between, held - pull - square) / V


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x)) if isinstance(x, np.ndarray) else torch.sigmoid(x)


def _erf(x: Array) -> Array:
    return torch.erf(torch.from_numpy(x)).numpy() if isinstance(x, np.ndarray) else torch.erf(x)
