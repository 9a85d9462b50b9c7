"""A standard normal t cut to an interval (low, high): its mass, its mean, its variance and its density at the ends.

With Q the upper tail, q the end nearer to 0, turned such that the interval lies above it, and w the width,

    mass = Q(q) − Q(q + w) = Q(q)(1 − ε),    ε = e^{−X} 𝒦(q)/𝒦(q + w),    X = w(q + ½w) ≥ 0

The tail beyond q is a mixture of the interval, with weight 1 − ε, and the tail beyond q + w, so that the moments of the
interval follow from those of two tails (``special.tail``). Where the density hardly falls along the interval, X and w
of order 1 or less, the two are too much alike, and a few Gauss–Legendre nodes around the middle are exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cavity.core.arrays import select
from cavity.core.special import tail, tanh

LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
#: Below these falls X and widths w nodes are taken.
NARROW_FALL, NARROW_WIDTH = 3.0, 2.5


class End(NamedTuple):
    """One end of an interval: how far from it the mean is, and the density at it."""

    distance: Tensor
    density: Tensor


class Cut(NamedTuple):
    """A standard normal restricted to an interval; an end at infinity is ``None``.

    Everything is counted from an anchor: 0, the mode, where ``inside``; the middle of the interval where ``narrow``;
    else the end nearer to 0, the lower one where ``lower``. Both are ``None`` if there is one end only.
    """

    #: Logarithm of the mass over √(2π) times the density at the anchor.
    log_mass: Tensor
    inside: Tensor
    narrow: Tensor | None
    lower: Tensor | None
    #: What the logarithm of the density gains from the nearer end to the mode where ``inside``, else 0.
    rise: Tensor
    #: The mean, less the anchor if that is not the mode.
    mean: Tensor
    #: The density at the lower end less that at the upper one, which is the mean too.
    drift: Tensor
    variance: Tensor
    #: 1 − variance, with its own digits.
    deficit: Tensor
    low: End | None
    high: End | None


def decrease(x: Tensor) -> Tensor:
    """1 − e^{−x} for x ≥ 0; compiled code has no digits of expm1 for small x."""
    t = tanh(0.5 * x)
    return 2 * t / (1 + t)


def whole(like: Tensor) -> Cut:
    """No cut at all."""
    zero = torch.zeros_like(like)
    return Cut(zero, zero == 0, None, None, zero, zero, zero, torch.ones_like(like), zero, None, None)


def beyond(q: Tensor, side: int) -> Cut:
    """The half-line of all t > q for side 1, of all t < −q for side −1."""
    K, excess, variance, log_mass = tail(q)
    low, high = (End(excess, K), None) if side > 0 else (None, End(excess, K))
    rise = 0.5 * q.clamp_max(0).square()
    return Cut(log_mass, q < 0, None, None, rise, side * excess, side * K, variance, K * excess, low, high)


def between(low: Tensor, middle: Tensor, high: Tensor, width: Tensor) -> Cut:
    """The interval (low, high). Its middle and width are given because they may have more digits than its ends."""
    lower = middle >= 0
    fall = width * middle.abs()
    q, far = select(lower, low, -high), select(lower, high, -low)
    (K, excess, variance, log_mass), (far_K, far_excess, far_variance, _) = tail(q), tail(far)
    epsilon = torch.exp(-fall) * K / far_K
    rest = 1 - epsilon
    distance = (excess - epsilon * (width + far_excess)) / rest
    variance = (variance - epsilon * far_variance) / rest - epsilon * (width + far_excess - distance).square()

    narrow = (fall < NARROW_FALL) & (width < NARROW_WIDTH)
    inside = (q < 0) & ~narrow
    mass, mean, by_nodes = _by_nodes(middle, width)
    half = 0.5 * width
    turned = select(lower, 1.0, -1.0)
    from_near = select(narrow, half + turned * mean, distance)
    at_near = select(narrow, torch.exp(0.5 * (fall - half * half)) / mass, K / rest)
    near, end = End(from_near, at_near), End(width - from_near, at_near * torch.exp(-fall))
    return Cut(
        select(narrow, torch.log(mass) - LOG_SQRT_2PI, log_mass + torch.log1p(-epsilon)),
        inside,
        narrow,
        lower,
        select(inside, 0.5 * q.square(), 0.0),
        select(narrow, mean, turned * from_near),
        turned * at_near * decrease(fall),
        select(narrow, by_nodes, variance),
        near.distance * near.density + end.distance * end.density,
        End(*(select(lower, a, b) for a, b in zip(near, end, strict=True))),
        End(*(select(lower, b, a) for a, b in zip(near, end, strict=True))),
    )


def _legendre(pairs: int) -> list[tuple[float, float]]:
    """The positive nodes of a rule on (−½, ½), and the weights of the pairs."""
    nodes, weights = np.polynomial.legendre.leggauss(2 * pairs)
    return [(float(x) / 2, float(w)) for x, w in zip(nodes[pairs:], weights[pairs:], strict=True)]


#: As many pairs as each precision needs; compiled code cannot make them.
RULES = {torch.float32: _legendre(3), torch.float64: _legendre(5)}


def _by_nodes(middle: Tensor, width: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mass over the density at the middle, mean less the middle, and variance of a narrow interval: nodes y and −y from
    the middle together weigh e^{−½y²} cosh(middle·y)."""
    mass, mean, square = torch.zeros_like(width), torch.zeros_like(width), torch.zeros_like(width)
    for node, weight in RULES[width.dtype]:
        y = node * width
        v = middle * y
        density = weight * torch.exp(-0.5 * y * y) * torch.cosh(v)
        mass = mass + density
        mean = mean - density * y * tanh(v)
        square = square + density * y * y
    mean = mean / mass
    return width * mass, mean, square / mass - mean * mean
