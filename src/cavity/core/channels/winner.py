"""The exact ArgMax output: log-likelihood of a winner and its derivatives, by quadrature over the winner's z.

    Z = ∫ dz 𝒩(z; ω_*, V_*) Π_{k≠*} Φ(a_k),   a_k = (z − ω_k)/√V_k,   h_k = K(−a_k)/√V_k,   S = Σ_k h_k

With the posterior p(z) ∝ integrand, g_* = E[S] and g_k = −E[h_k]. Γ has two forms (translate z, or integrate by parts):

    Γ_k = E[K'(−a_k)]/V_k − Var[h_k]          = −Cov[h_k, z]/V_* + Cov[h_k, S − h_k]
    Γ_* = E[Σ_k K'(−a_k)/V_k] − Var[S]        = −Cov[S, z]/V_*

The first loses digits where V_k ≪ V_*, the second, whose terms are positive, where h_k hardly varies; the one with the
smaller terms is used. The integrand is log-concave, and so is its product with any h_k; where both lie far apart, g_k
is tiny but not 0. So the grid has breakpoints at every step and around the modes of p and of every p h_k, which is

    p h_k ∝ 𝒩(z; μ_k, W_k) Π_{j≠*,k} Φ(a_j),   1/W_k = 1/V_* + 1/V_k,   μ_k/W_k = ω_*/V_* + ω_k/V_k

In all of this z is measured from ω_*, and log p from its value at the mode. Where the widths of a sample are comparable
and its classes not far apart, an even grid over all of them does the same for a twentieth of the nodes, as in
``classes.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from cavity.core.channels.quadrature import STEP_MARKS, SUPPORT, Nodes, panels, rows_at_once, step_marks
from cavity.core.messages import Preactivation
from cavity.core.special import hazard, hazard_excess, hazard_slope, log_ndtr, log_ndtr_scaled

#: Breakpoints between a mode and each end of its support, as fractions of the distance.
SIDE_MARKS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
#: Halvings of the bracket of a mode, which may be 1e14 times the narrowest step, and of an edge, a mere breakpoint.
MODE_STEPS, EDGE_STEPS = 72, 32
#: Nodes of an even grid, their largest distance in units of the narrowest width, and how many of the widest lie beyond
#: the outermost class: where ten classes tie, the integrand is three times as narrow as one of them.
EVEN_NODES, EVEN_SPACING, EVEN_REACH = 144, 0.26, 9.0
#: Samples on even grids at once.
EVEN_ROWS = 256


class WinnerResponse(NamedTuple):
    """φ (samples,), g and Γ (samples, classes) of the exact ArgMax output."""

    value: Tensor
    gradient: Tensor
    curvature: Tensor


def one_hot(labels: Tensor, classes: int) -> Tensor:
    """(samples, classes) boolean; unlike torch's own, it never waits for the device."""
    return labels.unsqueeze(1) == torch.arange(classes, device=labels.device)


def winner_response(labels: Tensor, pre: Preactivation) -> WinnerResponse:
    """log Z and its derivatives for the given winners, labels (samples,)."""
    omega, V = pre.mean.double(), pre.variance.double()
    result = WinnerResponse(torch.empty_like(omega[:, 0]), torch.empty_like(omega), torch.empty_like(omega))
    on_panels = rows_at_once(omega.shape[1], len(STEP_MARKS) + 2 * len(SIDE_MARKS) + 1)
    easy, others = _sorted_out(omega, V)
    for rows, at_once, grid in ((easy, EVEN_ROWS, _even_grid), (others, on_panels, _grid)):
        for chunk in torch.split(rows, at_once) if len(rows) else ():
            found = _winner_response(labels[chunk], omega[chunk], V[chunk], grid)
            for whole, part in zip(result, found, strict=True):
                whole[chunk] = part
    return WinnerResponse(*(tensor.to(pre.mean.dtype) for tensor in result))


