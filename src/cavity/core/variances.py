"""The variances of the equations: V on the way up, A and G on the way down. They are the same for every algorithm.

V_kn = Σ_i (m² Δ + σ x̂² + σ Δ)
A_in = Σ_k ((m² + σ) Γ − σ g²)        G_ki = Σ_n ((x̂² + Δ) Γ − Δ g²)
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cavity.core.arrays import select
from cavity.core.floors import NONE, VARIANCE_FLOOR, can_be_seen
from cavity.core.messages import Moments
from cavity.core.state import Factor, Site


def preactivation_variance(site: Site, weights: Moments, inputs: Moments) -> Tensor:
    """V = Σ_i (m² Δ + σ E[x²]): one product where Δ = 0 or E[x²] is a constant; (samples, *output_shape)."""
    apply, (m, sigma), (x, delta) = site.coupling.apply, weights, inputs
    assert sigma is not None
    if delta is None:
        return apply(sigma, x.square())
    moved = apply(m.square(), delta, constant=0.0)
    if site.below is not None and site.below.second_moment is not None:
        return moved + site.coupling.apply_to_constant(sigma, site.below.second_moment)
    return moved + apply(sigma, x.square() + delta)


def variance_floor(site: Site, inputs: Moments, edges: float) -> Tensor | float:
    """The least V of each sample: that of ``edges`` uncertain weights, and never less than what rounding leaves of a
    vanished V, where σ = E[w²] − m² is wrong by one unit in the last place of w² and V by N of them; (samples, 1,
    …)."""
    x, delta = inputs
    scale = site.prior.largest_square * max(edges, torch.finfo(x.dtype).eps * site.coupling.columns)
    if scale == 0:
        return VARIANCE_FLOOR
    if site.below is not None and site.below.second_moment is not None:
        return max(scale * site.below.second_moment, VARIANCE_FLOOR)
    square = x.square() if delta is None else x.square() + delta
    floor = (scale * square.flatten(1).mean(dim=1)).clamp_min(VARIANCE_FLOOR)
    return floor.reshape(-1, *(1 for _ in site.coupling.output_shape))


def floored(V: Tensor, floor: Tensor | float) -> tuple[Tensor, Tensor]:
    """V raised to the floor, and how many entries were. A V that has overflowed becomes NaN: infinite, it would pass
    for a unit that nothing is known about, and nobody would notice."""
    if not isinstance(floor, Tensor) and can_be_seen(V):
        least, most = V.aminmax()
        if float(least) >= floor and float(most) < math.inf:
            return V, NONE
    raised = torch.maximum(V, floor) if isinstance(floor, Tensor) else V.clamp_min(floor)
    return select(raised < math.inf, raised, math.nan), (floor > V).sum()


def input_precision(site: Site, weights: Moments, factor: Factor) -> Tensor:
    """A_in = Σ_k ((m² + σ) Γ − σ g²), (samples, *input_shape)."""
    back, (m, sigma), (g, gamma) = site.coupling.back_to_inputs, weights, factor.response
    assert sigma is not None
    return back(m.square() + sigma, gamma) - back(sigma, g.square())


def weight_precision(site: Site, inputs: Moments, factor: Factor) -> Tensor:
    """G_ki = Σ_n ((x̂² + Δ) Γ − Δ g²), (outputs, columns)."""
    back, (x, delta), (g, gamma) = site.coupling.back_to_weights, inputs, factor.response
    if delta is None:
        return back(gamma, x.square())
    return back(gamma, x.square() + delta) - back(g.square(), delta, constant=0.0)
