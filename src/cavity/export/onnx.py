"""ONNX models of a network. Both take unscaled samples: ``x`` (samples, features), uint8 pixels or float32 numbers.

The point-wise model returns ``class`` (int64 index), ``scores`` and, where it is known, ``confidence``. It computes the
integers of ``packed.description`` in a float type that holds them exactly, so rounding cannot change a class. The
Bayesian one returns ``probabilities``.
"""

from __future__ import annotations

import numpy as np

from cavity.export.graph import DOUBLE, FLOAT, INT64, UINT8, Graph
from cavity.export.onnx_bayes import argmax_probabilities, label_probabilities, preactivations
from cavity.export.trained import ExportError, Inputs, Trained, require_exportable
from cavity.packed.confidence import CERTAIN, LAST, Confidence
from cavity.packed.description import FRACTION_BITS, REAL_PLANES, Description, InputCode, Layer
from cavity.packed.fixed import LARGEST_RAW, SHIFT, Fixed
from cavity.packed.windows import Convolution, MaxPool

#: Integers up to these are exact.
EXACT_FLOAT, EXACT_DOUBLE = 1 << 24, 1 << 53


def point_model(net: Description) -> bytes:
    """Classes and scores of the most probable weights."""
    g, code = Graph(), net.inputs
    bound = (net.largest_first << net.shift) + int(np.abs(net.offsets).max())
    if bound >= EXACT_DOUBLE:
        raise ExportError(f"the sums of {code.features} inputs are not exact in double precision")
    wide = bound >= EXACT_FLOAT
    dtype = np.float64 if wide else np.float32
    factors = np.repeat([factor for _, factor in code.groups], [width for width, _ in code.groups])
    first, q = net.layers[0], _integers(g, code, wide)
    # Runtimes convolve in single precision only.
    if isinstance(first, Convolution) and not wide:
        z = _filtered(g, first, q if (factors == 1).all() else g.op("Mul", q, g.constant(factors, np.float32)))
    else:
        z = g.op("MatMul", q, _matrix(g, first, wide, factors))
    if net.shift:
        z = g.op("Mul", z, g.constant(1 << net.shift, dtype))
    z = g.op("Sub", z, g.constant(net.offsets, dtype))
    for layer in net.layers[1:]:
        # Sums of signs are far below 2^24, whatever the first layer needed and a bias may add.
        up, down, zero = g.constant(1, np.float32), g.constant(-1, np.float32), g.constant(0, dtype)
        signs = g.op("Where", g.op("GreaterOrEqual", z, zero), up, down)
        if isinstance(layer, MaxPool):
            z, dtype = _pooled(g, layer, signs), np.float32
            continue
        dtype = np.float32
        if isinstance(layer, Convolution):
            z = _filtered(g, layer, signs)
        else:
            z = g.op("MatMul", signs, _matrix(g, layer, False))
        if layer.largest >= EXACT_FLOAT:
            z, dtype = g.cast(z, DOUBLE), np.float64
        if layer.shift:
            z = g.op("Mul", z, g.constant(1 << layer.shift, dtype))
        if layer.bias is not None:
            z = g.op("Add", z, g.constant(layer.bias, dtype))
    scores = g.op("Cast", z, name="scores", to=INT64)
    if net.output == "argmax":
        g.op("ArgMax", scores, name="class", axis=1, keepdims=0)
    else:
        positive = g.op("GreaterOrEqual", g.op("Squeeze", scores, g.axes(1)), g.constant(0, np.int64))
        g.op("Cast", positive, name="class", to=INT64)
    if net.confidence is not None:
        _confidence(g, scores, net.confidence, net.output == "label")
    x = UINT8 if code.kind == "pixels" else FLOAT, code.features
    sure: dict[str, tuple[int]] = {} if net.confidence is None else {"confidence": (INT64,)}
    return g.model(x, {"class": (INT64,), "scores": (INT64, net.sizes[-1]), **sure}, net.classes)


def _confidence(g: Graph, scores: str, rule: Confidence, label: bool) -> None:
    """How sure each class is, from 0 to 255, in the integers of ``packed.confidence``."""

    def whole(value: int) -> str:
        return g.constant(value, np.int64)

    if label:
        scores = g.op("Concat", g.op("Neg", scores), scores, axis=1)
    apart = g.op("Sub", g.op("ReduceMax", scores, g.axes(1), keepdims=1), scores)
    product = g.op("Mul", g.op("Min", apart, whole(rule.limit)), whole(rule.multiplier))
    place = g.op("Min", g.op("Div", product, whole(1 << rule.shift)), whole(LAST))
    total = g.op("ReduceSum", g.op("Gather", g.constant(rule.table, np.int64), place), g.axes(1), keepdims=0)
    best = whole(CERTAIN * int(rule.table[0]))
    g.op("Div", g.op("Add", best, g.op("Div", total, whole(2))), total, name="confidence")


