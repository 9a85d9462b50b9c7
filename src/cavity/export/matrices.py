"""Whole-number weights as text, for files that hold everything: bits where they suffice, deflated where that helps.

A matrix (outputs, inputs) of −1 and 1 is one plane of bits (1 is +1), one with zeros is two (then: 1 where w ≠ 0), any
other is a byte a weight. Rows of bits end on a byte; bit i of a row is bit i mod 8 of its byte i div 8.
"""

from __future__ import annotations

import base64
import math
import zlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cavity.export.trained import ExportError
from cavity.packed.description import Description, Layer, Weights
from cavity.packed.windows import Convolution, MaxPool, Windows

#: What is deflated must become shorter than this part of itself: the receiver has to undo it.
WORTHWHILE = 0.8


@dataclass(frozen=True)
class Stage:
    """One layer: score_k = scale Σ_i w_ki x_i + bias_k, x the inputs q or the signs below.

    With ``windows``, weights are filters, and all images that the inputs hold are filtered alike; a pool has an image
    for each channel. There are as many biases as units, or as filters where all positions have the same.
    """

    weights: NDArray[np.int8]
    scale: int
    bias: NDArray[np.int64]
    windows: Windows | None = None

    @property
    def geometry(self) -> tuple[tuple[int, ...], ...] | None:
        """Image, kernel, stride and padding."""
        w = self.windows
        return None if w is None else (w.shape, w.kernel, w.stride, w.padding)


def stages(net: Description) -> list[Stage]:
    """Every layer of a network in the same form."""
    first, *above = net.layers
    found = [_stage(first if one_factor(net) else Weights.of(first.whole), 1 << net.shift, -net.offsets)]
    for layer in above:
        bias = np.zeros(layer.shape[0], np.int64) if layer.bias is None else layer.bias
        found.append(_stage(layer, 1 << layer.shift, bias))
    return found


def one_factor(net: Description) -> bool:
    """Whether all pixels of a channel that a first convolution sees have the same factor."""
    first = net.layers[0]
    if not isinstance(first, Convolution):
        return True
    area = first.windows.inputs // first.windows.shape[0]
    return all(width % area == 0 for width, _ in net.inputs.groups)


def _stage(layer: Layer, scale: int, bias: NDArray[np.int64]) -> Stage:
    if isinstance(layer, Weights):
        return Stage(layer.small, scale, bias)
    filters = layer.filters if isinstance(layer, Convolution) else np.ones((1, math.prod(layer.size)), np.int8)
    by_channel = bias.reshape(-1, layer.windows.positions)
    same = bool((by_channel == by_channel[:, :1]).all())
    if isinstance(layer, MaxPool):
        return Stage(filters, scale, bias[:1], layer.windows)
    return Stage(filters, scale, by_channel[:, 0] if same else bias, layer.windows)


def factors(net: Description) -> list[int]:
    """a of every input."""
    return [factor for width, factor in net.inputs.groups for _ in range(width)]


def inputs_code(net: Description) -> dict[str, Any]:
    """How samples become whole numbers: ``kind`` "pixels" with ``white``, or "fixed" with ``scale`` = 2^bits,
    ``centre``, ``multiplier`` and ``limit`` (``packed.fixed``), one of each or one for every feature."""
    code = net.inputs
    if code.fixed is None:
        if code.kind != "pixels":
            raise ExportError(f"inputs of kind {code.kind} can only be read from older packed files")
        return {"kind": "pixels", "white": code.white}
    whole = {name: getattr(code.fixed, name).tolist() for name in ("centre", "multiplier", "limit")}
    return {"kind": "fixed", "scale": [2.0**bits for bits in code.fixed.bits.tolist()], **whole}


def largest_score(net: Description) -> int:
    """A bound on the scores of the first layer, and on everything on the way to them."""
    offsets = max(map(abs, net.offsets.tolist()), default=0)
    return (net.largest_first << net.shift) + offsets


def packed_matrix(weights: NDArray[np.int8], alphabet: Literal["64", "85"]) -> dict[str, Any]:
    """Shape, planes (1, 2, or 8 for bytes), whether it is deflated, and its content as text."""
    if (np.abs(weights) > 1).any():
        planes, content = 8, np.ascontiguousarray(weights).tobytes()
    else:
        bits = [weights > 0] if weights.all() else [weights > 0, weights != 0]
        planes, content = len(bits), b"".join(np.packbits(each, axis=1, bitorder="little").tobytes() for each in bits)
    small = zlib.compress(content, 9)
    deflated = len(small) < WORTHWHILE * len(content)
    encode = base64.b64encode if alphabet == "64" else base64.b85encode
    text = encode(small if deflated else content).decode()
    rows, columns = weights.shape
    return {"rows": rows, "columns": columns, "planes": planes, "deflated": deflated, "content": text}
