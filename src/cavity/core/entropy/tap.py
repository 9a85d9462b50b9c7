"""The TAP form: the free entropy of which AMP's fixed points are the stationary points.

    log Z = Σ_kn [φ_kn(B, A, ω, V) + s(Σ_i m x̂ − ω) − ½s²V̄] − Σ_in [B x̂ − ½A(x̂² + Δ)]
          + Σ_ki [ψ(θ + H, λ + G) − ψ(θ, λ) − H m + ½G(m² + σ)],        V̄ = Σ_i (m²Δ + σx̂²)

Its derivatives with respect to ω, s, m, σ, x̂, Δ, H, G, B and A vanish where s = g and the equations of AMP hold, but
for their terms g²Σσm'x̂'Δ, x̂x̂'Σσmg'Γ and mm'ΣΔx̂g'Γ, a factor 1/N smaller than the others and absent in the first
layer.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cavity.core.algorithms.amp import Previous
from cavity.core.entropy.terms import (
    Terms,
    by_sample,
    factor_term,
    from_above,
    input_coupling,
    weight_coupling,
    weight_term,
)
from cavity.core.messages import Target
from cavity.core.state import LayerState, Site, Up


def tap(sites: Sequence[Site], states: Sequence[LayerState], ups: Sequence[Up], target: Target) -> Terms:
    """The free entropy of all layers from AMP's last messages and the moments ``ups`` that they lead to."""
    samples, weights = torch.zeros_like(ups[0].pre.mean.flatten(1)[:, 0]), []
    for site, state, up, message in zip(sites, states, ups, from_above(states, target), strict=True):
        samples = samples + factor_term(site.channel, message, up.pre) + reaction(site, state, up)
        samples = samples - input_coupling(state.down, up.inputs)
        weights.append(weight_term(site.prior, state) - weight_coupling(state))
    return Terms(samples, torch.stack(weights))


def reaction(site: Site, state: LayerState, up: Up) -> Tensor:
    """Σ_k s(Σ_i m x̂ − ω) − ½s²V̄ of each sample, with s the last g: ½g²V̄ at a fixed point; (samples,)."""
    before: Previous | None = state.memory
    assert before is not None
    apply, (m, sigma), (x, delta) = site.coupling.apply, state.moments, up.inputs
    assert sigma is not None
    V = apply(sigma, x.square())
    if delta is not None:
        V = V + apply(m.square(), delta, constant=0.0)
    return by_sample(before.g * (apply(m, x) - up.pre.mean) - 0.5 * before.g.square() * V)
