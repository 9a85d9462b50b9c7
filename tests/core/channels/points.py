"""Where channels and priors are evaluated: moderate arguments, and the extremes that training can reach."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .cases import CASES, CLASSES

Array = NDArray[np.float64]
Points = dict[str, Array]

#: |ω|/√V, |B| and |h| reach 1e4; V goes from 1e-12 to 1e8.
LARGEST = 4.0
VARIANCES = (-12.0, 8.0)
#: Below this a number next to others of size 1 says nothing, but its own sign and size still must come through.
SMALLEST = -8.0


def log_uniform(rng: np.random.Generator, low: float, high: float, count: int) -> Array:
    return 10 ** rng.uniform(low, high, count)


def signed(rng: np.random.Generator, low: float, high: float, count: int) -> Array:
    """Log-uniform sizes of both signs, and one in ten exactly 0."""
    return rng.choice([-1.0, 1.0], count) * log_uniform(rng, low, high, count) * (rng.random(count) > 0.1)


def either(rng: np.random.Generator, *choices: Array) -> Array:
    """Each entry from one of the arrays."""
    return np.choose(rng.integers(len(choices), size=choices[0].shape), choices)


def moderate(name: str, count: int, rng: np.random.Generator) -> Points:
    """Arguments of order 1, for methods that need no care; 1 + AV stays away from its floor."""
    drawn: Points = {}
    for key in CASES[name].inputs:
        if key[0] == "V":
            drawn[key] = rng.uniform(0.3, 2.0, count)
        elif key == "A":
            drawn[key] = rng.uniform(-0.3, 2.0, count)
        elif key == "precision":
            drawn[key] = rng.uniform(0.3, 2.0, count)
        else:
            drawn[key] = rng.uniform(-2.5, 2.5, count)
    return drawn


def extreme(name: str, count: int, rng: np.random.Generator) -> Points:
    """Log-uniform over the whole range, and on purpose where terms balance."""
    inputs = CASES[name].inputs
    if "h" in inputs:
        return _weights(inputs, count, rng)
    if "omega_0" in inputs:
        return _classes(inputs, count, rng)
    return _units(inputs, count, rng)


def _weights(inputs: tuple[str, ...], count: int, rng: np.random.Generator) -> Points:
    h = signed(rng, SMALLEST, LARGEST, count)
    precision = either(
        rng, log_uniform(rng, SMALLEST, 8, count), -log_uniform(rng, SMALLEST, 2, count), 2 * np.abs(h), 0 * h
    )
    return {"h": h, "precision": precision} if "precision" in inputs else {"h": h}


def _classes(inputs: tuple[str, ...], count: int, rng: np.random.Generator) -> Points:
    """Variances of a sample differ by up to 20 orders; means lie at any distance in units of any width."""
    V = {f"V_{k}": log_uniform(rng, *VARIANCES, count) for k in range(CLASSES)}
    unit = np.sqrt(either(rng, *V.values()))
    omega = {f"omega_{k}": unit * signed(rng, SMALLEST, LARGEST, count) for k in range(CLASSES)}
    points = omega | V
    return points | {"noise": rng.standard_normal(count)} if "noise" in inputs else points


def _units(inputs: tuple[str, ...], count: int, rng: np.random.Generator) -> Points:
    V = log_uniform(rng, *VARIANCES, count)
    s = np.sqrt(V)
    u = signed(rng, SMALLEST, LARGEST, count)
    A = either(
        rng, log_uniform(rng, SMALLEST, 8, count), log_uniform(rng, SMALLEST, 8, count) / V, _negative(rng, V), 0 * V
    )
    points = {"V": V, "omega": u * s}
    if "A" in inputs:
        points["A"] = A
    if "y" in inputs:
        points["y"] = either(rng, signed(rng, SMALLEST, LARGEST, count), points["omega"])
    if "B" in inputs:
        points["B"] = np.clip(_fields(rng, u, s, A if "A" in inputs else None), -(10**LARGEST), 10**LARGEST)
    return points


def _negative(rng: np.random.Generator, V: Array) -> Array:
    """−AV from tiny to twice what the floor allows."""
    return -log_uniform(rng, -6, 0.3, len(V)) / V


def _fields(rng: np.random.Generator, u: Array, s: Array, A: Array | None) -> Array:
    """B at random; in units of 1/√V; and where it balances ω, in the tilt or in the weight of the two branches."""
    near = 1 + signed(rng, -6, 0, len(u)) + rng.standard_normal(len(u)) / (1 + u**2)
    if A is None:
        balance = -np.sign(u) * u**2 / 4 * near
    else:
        gain = np.maximum(1 + A * s**2, 0.1)
        balance = -u / s * either(rng, near, 1 + np.sqrt(gain) * near)
    anywhere = signed(rng, SMALLEST, LARGEST, len(u))
    return either(rng, anywhere, anywhere / s, balance)
