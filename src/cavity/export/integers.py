"""From a network's most probable weights to exact integers.

The network computes z_k = Σ_i w_ki (p_i/white − μ_i)/s_i + b_k of pixels p. With one s for all,

    z_k ≥ 0   ⟺   Σ_i w_ki p_i ≥ T_k = white (Σ_i w_ki μ_i − s b_k)

and the left side is an integer, so T_k may be rounded up: no standardisation is left. With several s (colour channels)
the sum of each channel is first multiplied by a_i = round(2^24 s_min/s_i), and T_k is formed with the same a_i. Real
inputs are standardised and rounded to multiples of 2^-16 instead. T_k is an exact fraction until it is rounded.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from cavity.core.channels import ArgMax, Label
from cavity.core.layer import Layer
from cavity.core.network import Network
from cavity.export.trained import ExportError, Inputs, Trained, require_exportable
from cavity.packed.description import FRACTION_BITS, Description, InputCode, Output, Weights

#: Bits of the factors a_i, as many as a float32 has.
FACTOR_BITS = 24
#: Fractional bits of scores that are compared with each other, in a network of one layer.
SCORE_BITS = 16
#: More scales than this mean a table, not an image with channels.
LARGEST_GROUPS = 16


def describe(trained: Trained) -> Description:
    """The network in integers; ExportError unless it has sign units and weights −1, 0 and 1."""
    net = trained.net
    require_exportable(net, " as bits")
    output = _output(net)
    weights = [_weights(number, layer) for number, layer in enumerate(net.weighted())]
    first = weights[0]
    trained.inputs.check(first.shape[1])
    biases = [0] * first.shape[0] if first.bias is None else first.bias.tolist()
    code, offsets = (_pixels if trained.inputs.white else _real)(trained.inputs, first, biases)
    compared = len(weights) == 1 and output == "argmax" and code.kind == "pixels"
    shift = SCORE_BITS if compared else 0
    whole = [round(offset * (1 << shift)) if compared else math.ceil(offset) for offset in offsets]
    layers = (Weights(first.sign, first.mask), *weights[1:])
    if max(map(abs, whole)) >= 1 << 62:
        raise ExportError("the mean of the inputs is too large for their std: offsets do not fit into 64 bits")
    return Description(code, layers, np.array(whole, np.int64), shift, output, trained.classes)


def _output(net: Network) -> Output:
    if isinstance(net.output, ArgMax):
        return "argmax"
    if not isinstance(net.output, Label):
        raise ExportError(f"output is {type(net.output).__name__}: only argmax and label outputs can be exported")
    if net.outputs != 1:
        raise ExportError(f"output is {net.outputs} labels: only a single label or an argmax can be exported")
    return "label"


def _weights(number: int, layer: Layer) -> Weights:
    """Signs, mask and bias of a layer's most probable weights."""
    w = layer.point().cpu().numpy()
    if not np.isin(w, (-1, 0, 1)).all():
        raise ExportError(
            f"layer {number} has {layer.prior.name} weights: only the values -1, 0 and 1 fit into bits "
            "(weights = binary or ternary)"
        )
    bias = w[:, -1].astype(np.int8) if layer.coupling.bias else None
    w = w[:, : w.shape[1] - layer.coupling.bias]
    return Weights(w > 0, None if (w != 0).all() else w != 0, bias)


def _exact(values: NDArray[np.float64], features: int) -> list[Fraction]:
    fractions = [Fraction(value) for value in values.tolist()]
    return fractions * features if len(fractions) == 1 else fractions


def ternary(weights: Weights) -> NDArray[np.int64]:
    """w (outputs, inputs) as −1, 0 and 1."""
    w = np.where(weights.sign, 1, -1)
    return w if weights.mask is None else w * weights.mask


def _pixels(inputs: Inputs, weights: Weights, biases: list[int]) -> tuple[InputCode, list[Fraction]]:
    """The code of the pixels, and T_k."""
    assert inputs.white is not None
    features = weights.shape[1]
    std, mean = _exact(inputs.std, features), _exact(inputs.mean, features)
    scales = [(scale, len(list(same))) for scale, same in groupby(std)]
    if len(scales) > LARGEST_GROUPS:
        raise ExportError(
            f"the pixels have {len(scales)} different std: at most {LARGEST_GROUPS} groups of adjacent pixels, such as "
            "colour channels, can be exported (--inputs real takes any number)"
        )
    unit = min(std) * (1 << FACTOR_BITS if len(scales) > 1 else 1)
    # A group with so large a std that its factor rounds to 0 weighs less than a rounding error of the smallest std.
    groups = tuple((width, max(1, round(unit / scale))) for scale, width in scales)
    a = [factor for width, factor in groups for _ in range(width)]
    # Floats are integers over a power of two; over the largest of these, the sums are exact Python integers.
    below = max(centre.denominator for centre in mean)
    centres = np.array([factor * int(centre * below) for factor, centre in zip(a, mean, strict=True)], object)
    sums = ternary(weights).astype(object) @ centres
    pairs = zip(sums, biases, strict=True)
    offsets = [inputs.white * (Fraction(total, below) - unit * bias) for total, bias in pairs]
    return InputCode("pixels", groups, white=inputs.white), offsets


def _real(inputs: Inputs, weights: Weights, biases: list[int]) -> tuple[InputCode, list[Fraction]]:
    """The code of standardised numbers, and the bias in their units."""
    offsets = [Fraction(-bias << FRACTION_BITS) for bias in biases]
    return InputCode("real", ((weights.shape[1], 1),), mean=inputs.mean, std=inputs.std), offsets
