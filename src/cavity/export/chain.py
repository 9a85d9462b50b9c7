"""The layers of a network as exports hold them: weights in whole numbers, and exact fractions that are added to sums.

Convolutions hold each weight once. The largest of n units ±1 is itself a unit, sign(Σ_j x_j + n − 1), with weights 1 on
its window. A mean is part of the layer above, n (Σ w x̄ + b) = Σ w x + n b, where each unit has the weight of its
window: a convolution of means is one with a wider kernel. All of it is exact.

Real weights are rounded to 8 bits, v_ki = round(w_ki/a_k) with a_k = max_i |w_ki|/127. The sign of Σ v x + b/a is that
of Σ a v x + b, so that every row has an a_k of its own, but for scores that are compared with each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cavity.core.couplings import Conv2d, Coupling, Dense
from cavity.core.layer import Layer as Uncertain
from cavity.core.network import Network
from cavity.core.pools import AveragePool, Pool
from cavity.export.trained import ExportError
from cavity.packed.description import Layer, Weights
from cavity.packed.windows import Convolution, MaxPool, Windows

#: The most weights of a dense layer above a mean: some hundred megabytes.
LARGEST = 1 << 28
LARGEST_INT8 = 127


class Link(NamedTuple):
    """A layer without biases, and what is added to the sums of its units, (units,)."""

    layer: Layer
    biases: list[Fraction]


def chain(net: Network, compared: bool = False) -> Iterator[Link]:
    """Every layer and every pool of the network, with the most probable weights; ``compared`` if the scores of the last
    layer are compared with each other."""
    last = len(net.layers) - 1
    below: Pool | None = None
    shape: tuple[int, ...] = net.input_shape
    for number, (layer, pool) in enumerate(zip(net.weighted(), (*net.pools, None), strict=True)):
        link = _link(number, layer, one_scale=compared and number == last)
        if isinstance(below, AveragePool):
            link = Link(_of_means(link.layer, below, shape), [below.count * bias for bias in link.biases])
        yield link
        below, shape = pool, layer.coupling.output_shape
        if pool is not None and not isinstance(pool, AveragePool):
            largest = MaxPool(_image(shape), pool.size)
            yield Link(largest, [Fraction(bias) for bias in largest.bias.tolist()])


def _link(number: int, layer: Uncertain, one_scale: bool) -> Link:
    coupling, known = layer.coupling, layer.point().cpu()
    w, scale = known[:, : layer.shape[1]], [Fraction(1)] * len(known)
    if not bool(torch.isin(w, torch.tensor([-1.0, 0.0, 1.0], dtype=w.dtype)).all()):
        if layer.prior.name != "gaussian":
            raise ExportError(
                f"layer {number} has {layer.prior.name} weights: only the values -1, 0 and 1 fit into bits "
                "(weights = binary or ternary), and Gaussian ones into 8 bits each"
            )
        w, scale = _rounded(w, layer.shape[1] - coupling.bias, one_scale)
    # A bias, a threshold, or both: exact fractions.
    extra = known[:, layer.shape[1] - coupling.bias :].double().tolist()
    biases = [sum(map(Fraction, row), Fraction(0)) / a for row, a in zip(extra, scale, strict=True)]
    held = _held(number, coupling, coupling.without_constant(w).numpy().astype(np.int8))
    return Link(held, [bias for bias in biases for _ in range(coupling.positions)])


def _held(number: int, coupling: Coupling, w: NDArray[np.int8]) -> Layer:
    """The weights (outputs, columns) of a coupling."""
    if isinstance(coupling, Dense):
        return Weights.of(w)
    if not isinstance(coupling, Conv2d):
        raise ExportError(f"layer {number} is {coupling!r}: only dense layers and convolutions can be exported")
    windows = Windows(_image(coupling.input_shape), coupling.kernel, coupling.stride, coupling.padding)
    return Convolution(w, windows)


def _of_means(layer: Layer, pool: AveragePool, shape: tuple[int, ...]) -> Layer:
    """The layer above a pool, of the units (channels, height, width) below the pool: sums instead of means."""
    image, (tall, wide) = _image(shape), pool.size
    if isinstance(layer, Convolution):
        windows = layer.windows
        # With padding, a wider kernel would see the units at the border that no mean contains.
        if windows.padding == (0, 0) or (image[1] % tall == 0 and image[2] % wide == 0):
            filters = layer.filters.reshape(-1, image[0], *windows.kernel).repeat(tall, axis=2).repeat(wide, axis=3)
            kernel, stride, padding = (
                (rows * tall, columns * wide) for rows, columns in (windows.kernel, windows.stride, windows.padding)
            )
            return Convolution(filters.reshape(len(filters), -1), Windows(image, kernel, stride, padding))
    if layer.shape[0] * math.prod(image) > LARGEST:
        raise ExportError(
            f"a layer above a mean becomes a dense one of {layer.shape[0]} by {math.prod(image)} weights, more than "
            f"{LARGEST}: use larger strides or fewer channels"
        )
    return Weights.of((layer.whole @ MaxPool(image, pool.size).whole).astype(np.int8))


def _image(shape: tuple[int, ...]) -> tuple[int, int, int]:
    channels, height, width = shape
    return channels, height, width


def _rounded(w: torch.Tensor, columns: int, one_scale: bool) -> tuple[torch.Tensor, list[Fraction]]:
    """Whole numbers in the first columns of w, and a of each row."""
    w = w.double().clone()
    largest = w[:, :columns].abs().amax(dim=1)
    a = (largest.max().expand(len(w)) if one_scale else largest).clamp(
        min=torch.finfo(torch.float32).tiny
    ) / LARGEST_INT8
    w[:, :columns] = (w[:, :columns] / a.unsqueeze(1)).round()
    return w, [Fraction(scale) for scale in a.tolist()]
