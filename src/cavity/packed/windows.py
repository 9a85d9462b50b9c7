"""Layers that see windows of an image: convolutions, whose weights are held once, and the largest of signs.

Units are numbered (channel, row, column), and so are inputs. What a window sees beyond the border is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

#: Height and width.
Area = tuple[int, int]


@dataclass(frozen=True)
class Windows:
    """Windows of ``kernel`` (height, width) on images of ``shape`` (channels, height, width), ``stride`` apart."""

    shape: tuple[int, int, int]
    kernel: Area
    stride: Area
    padding: Area = (0, 0)

    def __post_init__(self) -> None:
        if min(*self.shape, *self.kernel, *self.stride) < 1 or min(self.padding) < 0 or min(self.places) < 1:
            raise ValueError(f"windows of {self.kernel} with padding {self.padding} do not fit into {self.shape}")
        if self.padding[0] >= self.kernel[0] or self.padding[1] >= self.kernel[1]:
            raise ValueError(f"padding must be less than the kernel {self.kernel}, got {self.padding}")

    @property
    def places(self) -> Area:
        """(rows, columns) of windows."""
        sizes = zip(self.shape[1:], self.kernel, self.stride, self.padding, strict=True)
        rows, columns = ((size + 2 * pad - k) // step + 1 for size, k, step, pad in sizes)
        return rows, columns

    @property
    def positions(self) -> int:
        return math.prod(self.places)

    @property
    def inputs(self) -> int:
        return math.prod(self.shape)

    @property
    def columns(self) -> int:
        """Inputs of a window."""
        return self.shape[0] * math.prod(self.kernel)

    def patches(self, x: NDArray[Any]) -> NDArray[Any]:
        """Images (samples, inputs) → (samples, rows, columns, inputs of a window), ordered (channel, row, column)."""
        (up, left), (rows, columns), (channels, height, width) = self.padding, self.places, self.shape
        image = np.zeros((len(x), channels, height + 2 * up, width + 2 * left), x.dtype)
        image[:, :, up : up + height, left : left + width] = x.reshape(-1, *self.shape)
        seen = sliding_window_view(image, self.kernel, axis=(2, 3))[:, :, :: self.stride[0], :: self.stride[1]]
        return seen.transpose(0, 2, 3, 1, 4, 5).reshape(len(image), rows, columns, self.columns)

    def numbers(self) -> NDArray[np.int64]:
        """Which input each place of each window is, (positions, inputs of a window); −1 beyond the border."""
        found: NDArray[np.int64] = self.patches(np.arange(1, self.inputs + 1)[None])[0] - 1
        return found.reshape(self.positions, self.columns)


@dataclass(frozen=True, eq=False)
class Convolution:
    """``filters`` (channels, inputs of a window), whole numbers from −127 to 127, the same at every position; ``bias``
    (units,) are whole numbers, None if there are none or in the first layer: there they are in the offsets."""

    filters: NDArray[np.int8]
    windows: Windows
    bias: NDArray[np.int64] | None = None
    shift: int = 0

    def __post_init__(self) -> None:
        if self.filters.shape[1] != self.windows.columns:
            raise ValueError(f"filters of {self.filters.shape[1]} weights do not fit windows of {self.windows.columns}")

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.filters) * self.windows.positions, self.windows.inputs

    @property
    def whole(self) -> NDArray[np.int64]:
        """w (units, inputs) as if nothing were shared: many times as large."""
        numbers, dense = self.windows.numbers(), np.zeros((len(self.filters), *self._dense), np.int64)
        position, place = np.nonzero(numbers >= 0)
        dense[:, position, numbers[position, place]] = self.filters[:, place]
        return dense.reshape(self.shape)

    @property
    def _dense(self) -> tuple[int, int]:
        return self.windows.positions, self.windows.inputs

    @property
    def edges(self) -> NDArray[np.int64]:
        """Σ |w| of each filter, (channels,)."""
        total: NDArray[np.int64] = np.abs(self.filters, dtype=np.int16).sum(axis=1, dtype=np.int64)
        return total

    @property
    def largest_weight(self) -> int:
        return int(np.abs(self.filters, dtype=np.int16).max())

    @property
    def largest(self) -> int:
        """A bound on |score| above the first layer."""
        return (int(self.edges.max()) << self.shift) + (0 if self.bias is None else int(np.abs(self.bias).max()))

    def sums(self, x: NDArray[Any]) -> NDArray[Any]:
        """Σ_i w_ki x_i, (samples, units) in the type of x (samples, inputs)."""
        z: NDArray[Any] = self.windows.patches(x) @ self.filters.T.astype(x.dtype)
        return z.transpose(0, 3, 1, 2).reshape(len(x), -1)

    def with_bias(self, bias: NDArray[np.int64], shift: int) -> Convolution:
        return replace(self, bias=bias, shift=shift)


@dataclass(frozen=True, eq=False)
class MaxPool:
    """The largest of the signs in windows of ``size`` side by side in images of ``shape`` (channels, height, width):
    sign(Σ_j x_j + n − 1), each of n weights 1."""

    image: tuple[int, int, int]
    size: Area

    @property
    def windows(self) -> Windows:
        """Those of one channel."""
        return Windows((1, *self.image[1:]), self.size, self.size)

    @property
    def shape(self) -> tuple[int, int]:
        return self.image[0] * self.windows.positions, math.prod(self.image)

    @property
    def whole(self) -> NDArray[np.int64]:
        """w (units, inputs), 1 in each window."""
        one = Convolution(np.ones((1, math.prod(self.size)), np.int8), self.windows).whole
        return np.kron(np.eye(self.image[0], dtype=np.int64), one)

    @property
    def bias(self) -> NDArray[np.int64]:
        return np.full(self.shape[0], math.prod(self.size) - 1)

    @property
    def shift(self) -> int:
        return 0

    @property
    def largest_weight(self) -> int:
        return 1

    @property
    def largest(self) -> int:
        return 2 * math.prod(self.size)

    def sums(self, x: NDArray[Any]) -> NDArray[Any]:
        """Σ_i w_ki x_i, (samples, units) in the type of x (samples, inputs)."""
        z: NDArray[Any] = self.windows.patches(x.reshape(-1, math.prod(self.image[1:]))).sum(axis=-1)
        return z.reshape(len(x), -1)
