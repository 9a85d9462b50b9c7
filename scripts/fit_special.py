"""Derive the polynomial coefficients of `cavity.core.special` and print them as Python source.

Two functions of a ≥ 0 are fitted, both smooth, positive, and of order 1/a for large a:

    Mills ratio      R(a) = Q(a)/N(a)           Q(a) = ∫_a^∞ N(z) dz
    next remainder   J(a) = 1/(1/R(a) − a) − a  so that R = 1/(a + 1/(a + J)), J ≈ 2/a

With r = 1/(k + a) and y = 2kr − 1, a in [0, ∞) becomes y in (−1, 1], and R/r and J/r are smooth there up to
the end point. Their Chebyshev series in y is cut where the rest falls below the rounding of the target type,
and rewritten in powers of r or of y, whichever keeps the rounding error of Horner's rule small.

A third is a quotient of two polynomials in s = h², tanh h = h P(s)/Q(s) for |h| ≤ 9.1, beyond which float32 has nothing
between tanh and 1. Least squares on P − Q tanh(h)/h, weighted again and again by the last Q and by where the error was
largest, ends at the smallest relative error.
Run `python scripts/fit_special.py`; it needs mpmath and takes a second.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np

K = 4  # the scale k: of a scan over [3, 6] the value that serves all four tables best
NODES = 128
DIGITS = 60
TABLES = (("MILLS_32", 9), ("MILLS_64", 22), ("NEXT_32", 13), ("NEXT_64", 28))
TANH_RANGE = 9.1
TANH_DEGREE = 4


def mills(a: mp.mpf) -> mp.mpf:
    """R(a) = √(π/2) e^{a²/2} erfc(a/√2)."""
    return mp.sqrt(mp.pi / 2) * mp.exp(a * a / 2) * mp.erfc(a / mp.sqrt(2))


def remainder(a: mp.mpf) -> mp.mpf:
    """J(a) = 1/(1/R(a) − a) − a; the digits lost in the differences are covered by DIGITS."""
    return 1 / (1 / mills(a) - a) - a


def chebyshev_series(function: Callable[[mp.mpf], mp.mpf]) -> list[mp.mpf]:
    """Chebyshev coefficients in y of function(a)/r, from its values at NODES Chebyshev points."""
    angles = [mp.pi * (i + mp.mpf(1) / 2) / NODES for i in range(NODES)]
    radii = [(1 + mp.cos(angle)) / (2 * K) for angle in angles]
    values = [function(1 / r - K) / r for r in radii]
    series = [
        2 * mp.fsum(v * mp.cos(m * angle) for v, angle in zip(values, angles, strict=True)) / NODES
        for m in range(NODES // 2)
    ]
    series[0] /= 2
    return series


def times_linear(p: list[mp.mpf], slope: int, offset: int) -> list[mp.mpf]:
    """The polynomial p(z)·(slope·z + offset), lowest power first."""
    return [slope * low + offset * high for low, high in zip([mp.mpf(0), *p], [*p, mp.mpf(0)], strict=True)]


def powers(series: list[mp.mpf], slope: int, offset: int) -> list[mp.mpf]:
    """Rewrite Σ c_m T_m(y), y = slope·z + offset, as coefficients of powers of z, highest first."""
    current, following = [mp.mpf(1)], [mp.mpf(offset), mp.mpf(slope)]
    total = [mp.mpf(0)] * len(series)
    for c in series:
        total[: len(current)] = [s + c * p for s, p in zip(total, current, strict=False)]
        doubled = times_linear(following, 2 * slope, 2 * offset)
        current, following = following, [d - p for d, p in zip(doubled, [*current, 0, 0], strict=True)]
    return total[::-1]


def source(name: str, coefficients: list[mp.mpf], rest: mp.mpf) -> str:
    """One table as Python source, as many numbers a line as fit."""
    digits, a_line = (9, 7) if name.endswith("32") else (17, 4)
    numbers = [mp.nstr(c, digits, strip_zeros=False, min_fixed=1, max_fixed=0) for c in coefficients]
    rows = [numbers[i : i + a_line] for i in range(0, len(numbers), a_line)]
    body = "\n".join("    " + ", ".join(row) + "," for row in rows)
    comment = f"# degree {len(numbers) - 1}, relative error of the fit below {mp.nstr(rest, 2)}"
    return f"{comment}\n{name} = (\n{body}\n)"


def tanh_quotient(points: int = 4000, rounds: int = 300) -> tuple[np.ndarray, np.ndarray, float]:
    """P and Q in powers of s, highest first, Q(0) = 1, and the largest relative error of h P/Q."""
    h = TANH_RANGE * (1 - np.cos(np.pi * (np.arange(points) + 0.5) / points)) / 2
    target, s = np.tanh(h) / h, (h / TANH_RANGE) ** 2
    powers_of_s = s[:, None] ** np.arange(TANH_DEGREE + 1)
    weights, last_q = np.ones(points), np.ones(points)
    best = (np.zeros(0), np.zeros(0), np.inf)
    for _ in range(rounds):
        scale = np.sqrt(weights) / last_q
        columns = np.hstack([powers_of_s / target[:, None], -powers_of_s[:, 1:]])
        found = np.linalg.lstsq(columns * scale[:, None], scale, rcond=None)[0]
        p, q = found[: TANH_DEGREE + 1], np.append(1.0, found[TANH_DEGREE + 1 :])
        last_q = np.abs(powers_of_s @ q)
        error = np.abs(powers_of_s @ p / (powers_of_s @ q) / target - 1)
        if error.max() < best[2]:
            units = TANH_RANGE ** (-2.0 * np.arange(TANH_DEGREE + 1))
            best = ((p * units)[::-1], (q * units)[::-1], float(error.max()))
        weights = weights * (error / error.max() + 1e-3)
        weights /= weights.sum()
    return best


def main() -> None:
    """Print the tables: MILLS in powers of r, NEXT in powers of y, and the two of tanh in powers of h²."""
    mp.mp.dps = DIGITS
    fits = {"MILLS": (chebyshev_series(mills), 2 * K, -1), "NEXT": (chebyshev_series(remainder), 1, 0)}
    for name, degree in TABLES:
        series, slope, offset = fits[name.split("_")[0]]
        smallest = mp.fsum(c * (-1) ** m for m, c in enumerate(series))  # the value at a = ∞
        rest = mp.fsum(abs(c) for c in series[degree + 1 :]) / smallest
        print(source(name, powers(series[: degree + 1], slope, offset), rest))
    p, q, error = tanh_quotient()
    for name, coefficients in (("TANH_P_32", p), ("TANH_Q_32", q)):
        print(source(name, [mp.mpf(float(c)) for c in coefficients], mp.mpf(error)))


if __name__ == "__main__":
    main()
