"""Approximate message passing: BP to first order in every cavity (paper, appendix "AMP equations", as corrected).

Primes are the previous inner iteration, g' = 0 in the first. Expanding m_{ki→n} = m − σ x̂' g',
x̂_{in→k} = x̂ − Δ m' g' and g_{kn→i} = g + m x̂ Γ:

    ω_kn = Σ_i m x̂ − g' (Σ_i σ x̂ x̂' + Σ_i m m' Δ) + g'² Σ_i σ m' x̂' Δ
    B_in = Σ_k m g + x̂ Σ_k m² Γ − x̂' Σ_k σ g' g − x̂ x̂' Σ_k σ m g' Γ
    H_ki = Σ_n x̂ g + m Σ_n x̂² Γ − m' Σ_n Δ g' g − m m' Σ_n Δ x̂ g' Γ

Where the evidence is multiplied by a rate, so is σ in all of them. As in the paper the corrections are not damped: with
α > 0 they are BP's at a fixed point, and larger before it.
"""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

from torch import Tensor

from cavity.core.algorithms.base import Algorithm, Down
from cavity.core.algorithms.series import products
from cavity.core.arithmetic import Arithmetic
from cavity.core.messages import Moments, Preactivation
from cavity.core.state import Factor, LayerState, Site, Up

#: g(ω − m x̂) is expanded around ω, which means nothing once √V is smaller than one edge: as the weights become
#: certain, g and Γ both vanish at ω while g one edge away does not, the fields collapse to 0 and a solution is lost. A
#: tenth of an uncertain weight in V keeps the expansion alive (tests/test_theory.py iterates a solved perceptron).
EXPANSION_FLOOR = 0.1


class Previous(NamedTuple):
    """g', x̂' and m' of the iteration before."""

    g: Tensor
    x: Tensor
    m: Tensor


class AMP(Algorithm):
    """Non-cavity means with Onsager corrections."""

    name: ClassVar[str] = "amp"
    summary: ClassVar[str] = "approximate message passing: all cavities to first order"
    colour: ClassVar[str] = "#c05f14"
    passes: ClassVar[float] = 4.0
    corrections: ClassVar[Literal["none", "first order", "cavity sums"]] = "first order"
    variance_floor: ClassVar[float] = EXPANSION_FLOOR
    needs_curvature: ClassVar[bool] = True

    def up(self, site: Site, state: LayerState, inputs: Moments, below: Preactivation | None) -> Tensor:
        apply, (m, sigma), (x, delta) = site.coupling.apply, state.moments, inputs
        omega = apply(m, x)
        before: Previous | None = state.previous
        if before is None:
            return omega
        assert sigma is not None
        sigma = state.rate * sigma
        omega = omega - before.g * apply(sigma, x * before.x)
        if delta is not None:
            omega = omega - before.g * apply(m * before.m, delta, constant=0.0)
            omega = omega + before.g.square() * apply(sigma * before.m, before.x * delta, constant=0.0)
        return omega

    def down(
        self, site: Site, state: LayerState, up: Up, factor: Factor, arithmetic: Arithmetic, remember: bool
    ) -> Down:
        m, x = state.moments.mean, up.inputs.mean
        g = factor.response.gradient
        gamma = factor.response.curvature if site.channel.elementwise else None
        c = [g] if gamma is None else [g, gamma]
        B, H = products(site.coupling, c, m, x, 1.0, site.below is not None, arithmetic.half)
        if state.previous is not None:
            B = None if B is None else B - self._onsager_inputs(site, state, up, g, gamma)
            H = H - self._onsager_weights(site, state, up, g, gamma)
        return Down(B, H, Previous(g, x, m) if remember else None)

    def _onsager_inputs(self, site: Site, state: LayerState, up: Up, g: Tensor, gamma: Tensor | None) -> Tensor:
        """x̂' Σ_k σ g' (g + x̂ m Γ), (samples, *input_shape)."""
        back, (m, sigma) = site.coupling.back_to_inputs, state.moments
        before: Previous = state.previous
        assert sigma is not None
        sigma = state.rate * sigma
        inner = back(sigma, before.g * g)
        if gamma is not None:
            inner = inner + up.inputs.mean.reshape(inner.shape) * back(sigma * m, before.g * gamma)
        return before.x.reshape(inner.shape) * inner

    def _onsager_weights(
        self, site: Site, state: LayerState, up: Up, g: Tensor, gamma: Tensor | None
    ) -> Tensor | float:
        """m' Σ_n Δ g' (g + m x̂ Γ), (outputs, columns); 0 where the inputs are known."""
        back, m, (x, delta) = site.coupling.back_to_weights, state.moments.mean, up.inputs
        before: Previous = state.previous
        if delta is None:
            return 0.0
        inner = back(before.g * g, delta, constant=0.0)
        if gamma is not None:
            inner = inner + m * back(before.g * gamma, delta * x, constant=0.0)
        return before.m * inner
