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

All of it is some two hundred operations, which NumPy does in half the time or less. The functions are written for both
libraries: PyTorch compiles them, and runs them on other devices and on many numbers.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cavity.core.arrays import Array, indicator, kept, library, negative, pick
from cavity.core.channels.winner import WinnerResponse, one_hot
from cavity.core.floors import can_be_seen
from cavity.core.messages import Preactivation
from cavity.core.special import SQRT_2PI, mills_ratio

#: Nodes, and the largest |u|.
NODES, REACH = 20, 1.5
#: Nats below the mode at the left and right end. To the left lies what a sure winner's g is made of.
DEPTH = 12.0, 10.0
#: Newton steps to the mode: one for each of these that there are more classes than. The largest of the modes against
#: one rival is the further from it the more rivals there are.
MODE_STEPS = (0, 5, 10)
#: No rival narrower than this part of V_*: its cliff would fall between two nodes.
NARROWEST = 0.05
INV_SQRT_2PI = 1 / SQRT_2PI
#: Up to this many numbers ω NumPy is used.
FEW = 16384


def tail(a: Array) -> tuple[Array, Array]:
    """e^{½a₋²} Φ(a), which never underflows, and N(a)/Φ(a)."""
    xp, right = library(a), negative(-a)
    above = kept(right, a)
    falls = xp.exp(above * above * -0.5) * INV_SQRT_2PI
    # NR on the left, and 1 − NR on the right, where NR is at most ½.
    scaled = xp.abs(indicator(right, a) - falls * mills_ratio(xp.abs(a)))
    return scaled, falls / scaled


class Rivals(NamedTuple):
    """The integrand around z = origin, measured from ω_*: a⁰, e^{ℓ(a⁰)} and 1/√V_k (classes, samples), 0 for the
    winner; 1/V_*, the origin and the slope of the tangents (samples,)."""

    a0: Array
    scaled: Array
    inverse: Array
    precision: Array
    origin: Array
    tangent: Array

    def rise(self, t: Array) -> tuple[Array, Array]:
        """log p(origin + t) − log p(origin), (points, samples), and h (classes, points, samples)."""
        xp = library(t)
        a0, inverse, scaled0 = self.a0[:, None], self.inverse[:, None], self.scaled[:, None]
        tau = t * inverse
        a = a0 + tau
        scaled, hazard = tail(a)
        left = kept(negative(a), a)
        right = a - left
        squares = pick(negative(a0), right * right - tau * tau, -left * left)
        steps = (0.5 * squares + xp.log(scaled / scaled0)).sum(axis=0)
        return steps + t * (self.tangent - 0.5 * t * self.precision), hazard * inverse


def mode(c: Array, inverse: Array, V_winner: Array, V: Array) -> Array:
    """z − ω_* (samples,) where p is largest, from the largest of the modes against one rival."""
    precision, square = 1 / V_winner, inverse * inverse
    z = _largest(c * V_winner / (V + V_winner)).clip(min=0)
    for _ in range(sum(len(c) > classes for classes in MODE_STEPS)):
        a = (z - c) * inverse
        hazard = tail(a)[1]
        slope = (hazard * inverse).sum(axis=0) - z * precision
        bend = (hazard * (hazard + a) * square).sum(axis=0) + precision
        z = z + slope / bend
    return z


def rivals(winner: Array, omega: Array, V: Array) -> tuple[Rivals, Array]:
    """The problem of each sample, and V_* (samples,); ω, V and the winner, which is 1, are (classes, samples)."""
    xp = library(omega)
    c, V_winner = omega - (omega * winner).sum(axis=0), (V * winner).sum(axis=0)
    V = xp.maximum(V, NARROWEST * V_winner)
    inverse = (1 - winner) / xp.sqrt(V)
    z, precision = mode(c, inverse, V_winner, V), 1 / V_winner
    a0 = (z - c) * inverse
    tangent = -z * precision - (a0.clip(max=0) * inverse).sum(axis=0)
    return Rivals(a0, tail(a0)[0], inverse, precision, z, tangent), V_winner


