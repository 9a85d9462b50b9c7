"""The ArgMax output on twenty nodes: log-likelihood of a winner and its derivatives, without a branch.

    Z = ∫ dz 𝒩(z; ω_*, V_*) Π_{k≠*} Φ(a_k),   a_k = (z − ω_k)/√V_k,   h_k = K(−a_k)/√V_k,   S = Σ_k h_k,   K = N/Q

The integrand p is log-concave. Its mode is found by Newton's rule from the left, where log p' is convex and falling, so
that no step overshoots; its two ends, DEPTH nats below, by Newton's rule from outside. Between them the trapezoidal
rule runs over u with z = mode + α(e^u − 1) + β(1 − e^{−u}): dense at the mode, where a narrow rival makes its cliff. In
terms of the posterior p

    g_k = −E[h_k],   g_* = E[S],   Γ_k = −Cov[h_k, z/V_* − S + h_k],   Γ_* = −Cov[S, z]/V_*

(integration by parts; all terms of a covariance have one sign, and neither needs K'). Large squares never meet: with
a = a⁰ + τ, a⁰ at the mode, log Φ(a) − log Φ(a⁰) less its tangent part a⁰₋τ is ℓ(a) − ℓ(a⁰) plus
−½τ² + ½a₊² where a⁰ < 0, −½a₋² elsewhere, ℓ(a) = log Φ(a) + ½a₋²; the tangents are summed once a sample.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from cavity.core.channels.winner import WinnerResponse, one_hot
from cavity.core.messages import Preactivation
from cavity.core.special import SQRT_2PI, mills_ratio, select

#: Nodes, and the largest |u|.
NODES, REACH = 20, 1.5
#: Nats below the mode at the left and right end. To the left lies what a sure winner's g is made of.
DEPTH = 12.0, 10.0
#: Newton steps to the mode and to the ends.
MODE_STEPS, END_STEPS = 3, 2
#: No rival narrower than this part of V_*: its cliff would fall between two nodes.
NARROWEST = 0.05
INV_SQRT_2PI = 1 / SQRT_2PI


def tail(a: Tensor) -> tuple[Tensor, Tensor]:
    """e^{½a₋²} Φ(a), which never underflows, and N(a)/Φ(a)."""
    R, N, negative = mills_ratio(a.abs()), torch.exp(-0.5 * a * a) * INV_SQRT_2PI, a < 0
    scaled = select(negative, R * INV_SQRT_2PI, 1 - N * R)
    return scaled, select(negative, INV_SQRT_2PI, N) / scaled


class Rivals(NamedTuple):
    """The integrand around z = origin, measured from ω_*: a⁰, e^{ℓ(a⁰)} and 1/√V_k (classes, samples), 0 for the
    winner; 1/V_*, the origin and the slope of the tangents (samples,)."""

    a0: Tensor
    scaled: Tensor
    inverse: Tensor
    precision: Tensor
    origin: Tensor
    tangent: Tensor

    def rise(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """log p(origin + t) − log p(origin), (points, samples), and h (classes, points, samples)."""
        a0, inverse = self.a0.unsqueeze(1), self.inverse.unsqueeze(1)
        tau = t * inverse
        a = a0 + tau
        scaled, hazard = tail(a)
        squares = select(a0 < 0, 0.5 * a.clamp_min(0).square() - 0.5 * tau * tau, -0.5 * a.clamp_max(0).square())
        steps = (squares + torch.log(scaled / self.scaled.unsqueeze(1))).sum(dim=0)
        return steps + t * (self.tangent - 0.5 * t * self.precision), hazard * inverse


def mode(c: Tensor, inverse: Tensor, V_winner: Tensor, V: Tensor) -> Tensor:
    """z − ω_* (samples,) where p is largest, from the largest of the modes against one rival."""
    precision = 1 / V_winner
    z = (c * V_winner / (V + V_winner)).amax(dim=0).clamp_min(0)
    for _ in range(MODE_STEPS):
        a = (z - c) * inverse
        hazard = tail(a)[1]
        slope = (hazard * inverse).sum(dim=0) - z * precision
        bend = (hazard * (hazard + a) * inverse * inverse).sum(dim=0) + precision
        z = z + slope / bend
    return z


def rivals(winner: Tensor, omega: Tensor, V: Tensor) -> tuple[Rivals, Tensor]:
    """The problem of each sample, and V_* (samples,); ω, V and which class is the winner are (classes, samples)."""
    of_winner = select(winner, omega, 0.0).sum(dim=0)
    c, V_winner = omega - of_winner, select(winner, V, 0.0).sum(dim=0)
    V = torch.maximum(V, NARROWEST * V_winner)
    inverse = torch.rsqrt(V).masked_fill(winner, 0.0)
    z, precision = mode(c, inverse, V_winner, V), 1 / V_winner
    a0 = (z - c) * inverse
    tangent = -z * precision - (a0.clamp_max(0) * inverse).sum(dim=0)
    return Rivals(a0, tail(a0)[0], inverse, precision, z, tangent), V_winner


def ends(f: Rivals, winner: Tensor, V_winner: Tensor) -> Tensor:
    """Distances from the mode (2, samples) beyond which p is negligible: bounds, then Newton's rule from outside."""
    depth = torch.tensor(DEPTH, dtype=f.a0.dtype, device=f.a0.device).unsqueeze(1)
    reach = math.sqrt(2 * DEPTH[0])
    below = f.a0 < 0
    bend = f.precision + (f.inverse.square() * below).sum(dim=0)
    cliffs = select(below | winner, -math.inf, -(f.a0 + reach) / f.inverse.clamp_min(1e-30))
    left = torch.maximum(-reach / torch.sqrt(bend), cliffs.amax(dim=0))
    t = torch.stack([left, torch.sqrt(2 * DEPTH[1] * V_winner)])
    for _ in range(END_STEPS):
        level, h = f.rise(t)
        nearer = t - (level + depth) / (h.sum(dim=0) - (f.origin + t) * f.precision)
        inside = (level < -depth) & (nearer * t > 0) & (nearer.abs() < t.abs())
        t = select(inside, nearer, t)
    return t


