"""The variational bound of mean field, from the noise ν that every channel adds to its preactivation.

With z' = z + √ν·ξ, so that x = f(z') or P(y|z'), and a distribution in which all weights and all z' are independent,

    log Z ≥ Σ_kn [φ_kn(B, A, ω, ν) − V/2ν] − Σ_in [B x̂ − ½A(x̂² + Δ)] − Σ_ki KL(q_ki ‖ prior)

where E log 𝒩(z'; z, ν) = E log 𝒩(z'; ω, ν) − V/2ν is exact, whatever the weights. It holds for all (h, λ) and (B, A),
here those that mean field has come to. Its equations are not the stationarity conditions of the bound: they let V widen
the channel, ν + V, where the bound has a penalty. Without noise z' is a function of the weights, no independent
distribution avoids what is impossible, and the bound is −∞.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cavity.core.entropy.terms import (
    Terms,
    by_sample,
    factor_term,
    from_above,
    input_coupling,
    unmasked,
    weight_coupling,
    weight_term,
)
from cavity.core.messages import Fields, Moments, Preactivation, Target
from cavity.core.state import LayerState, Site
from cavity.core.variances import preactivation_variance


def require_noise(sites: Sequence[Site]) -> None:
    """Raise ValueError where a channel has no noise, so that the bound is −∞."""
    for number, site in enumerate(sites):
        if not site.channel.noise > 0:
            raise ValueError(
                f"algorithm 'mf' bounds the evidence by -infinity: channel {number}, {site.channel.name}, has no "
                "noise; give every activation and the output noise > 0, or take algorithm 'bp' or 'amp'"
            )


def bound(sites: Sequence[Site], states: Sequence[LayerState], x: Tensor, target: Target) -> Terms:
    """The bound for mean field's last messages, on inputs x (samples, *input_shape)."""
    states = [state._replace(down=state.down and _normalisable(state.down)) for state in states]
    samples, weights = torch.zeros_like(x.flatten(1)[:, 0]), []
    inputs, omega = Moments(x, None), x
    for site, state, message in zip(sites, states, from_above(states, target), strict=True):
        if site.below is not None:
            inputs = site.below.moments(state.down, Preactivation(omega, torch.zeros_like(omega)))
            samples = samples - input_coupling(state.down, inputs)
        m, sigma = site.prior.moments(state.natural)
        assert sigma is not None
        known = state._replace(moments=Moments(unmasked(m, state.mask), unmasked(sigma, state.mask)))
        omega = site.coupling.apply(known.moments.mean, inputs.mean)
        penalty = preactivation_variance(site, known.moments, inputs) / (2 * site.channel.noise)
        pre = Preactivation(omega, torch.zeros_like(omega))
        samples = samples + factor_term(site.channel, message, pre) - by_sample(penalty)
        weights.append(weight_term(site.prior, known) - weight_coupling(known))
    return Terms(samples, torch.stack(weights))


def _normalisable(down: Fields) -> Fields:
    """(B, A) with A ≥ 0, so that no floor acts: the bound holds for any (B, A), but it must be the same everywhere."""
    return Fields(down.field, None if down.precision is None else down.precision.clamp_min(0))
