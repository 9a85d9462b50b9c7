"""The ArgMax output of one sample: ``contest.py`` and ``classes.py`` of ``core/channels/`` for vectors (classes,).

The comments there say why. Nodes are the first axis here, classes the last.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.special import erfc, erfcx

from cavity.core.channels import classes
from cavity.core.channels.classes import POINTS, SPACING
from cavity.core.channels.contest import DEPTH, END_STEPS, INV_SQRT_2PI, MODE_STEPS, NARROWEST, NODES, REACH
from cavity.engine.single.units import Answer, Vector, hazard

SQRT_HALF = math.sqrt(0.5)
#: The trapezoidal rule over u: e^u − 1, 1 − e^{−u}, e^u and e^{−u} at its nodes, and its step.
_U = np.linspace(-REACH, REACH, NODES)
UP, DOWN = np.exp(_U), np.exp(-_U)
STEP = 2 * REACH / (NODES - 1)
P, Q = math.exp(REACH) - 1, 1 - math.exp(-REACH)
DEPTHS = np.array(DEPTH)
LEFT_REACH = math.sqrt(2 * DEPTH[0])


def tail(a: Vector) -> tuple[Vector, Vector]:
    """e^{½a₋²} Φ(a) and N(a)/Φ(a)."""
    falls = np.exp(-0.5 * np.square(np.maximum(a, 0)))
    # Φ(a) = ½ erfc(−a/√2): scaled by its Gaussian decay on the left, as it is on the right.
    scaled = np.where(a < 0, 0.5 * erfcx(np.maximum(-a, 0) * SQRT_HALF), 0.5 * erfc(-np.maximum(a, 0) * SQRT_HALF))
    return scaled, INV_SQRT_2PI * falls / scaled


def respond(label: int, omega: Vector, V: Vector) -> Answer:
    """g and Γ of each class for the winner ``label``."""
    if len(omega) == 2:
        return _of_two(label, omega, V)
    winner, V_winner = omega[label], V[label]
    rivals = np.arange(len(omega)) != label
    c, V = omega[rivals] - winner, np.maximum(V[rivals], NARROWEST * V_winner)
    inverse, precision = 1 / np.sqrt(V), 1 / V_winner
    z = max(0.0, float((c * V_winner / (V + V_winner)).max()))
    for _ in range(MODE_STEPS):
        a = (z - c) * inverse
        k = tail(a)[1]
        slope = float(k @ inverse) - z * precision
        z += slope / (float((k * (k + a)) @ np.square(inverse)) + precision)
    a0 = (z - c) * inverse
    tangent = -z * precision - float(np.minimum(a0, 0) @ inverse)
    below, scaled0 = a0 < 0, tail(a0)[0]

    def rise(t: Vector) -> tuple[Vector, Vector]:
        """log p(z + t) − log p(z), (points,), and h (points, rivals)."""
        tau = np.multiply.outer(t, inverse)
        a = a0 + tau
        scaled, k = tail(a)
        squares = np.where(below, np.square(np.maximum(a, 0)) - np.square(tau), -np.square(np.minimum(a, 0)))
        steps = (0.5 * squares + np.log(scaled / scaled0)).sum(axis=1)
        return steps + t * (tangent - 0.5 * t * precision), k * inverse

    left = -LEFT_REACH / math.sqrt(precision + float(np.square(inverse) @ below))
    if not below.all():
        left = max(left, float((-(a0 + LEFT_REACH) / inverse)[~below].max()))
    t = np.array([left, math.sqrt(2 * DEPTH[1] * V_winner)])
    for _ in range(END_STEPS):
        level, h = rise(t)
        nearer = t - (level + DEPTHS) / (h.sum(axis=1) - (z + t) * precision)
        inside = (level < -DEPTHS) & (nearer * t > 0) & (np.abs(nearer) < np.abs(t))
        t = np.where(inside, nearer, t)
    left, right = -float(t[0]), float(t[1])
    tiny = 1e-3 * (left + right)
    alpha = max((right * P - left * Q) / (P * P - Q * Q), tiny)
    beta = max((left * P - right * Q) / (P * P - Q * Q), tiny)
    t, dz = alpha * (UP - 1) + beta * (1 - DOWN), alpha * UP + beta * DOWN
    log_p, h = rise(t)
    # Constant factors of dz go when p is made to sum to 1.
    p = np.exp(log_p - log_p.max()) * dz
    p /= p.sum()
    mean = p @ h
    S = h.sum(axis=1)
    dS, moved = S - float(mean.sum()), (t - float(p @ t)) * precision
    dh = h - mean
    losers = -(p @ (dh * ((moved - dS)[:, None] + dh)))
    own = -float(p @ (dS * moved))
    g, gamma = np.empty(len(omega)), np.empty(len(omega))
    g[rivals], gamma[rivals] = -mean, losers
    g[label], gamma[label] = mean.sum(), own
    return Answer(g, gamma)


def _of_two(label: int, omega: Vector, V: Vector) -> Answer:
    """The closed form: φ = log Φ((ω_* − ω_k)/√(V_k + V_*))."""
    scale = math.sqrt(V[0] + V[1])
    x = (omega[1 - label] - omega[label]) / scale
    k = float(hazard(np.array(x)))
    g, gamma = np.full(2, -k / scale), np.full(2, k * (k - x) / (scale * scale))
    g[label] = k / scale
    return Answer(g, gamma)


def probabilities(omega: Vector, V: Vector) -> Vector | None:
    """P(argmax z = k) on an even grid; None where widths differ too much for it."""
    omega, s = omega - omega.max(), np.sqrt(V)
    reach = classes.REACH[torch.float64]
    low, high = float((omega - reach * s).max()), float((omega + reach * s).max())
    needed = (high - low) / (SPACING * float(s.min())) + 1
    points = next((points for points in POINTS if needed <= points), None)
    if points is None:
        return None
    a = (np.linspace(low, high, points)[:, None] - omega) / s
    phi = 0.5 * erfc(a * -SQRT_HALF)
    density = np.exp(-0.5 * np.square(a)) / s
    one = np.ones((points, 1))
    before = np.cumprod(np.hstack([one, phi[:, :-1]]), axis=1)
    after = np.cumprod(np.hstack([one, phi[:, :0:-1]]), axis=1)[:, ::-1]
    p = (density * before * after).sum(axis=0)
    result: Vector = p / p.sum()
    return result
