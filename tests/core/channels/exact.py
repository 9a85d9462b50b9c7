"""Free energies φ, ψ and their derivatives in mpmath, at whatever precision is set; nothing from the library.

Almost every φ is the logarithm of a mixture, φ = log Σ_j e^{φ_j}, with components whose derivatives are textbook
formulas. With p_j = e^{φ_j − φ},

    φ' = Σ_j p_j φ_j',        φ'' = Σ_j p_j φ_j'' + Σ_{i<j} p_i p_j (φ_i' − φ_j')²

What cancels in these sums is at most a power of the arguments, so a hundred digits leave more than enough of them, and
what is smaller than the last ten digits of its largest term is a zero.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations, pairwise
from typing import NamedTuple

import mpmath as mp
import numpy as np

Quantities = dict[str, mp.mpf]

#: 1 + AV and the precision of a Gaussian weight are not allowed below these: part of the definition of φ and ψ.
GAIN_FLOOR = 0.1
PRECISION_FLOOR = 1e-6


class Jet(NamedTuple):
    """A function with its first and second derivative at a point."""

    value: mp.mpf
    first: mp.mpf
    second: mp.mpf


def tail(x: mp.mpf) -> mp.mpf:
    """Q(x) = 1 − Φ(x)."""
    return mp.erfc(x / mp.sqrt(2)) / 2


def log_cdf(x: mp.mpf) -> Jet:
    """log Φ, its slope M = N/Φ and −M(M + x)."""
    value = mp.log(tail(-x)) if x < 0 else mp.log1p(-tail(x))
    slope = mp.npdf(x) / tail(-x)
    return Jet(value, slope, -slope * (slope + x))


def along(jet: Jet, rate: mp.mpf) -> Jet:
    """The jet of f(rate·t + …) in t."""
    return Jet(jet.value, rate * jet.first, rate * rate * jet.second)


def plus(*jets: Jet) -> Jet:
    return Jet(*(mp.fsum(part) for part in zip(*jets, strict=True)))


def total(terms: Sequence[mp.mpf]) -> mp.mpf:
    """The sum, exactly 0 where nothing but rounding is left of it."""
    result = mp.fsum(terms)
    return result if abs(result) > 1e10 * mp.eps * max(map(abs, terms)) else mp.mpf(0)


def log_mixture(jets: Sequence[Jet]) -> Jet:
    """log Σ_j e^{φ_j}."""
    top = max(jet.value for jet in jets)
    weights = [mp.exp(jet.value - top) for jet in jets]
    Z = mp.fsum(weights)
    p = [w / Z for w in weights]
    spread = [p[i] * p[j] * (jets[i].first - jets[j].first) ** 2 for i, j in combinations(range(len(jets)), 2)]
    return Jet(
        top + mp.log(Z),
        total([q * jet.first for q, jet in zip(p, jets, strict=True)]),
        total([q * jet.second for q, jet in zip(p, jets, strict=True)] + spread),
    )


def activation(in_field: Jet, in_omega: Jet) -> Quantities:
    return {
        "value": in_field.value,
        "mean": in_field.first,
        "variance": in_field.second,
        "gradient": in_omega.first,
        "curvature": -in_omega.second,
    }


# ------------------------------------------------------------------------------------------------- activations


def sign(B: mp.mpf, omega: mp.mpf, V: mp.mpf) -> Quantities:
    """φ = log Σ_{x=±1} e^{Bx} Φ(xu)."""
    s = mp.sqrt(V)
    u = omega / s
    field = [Jet(x * B + log_cdf(x * u).value, mp.mpf(x), mp.mpf(0)) for x in (1, -1)]
    preactivation = [plus(Jet(x * B, mp.mpf(0), mp.mpf(0)), along(log_cdf(x * u), x / s)) for x in (1, -1)]
    return activation(log_mixture(field), log_mixture(preactivation))


def floored(A: mp.mpf, V: mp.mpf) -> mp.mpf:
    """A, raised where 1 + AV would be below its floor."""
    return max(A, (mp.mpf(GAIN_FLOOR) - 1) / V)


def gaussian_integral(B: mp.mpf, A: mp.mpf, omega: mp.mpf, V: mp.mpf) -> tuple[Jet, Jet]:
    """log ∫ e^{Bx − ½Ax²} 𝒩(x; ω, V) dx in B and in ω; A is floored already."""
    r = 1 + A * V
    value = (B * (2 * omega + B * V) - A * omega**2) / (2 * r) - mp.log(r) / 2
    return Jet(value, (omega + B * V) / r, V / r), Jet(value, (B - A * omega) / r, -A / r)


def identity(B: mp.mpf, A: mp.mpf, omega: mp.mpf, V: mp.mpf) -> Quantities:
    """φ = log ∫ e^{Bx − ½Ax²} 𝒩(x; ω, V) dx."""
    return activation(*gaussian_integral(B, floored(A, V), omega, V))


class Line(NamedTuple):
    """x = slope·z + offset on (low, high)."""

    low: mp.mpf
    high: mp.mpf
    slope: mp.mpf
    offset: mp.mpf


def cut_normal(low: mp.mpf, high: mp.mpf) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    """Log of the mass of a standard normal between low and high, and there its mean and 1 less its variance."""
    beside = low > 0 or high < 0
    mass = abs(tail(abs(low)) - tail(abs(high))) if beside else 1 - tail(high) - tail(-low)
    log_mass = mp.log(mass) if mass < 0.5 else mp.log1p(-tail(high) - tail(-low))
    densities = [mp.npdf(t) / mass for t in (low, high)]
    firsts = [mp.mpf(0) if mp.isinf(t) else t * f for t, f in zip((low, high), densities, strict=True)]
    mean = densities[0] - densities[1]
    return log_mass, mean, firsts[1] - firsts[0] + mean**2


def piece(line: Line, B: mp.mpf, A: mp.mpf, omega: mp.mpf, V: mp.mpf) -> tuple[Jet, Jet]:
    """log ∫ e^{Bx − ½Ax²} 𝒩(z; ω, V) dz over one piece, in B and in ω."""
    low, high, a, b = line
    r = 1 + a**2 * A * V
    field, sigma = a * (B - A * b), mp.sqrt(V / r)
    mu = (omega + field * V) / r
    peak = B * b - A * b**2 / 2 + (field * (2 * omega + field * V) - a**2 * A * omega**2) / (2 * r) - mp.log(r) / 2
    log_mass, mean, deficit = cut_normal((low - mu) / sigma, (high - mu) / sigma)
    value = peak + log_mass
    return (
        Jet(value, a * (mu + sigma * mean) + b, a**2 * sigma**2 * (1 - deficit)),
        Jet(value, a * (B - A * (a * omega + b)) / r + mean * sigma / V, -(a**2 * A + deficit / V) / r),
    )


def piecewise(lines: Sequence[Line], B: mp.mpf, A: mp.mpf, omega: mp.mpf, V: mp.mpf) -> Quantities:
    """φ of a piecewise-linear activation: the logarithm of a sum over its pieces."""
    steepest = max(abs(line.slope) for line in lines)
    A = floored(A, steepest**2 * V) if steepest else A
    in_field, in_omega = zip(*(piece(line, B, A, omega, V) for line in lines), strict=True)
    return activation(log_mixture(in_field), log_mixture(in_omega))


# ----------------------------------------------------------------------------------------------------- outputs


def output(jet: Jet) -> Quantities:
    return {"value": jet.value, "gradient": jet.first, "curvature": -jet.second}


def label(y: int, omega: mp.mpf, V: mp.mpf) -> Quantities:
    """φ = log Φ(yω/√V)."""
    s = mp.sqrt(V)
    return output(along(log_cdf(y * omega / s), y / s))


def gaussian_output(y: mp.mpf, omega: mp.mpf, V: mp.mpf) -> Quantities:
    """φ = log 𝒩(y; ω, V)."""
    return output(Jet(-((y - omega) ** 2) / (2 * V) - mp.log(2 * mp.pi * V) / 2, (y - omega) / V, -1 / V))


def duels(winner: int, omega: Sequence[mp.mpf], V: Sequence[mp.mpf], noise: mp.mpf | None) -> Quantities:
    """φ = Σ_{k≠*} log Φ((ω_* − ω_k)/√(V_k + V_*)), or with ω_* + noise·√V_* against √V_k."""
    jets = {}
    for k in range(len(omega)):
        if k != winner and noise is None:
            s = mp.sqrt(V[k] + V[winner])
            jets[k] = along(log_cdf((omega[winner] - omega[k]) / s), 1 / s)
        elif k != winner:
            s = mp.sqrt(V[k])
            jets[k] = along(log_cdf((omega[winner] + noise * mp.sqrt(V[winner]) - omega[k]) / s), 1 / s)
    jets[winner] = plus(*jets.values())
    result = {"value": jets[winner].value}
    for k, jet in jets.items():
        result[f"gradient_{k}"] = jet.first if k == winner else -jet.first
        result[f"curvature_{k}"] = -jet.second
    return result


def both_below(x: mp.mpf, y: mp.mpf, cosine: mp.mpf, sine: mp.mpf) -> mp.mpf:
    """P(X < x, Y < y) of standard normals with correlation sine > 0 (cosine² + sine² = 1), by Plackett's identity:

    Φ(x)Φ(y) + ∫_0^{asin ρ} dθ exp(−(x² − 2xy sin θ + y²)/(2 cos² θ))/2π

    The integrand peaks where sin θ is the smaller of x/y and y/x, and bends at the scale of the distance to π/2."""
    end = mp.atan2(sine, cosine)
    peak = mp.asin(min(x / y, y / x)) if x * y > 0 else mp.mpf(0)
    finest = [(peak, mp.mpf("1e-4") / (1 + abs(x) + abs(y))), (mp.pi / 2, cosine / 4), (mp.mpf(0), mp.mpf(1))]
    marks = {mp.mpf(0), end} | {c for c, _ in finest if 0 < c < end}
    for centre, least in finest:
        distance = mp.mpf(2)
        while distance > least:
            marks |= {mark for mark in (centre - distance, centre + distance) if 0 < mark < end}
            distance /= 2

    def integrand(theta: mp.mpf) -> mp.mpf:
        sin, cos = mp.sin(theta), mp.cos(theta)
        return mp.exp(-((x - y) ** 2 + 2 * x * y * cos**2 / (1 + sin)) / (2 * cos**2))

    nodes = legendre(40)
    edges = sorted(marks)
    pieces = [
        (right - left) * w * integrand(left + (right - left) * z) for left, right in pairwise(edges) for z, w in nodes
    ]
    return tail(-x) * tail(-y) + mp.fsum(pieces) / (2 * mp.pi)


@cache
def legendre(count: int) -> list[tuple[mp.mpf, mp.mpf]]:
    """Gauss–Legendre nodes and weights on (0, 1), to 50 digits."""
    with mp.workdps(50):
        rough = np.polynomial.legendre.leggauss(count)[0]
        roots = [mp.findroot(lambda z: mp.legendre(count, z), mp.mpf(float(z))) for z in rough]
        slopes = [count * mp.legendre(count - 1, z) / (1 - z * z) for z in roots]
        return [((1 + z) / 2, 1 / ((1 - z * z) * slope**2)) for z, slope in zip(roots, slopes, strict=True)]


def three_classes(winner: int, omega: Sequence[mp.mpf], V: Sequence[mp.mpf]) -> Quantities:
    """The probability that z_* beats two others, a bivariate normal integral; its derivatives have closed forms."""
    one, two = (k for k in range(3) if k != winner)
    s, t = mp.sqrt(V[winner] + V[one]), mp.sqrt(V[winner] + V[two])
    x, y = (omega[winner] - omega[one]) / s, (omega[winner] - omega[two]) / t
    rho = V[winner] / (s * t)
    rest = mp.sqrt(V[winner] * (V[one] + V[two]) + V[one] * V[two]) / (s * t)
    Z = both_below(x, y, rest, rho)
    density = mp.npdf(x) * mp.npdf((y - rho * x) / rest) / rest
    by_x, by_y = mp.npdf(x) * tail((rho * x - y) / rest), mp.npdf(y) * tail((rho * y - x) / rest)
    by_xx, by_yy = -x * by_x - rho * density, -y * by_y - rho * density
    first = {one: -by_x / s, two: -by_y / t, winner: by_x / s + by_y / t}
    second = {one: by_xx / s**2, two: by_yy / t**2, winner: by_xx / s**2 + by_yy / t**2 + 2 * density / (s * t)}
    result = {"value": mp.log(Z)}
    for k in first:
        result[f"gradient_{k}"] = first[k] / Z
        result[f"curvature_{k}"] = (first[k] / Z) ** 2 - second[k] / Z
    return result


# ------------------------------------------------------------------------------------------------------ priors


def weight(jet: Jet) -> Quantities:
    return {"value": jet.value, "mean": jet.first, "variance": jet.second}


def atoms(values: Sequence[float], base: Sequence[float], h: mp.mpf, precision: mp.mpf) -> Quantities:
    """ψ = log Σ_a μ_a e^{ha − ½λa²}."""
    pairs = [(mp.mpf(a), mp.log(mp.mpf(b))) for a, b in zip(values, base, strict=True)]
    return weight(log_mixture([Jet(b + h * a - precision * a**2 / 2, a, mp.mpf(0)) for a, b in pairs]))


def gaussian_weight(h: mp.mpf, precision: mp.mpf) -> Quantities:
    """ψ = h²/2λ + ½ log 2π/λ."""
    precision = max(precision, mp.mpf(PRECISION_FLOOR))
    return weight(Jet(h**2 / (2 * precision) + mp.log(2 * mp.pi / precision) / 2, h / precision, 1 / precision))


# ---------------------------------------------------------------------------------------------------- accuracy


def with_rounding(
    exact: Callable[..., Quantities], point: Sequence[float], epsilon: float
) -> tuple[Quantities, Quantities]:
    """f(x) and Σ_i |f(x with x_i(1+ε)) − f(x)|: what rounding each input once would change, for every quantity f."""
    numbers = [mp.mpf(x) for x in point]
    value = exact(*numbers)
    change = dict.fromkeys(value, mp.mpf(0))
    for i, x in enumerate(numbers):
        moved = exact(*numbers[:i], x * (1 + mp.mpf(epsilon)), *numbers[i + 1 :])
        change = {name: change[name] + abs(moved[name] - value[name]) for name in value}
    return value, change
