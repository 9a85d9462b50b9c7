"""The exact ArgMax output: log-likelihood of a winner and its derivatives, by quadrature over the winner's z.

    Z = ∫ dz 𝒩(z; ω_*, V_*) Π_{k≠*} Φ(a_k),   a_k = (z − ω_k)/√V_k,   h_k = K(−a_k)/√V_k,   S = Σ_k h_k

With the posterior p(z) ∝ integrand, g_* = E[S] and g_k = −E[h_k]. Γ has two forms (translate z, or integrate by parts):

    Γ_k = E[K'(−a_k)]/V_k − Var[h_k]          = −Cov[h_k, z]/V_* + Cov[h_k, S − h_k]
    Γ_* = E[Σ_k K'(−a_k)/V_k] − Var[S]        = −Cov[S, z]/V_*

The first loses digits where V_k ≪ V_*, the second, whose terms are positive, where h_k hardly varies; the one with the
smaller terms is used. The integrand is log-concave, and so is its product with any h_k; where both lie far apart, g_k
is tiny but not 0. So the grid has breakpoints at every step and around the modes of p and of every p h_k, which is

    p h_k ∝ 𝒩(z; μ_k, W_k) Π_{j≠*,k} Φ(a_j),   1/W_k = 1/V_* + 1/V_k,   μ_k/W_k = ω_*/V_* + ω_k/V_k

In all of this z is measured from ω_*, and log p from its value at the mode.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from cavity.channels.quadrature import STEP_MARKS, SUPPORT, panels, rows_at_once, step_marks
from cavity.channels.relu import log_ndtr_scaled
from cavity.messages import Preactivation
from cavity.special import hazard, hazard_excess, hazard_slope, log_ndtr

#: Breakpoints between a mode and each end of its support, as fractions of the distance.
SIDE_MARKS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
#: Halvings of the bracket of a mode (all the bits of double precision) and of an edge (a breakpoint needs few).
MODE_STEPS, EDGE_STEPS = 64, 32


class WinnerResponse(NamedTuple):
    """φ (samples,), g and Γ (samples, classes) of the exact ArgMax output."""

    value: Tensor
    gradient: Tensor
    curvature: Tensor


def winner_response(labels: Tensor, pre: Preactivation) -> WinnerResponse:
    """log Z and its derivatives for the given winners, labels (samples,)."""
    rows = rows_at_once(pre.mean.shape[1], len(STEP_MARKS) + 2 * len(SIDE_MARKS) + 1)
    chunks = zip(
        torch.split(labels, rows),
        torch.split(pre.mean.double(), rows),
        torch.split(pre.variance.double(), rows),
        strict=True,
    )
    parts = [_winner_response(*chunk) for chunk in chunks]
    return WinnerResponse(*(torch.cat(part).to(pre.mean.dtype) for part in zip(*parts, strict=True)))


class _Problems(NamedTuple):
    """Log-concave functions −(z−μ)²/2W + Σ_{k active} log Φ((z − c_k)/s_k): μ, W (samples, problems), c and s
    (samples, 1, classes), active (samples, problems, classes)."""

    mu: Tensor
    W: Tensor
    c: Tensor
    s: Tensor
    active: Tensor

    def slope(self, z: Tensor) -> Tensor:
        """First derivative at z (samples, problems)."""
        pull = hazard((self.c - z.unsqueeze(2)) / self.s) / self.s
        return pull.masked_fill(~self.active, 0.0).sum(dim=2) - (z - self.mu) / self.W

    def rise(self, origin: Tensor, slope: Tensor, t: Tensor) -> Tensor:
        """f(origin + t) − f(origin) with the linear terms, which are large and cancel, summed in ``slope``."""
        a = (origin.unsqueeze(2) - self.c) / self.s
        steps = log_ndtr_beyond_tangent(a, t.unsqueeze(2) / self.s)
        return steps.masked_fill(~self.active, 0.0).sum(dim=2) + t * (slope - 0.5 * t / self.W)


def log_ndtr_beyond_tangent(a: Tensor, step: Tensor) -> Tensor:
    """log Φ(a + step) − log Φ(a) − step·(log Φ)'(a) ≤ 0, where the squares in the tail are taken together on paper."""
    b = a + step
    far = torch.where(b < 0, -0.5 * step.square(), a * (0.5 * a + step)) - step * hazard_excess(-a)
    near = -0.5 * b.clamp_max(0).square() - step * hazard(-a)
    return torch.where(a < 0, far, near) + log_ndtr_scaled(b) - log_ndtr_scaled(a)


def _modes(f: _Problems) -> Tensor:
    """Zeros of f': it is ≥ 0 at μ and, because it falls at least as fast as −z/W, ≤ 0 at μ + W f'(μ)."""
    low = f.mu
    high = low + f.W * f.slope(low)
    for _ in range(MODE_STEPS):
        middle = 0.5 * (low + high)
        rising = f.slope(middle) > 0
        low, high = torch.where(rising, middle, low), torch.where(rising, high, middle)
    return 0.5 * (low + high)


