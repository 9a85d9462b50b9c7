"""Replica-symmetric theory of the perceptron with ±1 weights and random labels, in the limit of many inputs.

M = αN inputs with independent entries of mean 0 and variance 1, labels ±1 at random. The number of weights that give
all labels has the typical logarithm N·s(α),

    s = extr_{q, q̂} [ −½q̂(1−q) + ∫Dz ln 2cosh(√q̂ z) + α ∫Dt ln Φ(t√(q/(1−q))) ]

    q = ∫Dz tanh²(√q̂ z),        q̂ = α/(1−q) ∫Dt K(t√(q/(1−q)))²,        K(u) = 𝒩(u)/Φ(u)

It vanishes at α = 0.833, the capacity (W. Krauth and M. Mézard, J. Physique 50, 3057, 1989).
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr

from .state_evolution import GRID, normal_mean


def overlap(q_hat: float) -> float:
    """q = ∫Dz tanh²(√q̂ z)."""
    return normal_mean(np.tanh(np.sqrt(q_hat) * GRID) ** 2, GRID)


def load(q_hat: float) -> float:
    """The α at which q̂ > 0 is stationary."""
    q = overlap(q_hat)
    u = np.sqrt(q / (1 - q)) * GRID
    inverse_mills = np.sqrt(2 / np.pi) / erfcx(-u / np.sqrt(2))
    return q_hat * (1 - q) / normal_mean(inverse_mills**2, GRID)


def entropy_at(q_hat: float) -> float:
    """s where q̂ is stationary."""
    q, field = overlap(q_hat), np.abs(np.sqrt(q_hat) * GRID)
    weights = normal_mean(field + np.log1p(np.exp(-2 * field)), GRID)
    patterns = normal_mean(log_ndtr(np.sqrt(q / (1 - q)) * GRID), GRID)
    return -0.5 * q_hat * (1 - q) + weights + load(q_hat) * patterns


def entropy(alpha: float) -> float:
    """s(α), for α up to 0.9."""
    return entropy_at(float(brentq(lambda q_hat: load(q_hat) - alpha, 1e-9, 6.0, xtol=1e-13)))


def capacity() -> float:
    """The α at which the entropy vanishes."""
    return load(float(brentq(entropy_at, 0.1, 6.0, xtol=1e-12)))
