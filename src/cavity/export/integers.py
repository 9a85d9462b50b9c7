"""From a network's most probable weights to exact integers.

The network computes z_k = Σ_i w_ki (p_i/white − μ_i)/s_i + b_k of pixels p. With one s for all,

    z_k ≥ 0   ⟺   Σ_i w_ki p_i ≥ T_k = white (Σ_i w_ki μ_i − s b_k)

and the left side is an integer, so T_k may be rounded up: no standardisation is left. With several s (colour channels)
the sum of each channel is first multiplied by a_i = round(2^24 s_min/s_i), and T_k is formed with the same a_i. Real
inputs are standardised in fixed point and rounded to multiples of 2^-10 instead (``packed.fixed``). T_k is an
exact fraction until it is rounded.

Above, sums S_k of signs are whole numbers, and a threshold b_k becomes one too: S + b ≥ 0 ⟺ S + ⌊b⌋ ≥ 0. Where scores
are compared with each other, what is cut off decides between equal ones, so that its rank is kept below the sum:

    S_k + b_k < S_j + b_j   ⟺   2^r (S_k + ⌊b_k⌋) + rank_k < 2^r (S_j + ⌊b_j⌋) + rank_j,   2^r ≥ classes
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from cavity.core.channels import ArgMax, Label
from cavity.core.network import Network
from cavity.export.chain import chain
from cavity.export.trained import ExportError, Inputs, Trained, require_exportable
from cavity.packed.description import Description, InputCode, Layer, Output
from cavity.packed.fixed import FRACTION_BITS, fixed
from cavity.packed.windows import MaxPool

#: Bits of the factors a_i, as many as a float32 has.
FACTOR_BITS = 24
#: Fractional bits of scores that are compared with each other, in a network of one layer.
SCORE_BITS = 16
#: More scales than this mean a table, not an image with channels.
LARGEST_GROUPS = 16


def describe(trained: Trained) -> Description:
    """The network in integers; ExportError unless it has sign units and weights −1, 0 and 1, or Gaussian ones,
    which are rounded to 8 bits."""
    net = trained.net
    require_exportable(net, " as bits", images=True)
    output = _output(net)
    (first, biases), *above = chain(net, compared=output == "argmax")
    trained.inputs.check(first.shape[1])
    code, offsets = (_pixels if trained.inputs.white else _real)(trained.inputs, first, biases)
    whole_numbers = all(offset.denominator == 1 for offset in offsets)
    compared = not above and output == "argmax" and not (code.kind == "fixed" and whole_numbers)
    shift = SCORE_BITS if compared else 0
    whole = [round(offset * (1 << shift)) if compared else math.ceil(offset) for offset in offsets]
    last = len(above) - 1
    layers = (first, *(_folded(*pair, number == last and output == "argmax") for number, pair in enumerate(above)))
    if max(map(abs, whole)) >= 1 << 62:
        raise ExportError("the mean of the inputs is too large for their std: offsets do not fit into 64 bits")
    return Description(code, layers, np.array(whole, np.int64), shift, output, trained.classes, trained.confidence)


def _output(net: Network) -> Output:
    if isinstance(net.output, ArgMax):
        return "argmax"
    if not isinstance(net.output, Label):
        raise ExportError(f"output is {type(net.output).__name__}: only argmax and label outputs can be exported")
    if net.outputs != 1:
        raise ExportError(f"output is {net.outputs} labels: only a single label or an argmax can be exported")
    return "label"


def _folded(layer: Layer, biases: list[Fraction], compared: bool) -> Layer:
    """The same with thresholds in whole numbers that make the same decisions: each score against 0, or, if they are
    ``compared``, the scores against each other."""
    if isinstance(layer, MaxPool):
        return layer
    floors = [math.floor(bias) for bias in biases]
    rests = [bias - whole for bias, whole in zip(biases, floors, strict=True)]
    ranked = sorted(set(rests))
    shift = (len(ranked) - 1).bit_length() if compared else 0
    # Beyond the sum of all signs a threshold has decided already.
    limit = None if compared else int(layer.edges.max()) + 1
    whole = [bias if limit is None else max(-limit, min(limit, bias)) for bias in floors]
    if max(map(abs, whole)) >= 1 << 30 - shift:
        raise ExportError("a threshold of the last layer is too large: scores do not fit into 32 bits")
    if not any(whole) and not shift:
        return layer
    ranks = [ranked.index(rest) if compared else 0 for rest in rests]
    folded = [(bias << shift) + rank for bias, rank in zip(whole, ranks, strict=True)]
    return layer.with_bias(np.array(folded, np.int64), shift)


def _exact(values: NDArray[np.float64], features: int) -> list[Fraction]:
    fractions = [Fraction(value) for value in values.tolist()]
    return fractions * features if len(fractions) == 1 else fractions


def _pixels(inputs: Inputs, first: Layer, biases: list[Fraction]) -> tuple[InputCode, list[Fraction]]:
    """The code of the pixels, and T_k."""
    assert inputs.white is not None
    features = first.shape[1]
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
    sums = first.sums(centres[None])[0]
    pairs = zip(sums, biases, strict=True)
    offsets = [inputs.white * (Fraction(total, below) - unit * bias) for total, bias in pairs]
    return InputCode("pixels", groups, white=inputs.white), offsets


def _real(inputs: Inputs, first: Layer, biases: list[Fraction]) -> tuple[InputCode, list[Fraction]]:
    """The code of standardised numbers, and the bias in their units."""
    offsets = [-bias * (1 << FRACTION_BITS) for bias in biases]
    try:
        numbers = fixed(inputs.mean, inputs.std, inputs.bits)
    except ValueError as error:
        raise ExportError(str(error)) from error
    return InputCode("fixed", ((first.shape[1], 1),), fixed=numbers), offsets