def _integers(g: Graph, code: InputCode, wide: bool) -> str:
    """The integers q of the samples, in floating point."""
    if code.kind == "pixels":
        return g.cast("x", DOUBLE if wide else FLOAT)
    if code.fixed is not None:
        q = _fixed(g, code.fixed)
        return q if wide else g.cast(q, FLOAT)
    assert code.mean is not None
    assert code.std is not None
    x = g.op("Sub", g.cast("x", DOUBLE), g.constant(code.mean, np.float64))
    x = g.op("Mul", g.op("Div", x, g.constant(code.std, np.float64)), g.constant(1 << FRACTION_BITS, np.float64))
    limit = 1 << (REAL_PLANES - 1)
    return g.op("Clip", g.op("Round", x), g.constant(-limit, np.float64), g.constant(limit - 1, np.float64))


def _fixed(g: Graph, code: Fixed) -> str:
    """q of fixed-point inputs, in double precision, which holds the products."""
    raw = g.op("Mul", g.cast("x", DOUBLE), g.constant(np.exp2(code.bits), np.float64))
    far = g.constant(LARGEST_RAW, np.float64)
    raw = g.op("Clip", g.op("Round", raw), g.op("Neg", far), far)
    limit = g.constant(code.limit, np.float64)
    d = g.op("Max", g.op("Min", g.op("Sub", raw, g.constant(code.centre, np.float64)), limit), g.op("Neg", limit))
    half, scale = g.constant(1 << (SHIFT - 1), np.float64), g.constant(2.0**-SHIFT, np.float64)
    product = g.op("Add", g.op("Mul", d, g.constant(code.multiplier, np.float64)), half)
    return g.op("Floor", g.op("Mul", product, scale))


def _matrix(g: Graph, layer: Layer, wide: bool, factors: np.ndarray | None = None) -> str:
    """Transposed weights (inputs, outputs), stored as one byte each, times the factors of the inputs."""
    matrix = g.cast(g.constant(layer.whole.T, np.int8), DOUBLE if wide else FLOAT)
    if factors is None or (factors == 1).all():
        return matrix
    return g.op("Mul", matrix, g.constant(factors[:, None], np.float64 if wide else np.float32))


def _filtered(g: Graph, layer: Convolution, x: str) -> str:
    """Sums (samples, units) of a convolution, whose filters are stored once, one byte each."""
    windows = layer.windows
    filters = layer.filters.reshape(-1, windows.shape[0], *windows.kernel)
    image = g.op("Reshape", x, g.axes(-1, *windows.shape))
    z = g.op(
        "Conv",
        image,
        g.cast(g.constant(filters, np.int8), FLOAT),
        kernel_shape=windows.kernel,
        strides=windows.stride,
        pads=windows.padding * 2,
    )
    return g.op("Flatten", z)


def _pooled(g: Graph, layer: MaxPool, signs: str) -> str:
    image = g.op("Reshape", signs, g.axes(-1, *layer.image))
    return g.op("Flatten", g.op("MaxPool", image, kernel_shape=layer.size, strides=layer.size))


def bayesian_model(trained: Trained) -> bytes:
    """Class probabilities of the posterior: one pass of the moments, then the output's integral."""
    net, inputs = trained.net, trained.inputs
    require_exportable(net)
    inputs.check(net.input_shape[0])
    g = Graph()
    probabilities = label_probabilities if net.outputs == 1 else argmax_probabilities
    probabilities(g, net, *preactivations(g, net, _standardized(g, inputs)), name="probabilities")
    x = FLOAT if inputs.white is None else UINT8, net.input_shape[0]
    return g.model(x, {"probabilities": (FLOAT, max(2, net.outputs))}, trained.classes)


def _standardized(g: Graph, inputs: Inputs) -> str:
    """(v − mean)/std in double precision, then float32, as the data are prepared for training."""
    x = g.cast("x", DOUBLE)
    if inputs.white is not None:
        x = g.op("Div", x, g.constant(inputs.white, np.float64))
    x = g.op("Div", g.op("Sub", x, g.constant(inputs.mean, np.float64)), g.constant(inputs.std, np.float64))
    return g.cast(x, FLOAT)
