"""Posterior moments going up a network of sign units, as ONNX (see ``cavity.core.sweep``).

    ω = Σ_i m x̂,   V = Σ_i (m² Δ + σ E[x²]),   x̂ = erf(u/√2),   1 − |x̂| = 2Q(|u|),   u = ω/√(V + ν)

ONNX has no erfc, so the tail is e^{−u²/2} √(2/π) R(|u|) with the polynomial of ``special.py``.
"""

from __future__ import annotations

import math

import numpy as np

from cavity.core.channels import Sign
from cavity.core.floors import VARIANCE_FLOOR
from cavity.core.layer import Layer
from cavity.core.network import Network
from cavity.core.special import MILLS_32, MILLS_64
from cavity.export.graph import Graph

#: The names of ω and V, both (samples, outputs).
Gaussian = tuple[str, str]


def preactivations(g: Graph, net: Network, x: str) -> Gaussian:
    """ω and V of the last layer for standardised inputs x."""
    first, *above = net.weighted()
    omega, V = _first(g, first, x)
    for layer, activation in zip(above, net.activations, strict=True):
        assert isinstance(activation, Sign)
        omega, V = _above(g, layer, activation.noise, omega, V)
    return omega, V


def _parts(layer: Layer) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """m and σ of the posterior without bias and threshold, transposed, and those of bias and threshold together."""
    columns = layer.shape[1] - layer.coupling.bias
    m, sigma = (tensor.float().cpu().numpy().T for tensor in layer.known_moments())
    return m[:columns], sigma[:columns], m[columns:].sum(axis=0), sigma[columns:].sum(axis=0)


def _scale(layer: Layer) -> float:
    """The rounding error of V in units of E[x²]."""
    return layer.prior.largest_square * float(np.finfo(np.float32).eps) * layer.coupling.columns


def _f32(g: Graph, values: float | np.ndarray) -> str:
    return g.constant(values, np.float32)


def _first(g: Graph, layer: Layer, x: str) -> Gaussian:
    m, sigma, m_bias, sigma_bias = _parts(layer)
    square = g.op("Mul", x, x)
    omega = g.op("Add", g.op("MatMul", x, _f32(g, m)), _f32(g, m_bias))
    V = g.op("Add", g.op("MatMul", square, _f32(g, sigma)), _f32(g, sigma_bias))
    floor = g.op("Mul", g.op("ReduceMean", square, g.axes(1), keepdims=1), _f32(g, _scale(layer)))
    return omega, g.op("Max", V, floor, _f32(g, VARIANCE_FLOOR))


def _above(g: Graph, layer: Layer, noise: float, omega: str, V: str) -> Gaussian:
    u = g.op("Div", omega, g.op("Sqrt", g.op("Add", V, _f32(g, noise)) if noise else V))
    mean = g.op("Erf", g.op("Mul", u, _f32(g, math.sqrt(0.5))))
    tail = g.op("Mul", upper_tail(g, g.op("Abs", u), np.float32), _f32(g, 2.0))
    delta = g.op("Mul", tail, g.op("Sub", _f32(g, 2.0), tail))
    m, sigma, m_bias, sigma_bias = _parts(layer)
    omega = g.op("Add", g.op("MatMul", mean, _f32(g, m)), _f32(g, m_bias))
    still = sigma.sum(axis=0, dtype=np.float64) + sigma_bias
    V = g.op("Add", g.op("MatMul", delta, _f32(g, np.square(m))), _f32(g, still))
    return omega, g.op("Max", V, _f32(g, max(_scale(layer), VARIANCE_FLOOR)))


def mills_ratio(g: Graph, a: str, dtype: type) -> str:
    """R(a) = Q(a)/N(a) for a ≥ 0."""
    r = g.op("Reciprocal", g.op("Add", a, g.constant(4, dtype)))
    first, *others = MILLS_64 if dtype is np.float64 else MILLS_32
    total = g.constant(first, dtype)
    for coefficient in others:
        total = g.op("Add", g.op("Mul", total, r), g.constant(coefficient, dtype))
    return g.op("Mul", total, r)


def upper_tail(g: Graph, a: str, dtype: type) -> str:
    """Q(a) = N(a) R(a) for a ≥ 0."""
    density = g.op("Exp", g.op("Mul", g.op("Mul", a, a), g.constant(-0.5, dtype)))
    scaled = g.op("Mul", density, g.constant(1 / math.sqrt(2 * math.pi), dtype))
    return g.op("Mul", scaled, mills_ratio(g, a, dtype))
