"""A network of sign units in exact integers, as every exporter writes it and the NumPy runtime computes it.

Inputs are integers q_i. The first layer sums them in groups of equal factor a_g, and every layer above sums signs:

    first    S_k = Σ_g a_g Σ_{i∈g} w_ki q_i,    score_k = 2^shift S_k − offset_k
    above    score_k = bias_k + 2^shift Σ_i w_ki x_i,   x_i = ±1 the signs of the scores below, sign(0) = +1

with w in {−1, 0, +1}, or from −127 to 127 in layers of 8-bit weights; convolutions and pools are such layers too, and
hold each weight once (``packed.windows``). The class is the first of the
largest scores. For a single score it is 1 if ≥ 0, else 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cavity.packed.confidence import Confidence
from cavity.packed.fixed import PLANES as FIXED_PLANES
from cavity.packed.fixed import Fixed
from cavity.packed.windows import Convolution, MaxPool

#: Unsigned integers of 1, 2, 4 or 8 bytes, used for their bits.
Words: TypeAlias = NDArray[np.unsignedinteger[Any]]
Kind = Literal["pixels", "real", "fixed"]
Output = Literal["argmax", "label"]

#: Real inputs of older files are standardised and rounded to multiples of 2^-16, held in 32 bits.
FRACTION_BITS = 16
REAL_PLANES = 32
#: Scores stay well within int64.
LARGEST_SCORE = 1 << 62
#: Above the first layer they fit into 32 bits.
LARGEST_SUM = 1 << 31


@dataclass(frozen=True, eq=False)
class InputCode:
    """How a sample becomes integers q.

    ``pixels``: q is the sample, integers from 0 to ``white``. ``fixed``: as ``fixed`` makes them, without floating
    point but for x 2^bits. ``real``, of older files: q = round(2^16 (x − mean)/std), halves to even, clipped to 32
    bits, with ``mean`` and ``std`` (1,) or (features,). ``groups`` are (width, factor) of adjacent
    features with a common factor a_g, in order.
    """

    kind: Kind
    groups: tuple[tuple[int, int], ...]
    white: int = 0
    mean: NDArray[np.float64] | None = None
    std: NDArray[np.float64] | None = None
    fixed: Fixed | None = None

    @property
    def features(self) -> int:
        return sum(width for width, _ in self.groups)

    @property
    def planes(self) -> int:
        """Bits of one q; the last bit of a number that is no pixel is negative (two's complement)."""
        return {"pixels": self.white.bit_length(), "real": REAL_PLANES, "fixed": FIXED_PLANES}[self.kind]

    @property
    def largest(self) -> int:
        """The largest |q|."""
        return self.white if self.kind == "pixels" else 1 << (self.planes - 1)

    @property
    def largest_sum(self) -> int:
        """A bound on |S_k|."""
        return sum(width * abs(factor) for width, factor in self.groups) * self.largest

    def plane_weights(self) -> NDArray[np.int64]:
        """The value of a bit in each plane, (planes,)."""
        weights = np.left_shift(np.int64(1), np.arange(self.planes, dtype=np.int64))
        if self.kind != "pixels":
            weights[-1] = -weights[-1]
        return weights

    def encode(self, x: NDArray[Any]) -> NDArray[Any]:
        """Samples (samples, features) → integers q; ValueError if the samples are invalid."""
        if self.kind == "pixels":
            return self._pixels(x)
        values = x.astype(np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"X must be finite, it holds NaN or infinity among its {self.features} columns")
        if self.fixed is not None:
            return self.fixed.standardized(self.fixed.raw(values))
        assert self.mean is not None
        assert self.std is not None
        with np.errstate(over="ignore"):  # infinities are clipped like other large values
            scaled = np.rint((values - self.mean) / self.std * (1 << FRACTION_BITS))
        limit = float(1 << (REAL_PLANES - 1))
        return np.clip(scaled, -limit, limit - 1).astype(np.int64)

    def _pixels(self, x: NDArray[Any]) -> NDArray[np.uint8]:
        # NaN compares as false, so this also catches it.
        if x.dtype.kind == "f" and not (np.floor(x) == x).all():
            whole = f"whole pixel values from 0 to {self.white} in its {self.features} columns"
            raise ValueError(f"X must hold {whole}, it holds fractions or NaN")
        low, high = x.min(), x.max()
        if not (low >= 0 and high <= self.white):
            raise ValueError(f"X must hold pixel values from 0 to {self.white}, got {low} to {high}")
        return x.astype(np.uint8, copy=False)

    def planes_of(self, q: NDArray[Any]) -> Words:
        """Integers (samples, features) → (planes, samples, words), group by group."""
        bits = np.left_shift(1, np.arange(self.planes)).astype(q.dtype)[:, None, None]
        widths = [width for width, _ in self.groups]
        return words_of((q & bits) != 0, widths, word_bytes(widths))


@dataclass(frozen=True, eq=False)
class Weights:
    """w of one layer: ``sign`` (outputs, inputs) is True for +1, ``mask`` False where w = 0 (None: nowhere).

    ``bias`` (outputs,) are whole numbers; None if there are none, or in the first layer: there they are in the offsets.
    ``shift`` makes room below the sums for what decides between equal ones. ``values`` (outputs, inputs) are w itself
    where it has 8 bits; then ``sign`` and ``mask`` only say which are positive, and which are not 0.
    """

    sign: NDArray[np.bool_]
    mask: NDArray[np.bool_] | None = None
    bias: NDArray[np.int64] | None = None
    shift: int = 0
    values: NDArray[np.int8] | None = None

    @classmethod
    def of(cls, values: NDArray[np.integer[Any]], bias: NDArray[np.int64] | None = None, shift: int = 0) -> Weights:
        """Weights (outputs, inputs) as bits if all are −1, 0 or 1, else in 8 bits."""
        there = values != 0
        bits = int(np.abs(values.astype(np.int64)).max(initial=0)) <= 1
        return cls(values > 0, None if there.all() else there, bias, shift, None if bits else values.astype(np.int8))

    @property
    def small(self) -> NDArray[np.int8]:
        """w (outputs, inputs) in a byte each."""
        if self.values is not None:
            return self.values
        w = np.where(self.sign, np.int8(1), np.int8(-1))
        return w if self.mask is None else w * self.mask

    @property
    def whole(self) -> NDArray[np.int64]:
        """w (outputs, inputs)."""
        return self.small.astype(np.int64)

    @property
    def edges(self) -> NDArray[np.int64]:
        """Σ_i |w_i|, (outputs,), without a wider copy of all weights: files are read with little memory."""
        outputs, inputs = self.shape
        if self.values is not None:
            total: NDArray[np.int64] = np.abs(self.values, dtype=np.int16).sum(axis=1, dtype=np.int64)
            return total
        return np.full(outputs, inputs, np.int64) if self.mask is None else self.mask.sum(axis=1, dtype=np.int64)

    @property
    def shape(self) -> tuple[int, int]:
        outputs, inputs = self.sign.shape
        return outputs, inputs

    @property
    def base(self) -> NDArray[np.int64]:
        """The score of a unit whose inputs all agree with its weights, (outputs,)."""
        edges = self.edges << self.shift
        return edges if self.bias is None else edges + self.bias

    @property
    def largest_weight(self) -> int:
        return 1 if self.values is None else max(-int(self.values.min()), int(self.values.max()))

    def sums(self, x: NDArray[Any]) -> NDArray[Any]:
        """Σ_i w_ki x_i, (samples, units) in the type of x (samples, inputs)."""
        z: NDArray[Any] = x @ self.whole.T.astype(x.dtype)
        return z

    def with_bias(self, bias: NDArray[np.int64], shift: int) -> Weights:
        return replace(self, bias=bias, shift=shift)

    @property
    def largest(self) -> int:
        """A bound on |score| above the first layer."""
        return (int(self.edges.max()) << self.shift) + (0 if self.bias is None else int(np.abs(self.bias).max()))


Layer: TypeAlias = Weights | Convolution | MaxPool


@dataclass(frozen=True, eq=False)
class Description:
    """The whole network; ``offsets`` (outputs of the first layer,) are int64, ``classes`` the class names or empty,
    ``confidence`` says how sure scores are, None where nothing is known about it."""

    inputs: InputCode
    layers: tuple[Layer, ...]
    offsets: NDArray[np.int64]
    shift: int
    output: Output
    classes: tuple[str, ...] = ()
    confidence: Confidence | None = None

    def __post_init__(self) -> None:
        bound = (self.largest_first << self.shift) + max(map(abs, self.offsets.tolist()), default=0)
        if bound >= LARGEST_SCORE:
            raise ValueError(f"the sums of {self.inputs.features} inputs do not fit into 64 bits")
        if any(layer.largest >= LARGEST_SUM for layer in self.layers[1:]):
            raise ValueError("the sums of signs and their biases do not fit into 32 bits")
        if self.classes and len(self.classes) != self.n_classes:
            raise ValueError(f"classes must name {self.n_classes} classes, got {len(self.classes)}")

    @property
    def largest_first(self) -> int:
        """A bound on |S_k| in the first layer."""
        return self.layers[0].largest_weight * self.inputs.largest_sum

    @property
    def n_classes(self) -> int:
        return 2 if self.output == "label" else self.layers[-1].shape[0]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units of the input and of each layer."""
        return (self.inputs.features, *(layer.shape[0] for layer in self.layers))


def words_of(bits: NDArray[np.bool_], widths: Sequence[int], size: int = 8) -> Words:
    """Bits (…, columns) → (…, words) of ``size`` bytes: bit i of a group of columns is bit i mod 8 size of the group's
    word i div 8 size.

    Every group of ``widths`` columns starts a new word; the rest of its last word is 0.
    """
    octets = np.zeros((*bits.shape[:-1], size * sum(word_count(width, size) for width in widths)), np.uint8)
    column = octet = 0
    for width in widths:
        packed = np.packbits(bits[..., column : column + width], axis=-1, bitorder="little")
        octets[..., octet : octet + packed.shape[-1]] = packed
        column, octet = column + width, octet + size * word_count(width, size)
    return octets.view(f"<u{size}").astype(f"u{size}", copy=False)


def word_count(bits: int, size: int = 8) -> int:
    """The number of words of ``size`` bytes that hold this many bits."""
    return -(-bits // (8 * size))


def word_bytes(widths: Sequence[int]) -> int:
    """The size of words for such groups: 8 bytes, or fewer where half of the bits would be filling."""
    wide = (
        size for size in (8, 4, 2) if sum(8 * size * word_count(width, size) for width in widths) <= 2 * sum(widths)
    )
    return next(wide, 1)
