"""The rectified linear unit x = max(0, z): the family's formulas for its two pieces (``mixture.py``), with what is 0 or
in common left out. They are several times faster so, and tables and most networks of real weights use them.

With u = ω/s, s = √V, a = |u|, R the Mills ratio, T = N(a) R(a) = Q(a) and R = 1/(a + h), h = 1/(a + J),

    x̂ = s (u₊ + Th),      Δ = V (Th(J − Th) + erf(u/√2)₊)                                nothing has come down yet

because max(0, z) = z + max(0, −z), Var[max(0, −z)] = V Th(J − Th) for u > 0, and Cov[z, max(0, −z)] = −VT.

With r = 1 + AV and q = −(u + sB)/√r the piece above 0 has W₁ = e^G r^{−½} Q(q), the one below W₀ = Q(u), and

    c = B − Am,   m = s(𝒦(q) − q)/√r,      g = p₁c
    VΓ = p₁(AVτ/r − sc 𝒦(q)√r) − p₀p₁ V c²
    VΓ = p₁(AV + 1 − τ)/r + p₀𝒦'(u) − p₀p₁ (𝒦(u) − u + (𝒦(q) − q)/√r)²
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from cavity.core.channels.piecewise import PiecewiseLinear
from cavity.core.floors import floored_gain
from cavity.core.messages import Fields, Moments, Preactivation, Response
from cavity.core.special import FEW, SQRT_2, UpperTail, lower_tail, select, upper_tail


class ReLU(PiecewiseLinear):
    """x = max(0, z)."""

    name: ClassVar[str] = "relu"
    summary: ClassVar[str] = "rectified linear unit, max(0, z)"
    edges, slopes, offsets = (0.0,), (0.0, 1.0), (0.0, 0.0)

    def moments(self, message: Fields | None, pre: Preactivation) -> Moments:
        if message is not None:
            return super().moments(message, pre)
        V = self._variance(pre)
        s = torch.sqrt(V)
        u = pre.mean / s
        below, J = lower_tail(u.abs())
        spread = (J - below).mul_(below).add_(torch.erf(u / SQRT_2).clamp_min_(0))
        return Moments((u.clamp_min(0) + below).mul_(s), spread.mul_(V))

    def gradient(self, message: Fields, pre: Preactivation) -> Tensor:
        return self.response(message, pre).gradient

    def response(self, message: Fields, pre: Preactivation) -> Response:
        V = self._variance(pre)
        B, (A, r) = message.field, floored_gain(message.precision, V)
        s, root, omega = torch.sqrt(V), torch.sqrt(r), pre.mean
        u = omega / s
        q = -(u + s * B) / root
        above, below = _both_tails(q, u)
        # Both modes inside: the squares would cancel where G does not.
        edges = 0.5 * (q.clamp_max(0).square() - u.clamp_max(0).square())
        G = (B * (omega + 0.5 * V * B) - 0.5 * A * omega.square()) / r
        lead = select((q < 0) & (u < 0), G, edges) + torch.log(above.mass / (below.mass * root))
        p, rest = torch.sigmoid(lead), torch.sigmoid(-lead)

        step = A * s / root
        c = select(q < 0, (B - A * omega) / r - step * above.hazard, B - step * above.excess)
        sc, AV_r, pp = s * c, A * V / r, p * rest
        first = p * AV_r * above.variance, -p * sc * above.hazard * root, -pp * sc.square()
        apart = below.excess + above.excess / root
        slopes = above.hazard * above.excess / r, below.hazard * below.excess
        second = p * AV_r, p * slopes[0], rest * slopes[1], -pp * apart.square()
        smaller = _size(second) < _size(first)
        curvature = select(smaller, second[0] + second[1] + second[2] + second[3], first[0] + first[1] + first[2])
        return Response(p * c, curvature / V)

    def _variance(self, pre: Preactivation) -> Tensor:
        """V of what the unit is given, noise included."""
        return pre.variance + self.noise if self.noise else pre.variance


def _both_tails(q: Tensor, u: Tensor) -> tuple[UpperTail, UpperTail]:
    """Those of q and u, together where they are so few that the number of calls counts."""
    if q.numel() > FEW or q.shape != u.shape:
        return upper_tail(q), upper_tail(u)
    both = [part.unbind() for part in upper_tail(torch.stack([q, u]))]
    return UpperTail(*(part[0] for part in both)), UpperTail(*(part[1] for part in both))


def _size(terms: tuple[Tensor, ...]) -> Tensor:
    """Σ of the sizes of all terms."""
    total = terms[0].abs()
    for term in terms[1:]:
        total = total.add_(term.abs())
    return total
