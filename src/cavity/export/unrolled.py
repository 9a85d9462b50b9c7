"""Convolutions and pools as dense layers of sign units, so that every export can hold them.

A convolution is a dense layer that sees a window and shares its weights. The largest of n units ±1 is itself a unit,
sign(Σ_j x_j + n − 1), with weights 1 on its window. A mean is part of the layer above: n (Σ w x̄ + b) = Σ w x + n b,
where each unit has the weight of its window. All of it is exact; what is lost is that weights are shared.

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

from cavity.core.couplings import Coupling, Dense
from cavity.core.layer import Layer
from cavity.core.network import Network
from cavity.core.pools import AveragePool, Pool
from cavity.export.trained import ExportError

#: Inputs unrolled at once, and the most weights of an unrolled layer: some hundred megabytes.
CHUNK, LARGEST = 256, 1 << 28
LARGEST_INT8 = 127


class Unrolled(NamedTuple):
    """Weights −1, 0 and 1, or from −127 to 127, (units, inputs), and what is added to their sums, (units,)."""

    weights: NDArray[np.int8]
    biases: list[Fraction]


def unrolled(net: Network, compared: bool = False) -> Iterator[Unrolled]:
    """Every layer and every pool of the network, with the most probable weights; ``compared`` if the scores of the last
    layer are compared with each other."""
    last = len(net.layers) - 1
    below: Pool | None = None
    shape: tuple[int, ...] = net.input_shape
    for number, (layer, pool) in enumerate(zip(net.weighted(), (*net.pools, None), strict=True)):
        stage = _layer(number, layer, one_scale=compared and number == last)
        if isinstance(below, AveragePool):
            n, matrix = below.count, _windows(below, shape)
            stage = Unrolled(stage.weights @ matrix, [n * bias for bias in stage.biases])
        yield stage
        below, shape = pool, layer.coupling.output_shape
        if pool is not None and not isinstance(pool, AveragePool):
            matrix = _windows(pool, shape)
            yield Unrolled(matrix, [Fraction(math.prod(pool.size) - 1)] * len(matrix))


def _layer(number: int, layer: Layer, one_scale: bool) -> Unrolled:
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
    matrix = (
        coupling.without_constant(w).numpy().astype(np.int8) if isinstance(coupling, Dense) else _matrix(coupling, w)
    )
    return Unrolled(matrix, [bias for bias in biases for _ in range(coupling.positions)])


def _rounded(w: torch.Tensor, columns: int, one_scale: bool) -> tuple[torch.Tensor, list[Fraction]]:
    """Whole numbers in the first columns of w, and a of each row."""
    w = w.double().clone()
    largest = w[:, :columns].abs().amax(dim=1)
    a = (largest.max().expand(len(w)) if one_scale else largest).clamp(
        min=torch.finfo(torch.float32).tiny
    ) / LARGEST_INT8
    w[:, :columns] = (w[:, :columns] / a.unsqueeze(1)).round()
    return w, [Fraction(scale) for scale in a.tolist()]


def _matrix(coupling: Coupling, w: torch.Tensor) -> NDArray[np.int8]:
    """What a coupling makes of each input alone, (units, inputs)."""
    inputs, units = math.prod(coupling.input_shape), math.prod(coupling.output_shape)
    _require_size(units, inputs)
    matrix = np.empty((units, inputs), np.int8)
    for start in range(0, inputs, CHUNK):
        basis = torch.zeros(min(CHUNK, inputs - start), inputs, dtype=w.dtype)
        basis[:, start:].fill_diagonal_(1)
        alone = coupling.apply(w, basis.reshape(-1, *coupling.input_shape), constant=0.0)
        matrix[:, start : start + len(basis)] = alone.flatten(1).T.numpy()
    return matrix


def _windows(pool: Pool, shape: tuple[int, ...]) -> NDArray[np.int8]:
    """1 for each unit of a window, (windows, units)."""
    windows, units = math.prod(pool.output_shape(shape)), math.prod(shape)
    _require_size(windows, units)
    numbered = torch.arange(1, windows + 1, dtype=torch.float64).reshape(1, *pool.output_shape(shape))
    owner = pool.spread(numbered, torch.Size((1, *shape))).flatten().long().numpy()
    matrix = np.zeros((windows, units), np.int8)
    seen = np.flatnonzero(owner)
    matrix[owner[seen] - 1, seen] = 1
    return matrix


def _require_size(units: int, inputs: int) -> None:
    if units * inputs > LARGEST:
        raise ExportError(
            f"a convolution or pool becomes a dense layer of {units} by {inputs} weights, more than {LARGEST}: use "
            "larger strides or fewer channels"
        )
