"""The Bethe form: factors and variables, less what the edges between them count twice.

    log Z = Σ_kn φ_kn(B, A, ω, V) + Σ_ki [ψ(h, λ) − ψ(θ)] − Σ_kn,i [ψ(h, λ) − ψ(h − H_n, λ − G_n)]
          − Σ_kn,i [φ_in(B, A) − φ_in(B − B_k, A − A_k)]

H_n = x̂_{in→k} g_{kn→i}, G_n = (x̂² + Δ)Γ − Δg² and B_k, A_k are what one factor says. ω and V are made of cavity means
and cavity variances: the functional is one of the messages alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from cavity.core.algorithms.bp import Cavities
from cavity.core.algorithms.sums import row_chunks
from cavity.core.channels.base import Activation
from cavity.core.entropy.terms import Terms, factor_term, from_above, unmasked, weight_term
from cavity.core.floors import VARIANCE_FLOOR
from cavity.core.messages import Fields, Moments, Preactivation, Response, Target
from cavity.core.state import LayerState, Site, Up


def bethe(sites: Sequence[Site], states: Sequence[LayerState], ups: Sequence[Up], target: Target) -> Terms:
    """The free entropy of all layers from the messages of every edge."""
    samples, weights = torch.zeros_like(ups[0].pre.mean.flatten(1)[:, 0]), []
    below: Preactivation | None = None
    for site, state, up, message in zip(sites, states, ups, from_above(states, target), strict=True):
        edges = layer_edges(site, state, up, message, below)
        below = edges.pre
        samples = samples + factor_term(site.channel, message, below) - edges.overlap
        weights.append(weight_term(site.prior, state))
    return Terms(samples, torch.stack(weights))


class Edges(NamedTuple):
    """(ω, V) from the cavities of one layer, and what its edges count twice, (samples,)."""

    pre: Preactivation
    overlap: Tensor


def layer_edges(site: Site, state: LayerState, up: Up, message: Fields | Target, below: Preactivation | None) -> Edges:
    """All edges of one layer, some factors at a time; ``below`` is (ω, V) of the layer that the inputs come from."""
    coupling, cavities = site.coupling, state.memory
    assert isinstance(cavities, Cavities)
    response = Response(*(coupling.factors(t).unsqueeze(2) for t in site.channel.response(message, up.pre)))
    weights, inputs = _WeightEdges(site, state, up, response), _InputEdges(site, state, up, response, below)
    rows_of = cavities.weights.new_empty
    omega, V, overlap = rows_of(cavities.weights.shape[:2]), rows_of(cavities.weights.shape[:2]), []
    for rows in row_chunks(len(omega), cavities.weights[0].numel()):
        (m, sigma), doubled = weights.without(cavities.to_weights[rows], rows)
        (x, delta), doubled_inputs = inputs.without(cavities.to_inputs[rows], rows)
        assert sigma is not None
        omega[rows] = (m * x).sum(dim=2)
        V[rows] = (sigma * x.square()).sum(dim=2)
        if delta is not None:
            V[rows] += ((m.square() + sigma) * delta).sum(dim=2)
        overlap.append(doubled + doubled_inputs)
    pre = Preactivation(coupling.preactivations(omega), coupling.preactivations(V).clamp_min(VARIANCE_FLOOR))
    return Edges(pre, torch.cat(overlap).reshape(-1, coupling.positions).sum(dim=1))


class _WeightEdges:
    """m_{ki→n}, σ_{ki→n} and ψ(h, λ) − ψ(h − H_n, λ − G_n)."""

    def __init__(self, site: Site, state: LayerState, up: Up, response: Response) -> None:
        coupling = site.coupling
        self.prior, self.state = site.prior, state
        self.full = site.prior.value(state.natural)
        if site.prior.uses_precision:
            x, delta = up.inputs
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

    def __init__(self, site: Site, state: LayerState, up: Up, response: Response, below: Preactivation | None) -> None:
        coupling = site.coupling
        self.coupling, self.below, self.moments, self.response = coupling, site.below, state.moments, response
        self.x = coupling.with_constant(coupling.gather(up.inputs.mean), 1.0).unsqueeze(1)
        if site.below is None:
            return
        assert isinstance(site.below, Activation)
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
        assert isinstance(self.below, Activation)
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
