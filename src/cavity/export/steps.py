"""The layers of a network as C computes them: each makes bits of numbers, or of the bits below it.

A convolution and the pool above it are one step. Its bits are ordered (row, column, channel), so that a row of a window
is one run of bits; layers above it are reordered to match. What C does not share becomes a dense layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cavity.packed.description import Description, InputCode, Layer, Weights, words_of
from cavity.packed.windows import Area, Convolution, MaxPool, Windows


@dataclass(frozen=True, eq=False)
class Filters:
    """Windows that share weights (channels, inputs of a window), and the pool (height, width) above them. Columns are
    ordered (channel, row, column) in the first layer, (row, column, channel) above."""

    weights: Weights
    windows: Windows
    pool: Area
    constants: ByPlace

    @property
    def channels(self) -> int:
        return self.weights.shape[0]

    @property
    def pooled(self) -> Area:
        """(rows, columns) of what is left."""
        rows, columns = self.windows.places
        return rows // self.pool[0], columns // self.pool[1]


@dataclass(frozen=True, eq=False)
class ByPlace:
    """A number for each unit of a convolution: ``table`` (row kinds, column kinds, channels), where rows and columns of
    the same kind have the same ones. Without padding there is one kind."""

    table: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]

    @classmethod
    def of(cls, units: NDArray[np.int64]) -> ByPlace:
        """From (channels, rows, columns)."""
        flat = units.transpose(1, 0, 2).reshape(units.shape[1], -1)
        _, first, rows = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        kinds = units[:, first]
        flat = kinds.transpose(2, 0, 1).reshape(units.shape[2], -1)
        _, first, columns = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        return cls(kinds[:, :, first].transpose(1, 2, 0), rows.ravel(), columns.ravel())


@dataclass(frozen=True, eq=False)
class Step:
    """A dense layer or filters, and how many bits or scores come out."""

    layer: Weights | Filters
    units: int

    @property
    def weights(self) -> Weights:
        return self.layer if isinstance(self.layer, Weights) else self.layer.weights

    @property
    def filters(self) -> Filters | None:
        return self.layer if isinstance(self.layer, Filters) else None


def steps_of(net: Description) -> list[Step]:
    """The steps of a network; the first takes its inputs."""
    steps: list[Step] = []
    image: tuple[int, int, int] | None = None  # of the bits below, where they are ordered (row, column, channel)
    layers = list(net.layers)
    for number, layer in enumerate(layers):
        if isinstance(layer, MaxPool) and image is not None and isinstance(layers[number - 1], Convolution):
            continue  # part of the step below
        if isinstance(layer, Convolution) and number < len(layers) - 1 and (image or _shareable(net, number)):
            above = layers[number + 1]
            filters = _filters(net, number, layer, above.size if isinstance(above, MaxPool) else (1, 1))
            image = (filters.channels, *filters.pooled)
            steps.append(Step(filters, math.prod(image)))
        else:
            steps.append(Step(_dense(layer, image), layer.shape[0]))
            image = None
    return steps


def _shareable(net: Description, number: int) -> bool:
    """Whether C can share the weights of a convolution that is first, or above a dense layer: only the first, where
    channels have one factor each."""
    if number:
        return False
    layer = net.layers[0]
    assert isinstance(layer, Convolution)
    pixels = layer.windows.inputs // layer.windows.shape[0]
    return all(width % pixels == 0 for width, _ in net.inputs.groups)


def patch_groups(code: InputCode, filters: Filters | None) -> tuple[tuple[int, int], ...]:
    """(width, factor) of the inputs of the first step: of the sample, or of a window."""
    if filters is None:
        return code.groups
    _, height, width = filters.windows.shape
    inside = math.prod(filters.windows.kernel)
    return tuple((wide // (height * width) * inside, factor) for wide, factor in code.groups)


def _dense(layer: Layer, image: tuple[int, int, int] | None) -> Weights:
    """A dense layer of the same weights, its columns in the order of the bits below."""
    if isinstance(layer, Weights) and image is None:
        return layer
    order = slice(None) if image is None else _order(image)
    return Weights.of(layer.whole[:, order], layer.bias, layer.shift)


def _order(image: tuple[int, int, int]) -> NDArray[np.int64]:
    """Where (row, column, channel) is in (channel, row, column)."""
    return np.arange(math.prod(image)).reshape(image).transpose(1, 2, 0).ravel()


def _filters(net: Description, number: int, layer: Convolution, pool: Area) -> Filters:
    windows, channels = layer.windows, len(layer.filters)
    if number == 0:
        constants, filters = net.offsets, layer.filters
    else:
        filters = layer.filters[:, _order((windows.shape[0], *windows.kernel))]
        constants = np.zeros(layer.shape[0], np.int64) if layer.bias is None else layer.bias
        # Bits beyond the border are 0 as if they were −1: Σ w x of them is taken back. In bits, a score counts down
        # from where all inputs agree.
        beyond = layer.filters.astype(np.int64) @ (windows.numbers() < 0).T.astype(np.int64)
        constants = constants + beyond.ravel()
        if layer.largest_weight == 1:
            constants = constants + np.repeat(layer.edges, windows.positions)
    shaped = constants.reshape(channels, *windows.places)
    rows, columns = (size // step * step for size, step in zip(windows.places, pool, strict=True))
    return Filters(Weights.of(filters), windows, pool, ByPlace.of(shaped[:, :rows, :columns]))


def window_words(filters: Filters, bits: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Bits of filters above the first layer as words: every row of a window starts a new one."""
    tall, wide = filters.windows.kernel
    words: NDArray[np.uint32] = words_of(bits, [wide * filters.windows.shape[0]] * tall, 4).astype(np.uint32)
    return words


def window_row(filters: Filters) -> int:
    """Bits of a row of a window."""
    return filters.windows.kernel[1] * filters.windows.shape[0]
