"""Scalar free energies of units, outputs and weights, one number at a time, in float64.

A hidden unit with preactivation z ~ N(omega, V) and activation x has the free energy

    phi(B, A, omega, V) = log of the integral of exp(B x - A x^2 / 2) P(x|z) N(z; omega, V) over x and z

and every activation below returns its four derivatives as a `Unit`. An output returns the two in omega,
first derivative g and minus the second Gamma; a weight family returns mean and variance.
All of it is meant for moderate arguments: closed forms in logarithms, no asymptotic branches.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

SMALLEST_ONE_PLUS_AV = 0.1
SMALLEST_PRECISION = 1e-6
LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


class Unit(NamedTuple):
    """xhat = d phi/dB, Delta = d2 phi/dB2, g = d phi/d omega, Gamma = -d2 phi/d omega2."""

    xhat: float
    Delta: float
    g: float
    Gamma: float


def mills(u: float) -> float:
    """The derivative of log Phi at u: N(u) / Phi(u)."""
    return math.exp(-0.5 * u * u - LOG_SQRT_2PI - log_ndtr(u))


def log_phi_derivatives(u: float) -> tuple[float, float]:
    """First and second derivative of log Phi at u: M and -M (M + u), with M = N(u) / Phi(u)."""
    m = mills(u)
    return m, -m * (m + u)


def floored_a(A: float, V: float) -> float:
    """A, or the smallest A that leaves 1 + A V at its floor."""
    return max(A, (SMALLEST_ONE_PLUS_AV - 1) / V)


# ------------------------------------------------------------------------------------------ activations


def sign(B: float, A: float, omega: float, V: float) -> Unit:
    """x = sign z: the normaliser is Z = e^B Phi(u) + e^-B Phi(-u), u = omega / sqrt V; x^2 = 1 cancels A.

    dZ/d omega = 2 sinh(B) N(u) / sqrt V and d2Z/d omega2 = -(omega / V) dZ/d omega, hence
    Gamma = g (g + omega / V).
    """
    u = omega / math.sqrt(V)
    up, down = B + log_ndtr(u), -B + log_ndtr(-u)
    log_z = np.logaddexp(up, down)
    xhat = math.tanh(0.5 * (up - down))
    Delta = 4 * math.exp(up + down - 2 * log_z)
    sinh_scaled = math.copysign(-math.expm1(-2 * abs(B)), B)
    g = sinh_scaled * math.exp(abs(B) - 0.5 * u * u - LOG_SQRT_2PI - log_z) / math.sqrt(V)
    return Unit(xhat, Delta, g, g * (g + omega / V))


def identity(B: float, A: float, omega: float, V: float) -> Unit:
    """x = z: a Gaussian of variance V / (1 + A V) and mean (omega + B V) / (1 + A V)."""
    A = floored_a(A, V)
    c = 1 + A * V
    return Unit((omega + B * V) / c, V / c, (B - A * omega) / c, A / c)


def relu(B: float, A: float, omega: float, V: float) -> Unit:
    """x = max(0, z): two branches, Z = Z0 + Z1, mixed with p = Z1 / Z.

    Z0 = Phi(-u), u = omega / sqrt V, has x = 0. Z1 = exp(phi_identity) Phi(r) is the identity's Gaussian
    N(mu, s^2) cut to z > 0, r = mu / s. The second derivative of log Z is that of log Z0
    and log Z1 averaged, plus p (1 - p) times the squared difference of their first derivatives.
    """
    A = floored_a(A, V)
    c = 1 + A * V
    u = omega / math.sqrt(V)
    whole = identity(B, A, omega, V)
    mu, s = whole.xhat, math.sqrt(whole.Delta)
    r = mu / s
    phi_identity = (B * omega + 0.5 * B * B * V - 0.5 * A * omega * omega) / c - 0.5 * math.log(c)

    log_z0, log_z1 = log_ndtr(-u), phi_identity + log_ndtr(r)
    log_z = np.logaddexp(log_z0, log_z1)
    p, q = math.exp(log_z1 - log_z), math.exp(log_z0 - log_z)

    first, second = log_phi_derivatives(r)
    mean1, variance1 = mu + s * first, s * s * (1 + second)
    dr = 1 / math.sqrt(V * c)
    g1, dg1 = whole.g + first * dr, -whole.Gamma + second * dr * dr
    first, second = log_phi_derivatives(-u)
    g0, dg0 = -first / math.sqrt(V), second / V
    return Unit(
        xhat=p * mean1,
        Delta=p * variance1 + p * q * mean1 * mean1,
        g=q * g0 + p * g1,
        Gamma=-(q * dg0 + p * dg1 + p * q * (g1 - g0) ** 2),
    )


def noisy_sign(noise: float) -> Callable[[float, float, float, float], Unit]:
    """x = sign(z + noise): P(x|z) = Phi(x z / sqrt noise), which is the sign of a unit with V + noise."""
    return lambda B, A, omega, V: sign(B, A, omega, V + noise)


def piecewise(edges: tuple, slopes: tuple, offsets: tuple) -> Callable[[float, float, float, float], Unit]:
    """x = a z + b on each interval: a mixture of Gaussians cut to the intervals, averaged as in `relu`."""
    ends = (-math.inf, *edges, math.inf)
    steepest = max(abs(a) for a in slopes)

    def unit(B: float, A: float, omega: float, V: float) -> Unit:
        if steepest > 0:
            A = floored_a(A, steepest**2 * V)
        parts = [piece(*line, B, A, omega, V) for line in zip(ends[:-1], ends[1:], slopes, offsets, strict=True)]
        log_z, x, x_variance, z, z_variance = map(np.array, zip(*parts, strict=True))
        p = np.exp(log_z - np.logaddexp.reduce(log_z))
        xhat, zhat = p @ x, p @ z
        spread = p @ (z_variance + (z - zhat) ** 2)
        return Unit(xhat, p @ (x_variance + (x - xhat) ** 2), (zhat - omega) / V, 1 / V - spread / V**2)

    return unit


def piece(
    low: float, high: float, a: float, b: float, B: float, A: float, omega: float, V: float
) -> tuple[float, float, float, float, float]:
    """log Z of one piece, mean and variance of x, mean and variance of z."""
    precision, field = 1 / V + A * a * a, omega / V + a * (B - A * b)
    mu, s = field / precision, precision**-0.5
    low, high = (low - mu) / s, (high - mu) / s
    # Counted from the side on which both ends are far down, if there is one.
    near, far = (low, high) if low > 0 else (-high, -low)
    log_mass = log_ndtr(-near) + math.log1p(-math.exp(log_ndtr(-far) - log_ndtr(-near)))
    density = [math.exp(-0.5 * t * t - LOG_SQRT_2PI - log_mass) for t in (low, high)]
    moved = [0.0 if math.isinf(t) else t * f for t, f in zip((low, high), density, strict=True)]
    mean = density[0] - density[1]
    z, variance = mu + s * mean, s * s * (1 + moved[0] - moved[1] - mean * mean)
    exponent = 0.5 * field * mu - 0.5 * omega**2 / V + B * b - 0.5 * A * b * b
    return exponent + math.log(s / math.sqrt(V)) + log_mass, a * z + b, a * a * variance, z, variance


def activation(spec: str | tuple) -> Callable[[float, float, float, float], Unit]:
    """The function for 'sign', 'relu', 'identity', ('noisy_sign', noise variance) or ('piecewise', edges, slopes,
    offsets)."""
    if isinstance(spec, tuple) and spec[0] == "piecewise":
        return piecewise(*spec[1:])
    if isinstance(spec, tuple):
        name, noise = spec
        if name != "noisy_sign":
            raise ValueError(f"activation {name!r} takes no parameter")
        return noisy_sign(noise)
    return {"sign": sign, "relu": relu, "identity": identity}[spec]


# ---------------------------------------------------------------------------------------------- outputs


def label(y: float, omega: float, V: float) -> tuple[float, float]:
    """y = sign z, log Z = log Phi(y omega / sqrt V): g and Gamma."""
    first, second = log_phi_derivatives(y * omega / math.sqrt(V))
    return y * first / math.sqrt(V), -second / V


def gaussian(y: float, omega: float, V: float, noise: float) -> tuple[float, float]:
    """y = z + noise, log Z = log N(y; omega, V + noise): g and Gamma."""
    return (y - omega) / (V + noise), 1 / (V + noise)


def argmax_pairwise(star: int, omega: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum over k != star of log Phi((omega_star - omega_k) / sqrt(V_k + V_star)): g, Gamma of all classes."""
    g, Gamma = np.zeros(len(omega)), np.zeros(len(omega))
    for k in range(len(omega)):
        if k == star:
            continue
        s = math.sqrt(V[k] + V[star])
        first, second = log_phi_derivatives((omega[star] - omega[k]) / s)
        g[k], Gamma[k] = -first / s, -second / s**2
        g[star] += first / s
        Gamma[star] += -second / s**2
    return g, Gamma