def _edges(f: _Problems, mode: Tensor, slope: Tensor, side: float) -> Tensor:
    """Distance from the mode at which f has fallen by SUPPORT on one side; f'' ≤ −1/W bounds it."""
    inside, outside = torch.zeros_like(mode), side * torch.sqrt(2 * SUPPORT * f.W)
    for _ in range(EDGE_STEPS):
        middle = 0.5 * (inside + outside)
        above = f.rise(mode, slope, middle) > -SUPPORT
        inside, outside = torch.where(above, middle, inside), torch.where(above, outside, middle)
    return outside


def _problems(winner: Tensor, c: Tensor, V: Tensor) -> _Problems:
    """For the winner the posterior p itself, for each other class k its product with h_k."""
    V_winner = V.masked_fill(~winner, 0.0).sum(dim=1, keepdim=True)
    share = V_winner / (V + V_winner)
    mu = (c * share).masked_fill(winner, 0.0)
    W = torch.where(winner, V, V * share)
    itself = torch.eye(c.shape[1], dtype=torch.bool, device=c.device)
    return _Problems(mu, W, c.unsqueeze(1), torch.sqrt(V).unsqueeze(1), ~(winner.unsqueeze(1) | itself))


def _only(winner: Tensor, values: Tensor) -> Tensor:
    """The winner's column, (samples, 1)."""
    return values.masked_fill(~winner, 0.0).sum(dim=1, keepdim=True)


def _winner_response(labels: Tensor, omega: Tensor, V: Tensor) -> WinnerResponse:
    index = labels.unsqueeze(1)
    winner = index == torch.arange(omega.shape[1], device=omega.device)
    c = omega - omega.gather(1, index)
    f = _problems(winner, c, V)
    modes = _modes(f)
    slopes = f.slope(modes)
    low, high = _edges(f, modes, slopes, -1.0), _edges(f, modes, slopes, 1.0)

    mode, slope = _only(winner, modes), _only(winner, slopes)
    fractions = torch.tensor(SIDE_MARKS, dtype=V.dtype, device=V.device)
    sides = [modes.unsqueeze(2) + edge.unsqueeze(2) * fractions for edge in (low, high)]
    marks = torch.cat([modes, *(side.flatten(1) for side in sides)], dim=1) - mode
    steps = step_marks(c - mode, torch.sqrt(V))
    t, log_weight = panels(
        torch.cat([steps, marks], dim=1), *(g(marks, dim=1, keepdim=True) for g in (torch.amin, torch.amax))
    )

    own = _Problems(mode.new_zeros(()), _only(winner, V), f.c, f.s, ~winner.unsqueeze(1))
    log_p = own.rise(mode, slope, t) + log_weight
    log_Z = torch.logsumexp(log_p, dim=1)
    at_mode = log_ndtr((mode - c) / torch.sqrt(V)).masked_fill(winner, 0.0).sum(dim=1)
    peak = at_mode - 0.5 * (mode.square() / own.W + torch.log(2 * math.pi * own.W)).squeeze(1)
    p = torch.exp(log_p - log_Z.unsqueeze(1)).unsqueeze(2)
    return WinnerResponse(
        peak + log_Z, *_derivatives(winner, p, t, ((mode - c).unsqueeze(1) + t.unsqueeze(2)) / f.s, V)
    )


def _derivatives(winner: Tensor, p: Tensor, t: Tensor, a: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
    """g and Γ (samples, classes) from the posterior p (samples, nodes, 1) and a (samples, nodes, classes)."""

    def mean(values: Tensor) -> Tensor:
        return (p * values).sum(dim=1)

    def centred(values: Tensor) -> Tensor:
        return values - mean(values).unsqueeze(1)

    column = winner.unsqueeze(1)
    h = (hazard(-a) / torch.sqrt(V).unsqueeze(1)).masked_fill(column, 0.0)
    fall = (hazard_slope(-a) / V.unsqueeze(1)).masked_fill(column, 0.0)
    others = h @ (1 - torch.eye(h.shape[2], dtype=h.dtype, device=h.device))
    h, fall = torch.where(column, others, h), torch.where(column, fall.sum(dim=2, keepdim=True), fall)
    pull = centred(others.masked_fill(column, 0.0)) - centred(t.unsqueeze(2)) / _only(winner, V).unsqueeze(1)

    g, spread = mean(h), mean(centred(h).square())
    by_shift, by_parts = mean(fall) - spread, mean(centred(h) * pull)
    better = mean(fall) + spread < mean(h * pull.abs())
    return torch.where(winner, g, -g), torch.where(better, by_shift, by_parts)
