"""ReLU activations x = max(0, z): a point mass at 0 from z < 0 and a tilted Gaussian on z > 0.

With u = ω/√V, r = 1 + AV and ũ = (u + B√V)/√r the two parts of e^φ weigh

    W₀ = Φ(−u),    W₁ = e^{(ũ² − u²)/2} Φ(ũ)/√r,    p₁ = W₁/(W₀ + W₁),  p₀ = 1 − p₁

and x given z > 0 is a normal of variance V/r truncated to x > 0: its mean is m₁ = √(V/r)(ũ + K(−ũ)). The squares of W₀
and W₁ are taken out before anything is exponentiated. As 𝒩(x; ω, V) depends on x − ω only, integrating by parts gives

    g = p₁ c,    c = B − A m₁ = (B − Aω)/r − A√(V/r) K(−ũ)

the first form of c for ũ < 0, the second for ũ ≥ 0, where neither loses digits. Γ has two forms, with the excess
e(x) = K(x) − x and the truncated variance t = 1 − K'(−ũ):

    VΓ = p₁ AV (K'(−ũ) + t/r) − p₀p₁ V c² − p₀ B√V K(u)                          vanishes with B and A, term by term
    VΓ = p₀ K'(u) + p₁ (AV + K'(−ũ))/r − p₀p₁ (e(−ũ)/√r + e(u))²                 good where B or A pin the unit

Terms of either cancel where the other is good, so at each point the one with the smaller terms is used.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from cavity.core.channels.base import Activation
from cavity.core.floors import floored_gain, gain_is_floored
from cavity.core.messages import Fields, Moments, Preactivation, Response
from cavity.core.special import erfcx, hazard, hazard_excess, hazard_slope, log_ndtr, tail_variance


def log_ndtr_scaled(x: Tensor) -> Tensor:
    """ℓ(x) = log Φ(x) + ½ min(x, 0)²: the logarithm of Φ without its Gaussian decay."""
    below = torch.log(0.5 * erfcx(-x.clamp_max(0.0) * math.sqrt(0.5)))
    return torch.where(x < 0, below, log_ndtr(x.clamp_min(0.0)))


class _Parts(NamedTuple):
    """Quantities shared by φ and its derivatives, in the notation of the module."""

    A: Tensor
    r: Tensor
    s: Tensor
    u: Tensor
    tilted: Tensor
    logit: Tensor


def _parts(message: Fields | None, pre: Preactivation) -> _Parts:
    """logit = log W₁/W₀ = ½(ũ₊² − u₋²) − ½ log r + ℓ(ũ) − ℓ(−u), where log Φ(x) = ℓ(x) − ½x₋²."""
    omega, V = pre
    s = torch.sqrt(V)
    u = omega / s
    if message is None:
        r = torch.ones_like(V)
        return _Parts(torch.zeros_like(V), r, s, u, u, log_ndtr(u) - log_ndtr(-u))
    A, r = floored_gain(message.precision, V)
    tilted = (u + message.field * s) / torch.sqrt(r)
    squares = 0.5 * (tilted.clamp_min(0).square() - u.clamp_max(0).square())
    logit = squares - 0.5 * torch.log(r) + log_ndtr_scaled(tilted) - log_ndtr_scaled(-u)
    return _Parts(A, r, s, u, tilted, logit)


def _pull(B: Tensor, omega: Tensor, part: _Parts) -> Tensor:
    """c = B − A m₁, the mean slope of the message over the part x > 0."""
    A, r, s, _, tilted, _ = part
    A_width = A * s / torch.sqrt(r)
    below = B - A_width * hazard_excess(-tilted)
    return torch.where(tilted < 0, below, (B - A * omega) / r - A_width * hazard(-tilted))


def _curvatures(B: Tensor, c: Tensor, on: Tensor, off: Tensor, part: _Parts) -> tuple[list[Tensor], list[Tensor]]:
    """The terms of both forms of VΓ, in the order of the module's text."""
    A, r, s, u, tilted, _ = part
    AV, slope = A * s.square(), hazard_slope(-tilted)
    vanishing = [
        on * AV * (slope + tail_variance(-tilted) / r),
        -off * on * (c * s).square(),
        -off * B * s * hazard(u),
    ]
    pinned = [
        off * hazard_slope(u),
        on * AV / r,
        on * slope / r,
        -off * on * (hazard_excess(-tilted) / torch.sqrt(r) + hazard_excess(u)).square(),
    ]
    return vanishing, pinned


def _size(terms: list[Tensor]) -> Tensor:
    total = terms[0].abs()
    for term in terms[1:]:
        total = total + term.abs()
    return total


class ReLU(Activation):
    """x = max(0, z)."""

    def value(self, message: Fields, pre: Preactivation) -> Tensor:
        """log(W₀ + W₁), with log W₁ = ½(ũ² − u²) + log Φ(ũ) − ½ log r: the squares differ by what the identity's φ
        has."""
        part = _parts(message, pre)
        B, r = message.field, part.r
        gained = (B * (2 * pre.mean + B * pre.variance) - part.A * pre.mean.square()) / r
        squares = torch.where(part.tilted < 0, -part.u.square(), gained)
        return torch.logaddexp(log_ndtr(-part.u), 0.5 * (squares - torch.log(r)) + log_ndtr_scaled(part.tilted))

    def moments(self, message: Fields | None, pre: Preactivation) -> Moments:
        part = _parts(message, pre)
        on, off = torch.sigmoid(part.logit), torch.sigmoid(-part.logit)
        width = part.s / torch.sqrt(part.r)
        mean = width * hazard_excess(-part.tilted)
        variance = width.square() * tail_variance(-part.tilted)
        return Moments(on * mean, on * (variance + off * mean.square()))

    def gradient(self, message: Fields, pre: Preactivation) -> Tensor:
        part = _parts(message, pre)
        return torch.sigmoid(part.logit) * _pull(message.field, pre.mean, part)

    def response(self, message: Fields, pre: Preactivation) -> Response:
        part = _parts(message, pre)
        on, off = torch.sigmoid(part.logit), torch.sigmoid(-part.logit)
        c = _pull(message.field, pre.mean, part)
        vanishing, pinned = _curvatures(message.field, c, on, off, part)
        better = _size(vanishing) < _size(pinned)
        return Response(on * c, torch.where(better, sum(vanishing), sum(pinned)) / pre.variance)

    def forward(self, z: Tensor) -> Tensor:
        return torch.relu(z)

    def clamped(self, message: Fields, pre: Preactivation) -> Tensor:
        return gain_is_floored(message.precision, pre.variance).sum()