def _sorted_out(omega: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
    """The samples for which an even grid is enough, and the others. Only the CPU is asked: another device would have to
    be waited for, and gets panels for all."""
    samples = torch.arange(len(omega), device=omega.device)
    if omega.device.type != "cpu":
        return samples[:0], samples
    low, high = _span(omega, V)
    even = (high - low <= (EVEN_NODES - 1) * EVEN_SPACING * torch.sqrt(V.amin(dim=1, keepdim=True))).squeeze(1)
    return samples[even], samples[~even]


class _Problems(NamedTuple):
    """Log-concave functions −(z−μ)²/2W + Σ_{k active} log Φ((z − c_k)/s_k): μ, W (samples, problems), c and s
    (samples, 1, classes), active (samples, problems, classes)."""

    mu: Tensor
    W: Tensor
    c: Tensor
    s: Tensor
    active: Tensor

    def pull(self, z: Tensor) -> Tensor:
        """The slope of the steps at z (samples, problems)."""
        each = hazard((self.c - z.unsqueeze(2)) / self.s) / self.s
        return each.masked_fill(~self.active, 0.0).sum(dim=2)

    def slope(self, z: Tensor) -> Tensor:
        """The first derivative at z (samples, problems)."""
        return self.pull(z) - (z - self.mu) / self.W

    def rise(self, origin: Tensor, slope: Tensor, t: Tensor, above: Tensor) -> Tensor:
        """f(origin + t) − f(origin) with the linear terms, which are large and cancel, summed in ``slope``.

        t is (samples, points), ``above`` is origin + t − c (samples, points, classes)."""
        a = (origin.unsqueeze(2) - self.c) / self.s
        steps = log_ndtr_beyond_tangent(a, above / self.s, t.unsqueeze(2) / self.s)
        return steps.masked_fill(~self.active, 0.0).sum(dim=2) + t * (slope - 0.5 * t / self.W)


def log_ndtr_beyond_tangent(a: Tensor, b: Tensor, step: Tensor) -> Tensor:
    """log Φ(b) − log Φ(a) − step·(log Φ)'(a) ≤ 0 for step = b − a, with the squares of the tails combined on paper."""
    far = torch.where(b < 0, -0.5 * step.square(), a * (0.5 * a + step)) - step * hazard_excess(-a)
    near = -0.5 * b.clamp_max(0).square() - step * hazard(-a)
    return torch.where(a < 0, far, near) + log_ndtr_scaled(b) - log_ndtr_scaled(a)


def _modes(f: _Problems) -> Tensor:
    """Zeros of f': it is ≥ 0 at μ and, as the pull of the steps only falls with z, ≤ 0 at μ + W·pull(z) or z for any z
    ≥ μ; the rightmost step is a good z."""
    low = f.mu
    right = torch.maximum(low, f.c.expand_as(f.active).masked_fill(~f.active, -math.inf).amax(dim=2))
    high = torch.maximum(right, low + f.W * f.pull(right))
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
        gap = (mode.unsqueeze(2) - f.c) + middle.unsqueeze(2)
        high = f.rise(mode, slope, middle, gap) > -SUPPORT
        inside, outside = torch.where(high, middle, inside), torch.where(high, outside, middle)
    return outside


def _problems(winner: Tensor, c: Tensor, V: Tensor) -> _Problems:
    """For the winner the posterior p itself, for each other class k its product with h_k."""
    V_winner = _only(winner, V)
    share = V_winner / (V + V_winner)
    mu = (c * share).masked_fill(winner, 0.0)
    W = torch.where(winner, V, V * share)
    itself = torch.eye(c.shape[1], dtype=torch.bool, device=c.device)
    return _Problems(mu, W, c.unsqueeze(1), torch.sqrt(V).unsqueeze(1), ~(winner.unsqueeze(1) | itself))


def _only(winner: Tensor, values: Tensor) -> Tensor:
    """The winner's column, (samples, 1)."""
    return values.masked_fill(~winner, 0.0).sum(dim=1, keepdim=True)


class _Grid(NamedTuple):
    """Nodes as distances from the mode; the mode and f' there are (samples, 1)."""

    mode: Tensor
    slope: Tensor
    nodes: Nodes


def _grid(f: _Problems, winner: Tensor) -> _Grid:
    """Panels between all steps, and the modes and supports of all problems."""
    modes = _modes(f)
    slopes = f.slope(modes)
    fractions = torch.tensor(SIDE_MARKS, dtype=modes.dtype, device=modes.device)
    edges = [_edges(f, modes, slopes, side) for side in (-1.0, 1.0)]
    sides = [(modes.unsqueeze(2) + edge.unsqueeze(2) * fractions).flatten(1) for edge in edges]
    mode = _only(winner, modes)
    marks = torch.cat([modes, *sides], dim=1) - mode
    steps = step_marks(f.c.squeeze(1) - mode, f.s.squeeze(1))
    ends = marks.amin(dim=1, keepdim=True), marks.amax(dim=1, keepdim=True)
    return _Grid(mode, _only(winner, slopes), panels(torch.cat([steps, marks], dim=1), *ends))


def _span(c: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
    """Ends (samples, 1) of a grid that holds the integrand of every class, for classes at c with variances V."""
    reach = EVEN_REACH * torch.sqrt(V.amax(dim=1, keepdim=True))
    return c.amin(dim=1, keepdim=True) - reach, c.amax(dim=1, keepdim=True) + reach


def _even_grid(f: _Problems, winner: Tensor) -> _Grid:
    """Nodes at equal distances from the winner's own ω, which need no weights."""
    origin = torch.zeros_like(f.mu[:, :1])
    low, high = _span(f.c.squeeze(1), f.s.squeeze(1).square())
    step = (high - low) / (EVEN_NODES - 1)
    t = low + step * torch.arange(EVEN_NODES, dtype=low.dtype, device=low.device)
    # The winner's own problem is the one whose steps are all the others.
    slope = _only(winner, f.slope(origin.expand_as(f.mu)))
    return _Grid(origin, slope, Nodes(t, torch.zeros_like(t), torch.log(step).expand_as(t)))


def _winner_response(
    labels: Tensor, omega: Tensor, V: Tensor, make_grid: Callable[[_Problems, Tensor], _Grid]
) -> WinnerResponse:
    index, winner = labels.unsqueeze(1), one_hot(labels, omega.shape[1])
    f = _problems(winner, omega - omega.gather(1, index), V)
    grid = make_grid(f, winner)
    own = _Problems(torch.zeros_like(grid.mode), V.gather(1, index), f.c, f.s, ~winner.unsqueeze(1))
    t, above = grid.nodes.left + grid.nodes.offset, grid.nodes.above(f.c.squeeze(1) - grid.mode)
    log_p = own.rise(grid.mode, grid.slope, t, above) + grid.nodes.log_weight
    p = torch.softmax(log_p, dim=1).unsqueeze(2)
    return WinnerResponse(_value(own, grid.mode, log_p), *_derivatives(winner, p, t, above / f.s, V))


def _value(own: _Problems, mode: Tensor, log_p: Tensor) -> Tensor:
    """log Z (samples,): the integrand at the mode, and the integral relative to it."""
    steps = log_ndtr((mode.unsqueeze(2) - own.c) / own.s).masked_fill(~own.active, 0.0).sum(dim=2)
    peak = steps - 0.5 * (mode.square() / own.W + torch.log(2 * math.pi * own.W))
    return peak.squeeze(1) + torch.logsumexp(log_p, dim=1)


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