def ends(f: Rivals, V_winner: Array) -> Array:
    """Distances from the mode (2, samples) beyond which p is negligible: bounds, then a Newton step from outside."""
    xp, reach = library(V_winner), math.sqrt(2 * DEPTH[0])
    below = f.a0 < 0
    bend = f.precision + (f.inverse * f.inverse * below).sum(axis=0)
    # A class that ends nothing, the winner too, is infinitely far.
    cliffs = xp.where(below | (f.inverse == 0), -math.inf, -(f.a0 + reach) / f.inverse.clip(min=1e-30))
    left = xp.maximum(-reach / xp.sqrt(bend), _largest(cliffs))
    t = xp.stack([left, xp.sqrt(2 * DEPTH[1] * V_winner)])
    level, h = f.rise(t)
    level = level + constants(t)[0]
    nearer = t - level / (h.sum(axis=0) - (f.origin + t) * f.precision)
    return xp.where((level < 0) & (nearer * t > 0) & (xp.abs(nearer) < xp.abs(t)), nearer, t)


#: What arrays are multiplied with: the depths, e^u and e^{−u} at the nodes of u.
_U = [REACH * (2 * number / (NODES - 1) - 1) for number in range(NODES)]
CONSTANTS = DEPTH, tuple(map(math.exp, _U)), tuple(math.exp(-u) for u in _U)


def constants(like: Array) -> list[Array]:
    """CONSTANTS as arrays of that kind, one column each."""
    if isinstance(like, np.ndarray):
        return _numpy_constants(like.dtype)
    return [like.new_tensor(part).unsqueeze(1) for part in CONSTANTS]


@lru_cache
def _numpy_constants(dtype: Any) -> list[Array]:
    return [np.array(part, dtype)[:, None] for part in CONSTANTS]


def _largest(x: Array) -> Array:
    """Along the first axis."""
    return x.max(axis=0) if isinstance(x, np.ndarray) else x.amax(dim=0)


def nodes(t: Array) -> tuple[Array, Array]:
    """Nodes between the ends t (2, samples) as distances from the mode, and dz of each: (NODES, samples)."""
    p, q = math.exp(REACH) - 1, 1 - math.exp(-REACH)
    xp, left, right = library(t), -t[0], t[1]
    tiny = 1e-3 * (left + right)
    alpha = xp.maximum((right * p - left * q) / (p * p - q * q), tiny)
    beta = xp.maximum((left * p - right * q) / (p * p - q * q), tiny)
    _, up, down = constants(t)
    rising, falling = alpha * up, beta * down
    return rising - falling + (beta - alpha), (rising + falling) * (2 * REACH / (NODES - 1))


def contest(winner: Array, omega: Array, V: Array) -> tuple[Array, Array, Array]:
    """log Z (samples,), g and Γ (classes, samples) for ω, V and the winner, which is 1, (classes, samples).

    Samples are the last axis: there are enough of them to fill a vector of numbers, unlike classes."""
    xp = library(omega)
    f, V_winner = rivals(winner, omega, V)
    t, dz = nodes(ends(f, V_winner))
    log_p, h = f.rise(t)
    highest = _largest(log_p)
    p = xp.exp(log_p - highest) * dz
    total = p.sum(axis=0)
    p = p / total
    mean = (p * h).sum(axis=1)
    S, S_mean = h.sum(axis=0), mean.sum(axis=0)
    dS, moved = S - S_mean, (t - (p * t).sum(axis=0)) * f.precision
    dh = h - mean[:, None]
    # The winner has h = 0.
    losers = -((p * dh) * (moved - dS + dh)).sum(axis=1)
    own = -(p * dS * moved).sum(axis=0)
    left = f.a0.clip(max=0)
    at_mode = ((xp.log(f.scaled) - 0.5 * left * left) * (1 - winner)).sum(axis=0)
    peak = at_mode - 0.5 * (f.origin * f.origin * f.precision + xp.log(2 * math.pi * V_winner))
    return peak + highest + xp.log(total), winner * S_mean - mean, winner * own + losers


def contest_response(labels: Tensor, pre: Preactivation) -> WinnerResponse:
    """log Z and its derivatives for winners ``labels`` (samples,), ω and V (samples, classes), in float32: within 1e-3
    of the largest entry while the variances of a sample are within a factor of 16."""
    omega, V = pre.mean.T, pre.variance.T
    winner = one_hot(labels, len(omega)).T.to(omega.dtype)
    if can_be_seen(omega) and omega.numel() <= FEW:
        with np.errstate(all="ignore"):
            found = contest(*(np.ascontiguousarray(part.numpy()) for part in (winner, omega, V)))
        value, g, gamma = map(torch.from_numpy, found)
    else:
        value, g, gamma = contest(winner, omega, V)
    return WinnerResponse(value, g.T, gamma.T)
