"""Prediction with XNOR, AND and popcount on words of up to 64 bits.

    above the first layer   Σ_i w_i x_i = edges − 2 popcount((x XOR w) AND mask), times 2^shift
    in the first layer      Σ_i w_i q_i = Σ_b 2^b (2 popcount(q_b AND w) − popcount(q_b AND mask))

where bit 1 stands for +1 and q_b is the plane of the b-th bits of the inputs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cavity.packed.confidence import Confidence
from cavity.packed.description import Description, InputCode, Layer, Weights, Words, word_bytes, word_count, words_of

#: Whole numbers up to these are exact.
EXACT_SINGLE, EXACT_DOUBLE = 1 << 24, 1 << 53
#: Words of intermediate results held at once; they fit into the processor's cache.
WORDS_AT_ONCE = 1 << 17


def _count_by_table(words: Words) -> NDArray[np.uint8]:
    """Bits set in each word, by a table of all 16-bit numbers; for NumPy 1."""
    whole = words.astype(np.uint16) if words.dtype.itemsize == 1 else np.ascontiguousarray(words)
    halves = _BITS_OF_SHORTS[whole.view(np.uint16)]
    counts: NDArray[np.uint8] = halves.reshape(*words.shape, -1).sum(axis=-1, dtype=np.uint8)
    return counts


_BITS_OF_SHORTS = np.unpackbits(np.arange(1 << 16, dtype=np.uint16).view(np.uint8)).reshape(-1, 16).sum(1, np.uint8)
popcount = getattr(np, "bitwise_count", _count_by_table)


class _Bits:
    """Words of one layer, laid out (words, outputs) so that sums over words run along memory."""

    def __init__(self, weights: Weights, widths: list[int]) -> None:
        mask = weights.mask
        self.sign = self._laid(weights.sign if mask is None else weights.sign & mask, widths)
        self.mask = None if mask is None else self._laid(mask, widths)
        self.base, self.shift = weights.base, weights.shift
        size = word_bytes(widths)
        self.ends = np.cumsum([word_count(width, size) for width in widths])

    @staticmethod
    def _laid(bits: NDArray[np.bool_], widths: list[int]) -> Words:
        return np.ascontiguousarray(words_of(bits, widths, word_bytes(widths)).T)

    @property
    def size(self) -> int:
        return self.sign.size

    def scores(self, positive: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Signs (samples, inputs) → base − 2^(1 + shift) disagreements, (samples, outputs)."""
        widths = [positive.shape[1]]
        apart = words_of(positive, widths, word_bytes(widths))[:, :, None] ^ self.sign
        if self.mask is not None:
            apart &= self.mask
        return self.base - (_total(apart) << (1 + self.shift))

    def first(self, q: NDArray[Any], inputs: InputCode) -> NDArray[np.int64]:
        """Integers (samples, features) → S (samples, outputs)."""
        planes, values = inputs.planes_of(q), inputs.plane_weights()
        total = np.zeros((len(q), len(self.base)), np.int64)
        start = 0
        for end, (_, factor) in zip(self.ends.tolist(), inputs.groups, strict=True):
            total += factor * np.tensordot(values, self._sums(planes, slice(start, end)), axes=1)
            start = end
        return total

    def _sums(self, planes: Words, group: slice) -> NDArray[np.int64]:
        """Planes (planes, samples, words) → Σ_{i∈g} w_i q_ib of every plane, (planes, samples, outputs)."""
        x = planes[:, :, group, None]
        there = x if self.mask is None else x & self.mask[group]
        return 2 * _total(x & self.sign[group]) - _total(there)


def _total(words: Words) -> NDArray[np.int64]:
    """Bits set, summed over the words of axis −2."""
    # The narrowest type that holds the sum: adding up is a third of the work otherwise.
    total = popcount(words).sum(axis=-2, dtype=np.uint16 if words.shape[-2] < 1 << 10 else np.uint32)
    counts: NDArray[np.int64] = total.astype(np.int64)
    return counts


