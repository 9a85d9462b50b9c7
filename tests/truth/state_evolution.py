"""Replica-symmetric theory of the teacher-student perceptron with ±1 weights, in the limit of many inputs.

A teacher w* ∈ {−1, +1}^N labels M = αN inputs, y = sign(w*·x); the entries of x are independent with mean 0
and variance 1 (Gaussian or ±1: only the central limit theorem is used). The student knows the uniform prior
and the noiseless channel, so it is Bayes-optimal and one order parameter is enough:

    q = m·w* / N = m·m / N,    m = E[w | data]

Fixed point. For an input not in the data the teacher's preactivation over √N is 𝒩(ω, 1−q) with ω ~ 𝒩(0, q),
and q̂ = α E[g²] for g = ∂_ω log Φ(yω/√(1−q)). Averaged over the label, and with the Gaussian factors
collected into the measure, this has a smooth integrand for every q:

    q̂ = α √(2 / (π(1−q))) ∫Ds K(√q s),        K(u) = 𝒩(u) / Φ(u)

The field on a weight is q̂ w* + √q̂ z, so q = ∫Dz tanh(q̂ + √q̂ z). With the Gaussian shifted to the origin
nothing cancels as q → 1:

    1 − q = exp(−q̂/2) ∫Dz sech(√q̂ z)

Which error. The vote of the posterior, sign(m·x), is a perceptron whose normalised overlap with the teacher
is m·w* / (|m||w*|) = q/√q = √q, so it errs with probability arccos(√q)/π. This is the Bayes-optimal error,
and the one of a forward pass with means and variances. A single student drawn from the posterior has
overlap q with the teacher and errs with probability arccos(q)/π, the Gibbs error that the early papers
plot. The clipped student sign(m) has overlap P(right sign) − P(wrong sign) = erf(√(q̂/2)).

Branches. Message passing from an uninformative start follows the fixed point of smallest q. That branch
ends at the algorithmic threshold (spinodal), above which q = 1 is the only fixed point. The entropy of the
students that fit vanishes earlier, at the information threshold: between the two the teacher is the only
solution, but hard to find.

 * G. Györgyi, Phys. Rev. A 41, 7097 (1990), and Gardner and Derrida, J. Phys. A 22, 1983 (1989): entropy 0
   at 1.245.
 * H. S. Seung, H. Sompolinsky, N. Tishby, Phys. Rev. A 45, 6056 (1992): the metastable state below perfect
   learning.
 * J. Barbier, F. Krzakala, N. Macris, L. Miolane, L. Zdeborová, PNAS 116, 5451 (2019): proof; AMP as the
   algorithm.
 * E. M. Malatesta, A. Passalacqua, R. Zecchina, arXiv:2607.27000: the threshold of AMP, 1.492.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erf, erfcx, log_ndtr

Array = NDArray[np.floating]

# The trapezoidal rule converges geometrically on these analytic, decaying integrands; tails below 1e-17.
GRID = np.linspace(-40.0, 40.0, 641)


def normal_mean(values: Array, nodes: Array, deviation: float = 1.0) -> float:
    """∫ 𝒩(t; 0, deviation²) f(t) dt from the values of f at equally spaced nodes t."""
    density = np.exp(-0.5 * (nodes / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))
    return float(np.sum(density * values) * (nodes[1] - nodes[0]))


def conjugate_per_pattern(gap: float) -> float:
    """q̂ / α as a function of the gap 1 − q."""
    u = np.sqrt(1.0 - gap) * GRID
    inverse_mills = np.sqrt(2 / np.pi) / erfcx(-u / np.sqrt(2))
    return float(np.sqrt(2 / (np.pi * gap))) * normal_mean(inverse_mills, GRID)


def gap_of(q_hat: float) -> float:
    """1 − q as a function of q̂ > 0, to relative rounding error, so that q → 1 can be followed."""
    deviation = np.sqrt(q_hat)
    nodes = min(1.0, deviation) * GRID
    return float(np.exp(-q_hat / 2)) * normal_mean(1 / np.cosh(nodes), nodes, deviation)


def load(q_hat: float) -> float:
    """The α at which q̂ > 0 is a fixed point; it rises to the algorithmic threshold, then falls to zero."""
    return q_hat / conjugate_per_pattern(gap_of(q_hat))


def trajectory(alpha: float, iterations: int) -> Array:
    """q after 1, 2, ... iterations from q = 0: what AMP from zero fields should show."""
    gap, gaps = 1.0, []
    for _ in range(iterations):
        # Below 1e-300 the next gap underflows: the teacher has been found.
        gap = gap_of(alpha * conjugate_per_pattern(gap)) if gap > 1e-300 else 0.0
        gaps.append(gap)
    return 1.0 - np.array(gaps)


@cache
def spinodal() -> tuple[float, float]:
    """(α, q̂) where the uninformative branch ends: the maximum of load(q̂)."""
    result = minimize_scalar(lambda q_hat: -load(q_hat), bounds=(0.1, 20.0), method="bounded")
    return -float(result.fun), float(result.x)


def algorithmic_threshold() -> float:
    """Patterns per weight above which message passing from an uninformative start finds the teacher."""
    return spinodal()[0]


def conjugate(alpha: float) -> float:
    """q̂ on the uninformative branch: the least root of load(q̂) = α; infinite above the threshold."""
    threshold, q_hat_max = spinodal()
    if alpha >= threshold:
        return np.inf
    return float(brentq(lambda q_hat: load(q_hat) - alpha, 1e-12, q_hat_max, xtol=1e-14))


def overlap(alpha: float) -> float:
    """q on the uninformative branch; 1 above the algorithmic threshold."""
    q_hat = conjugate(alpha)
    return 1.0 - gap_of(q_hat) if np.isfinite(q_hat) else 1.0


def generalisation_error(alpha: float) -> float:
    """Error of the posterior's vote sign(m·x): arccos(√q)/π."""
    return float(np.arccos(np.sqrt(overlap(alpha))) / np.pi)


def gibbs_error(alpha: float) -> float:
    """Error of one student drawn from the posterior: arccos(q)/π."""
    return float(np.arccos(overlap(alpha)) / np.pi)


def clipped_error(alpha: float) -> float:
    """Error of the point estimate sign(m): arccos(erf(√(q̂/2)))/π."""
    return float(np.arccos(erf(np.sqrt(conjugate(alpha) / 2))) / np.pi)


def entropy(alpha: float, q_hat: float, q: float) -> float:
    """Log of the number of students that fit, per weight; stationary in q and q̂ at a fixed point, 0 at q = 1.

    ln 2 − q̂(1+q)/2 + ∫Dz ln cosh(q̂ + √q̂ z) + 2α ∫Dt Φ(at) ln Φ(at),    a = √(q/(1−q))
    """
    field = np.abs(q_hat + np.sqrt(q_hat) * GRID)
    weights = normal_mean(field + np.log1p(np.exp(-2 * field)) - np.log(2), GRID)
    log_phi = log_ndtr(np.sqrt(q / (1 - q)) * GRID)
    patterns = 2 * normal_mean(np.exp(log_phi) * log_phi, GRID)
    return float(np.log(2) - q_hat * (1 + q) / 2 + weights + alpha * patterns)


def information_threshold() -> float:
    """Patterns per weight at which the entropy vanishes and the teacher is the only student that fits."""

    def along_branch(q_hat: float) -> float:
        return entropy(load(q_hat), q_hat, 1.0 - gap_of(q_hat))

    return load(float(brentq(along_branch, 1e-3, spinodal()[1], xtol=1e-12)))
