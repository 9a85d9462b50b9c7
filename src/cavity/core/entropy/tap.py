"""To second order in what an edge carries: the TAP form, of which AMP's fixed points are the stationary points.

    log Z = Σ_kn [φ_kn(B, A, ω, V) + s(Σ_i m x̂ − ω) − ½s²V̄] − Σ_in [B x̂ − ½A(x̂² + Δ)]
          + Σ_ki [ψ(θ + H, λ + G) − ψ(θ, λ) − H m + ½G(m² + σ)],        V̄ = Σ_i (m²Δ + σx̂²)

Its derivatives with respect to ω, s, m, σ, x̂, Δ, H, G, B and A vanish where s = g and the equations of AMP hold, but
for their terms g²Σσm'x̂'Δ, x̂x̂'Σσmg'Γ and mm'ΣΔx̂g'Γ, a factor 1/N smaller than the others and absent in the first
layer. The Bethe form is this one to second order, with s = g and the cavity ω = Σ_i m x̂ − gV̄: two or three products
a layer in place of all its edges.
"""

from __future__ import annotations

from torch import Tensor

from cavity.core.entropy.terms import (
    LayerTerms,
    Part,
    by_sample,
    input_coupling,
    parts,
    total,
    weight_coupling,
    weight_term,
)
from cavity.core.messages import Preactivation
from cavity.core.state import LayerState, Site, Up


def expanded_layer(site: Site, state: LayerState, up: Up, s: Tensor, omega: Tensor | None = None) -> LayerTerms:
    """What one layer adds, but for φ; where ω is not given it is the cavity's, Σ_i m x̂ − sV̄."""
    known = list(parts(site, state, up.inputs))
    mean, V = (
        total([part.site.coupling.apply(part.state.moments.mean, part.inputs.mean) for part in known]),
        spread(known),
    )
    omega = mean - s * V if omega is None else omega
    samples = by_sample(s * (mean - omega) - 0.5 * s.square() * V) - input_coupling(state.down, up.inputs)
    weights = total([weight_term(part.site.prior, part.state) - weight_coupling(part.state) for part in known])
    return LayerTerms(Preactivation(omega, up.pre.variance), samples, weights)


def spread(known: list[Part]) -> Tensor:
    """V̄ = Σ_i (m²Δ + σx̂²): the variance of ω that one edge after the other adds, (samples, *output_shape)."""
    found = []
    for site, state, (x, delta) in known:
        (m, sigma), apply = state.moments, site.coupling.apply
        assert sigma is not None
        found.append(apply(sigma, x.square()))
        if delta is not None:
            found.append(apply(m.square(), delta, constant=0.0))
    return total(found)
