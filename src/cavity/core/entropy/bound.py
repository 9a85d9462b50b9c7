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
from typing import Any

import torch

from cavity.core.channels.base import Activation, Channel
from cavity.core.entropy.terms import (
    Terms,
    by_sample,
    factor_term,
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
        if not noise_of(site.channel) > 0:
            raise ValueError(
                f"algorithm 'mf' bounds the evidence by -infinity: channel {number}, {site.channel.name}, has no "
                "noise; give every activation and the output noise > 0, or take algorithm 'bp' or 'amp'"
            )


def noise_of(channel: Channel[Any]) -> float:
    """ν of a channel, 0 where it has none."""
    noise = getattr(channel, "noise", 0.0)
    return float(noise)


def bound(sites: Sequence[Site], states: Sequence[LayerState], x: torch.Tensor, target: Target) -> Terms:
    """The bound for mean field's last messages, on inputs x (samples, *input_shape)."""
    messages: list[Fields | Target] = [*(state.down for state in states[1:] if state.down is not None), target]
    samples, weights = torch.zeros_like(x.flatten(1)[:, 0]), []
    inputs, below, omega = Moments(x, None), None, x
    for site, state, message in zip(sites, states, messages, strict=True):
        if isinstance(below, Activation):
            inputs = below.moments(state.down, Preactivation(omega, torch.zeros_like(omega)))
            samples = samples - input_coupling(state.down, inputs)
        m, sigma = site.prior.moments(state.natural)
        assert sigma is not None
        state = state._replace(moments=Moments(unmasked(m, state.mask), unmasked(sigma, state.mask)))
        omega, V = (
            site.coupling.apply(state.moments.mean, inputs.mean),
            preactivation_variance(site, state.moments, inputs),
        )
        pre = Preactivation(omega, torch.zeros_like(omega))
        samples = samples + factor_term(site.channel, message, pre) - by_sample(V / (2 * noise_of(site.channel)))
        weights.append(weight_term(site.prior, state) - weight_coupling(state))
        below = site.channel
    return Terms(samples, torch.stack(weights))
