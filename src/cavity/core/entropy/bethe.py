"""The Bethe form: factors and variables, less what the edges between them count twice.

    log Z = Σ_kn φ_kn(B, A, ω, V) + Σ_ki [ψ(h, λ) − ψ(θ)] − Σ_kn,i [ψ(h, λ) − ψ(h − H_n, λ − G_n)]
          − Σ_kn,i [φ_in(B, A) − φ_in(B − B_k, A − A_k)]

H_n = x̂_{in→k} g_{kn→i}, G_n = (x̂² + Δ)Γ − Δg² and B_k, A_k are what one factor says. ω and V are made of cavity means
and cavity variances: the functional is one of the messages alone. A threshold is one more edge of each factor.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from cavity.core.algorithms.bp import BP, Cavities
from cavity.core.algorithms.sums import CACHED_EDGES, row_chunks
from cavity.core.arithmetic import EXACT
from cavity.core.couplings.base import Coupling
from cavity.core.entropy.terms import LayerTerms, Part, parts, total, unmasked, weight_term
from cavity.core.floors import VARIANCE_FLOOR
from cavity.core.messages import Fields, Moments, Preactivation, Response, Target
from cavity.core.state import Factor, LayerState, Site, Up


def edges(coupling: Coupling, samples: int) -> int:
    """How many edges a layer has: weights times samples times positions."""
    return coupling.outputs * coupling.columns * coupling.positions * samples


def layer_edges(
    site: Site, state: LayerState, up: Up, message: Fields | Target, below: Preactivation | None
) -> LayerTerms:
    """What one layer adds, but for φ, edge by edge; ``below`` is (ω, V) of the units that the inputs come from."""
    factor = Factor(site.channel, message, up.pre, site.channel.response(message, up.pre))
    found = [_edges(part, up, factor, below) for part in parts(site, state, up.inputs)]
    omega, V, overlap = (total(sums) for sums in zip(*found, strict=True))
    coupling = site.coupling
    pre = Preactivation(coupling.preactivations(omega), coupling.preactivations(V).clamp_min(VARIANCE_FLOOR))
    weights = total([weight_term(part.site.prior, part.state) for part in parts(site, state, up.inputs)])
    return LayerTerms(pre, -overlap.reshape(-1, coupling.positions).sum(dim=1), weights)


class Edges(NamedTuple):
    """Of the edges of one coupling: their part of the cavity ω and V (factors, outputs), and what they count twice
    (factors,)."""

    omega: Tensor
    V: Tensor
    overlap: Tensor


def _edges(part: Part, up: Up, factor: Factor, below: Preactivation | None) -> Edges:
    """All edges of one coupling, some factors at a time."""
    coupling, cavities = part.site.coupling, _cavities(part, up, factor)
    response = Response(*(coupling.factors(t).unsqueeze(2) for t in factor.response))
    weights, inputs = _WeightEdges(part, response), _InputEdges(part, response, below)
    found = []
    for rows in row_chunks(len(cavities.weights), cavities.weights[0].numel(), CACHED_EDGES):
        (m, sigma), doubled = weights.without(cavities.to_weights[rows], rows)
        (x, delta), doubled_inputs = inputs.without(cavities.to_inputs[rows], rows)
        assert sigma is not None
        V = (sigma * x.square()).sum(dim=2)
        if delta is not None:
            V = V + ((m.square() + sigma) * delta).sum(dim=2)
        found.append(Edges((m * x).sum(dim=2), V, doubled + doubled_inputs))
    return Edges(*map(torch.cat, zip(*found, strict=True)))


def _cavities(part: Part, up: Up, factor: Factor) -> Cavities:
    """The messages of every edge. BPI keeps none; in its first iteration BP sends the same."""
    site, state, inputs = part
    if state.previous is None:
        below = None if site.below is None else up.below
        return BP().down(site, state, up._replace(inputs=inputs, below=below), factor, EXACT, True).previous  # type: ignore[no-any-return]
    assert isinstance(state.previous, Cavities)
    return state.previous


class _WeightEdges:
    """m_{ki→n}, σ_{ki→n} and ψ(h, λ) − ψ(h − H_n, λ − G_n)."""

    def __init__(self, part: Part, response: Response) -> None:
        site, self.state, (x, delta) = part
        coupling, self.prior = site.coupling, site.prior
        self.full = self.prior.value(self.state.natural)
        if self.prior.uses_precision:
            spread = torch.zeros_like(x) if delta is None else delta
            self.square = coupling.with_constant(coupling.gather(x.square() + spread), 1.0).unsqueeze(1)
            self.delta = coupling.with_constant(coupling.gather(spread), 0.0).unsqueeze(1)
            self.g, self.gamma = response

    def without(self, sent: Tensor, rows: slice) -> tuple[Moments, Tensor]:
        """For what the factors have sent, H_n (rows, outputs, columns): moments per edge and sums (rows,)."""
        (h, precision), mask = self.state.natural, self.state.mask
        if precision is not None:
            precision = precision - (self.square[rows] * self.gamma[rows] - self.delta[rows] * self.g[rows].square())
        cavity = Fields(h - sent, precision)
        m, sigma = self.prior.moments(cavity)
        assert sigma is not None
        doubled = unmasked(self.full - self.prior.value(cavity), mask).sum(dim=(1, 2))
        return Moments(unmasked(m, mask), unmasked(sigma, mask)), doubled


class _InputEdges:
    """x̂_{in→k}, Δ_{in→k} and φ_in(B, A) − φ_in(B − B_k, A − A_k)."""

    def __init__(self, part: Part, response: Response, below: Preactivation | None) -> None:
        site, state, inputs = part
        coupling = site.coupling
        self.coupling, self.below, self.moments, self.response = coupling, site.below, state.moments, response
        self.x = coupling.with_constant(coupling.gather(inputs.mean), 1.0).unsqueeze(1)
        if site.below is None:
            return
        assert below is not None
        assert state.down is not None
        B, A = state.down
        self.real = coupling.gather(torch.ones_like(below.mean)).unsqueeze(1)
        # As in BP: a padded input has variance 0, which no channel takes.
        omega, V = (coupling.gather(t).unsqueeze(1) for t in below)
        self.pre = Preactivation(omega, V + (1 - self.real))
        self.down = Fields(coupling.gather(B).unsqueeze(1), None if A is None else coupling.gather(A).unsqueeze(1))
        self.full = site.below.value(self.down, self.pre)

    def without(self, sent: Tensor, rows: slice) -> tuple[Moments, Tensor]:
        """For what the factors have sent, B_k (rows, outputs, columns): moments per edge and sums (rows,)."""
        if self.below is None:
            return Moments(self.x[rows], None), sent.new_zeros(len(sent))
        coupling, (B, A) = self.coupling, self.down
        if A is not None:
            (m, sigma), g, gamma = self.moments, self.response.gradient[rows], self.response.curvature[rows]
            assert sigma is not None
            A = A[rows] - coupling.without_constant((m.square() + sigma) * gamma - sigma * g.square())
        cavity = Fields(B[rows] - coupling.without_constant(sent), A)
        pre = Preactivation(self.pre.mean[rows], self.pre.variance[rows])
        x, delta = self.below.moments(cavity, pre)
        assert delta is not None
        real = self.real[rows]
        doubled = (real * (self.full[rows] - self.below.value(cavity, pre))).sum(dim=(1, 2))
        return Moments(coupling.with_constant(x * real, 1.0), coupling.with_constant(delta * real, 0.0)), doubled
