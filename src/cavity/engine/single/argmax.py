"""The ArgMax output of one sample: ``contest.py`` and ``classes.py`` of ``core/channels/`` for vectors (classes,)."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.special import erfc

from cavity.core.channels import classes
from cavity.core.channels.classes import POINTS, SPACING
from cavity.core.channels.contest import contest
from cavity.engine.single.units import Answer, Vector, hazard

SQRT_HALF = math.sqrt(0.5)


def respond(label: int, omega: Vector, V: Vector) -> Answer:
    """g and Γ of each class for the winner ``label``."""
    if len(omega) == 2:
        return _of_two(label, omega, V)
    winner = np.zeros((len(omega), 1), omega.dtype)
    winner[label] = 1
    with np.errstate(all="ignore"):
        _, g, gamma = contest(winner, omega[:, None], V[:, None])
    return Answer(g[:, 0], gamma[:, 0])


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
