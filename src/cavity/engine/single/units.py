"""Sign and gate units for vectors (units,): ``core/channels/sign.py`` and ``core/channels/piecewise.py`` in NumPy."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, erfc, erfcx, ndtr

from cavity.core.channels import Activation, Gate, Sign

Vector = NDArray[np.floating]

SQRT_HALF, SQRT_2_OVER_PI = math.sqrt(0.5), math.sqrt(2 / math.pi)
INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)


class Answer(NamedTuple):
    """g = ∂_ω φ and Γ = −∂²_ω φ."""

    gradient: Vector
    curvature: Vector


def hazard(x: Vector) -> Vector:
    """𝒦(x) = N(x)/Q(x)."""
    result: Vector = SQRT_2_OVER_PI / erfcx(x * SQRT_HALF)
    return result


class SingleUnits(ABC):
    """Units of one layer: their moments on the way up, and what they answer on the way down."""

    #: E[x²] where it does not depend on the distribution, and whether A matters.
    second_moment: float | None
    uses_precision: bool

    @abstractmethod
    def moments(self, omega: Vector, V: Vector) -> tuple[Vector, Vector]:
        """x̂ and Δ before anything has come down."""

    @abstractmethod
    def answer(self, B: Vector, A: Vector | None, omega: Vector, V: Vector) -> Answer:
        """g and Γ for fields (B, A)."""


@dataclass(frozen=True)
class SingleSign(SingleUnits):
    """x = sign(z + noise)."""

    noise: float
    second_moment = 1.0
    uses_precision = False

    def moments(self, omega: Vector, V: Vector) -> tuple[Vector, Vector]:
        u = omega / np.sqrt(V + self.noise) * SQRT_HALF
        tail = erfc(np.abs(u))
        return erf(u), tail * (2 - tail)

    def answer(self, B: Vector, A: Vector | None, omega: Vector, V: Vector) -> Answer:
        """κ = 2N(u) tanh B/(1 + tanh B erf(u/√2)) with the denominator as Φ(u)(1 + tanh B) + Φ(−u)(1 − tanh B), in
        which nothing cancels: 1 ± tanh B = 2/(1 + e^{∓2B})."""
        s = np.sqrt(V + self.noise)
        u = omega / s
        with np.errstate(over="ignore"):
            plus, minus = 1 / (1 + np.exp(-2 * B)), 1 / (1 + np.exp(2 * B))
        density = INV_SQRT_2PI * np.exp(-0.5 * u * u)
        total = ndtr(u) * plus + ndtr(-u) * minus
        # Both vanish where a unit is told to be what it cannot be: then κ is the hazard.
        kappa = np.where(total > TINY, density * (plus - minus) / np.maximum(total, TINY), np.sign(B) * np.abs(u))
        return Answer(kappa / s, kappa * (kappa + u) / (V + self.noise))


#: Below this the quotient above has no digits.
TINY = 1e-300


@dataclass(frozen=True)
class SingleGate(SingleUnits):
    """x = 1 where |z + noise| > c, else 0: φ = log(q + p e^b) with p = P(x = 1), q = 1 − p and b = B − ½A."""

    threshold: float
    noise: float
    second_moment = None
    uses_precision = True

    def moments(self, omega: Vector, V: Vector) -> tuple[Vector, Vector]:
        right, left, _ = self._ends(omega, V)
        p, q = ndtr(-right) + ndtr(-left), ndtr(right) - ndtr(-left)
        return p, p * q

    def answer(self, B: Vector, A: Vector | None, omega: Vector, V: Vector) -> Answer:
        right, left, s = self._ends(omega, V)
        at_right, at_left = (INV_SQRT_2PI * np.exp(-0.5 * np.square(end)) for end in (right, left))
        b = B if A is None else B - 0.5 * A
        p, q = ndtr(-right) + ndtr(-left), ndtr(right) - ndtr(-left)
        # (e^b − 1)/(q + p e^b), for large b of either sign.
        with np.errstate(over="ignore"):
            tilt = np.where(b > 0, -np.expm1(-np.abs(b)), np.expm1(-np.abs(b))) / np.where(
                b > 0, q * np.exp(-np.abs(b)) + p, q + p * np.exp(-np.abs(b))
            )
        g = (at_right - at_left) / s * tilt
        return Answer(g, np.square(g) - (right * at_right + left * at_left) / np.square(s) * tilt)

    def _ends(self, omega: Vector, V: Vector) -> tuple[Vector, Vector, Vector]:
        """Widths from ω to the two ends c and −c."""
        s = np.sqrt(V + self.noise)
        return (self.threshold - omega) / s, (self.threshold + omega) / s, s


def single_units(activation: Activation) -> SingleUnits | None:
    """The same activation in NumPy; None where there is none."""
    if type(activation) is Sign:
        return SingleSign(activation.noise)
    if type(activation) is Gate:
        return SingleGate(activation.edges[1], activation.noise)
    return None
