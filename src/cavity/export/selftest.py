"""What ``<prefix>_selftest`` in C must find: a checksum of the scores of samples that a small generator makes up.

    r ← 1664525 r + 1013904223,    sum ← 16777619 (sum XOR score),    all modulo 2^32

The upper 16 bits of r become a pixel, or a number within 4 standard deviations of a feature's mean. So the test takes
no flash for samples. It says whether this compiler and core compute what Python computes; most single bits of the first
layers decide nothing for so few samples, so that it does not replace a checksum of the flash.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cavity.packed.description import Description
from cavity.packed.network import PackedNetwork

SEED, BASIS, COUNT = 20, 2166136261, 16
WORD = (1 << 32) - 1
LARGEST_STEP = 32767


@dataclass(frozen=True)
class SelfTest:
    """Samples that are tried, where the generator and the checksum begin, and what comes out."""

    count: int
    seed: int
    basis: int
    sum: int


def selftest(net: Description) -> SelfTest:
    samples = made_up(net, COUNT)
    scores = PackedNetwork(net).scores_of(
        samples if net.inputs.fixed is None else net.inputs.fixed.standardized(samples)
    )
    total = BASIS
    for score in scores.ravel().tolist():
        total = ((total ^ (score & WORD)) * 16777619) & WORD
    return SelfTest(COUNT, SEED, BASIS, total)


def made_up(net: Description, count: int) -> NDArray[np.int64]:
    """Samples (count, features) as C takes them: pixels, or fixed-point numbers."""
    code, r, upper = net.inputs, SEED, []
    for _ in range(count * code.features):
        r = (r * 1664525 + 1013904223) & WORD
        upper.append(r >> 16)
    numbers = np.array(upper, np.int64).reshape(count, code.features)
    if code.fixed is None:
        return numbers * (code.white + 1) >> 16
    far = np.minimum(code.fixed.limit >> 3, LARGEST_STEP)
    raw: NDArray[np.int64] = code.fixed.centre - far + numbers % (2 * far + 1)
    return raw
