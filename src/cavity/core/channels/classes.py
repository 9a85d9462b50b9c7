"""Class probabilities of independent Gaussian preactivations, quickly where it is easy and carefully where it is not.

    P(argmax z = k) = ∫ dz 𝒩(z; ω_k, V_k) Π_{j≠k} Φ((z − ω_j)/√V_j)

Where the widths √V_k of a sample are comparable, the integrand is smooth on the scale of the narrowest, and sums over
an even grid converge as fast as any rule can (the trapezoidal rule on an analytic function that vanishes at both ends).
One narrow class makes a step that the grid would miss: such samples go to the panels of ``quadrature.py``.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cavity.core.channels.quadrature import panel_probabilities
from cavity.core.messages import Preactivation

#: Widths beyond which a class cannot win or lose any more, to the precision of float32 (e^{-18}) and float64 (e^{-40}).
REACH = {torch.float32: 6.0, torch.float64: 9.0}
#: Largest spacing of the grid in units of the narrowest width.
SPACING = {torch.float32: 0.45, torch.float64: 0.3}
#: Points of the grid: enough for widths within a factor of two.
POINTS = {torch.float32: 64, torch.float64: 128}
#: Samples on the grid at once.
BATCH = 2048


def class_probabilities(pre: Preactivation) -> Tensor:
    """P(argmax z = k) of each class, (samples, classes); rows sum to 1."""
    omega, V = pre.mean - pre.mean.amax(dim=1, keepdim=True), pre.variance
    s = torch.sqrt(V)
    reach, points = REACH[omega.dtype], POINTS[omega.dtype]
    low = (omega - reach * s).amax(dim=1, keepdim=True)
    high = (omega + reach * s).amax(dim=1, keepdim=True)
    step = (high - low) / (points - 1)
    easy = (step <= SPACING[omega.dtype] * s.amin(dim=1, keepdim=True)).squeeze(1)
    if bool(easy.all()):
        return _on_grid(omega, s, low, step, points)
    result = torch.empty_like(omega)
    result[easy] = _on_grid(omega[easy], s[easy], low[easy], step[easy], points)
    result[~easy] = panel_probabilities(Preactivation(omega[~easy], V[~easy]))
    return result


def _on_grid(omega: Tensor, s: Tensor, low: Tensor, step: Tensor, points: int) -> Tensor:
    chunks = [slice(start, start + BATCH) for start in range(0, len(omega), BATCH)]
    parts = [_grid_sum(omega[c], s[c], low[c], step[c], points) for c in chunks]
    return torch.cat(parts) if parts else torch.empty_like(omega)


def _grid_sum(omega: Tensor, s: Tensor, low: Tensor, step: Tensor, points: int) -> Tensor:
    """The integrals as sums over the grid low, low + step, …; constant factors go when rows are made to sum to 1."""
    z = low + step * torch.arange(points, dtype=omega.dtype, device=omega.device)
    a = (z.unsqueeze(2) - omega.unsqueeze(1)) / s.unsqueeze(1)
    phi = 0.5 * torch.special.erfc(a * -math.sqrt(0.5))
    density = torch.exp(-0.5 * a.square()) / s.unsqueeze(1)
    p = (density * _all_but_one(phi)).sum(dim=1)
    return p / p.sum(dim=1, keepdim=True)


def _all_but_one(phi: Tensor) -> Tensor:
    """Π_{j≠k} φ_j along the last axis, without a division."""
    one = torch.ones_like(phi[..., :1])
    before = torch.cumprod(torch.cat([one, phi[..., :-1]], dim=-1), dim=-1)
    after = torch.cumprod(torch.cat([one, phi.flip(-1)[..., :-1]], dim=-1), dim=-1).flip(-1)
    return before * after