def nodes(t: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes between the ends t (2, samples) as distances from the mode, and log dz of each: (NODES, samples)."""
    p, q = math.exp(REACH) - 1, 1 - math.exp(-REACH)
    left, right = -t[0], t[1]
    tiny = 1e-3 * (left + right)
    alpha = torch.maximum((right * p - left * q) / (p * p - q * q), tiny)
    beta = torch.maximum((left * p - right * q) / (p * p - q * q), tiny)
    u = torch.linspace(-REACH, REACH, NODES, dtype=t.dtype, device=t.device).unsqueeze(1)
    up, down = torch.exp(u), torch.exp(-u)
    return alpha * (up - 1) + beta * (1 - down), torch.log((alpha * up + beta * down) * (2 * REACH / (NODES - 1)))


def contest_response(labels: Tensor, pre: Preactivation) -> WinnerResponse:
    """log Z and its derivatives for winners ``labels`` (samples,), ω and V (samples, classes), in float32: within 1e-3
    of the largest entry while the variances of a sample are within a factor of 16.

    Inside, samples are the last axis: there are enough of them to fill a vector of numbers, unlike classes."""
    omega, V = pre.mean.T, pre.variance.T
    winner = one_hot(labels, len(omega)).T
    f, V_winner = rivals(winner, omega, V)
    t, log_dz = nodes(ends(f, winner, V_winner))
    log_p, h = f.rise(t)
    log_p = log_p + log_dz
    total = torch.logsumexp(log_p, dim=0)
    p = torch.exp(log_p - total)
    mean = (p * h).sum(dim=1)
    S, S_mean = h.sum(dim=0), mean.sum(dim=0)
    dS, dz = S - S_mean, (t - (p * t).sum(dim=0)) * f.precision
    dh = h - mean.unsqueeze(1)
    losers = -((p * dh) * (dz - dS + dh)).sum(dim=1)
    own = -(p * dS * dz).sum(dim=0)
    at_mode = (torch.log(f.scaled) - 0.5 * f.a0.clamp_max(0).square()).masked_fill(winner, 0.0).sum(dim=0)
    peak = at_mode - 0.5 * (f.origin.square() * f.precision + torch.log(2 * math.pi * V_winner))
    g, gamma = select(winner, S_mean, -mean), select(winner, own, losers)
    return WinnerResponse(peak + total, g.T, gamma.T)