class _Numbers:
    """Weights of 8 bits, filters and pools, as whole numbers: in floating point where that is exact, and fast."""

    def __init__(self, layer: Layer, inputs: InputCode | None) -> None:
        self.layer, self.bias = layer, 0 if layer.bias is None else layer.bias
        bound = int(layer.largest_weight) * (layer.shape[1] if inputs is None else inputs.largest_sum)
        self.type = np.float32 if bound < EXACT_SINGLE else np.float64 if bound < EXACT_DOUBLE else np.int64
        self.size = layer.shape[1] * (1 if isinstance(layer, Weights) else math.prod(layer.windows.kernel))

    def scores(self, positive: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Signs (samples, inputs) → bias + 2^shift Σ_i w_i x_i, (samples, outputs)."""
        sums = self.layer.sums(np.where(positive, 1, -1).astype(self.type)).astype(np.int64)
        total: NDArray[np.int64] = self.bias + (sums << self.layer.shift)
        return total

    def first(self, q: NDArray[Any], inputs: InputCode) -> NDArray[np.int64]:
        """Integers (samples, features) → S (samples, outputs)."""
        factors = np.repeat([factor for _, factor in inputs.groups], [width for width, _ in inputs.groups])
        total: NDArray[np.int64] = self.layer.sums((q * factors.astype(np.int64)).astype(self.type)).astype(np.int64)
        return total


def _runnable(layer: Layer, inputs: InputCode | None) -> _Bits | _Numbers:
    """The layer as it is computed; ``inputs`` if it is the first."""
    if not isinstance(layer, Weights) or layer.values is not None:
        return _Numbers(layer, inputs)
    return _Bits(layer, [layer.shape[1]] if inputs is None else [width for width, _ in inputs.groups])


class PackedNetwork:
    """A network with one bit per weight, ready to predict."""

    def __init__(self, description: Description) -> None:
        self.description = description
        first_layer, *others = description.layers
        self._layers = [_runnable(first_layer, description.inputs), *(_runnable(layer, None) for layer in others)]
        # Words of the largest intermediate result of each layer, per sample.
        first, *above = (layer.size for layer in self._layers)
        words = max(first * description.inputs.planes, *above, 64 * self.n_features_in)
        self._samples_at_once = max(1, WORDS_AT_ONCE // words)

    def __repr__(self) -> str:
        return f"PackedNetwork({'-'.join(map(str, self.description.sizes))}, {self.description.output})"

    @property
    def n_features_in(self) -> int:
        return self.description.inputs.features

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names in the order of their indices, or empty."""
        return self.description.classes

    def predict(self, X: ArrayLike, *, names: bool = False) -> NDArray[np.int64] | NDArray[np.str_]:
        """Classes (samples,) of samples (samples, features): indices from 0, or names.

        For a label output, class 0 is −1 and class 1 is +1.
        """
        if names and not self.classes:
            raise ValueError("names must be False: this network was exported without class names")
        scores = self.scores(X)
        guess = scores.argmax(axis=1) if self.description.output == "argmax" else (scores[:, 0] >= 0).astype(np.int64)
        return np.array(self.classes)[guess] if names else guess

    def scores(self, X: ArrayLike) -> NDArray[np.int64]:
        """Exact integer scores (samples, outputs) of the last layer."""
        x = self._checked(X)
        parts = [x[start : start + self._samples_at_once] for start in range(0, len(x), self._samples_at_once)]
        return np.concatenate([self.scores_of(self.description.inputs.encode(part)) for part in parts])

    def confidence(self, X: ArrayLike) -> NDArray[np.int64]:
        """How sure the classes (samples,) are, from 0 to 255 = certain: a calibrated probability in 1/255."""
        return self._sure().of(self.scores(X))

    def reject(self, X: ArrayLike) -> NDArray[np.bool_]:
        """The samples (samples,) whose class is too doubtful, by the threshold that was chosen at export."""
        return self._sure().refused(self.scores(X))

    def _sure(self) -> Confidence:
        if self.description.confidence is None:
            raise ValueError("this network was exported without a confidence: export it again, with data to fit it on")
        return self.description.confidence

    def _checked(self, X: ArrayLike) -> NDArray[Any]:
        x = np.asarray(X)
        if x.dtype.kind not in "biuf":
            raise ValueError(f"X must hold numbers, got an array of {x.dtype}")
        if x.ndim < 2 or len(x) == 0 or x[0].size != self.n_features_in:
            n = self.n_features_in
            raise ValueError(f"X must have shape (samples, {n}): the network takes {n} columns, got {x.shape}")
        return x.reshape(len(x), -1)

    def scores_of(self, q: NDArray[Any]) -> NDArray[np.int64]:
        """The same from the integers q (samples, features) that the samples become."""
        net = self.description
        scores = (self._layers[0].first(q, net.inputs) << net.shift) - net.offsets
        for layer in self._layers[1:]:
            scores = layer.scores(scores >= 0)
        return scores