def argmax_sampled(star: int, omega: np.ndarray, V: np.ndarray, epsilon: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over epsilon of sum over k of log Phi((omega_star + epsilon sqrt V_star - omega_k) / sqrt V_k)."""
    g, Gamma = np.zeros(len(omega)), np.zeros(len(omega))
    for k in range(len(omega)):
        if k == star:
            continue
        s = math.sqrt(V[k])
        for e in epsilon:
            first, second = log_phi_derivatives((omega[star] + e * math.sqrt(V[star]) - omega[k]) / s)
            g[k] += -first / s / len(epsilon)
            Gamma[k] += -second / s**2 / len(epsilon)
            g[star] += first / s / len(epsilon)
            Gamma[star] += -second / s**2 / len(epsilon)
    return g, Gamma


def argmax_exact(star: int, omega: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log of the integral of N(z; omega_star, V_star) prod_k Phi((z - omega_k) / sqrt V_k): g and Gamma.

    With z = omega_star + sqrt(V_star) t and averages over the normalised integrand,
    g_star = <t> / sqrt V_star, Gamma_star = (1 - var t) / V_star; and with d_k the argument of Phi and
    M = N / Phi, g_k = -<M(d_k)> / sqrt V_k, Gamma_k = g_k^2 + <d_k M(d_k)> / V_k. The integrand is entire and
    log-concave in t with curvature at least 1, so a trapezoid rule around its peak converges geometrically.
    """
    others = [k for k in range(len(omega)) if k != star]
    ratio = np.sqrt(V[star] / V[others])
    offset = (omega[star] - omega[others]) / np.sqrt(V[others])

    def slope(t: float) -> float:
        return -t + sum(c * mills(o + c * t) for c, o in zip(ratio, offset, strict=True))

    far = 1.0
    while slope(far) > 0:
        far *= 2
    peak = brentq(slope, 0.0, far)
    step = min(1.0, *(1 / ratio)) / 32
    half = math.ceil(12 / step)
    t = peak + step * np.arange(-half, half + 1)
    d = offset[:, None] + ratio[:, None] * t
    log_weight = -0.5 * t * t + log_ndtr(d).sum(axis=0)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    hazard = np.exp(-0.5 * d * d - LOG_SQRT_2PI - log_ndtr(d))

    g, Gamma = np.zeros(len(omega)), np.zeros(len(omega))
    mean_t = weight @ t
    g[star] = mean_t / math.sqrt(V[star])
    Gamma[star] = (1 - weight @ (t - mean_t) ** 2) / V[star]
    for j, k in enumerate(others):
        g[k] = -(weight @ hazard[j]) / math.sqrt(V[k])
        Gamma[k] = g[k] ** 2 + (weight @ (d[j] * hazard[j])) / V[k]
    return g, Gamma


# ---------------------------------------------------------------------------------------------- weights


def weight_moments(prior: str, field: float, precision: float) -> tuple[float, float]:
    """Mean and variance of w under q(w) proportional to base(w) exp(field w - precision w^2 / 2).

    base: 'binary' counts {-1, 1}, 'ternary' counts {-1, 0, 1}, 'gaussian' is Lebesgue (precision floored).
    """
    if prior == "binary":
        mean = math.tanh(field)
        return mean, 1 - mean * mean
    if prior == "gaussian":
        variance = 1 / max(precision, SMALLEST_PRECISION)
        return field * variance, variance
    if prior == "ternary":
        largest = max(0.0, abs(field) - 0.5 * precision)
        mass = {w: math.exp(field * w - 0.5 * precision * w * w - largest) for w in (-1, 0, 1)}
        total = sum(mass.values())
        mean = (mass[1] - mass[-1]) / total
        return mean, (mass[1] + mass[-1]) / total - mean * mean
    raise ValueError(f"prior must be 'binary', 'gaussian' or 'ternary', not {prior!r}")


def focused(f: float, y: float, gamma: float) -> float:
    """The binary field f with the pull of y - 1 coupled replicas, t = tanh gamma:
    f + atanh(t tanh((y - 1) atanh(t tanh f)))."""
    t = math.tanh(gamma)
    return f + math.atanh(t * math.tanh((y - 1) * math.atanh(t * math.tanh(f))))
