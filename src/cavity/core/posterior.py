"""From fields to weights: the posterior of one inner iteration and the damped moments it leaves.

    field^τ = θ + e·(H, G) + r·field^{τ−1},   θ = (ρ − e/T)·field of the last mini-batch + (e/T)·(0, λ₀)
    m ← α m + (1−α) ∂_H ψ(field^τ)

e is the step of natural-gradient ascent on the log-evidence of the mini-batch. Where it is chosen by the messages,

    e = κ·min(T, RMS(m)/RMS(σD)),   D = H − mG

no layer moves by more than κ of its own size: to first order a step changes m by eσD, where D is the gradient.
Thresholds are measured by the size s of the preactivations they are added to, because they may well be 0: s stands for
RMS(m), and 1/s² for the N inputs in λ₀. The paper has e = 1, T = ∞ and λ₀ = 0. Everything here is elementwise on
(outputs, columns) and runs as one kernel.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from cavity.core.floors import FIELD_BOUND, NONE, can_be_seen
from cavity.core.messages import Fields, Moments
from cavity.core.priors.base import Prior
from cavity.core.state import Focusing, Rule


class Posterior(NamedTuple):
    """Natural parameters (h, λ) and damped moments (m, σ); how many weights needed a floor or the bound, a number that
    is finite if all of these are, and the rate e; all three 0-dimensional."""

    natural: Fields
    moments: Moments
    clamped: Tensor
    largest: Tensor
    rate: Tensor | float


def update_weights(
    prior: Prior,
    rule: Rule,
    mask: Tensor | None,
    start: Fields,
    last: Fields,
    message: Fields,
    old: Moments,
    scale: Tensor | None = None,
) -> Posterior:
    """The posterior after message (H, G): ``start`` is the field before the mini-batch, ``last`` that of iteration
    τ−1; ``scale`` is the s of thresholds."""
    rate = rate_in_force(rule, message, old, scale)
    natural = posterior_field(rule, rate, start, last, message, scale)
    if mask is not None:
        natural = Fields(natural.field * mask, natural.precision)
    natural, bounded, largest = within_bound(prior, natural)
    m, sigma = prior.damp(old, prior.moments(natural), rule.damping)
    if mask is not None:
        assert sigma is not None
        m, sigma = m * mask, sigma * mask
    if not prior.largest_square:
        # Without an end of its support, a weight's mean may overflow where h and λ do not.
        largest = torch.maximum(largest, m.abs().amax())
    floored = prior.clamped(natural)
    return Posterior(natural, Moments(m, sigma), bounded if floored is None else bounded + floored, largest, rate)


#: RMS(m)/RMS(σD) counts as this at most, where T is no bound: a layer whose evidence is all but gone must not be moved
#: by what rounding leaves of it.
LARGEST_RATIO = 1e3


def rate_in_force(rule: Rule, message: Fields, moments: Moments, scale: Tensor | None = None) -> Tensor | float:
    """e = κ·min(T, RMS(m)/RMS(σD)), with s for RMS(m) where there is one; or the rate itself where it is not
    relative."""
    if not rule.relative:
        return rule.rate
    (H, G), (m, sigma) = message, moments
    assert sigma is not None
    moved = sigma * (H if G is None else H - m * G)
    size, step = m.square().mean().sqrt() if scale is None else scale, moved.square().mean().sqrt()
    limit = LARGEST_RATIO if rule.horizon is None else rule.horizon
    return rule.rate * torch.where(step * limit > size, size / step, limit)


def within_bound(prior: Prior, natural: Fields) -> tuple[Fields, Tensor, Tensor]:
    """(h, λ) scaled back together where a weight is certain beyond FIELD_BOUND, for how many it is, and the largest
    certainty before."""
    h, precision = natural
    size = certainty(prior, natural)
    largest = size.abs().amax()
    # Where a number can be looked at, do not divide all weights by 1.
    if can_be_seen(largest) and float(largest) <= FIELD_BOUND:
        return natural, NONE, largest
    beyond = (size > FIELD_BOUND).sum()
    if precision is None:
        return Fields(h.clamp(-FIELD_BOUND, FIELD_BOUND), None), beyond, largest
    excess = (size.abs() / FIELD_BOUND).clamp_min(1.0)
    return Fields(h / excess, precision / excess), beyond, largest


def certainty(prior: Prior, natural: Fields) -> Tensor:
    """How certain the natural parameters make a weight: λ, and |h| and |λ| where its support has an end."""
    h, precision = natural
    if precision is None:
        return h.abs()
    return torch.maximum(h.abs(), precision.abs()) if prior.largest_square else precision


def posterior_field(
    rule: Rule, rate: Tensor | float, start: Fields, last: Fields, message: Fields, scale: Tensor | None = None
) -> Fields:
    """field^τ = (ρ − e/T)·start + (e/T)·(0, λ₀) + e·(H, G), reinforced by r·field^{τ−1} or by the pull of the other
    replicas."""
    decay = 0.0 if rule.horizon is None else rate / rule.horizon
    rho = rule.rho if rule.horizon is None else rule.rho - decay
    h = rho * start.field + rate * message.field
    precision = None
    if message.precision is not None:
        assert start.precision is not None
        assert last.precision is not None
        precision = rho * start.precision + rate * message.precision
        if rule.precision:
            inputs = start.field.shape[1] if scale is None else scale.square().reciprocal()
            precision = precision + decay * (rule.precision * inputs)
        if rule.reinforcement:
            precision = precision + rule.reinforcement * last.precision
    if rule.focusing is not None:
        h = h + replica_field(h, rule.focusing)
    elif rule.reinforcement:
        h = h + rule.reinforcement * last.field
    return Fields(h, precision)


def replica_field(h: Tensor, focusing: Focusing) -> Tensor:
    """atanh(t·tanh((y−1)·atanh(t·tanh h))) with t = tanh γ: y − 1 other replicas, each with field h, seen through the
    centre that couples them (Baldassi et al. 2016)."""
    t = torch.tanh(torch.full((), focusing.gamma, dtype=h.dtype, device=h.device))
    # atanh of a rounded 1 is infinite; the largest number below 1 stands for certainty.
    t = t.clamp_max(1 - torch.finfo(h.dtype).eps)
    return torch.atanh(t * torch.tanh((focusing.replicas - 1) * torch.atanh(t * torch.tanh(h))))
