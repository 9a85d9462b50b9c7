"""The variational bound of mean field, from the noise ν that every channel adds to its preactivation.

With z' = z + √ν·ξ, so that x = f(z') or P(y|z'), and a distribution in which all weights and all z' are independent,

    log Z ≥ Σ_kn [φ_kn(B, A, ω, ν) − V/2ν] − Σ_in [B x̂ − ½A(x̂² + Δ)] − Σ_ki KL(q_ki ‖ prior)

where E log 𝒩(z'; z, ν) = E log 𝒩(z'; ω, ν) − V/2ν is exact, whatever the weights. It holds for all (h, λ) and (B, A),
here those that mean field has come to. Its equations are not the stationarity conditions of the bound: they let V widen
the channel, ν + V, where the bound has a penalty. Without noise z' is a function of the weights, no independent
distribution avoids what is impossible, and the bound is −∞. Under a pool, (B, A) are those on its units, which stay
independent.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cavity.core.channels.base import Activation, Output
from cavity.core.entropy.terms import (
    Part,
    Terms,
    by_sample,
    input_coupling,
    output_term,
    parts,
    total,
    unmasked,
    weight_coupling,
    weight_term,
)
from cavity.core.messages import Fields, Moments, Preactivation
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


def bound(sites: Sequence[Site], states: Sequence[LayerState], x: Tensor, y: Tensor, output: Output) -> Terms:
    """The bound for mean field's last messages, on inputs x (samples, *input_shape) and labels y."""
    require_noise(sites)
    samples, weights = x.new_zeros(len(x)), []
    inputs, omega = Moments(x, None), x
    for site, state in zip(sites, states, strict=True):
        if site.below is not None:
            inputs, gained = _units(site, state, Preactivation(omega, torch.zeros_like(omega)))
            samples = samples + gained
        known = [_undamped(part) for part in parts(site, state, inputs)]
        omega = total([part.site.coupling.apply(part.state.moments.mean, part.inputs.mean) for part in known])
        V = total([preactivation_variance(part.site, part.state.moments, part.inputs) for part in known])
        samples = samples - by_sample(V) / (2 * site.channel.noise)
        weights.append(
            total([weight_term(part.site.prior, part.state) - weight_coupling(part.state) for part in known])
        )
    return Terms(samples + output_term(output, y, Preactivation(omega, torch.zeros_like(omega))), torch.stack(weights))


def _units(site: Site, state: LayerState, pre: Preactivation) -> tuple[Moments, Tensor]:
    """The inputs of a layer, pooled or not, and Σ_j φ_j − B x̂ + ½A(x̂² + Δ) of the units that they come from,
    (samples,)."""
    assert state.down is not None
    if site.pooling is None:
        activation, down = site.below, state.down
    else:
        activation, down = site.pooling.activation, site.pooling.down(state.down, pre)
    assert isinstance(activation, Activation)
    down = _normalisable(down)
    units = activation.moments(down, pre)
    gained = by_sample(activation.value(down, pre)) - input_coupling(down, units)
    return units if site.pooling is None else site.pooling.pool.combine(units), gained


def _undamped(part: Part) -> Part:
    """With (m, σ) of (h, λ) themselves: the bound is one for them."""
    m, sigma = part.site.prior.moments(part.state.natural)
    assert sigma is not None
    mask = part.state.mask
    return part._replace(state=part.state._replace(moments=Moments(unmasked(m, mask), unmasked(sigma, mask))))


def _normalisable(down: Fields) -> Fields:
    """(B, A) with A ≥ 0, so that no floor acts: the bound holds for any (B, A), but it must be the same everywhere."""
    return Fields(down.field, None if down.precision is None else down.precision.clamp_min(0))
