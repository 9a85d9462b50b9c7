"""Tables without floating point: standardisation of fixed-point numbers by one multiplication and one shift.

    r_i = round(2^bits_i x_i), held in 32 bits            what a caller passes, in the units of the training data
    q_i = ⌊(d_i multiplier_i + 2^14)/2^15⌋                in 1/1024 of a standard deviation, |q_i| < 2^15
    d_i = r_i − centre_i, cut to ±limit_i,  limit_i = ⌊(2^30 − 2^15)/multiplier_i⌋, 32 standard deviations

The product stays below 2^30, so that 32-bit arithmetic is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Bits of q and of its fraction, and the shift of the product.
PLANES, FRACTION_BITS, SHIFT = 16, 10, 15
LARGEST_PRODUCT = (1 << 30) - (1 << SHIFT)
#: Raw numbers, and the means among them: the largest distance from a mean still fits into 32 bits.
LARGEST_RAW, LARGEST_CENTRE = (1 << 31) - 1, 1 << 30
LARGEST_BITS = 120
#: A standard deviation has at least this many steps of the raw numbers, unless bits are given.
COARSEST = 16


@dataclass(frozen=True, eq=False)
class Fixed:
    """``bits``, ``centre`` and ``multiplier`` are whole numbers, (1,) or (features,)."""

    bits: NDArray[np.int64]
    centre: NDArray[np.int64]
    multiplier: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not self.bits.shape == self.centre.shape == self.multiplier.shape or self.bits.ndim != 1:
            shapes = (self.bits.shape, self.centre.shape, self.multiplier.shape)
            raise ValueError(f"bits, centre and multiplier must be vectors of equal lengths, got shapes {shapes}")
        for name, low, high in (
            ("bits", -LARGEST_BITS, LARGEST_BITS),
            ("centre", -LARGEST_CENTRE, LARGEST_CENTRE),
            ("multiplier", 1, LARGEST_PRODUCT),
        ):
            values = getattr(self, name)
            if len(values) and not low <= int(values.min()) <= int(values.max()) <= high:
                raise ValueError(f"{name} must be from {low} to {high}, got {values.min()} to {values.max()}")

    @property
    def limit(self) -> NDArray[np.int64]:
        """The largest distance from the mean that is told from larger ones."""
        return LARGEST_PRODUCT // self.multiplier

    def raw(self, x: NDArray[Any]) -> NDArray[np.int64]:
        """Samples (samples, features) in their own units → r, halves to even; an integer of C for each."""
        with np.errstate(over="ignore"):  # infinities are clipped like other large values
            scaled = np.rint(x.astype(np.float64) * np.exp2(self.bits.astype(np.float64)))
        return np.clip(scaled, -LARGEST_RAW, LARGEST_RAW).astype(np.int64)

    def standardized(self, r: NDArray[np.int64]) -> NDArray[np.int64]:
        """r (samples, features) → q."""
        d = np.clip(r - self.centre, -self.limit, self.limit)
        q: NDArray[np.int64] = (d * self.multiplier + (1 << (SHIFT - 1))) >> SHIFT
        return q


def fixed(mean: NDArray[np.float64], std: NDArray[np.float64], bits: NDArray[np.int64] | None = None) -> Fixed:
    """For numbers with this mean and std, (1,) or (features,).

    Without ``bits``, a standard deviation is 1024 to 2047 steps of r where the mean allows it.
    """
    if bits is None:
        wanted = [FRACTION_BITS - math.frexp(s)[1] + 1 for s in std.tolist()]
        room = [30 - math.frexp(abs(m))[1] for m in mean.tolist()]
        chosen = [max(-LARGEST_BITS, min(pair)) for pair in zip(wanted, room, strict=True)]
        for m, s, b in zip(mean.tolist(), std.tolist(), chosen, strict=True):
            if b > LARGEST_BITS or math.ldexp(s, b) < COARSEST:
                raise ValueError(
                    f"a feature has mean {m:g} and std {s:g}: they do not fit into fixed-point numbers of 32 bits"
                )
        bits = np.array(chosen, np.int64)
    else:
        bits = np.broadcast_to(bits, mean.shape)
    scale = np.exp2(bits.astype(np.float64))
    centre = np.rint(mean * scale)
    if (np.abs(centre) > LARGEST_CENTRE).any():
        raise ValueError(f"bits must leave the means below 2^30, got means up to {np.abs(centre).max():g} steps")
    steps = np.rint((1 << SHIFT + FRACTION_BITS) / (std * scale))
    return Fixed(bits, centre.astype(np.int64), np.clip(steps, 1, LARGEST_PRODUCT).astype(np.int64))
