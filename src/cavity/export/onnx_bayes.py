"""Class probabilities of a network of sign units, as ONNX: posterior moments go up (see ``cavity.core.sweep``),

    ω = Σ_i m x̂,   V = Σ_i (m² Δ + σ E[x²]),   x̂ = erf(u/√2),   1 − |x̂| = 2Q(|u|),   u = ω/√(V + ν)

and the two quadratures of ``channels.classes`` turn the last ones into probabilities. ONNX has no erfc, so the tail is
e^{−u²/2} √(2/π) R(|u|) with the polynomial of ``special.py``. Every sample is computed on an even grid; samples with
one narrow class are then recomputed on the panels of ``channels.quadrature``, which cost more than everything else.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from cavity.core.channels import ArgMax, Label, Sign
from cavity.core.channels.classes import POINTS, REACH, SPACING
from cavity.core.channels.quadrature import NODES, STEP_MARKS, SUPPORT
from cavity.core.floors import VARIANCE_FLOOR
from cavity.core.layer import Layer
from cavity.core.network import Network
from cavity.core.special import MILLS_32, MILLS_64
from cavity.export.graph import DOUBLE, FLOAT, Graph
from cavity.export.trained import ExportError

#: The names of ω and V, both (samples, outputs).
Gaussian = tuple[str, str]
REACH_32 = REACH[torch.float32]
#: One grid for all samples: the middle one.
EVEN_POINTS = POINTS[1]


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


def label_probabilities(g: Graph, net: Network, omega: str, V: str, *, name: str) -> str:
    """P(−1) and P(+1) of one unit: Φ(−u), Φ(u) with u = ω/√(V+ν)."""
    if not isinstance(net.output, Label):
        raise ExportError(f"output is {type(net.output).__name__}: it has no class probabilities to export")
    u = g.op("Div", omega, g.op("Sqrt", g.op("Add", V, g.constant(net.output.noise, np.float32))))
    tail = upper_tail(g, g.op("Abs", u), np.float32)
    head = g.op("Sub", g.constant(1, np.float32), tail)
    positive = g.op("GreaterOrEqual", u, g.constant(0, np.float32))
    less, more = g.op("Where", positive, tail, head), g.op("Where", positive, head, tail)
    return g.op("Concat", less, more, name=name, axis=1)


def argmax_probabilities(g: Graph, net: Network, omega: str, V: str, *, name: str) -> str:
    """P(argmax z = k), (samples, classes), rows that sum to 1."""
    if not isinstance(net.output, ArgMax):
        raise ExportError(f"output is {type(net.output).__name__}: only argmax and one label have class probabilities")
    omega = _below_largest(g, omega)
    s = g.op("Sqrt", V)
    low, high = _ends(g, omega, s, REACH_32, np.float32)
    step = g.op("Div", g.op("Sub", high, low), g.constant(EVEN_POINTS - 1, np.float32))
    p = _grid(g, omega, s, low, step)
    widest = g.op("Mul", g.op("ReduceMin", s, g.axes(1), keepdims=1), g.constant(SPACING, np.float32))
    hard = g.op("Transpose", g.op("NonZero", g.op("Squeeze", g.op("Greater", step, widest), g.axes(1))), perm=[1, 0])
    careful = _panels(g, g.op("GatherND", omega, hard), g.op("GatherND", V, hard), net.outputs)
    return g.op("ScatterND", p, hard, g.cast(careful, FLOAT), name=name)


def _below_largest(g: Graph, omega: str) -> str:
    return g.op("Sub", omega, g.op("ReduceMax", omega, g.axes(1), keepdims=1))


def _ends(g: Graph, omega: str, s: str, reach: float, dtype: type) -> tuple[str, str]:
    """The ends of the integral, below which no class wins and above which one has won; both (samples, 1)."""
    far = g.op("Mul", s, g.constant(reach, dtype))
    low = g.op("ReduceMax", g.op("Sub", omega, far), g.axes(1), keepdims=1)
    return low, g.op("ReduceMax", g.op("Add", omega, far), g.axes(1), keepdims=1)


def _normalized(g: Graph, p: str) -> str:
    return g.op("Div", p, g.op("ReduceSum", p, g.axes(1), keepdims=1))


def _grid(g: Graph, omega: str, s: str, low: str, step: str) -> str:
    """Sums over an even grid, with Π_{j≠k} Φ_j = exp(Σ_j log Φ_j − log Φ_k)."""
    points = g.constant(np.arange(EVEN_POINTS)[None], np.float32)
    z = g.op("Unsqueeze", g.op("Add", low, g.op("Mul", step, points)), g.axes(2))
    wide = g.op("Unsqueeze", s, g.axes(1))
    a = g.op("Div", g.op("Sub", z, g.op("Unsqueeze", omega, g.axes(1))), wide)
    tail = upper_tail(g, g.op("Abs", a), np.float32)
    above = g.op("GreaterOrEqual", a, g.constant(0, np.float32))
    phi = g.op("Where", above, g.op("Sub", g.constant(1, np.float32), tail), tail)
    density = g.op("Div", g.op("Exp", g.op("Mul", g.op("Mul", a, a), g.constant(-0.5, np.float32))), wide)
    # Where Φ_k underflows, so does the density of class k: any finite logarithm will do, −∞ less −∞ would not.
    logarithms = g.op("Log", g.op("Max", phi, g.constant(np.finfo(np.float32).tiny, np.float32)))
    others = g.op("Sub", g.op("ReduceSum", logarithms, g.axes(2), keepdims=1), logarithms)
    return _normalized(g, g.op("ReduceSum", g.op("Mul", density, g.op("Exp", others)), g.axes(1), keepdims=0))


def _log_ndtr(g: Graph, x: str) -> str:
    """log Φ(x) in double precision, accurate in both tails."""
    a = g.op("Abs", x)
    R = g.op("Mul", mills_ratio(g, a, np.float64), g.constant(1 / math.sqrt(2 * math.pi), np.float64))
    exponent = g.op("Mul", g.op("Mul", x, x), g.constant(-0.5, np.float64))
    below = g.op("Add", exponent, g.op("Log", R))
    tail = g.op("Mul", g.op("Exp", exponent), R)
    above = g.op("Log", g.op("Sub", g.constant(1, np.float64), tail))
    return g.op("Where", g.op("Less", x, g.constant(0, np.float64)), below, above)


def _panels(g: Graph, omega: str, V: str, classes: int) -> str:
    """Gauss–Legendre panels between marks around every step, for the samples that need them, in double precision."""
    omega, s = _below_largest(g, g.cast(omega, DOUBLE)), g.op("Sqrt", g.cast(V, DOUBLE))
    low, high = _ends(g, omega, s, math.sqrt(2 * SUPPORT), np.float64)
    marks = g.op("Mul", g.op("Unsqueeze", s, g.axes(2)), g.constant(STEP_MARKS, np.float64))
    marks = g.op("Add", g.op("Unsqueeze", omega, g.axes(2)), marks)
    count = classes * len(STEP_MARKS)
    marks = g.op("Reshape", marks, g.axes(-1, count))
    edges = g.op("Concat", low, g.op("Min", g.op("Max", marks, low), high), high, axis=1)
    edges = g.op("TopK", edges, g.axes(count + 2), unused=["rest"], axis=1, largest=0, sorted=1)
    left, right = (g.op("Slice", edges, g.axes(at), g.axes(count + 1 + at), g.axes(1)) for at in (0, 1))
    width = g.op("Unsqueeze", g.op("Sub", right, left), g.axes(2))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    offset = g.op("Unsqueeze", g.op("Mul", width, g.constant((nodes + 1) / 2, np.float64)), g.axes(3))
    weight = g.op("Unsqueeze", g.op("Mul", width, g.constant(weights / 2, np.float64)), g.axes(3))
    # (left − step) + offset, in this order, keeps the digits next to a narrow step: (samples, panels, nodes, classes).
    apart = g.op("Sub", g.op("Unsqueeze", left, g.axes(2)), g.op("Unsqueeze", omega, g.axes(1)))
    wide = g.op("Unsqueeze", s, g.axes(1, 2))
    a = g.op("Div", g.op("Add", g.op("Unsqueeze", apart, g.axes(2)), offset), wide)
    log_phi = _log_ndtr(g, a)
    others = g.op("Sub", g.op("ReduceSum", log_phi, g.axes(3), keepdims=1), log_phi)
    exponent = g.op("Add", g.op("Mul", g.op("Mul", a, a), g.constant(-0.5, np.float64)), others)
    density = g.op("Mul", g.op("Div", g.op("Exp", exponent), wide), weight)
    return _normalized(g, g.op("ReduceSum", density, g.axes(1, 2), keepdims=0))
