"""Belief propagation with true cavity means (paper, appendix "BP equations").

    m_{ki→n} = ∂_H ψ(H_ki − x̂_{in→k} g_{kn→i}),   x̂_{in→k} = ∂_B φ(B_in − m_{ki→n} g_{kn→i}, A_in, ω_in, V_in)
    ω_kn = Σ_i m_{ki→n} x̂_{in→k},                 g_{kn→i} = ∂_ω φ(ω_kn − m_{ki→n} x̂_{in→k}, V_kn)
    B_in = Σ_k m_{ki→n} g_{kn→i},                  H_ki = Σ_n x̂_{in→k} g_{kn→i}

Variances (V, A, G, Γ) use the full means, as in the paper. In the first iteration no message has been sent, every
cavity mean is the full one, and the equations are BPI's. Later iterations keep three numbers per edge and sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from cavity.core.algorithms.base import Algorithm, Down
from cavity.core.algorithms.series import cavity_sums
from cavity.core.algorithms.sums import CACHED_EDGES, row_chunks
from cavity.core.arithmetic import Arithmetic
from cavity.core.couplings.base import Coupling
from cavity.core.messages import Fields, Moments, Preactivation
from cavity.core.state import Factor, LayerState, Site, Up


class Cavities(NamedTuple):
    """Messages of every edge, (factors, outputs, columns), overwritten in place: they are the largest thing held."""

    #: m_{ki→n}
    weights: Tensor
    #: m_{ki→n} g_{kn→i}, what B_in must leave out
    to_inputs: Tensor
    #: x̂_{in→k} g_{kn→i}, what H_ki must leave out
    to_weights: Tensor


class BP(Algorithm):
    """Cavities on m, x̂ and g."""

    name: ClassVar[str] = "bp"
    summary: ClassVar[str] = "belief propagation: cavities in weights, inputs and responses"
    colour: ClassVar[str] = "#2b6cb0"
    corrections: ClassVar[Literal["none", "first order", "cavity sums"]] = "cavity sums"
    keeps_edges: ClassVar[bool] = True

    def numbers_held(self, couplings: Sequence[Coupling], samples: int, iterations: int) -> int:
        if iterations == 1:
            return 0
        edges = (c.outputs * c.columns * c.positions for c in couplings)
        return len(Cavities._fields) * samples * sum(edges)

    def up(self, site: Site, state: LayerState, inputs: Moments, below: Preactivation | None) -> Tensor:
        cavities: Cavities | None = state.previous
        if cavities is None:
            return site.coupling.apply(state.moments.mean, inputs.mean)
        omega = cavities.weights.new_empty(cavities.weights.shape[:2])
        edges = _Edges(site, state, inputs, below)
        for rows in row_chunks(len(omega), cavities.weights[0].numel(), CACHED_EDGES):
            m = edges.refresh_weights(cavities, rows)
            omega[rows] = (m * edges.inputs_without(cavities, rows)).sum(dim=2)
        return site.coupling.preactivations(omega)

    def down(
        self, site: Site, state: LayerState, up: Up, factor: Factor, arithmetic: Arithmetic, remember: bool
    ) -> Down:
        coupling, m = site.coupling, state.moments.mean
        if state.previous is None and not remember:
            B, H = cavity_sums(site, factor, m, up.inputs.mean, arithmetic, state.columns)
            return Down(B, H)
        edges = _Edges(site, state, up.inputs, up.below)
        cavities = _fresh(m, len(edges.x)) if state.previous is None else state.previous
        by_edge = _Uncoupled(factor, coupling) if site.channel.elementwise else _Coupled(factor, coupling)
        B_rows, H = torch.empty_like(edges.x), torch.zeros_like(m)
        often = coupling.counted(torch.ones_like(edges.x[:, :1])).unsqueeze(2)
        for rows in row_chunks(len(edges.x), m.numel(), CACHED_EDGES):
            m_out = cavities.weights[rows]
            x_out = edges.inputs_without(cavities, rows)
            g = by_edge.gradient(rows, m_out * x_out)
            cavities.to_inputs[rows] = m_out * g
            cavities.to_weights[rows] = x_out * g
            B_rows[rows] = cavities.to_inputs[rows].sum(dim=1)
            H += (cavities.to_weights[rows] * often[rows]).sum(dim=0)
        return Down(coupling.scatter(coupling.without_constant(B_rows)), H, cavities if remember else None)


def _fresh(m: Tensor, rows: int) -> Cavities:
    """Before any message: m_{ki→n} = m_ki, and nothing to leave out."""
    return Cavities(m.repeat(rows, 1, 1), m.new_zeros(rows, *m.shape), m.new_zeros(rows, *m.shape))


class _Edges:
    """Cavity means of one layer, computed for a few rows at a time."""

    def __init__(self, site: Site, state: LayerState, inputs: Moments, below: Preactivation | None) -> None:
        coupling = site.coupling
        self.site, self.state = site, state
        self.x = coupling.with_constant(coupling.gather(inputs.mean), 1.0)
        self.moving = below is not None and state.down is not None
        if below is not None and state.down is not None:
            self.B = coupling.gather(state.down.field)
            self.A = None if state.down.precision is None else coupling.gather(state.down.precision)
            self.omega = coupling.gather(below.mean)
            self.real = coupling.gather(torch.ones_like(below.mean))
            # A padded input has variance 0, which no channel takes: give it 1 and overwrite the result by x = 0.
            self.V = coupling.gather(below.variance) + (1 - self.real)

    def refresh_weights(self, cavities: Cavities, rows: slice) -> Tensor:
        """m_{ki→n} ← α m_{ki→n} + (1−α) ∂_H ψ at the posterior field less this factor's part, in place."""
        site, (h, precision) = self.site, self.state.natural
        natural = Fields(h - self.state.rate * cavities.to_weights[rows], precision)
        mean = site.prior.moments(natural).mean
        if self.state.mask is not None:
            mean = mean * self.state.mask
        m = cavities.weights[rows]
        m.copy_(torch.lerp(mean, m, self.state.rule.damping))
        return m

    def inputs_without(self, cavities: Cavities, rows: slice) -> Tensor:
        """x̂_{in→k} (rows, outputs, columns), or the full x̂ (rows, 1, columns) where nothing came down yet."""
        x = self.x[rows].unsqueeze(1)
        if not self.moving:
            return x
        assert self.site.below is not None
        coupling = self.site.coupling
        B = self.B[rows].unsqueeze(1) - coupling.without_constant(cavities.to_inputs[rows])
        A = None if self.A is None else self.A[rows].unsqueeze(1)
        pre = Preactivation(self.omega[rows].unsqueeze(1), self.V[rows].unsqueeze(1))
        x_out = self.site.below.moments(Fields(B, A), pre).mean * self.real[rows].unsqueeze(1)
        return coupling.with_constant(x_out, 1.0)


class _Uncoupled:
    """g_{kn→i} of an elementwise channel."""

    def __init__(self, factor: Factor, coupling: Coupling) -> None:
        self.factor = factor.by_edge(coupling)

    def gradient(self, rows: slice, edge: Tensor) -> Tensor:
        return self.factor.chunk(rows).gradient_without(edge)


class _Coupled:
    """g_kn, the same for every edge, of a channel that couples the units of a sample."""

    def __init__(self, factor: Factor, coupling: Coupling) -> None:
        self.g = coupling.factors(factor.gradient).unsqueeze(2)

    def gradient(self, rows: slice, edge: Tensor) -> Tensor:
        return self.g[rows].expand_as(edge)
