"""The functions of a mean-field step as tables of whole numbers: no float is needed to look them up.

========= ========================= ====================== ============= =============
table     value                     of                     step of index unit of value
========= ========================= ====================== ============= =============
MEAN      tanh h                    0 ≤ h ≤ 3              2^-6          2^-12
ERF       erf(u/√2)                 0 ≤ u ≤ 4              2^-5          2^-8
DENSITY   2𝒩(u), 0 at u = 4         0 ≤ u ≤ 4              2^-5          2^-12
HAZARD    K(a) = 𝒩(a)/Φ(−a)         −4 ≤ a ≤ 4             2^-5          2^-12
========= ========================= ====================== ============= =============
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

#: Fraction bits of fields h, means m and messages g; of u, a, √V and x̂; of rates.
FINE, COARSE, RATE = 12, 8, 16
#: The largest |h|: m = 0.995. A weight that is surer than this would never change its mind.
LIMIT = 3 << FINE
#: The largest |u| that a table knows, in units 2^-8.
REACH = 4 << COARSE

Table = NDArray[np.int16]


def _table(values: list[float], bits: int) -> Table:
    return np.array([round(value * (1 << bits)) for value in values], np.int16)


def _density(u: float) -> float:
    return math.exp(-0.5 * u * u) / math.sqrt(2 * math.pi)


_HALVES = [index / 32 for index in range(129)]
MEAN = _table([math.tanh(index / 64) for index in range(3 * 64 + 1)], FINE)
#: The last entry stands for everything beyond: such a unit is certain, and moved by nothing.
ERF = _table([*(math.erf(u / math.sqrt(2)) for u in _HALVES[:-1]), 1.0], COARSE)
DENSITY = _table([*(2 * _density(u) for u in _HALVES[:-1]), 0.0], FINE)
HAZARD = _table([2 * _density(a) / math.erfc(a / math.sqrt(2)) for a in (i / 32 for i in range(-128, 129))], FINE)
TABLES = {"mean": MEAN, "erf": ERF, "density": DENSITY, "hazard": HAZARD}
