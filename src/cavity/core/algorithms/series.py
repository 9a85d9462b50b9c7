"""Cavity sums at the price of a few matrix products.

Where an edge is small against √V, t ↦ g(ω_kn − t) is close to a polynomial of low degree P on the range of the edges
t = m_ki x̂_in. With coefficients c_p (samples, outputs) the sums over edges factorise,

    B_in = Σ_p x̂_in^p Σ_k m_ki^{p+1} c_p,kn        H_ki = Σ_p m_ki^p Σ_n x̂_in^{p+1} c_p,kn

so that each order costs two products and no (samples, outputs, inputs) tensor exists. Order 0 is MF; the Taylor
polynomial of order 1 is AMP's first iteration. Interpolation is better than Taylor at every order: g is evaluated at P
+ 1 Chebyshev nodes of [−T, T], T = max|t|, and a small constant matrix turns the values into coefficients of t/T.

A polynomial fails at the few factors whose V has become small against their edges. These are found by looking at the
polynomial between its nodes and at the threshold; the worst ``share`` of them is taken out of the series and evaluated
edge by edge. One factor in a hundred done exactly is worth more than several orders.

All orders above 0 together are a few per cent of the sums until weights become certain, so that their products may be
computed in bfloat16 where that is faster and accurate enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cavity.core.algorithms.sums import Sums, exact_sums, full_sums, row_chunks
from cavity.core.arithmetic import Arithmetic, Series, multiply
from cavity.core.couplings.base import Coupling
from cavity.core.messages import Fields, Preactivation, Target, relayout
from cavity.core.state import Factor, Site

#: Numbers smaller than this become 0 before they enter a product: as units polarise g underflows, and denormal operands
#: slow a matrix product on the CPU several times. Fields are sums of numbers of order 1, which do not notice.
TINY = 1e-30

#: Neighbours of which only the maximum is sorted at first.
GROUP = 16

Gradient = Callable[[Any, Preactivation], Tensor]


def nodes(order: int) -> tuple[float, ...]:
    """Chebyshev nodes on [−1, 1]. From order 3 on they are stretched to reach the ends, where the edges of certain
    weights and units sit; below, the few nodes do better inside."""
    z = np.cos(np.pi * (2 * np.arange(order + 1) + 1) / (2 * order + 2))
    return tuple((z / z[0] if order >= 3 else z).tolist())


def to_monomials(z: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """The matrix that turns values at the nodes z into coefficients of 1, z, …, z^P."""
    return tuple(map(tuple, np.linalg.inv(np.vander(np.array(z), increasing=True)).tolist()))


#: Orders for which float32 still resolves the coefficients: they grow like 2^P.
LARGEST_ORDER = 12
#: Tables by order, because compiled code cannot make them: nodes, their matrix, and two places where a polynomial that
#: fails shows it: the ends, where they are no nodes, else between the outermost nodes.
NODES = {order: nodes(order) for order in range(1, LARGEST_ORDER + 1)}
TO_MONOMIALS = {order: to_monomials(z) for order, z in NODES.items()}
CHECKS = {order: (1.0, -1.0) if z[0] < 1 else ((z[0] + z[1]) / 2, (z[-2] + z[-1]) / 2) for order, z in NODES.items()}


def flush(t: Tensor) -> Tensor:
    """t with everything below TINY set to 0."""
    return torch.where(t.abs() < TINY, 0.0, t)


def coefficients(
    gradient: Gradient, message: Fields | Target, pre: Preactivation, reach: Tensor, order: int
) -> list[Tensor]:
    """c_p, p = 0…P, shaped like ω, of the polynomial in z = t/reach that interpolates g(ω − t, V)."""
    values = [gradient(message, Preactivation(pre.mean - reach * z, pre.variance)) for z in NODES[order]]
    return [flush(_mix(row, values)) for row in TO_MONOMIALS[order]]


def _mix(weights: tuple[float, ...], values: list[Tensor]) -> Tensor:
    total = weights[0] * values[0]
    for weight, value in zip(weights[1:], values[1:], strict=True):
        total = total + weight * value
    return total


def misfit(gradient: Gradient, message: Fields | Target, pre: Preactivation, reach: Tensor, c: list[Tensor]) -> Tensor:
    """How far the polynomial is from g where it is likely to fail, shaped like ω: at the ends or between the outermost
    nodes, and where an edge brings ω closest to 0, the threshold at which every channel turns."""
    turning = (pre.mean / reach).clamp(-1.0, 1.0)
    result = torch.zeros_like(pre.mean)
    for z in (*CHECKS[len(c) - 1], turning):
        there = gradient(message, Preactivation(pre.mean - reach * z, pre.variance))
        result = torch.maximum(result, (horner(z, c) - there).abs())
    return result


def horner(t: Tensor | float, terms: list[Tensor]) -> Tensor:
    """Σ_p t^p terms_p. The difference is a sum in disguise: the compiler would make a sum part of the matrix product
    that gives the term, which costs a pass over the weights for each order instead of one for all."""
    total = terms[-1]
    for term in reversed(terms[:-1]):
        total = term - (-t) * total
    return total


def powers(first: Tensor, t: Tensor, count: int) -> list[Tensor]:
    """first, first·t, …, first·t^(count−1)."""
    result = [first]
    for _ in range(count - 1):
        result.append(flush(result[-1] * t))
    return result


def largest_edge(m: Tensor, x: Tensor, bias: bool) -> Tensor:
    """max|m|·max|x̂|, 0-dimensional; the bias's constant input counts."""
    top = x.abs().amax()
    return m.abs().amax() * (top.clamp_min(1.0) if bias else top)


def scale_of(largest: Tensor) -> Tensor:
    """T from the largest edges: 1 where every edge is 0. Any T serves there, but powers of x̂/T must stay finite."""
    return torch.where(largest < TINY, 1.0, largest)


def cavity_sums(
    site: Site, factor: Factor, m: Tensor, x: Tensor, arithmetic: Arithmetic, columns: Tensor | None = None
) -> Sums:
    """B_in = Σ_k m_ki g_{kn→i} and H_ki = Σ_n x̂_in g_{kn→i}. A channel that couples the units of a sample, such as
    ArgMax, has no edge that could be taken out of it: there g_{kn→i} = g_kn."""
    if not site.channel.elementwise:
        return full_sums(site, factor.gradient, m, x)
    want_inputs = site.below is not None
    if arithmetic.series is None:
        return exact_sums(site.coupling, factor, m, x, want_inputs, columns, arithmetic.fuse)
    half, reach = arithmetic.half, arithmetic.reach
    return series_sums(site.coupling, factor, m, x, arithmetic.series, want_inputs, half, reach)


def series_sums(
    coupling: Coupling,
    factor: Factor,
    m: Tensor,
    x: Tensor,
    series: Series,
    want_inputs: bool,
    half: bool = False,
    reach: Tensor | None = None,
    worst: Tensor | None = None,
) -> Sums:
    """B and H from means m (outputs, columns) and x̂ (samples, *input_shape); if this is part of a larger layer,
    ``reach`` is its T, and ``worst`` are the factors here that it evaluates edge by edge."""
    reach = scale_of(largest_edge(m, x, coupling.bias)) if reach is None else reach
    c = coefficients(factor.channel.gradient, factor.message, factor.pre, reach, series.order)
    if series.share > 0:
        if worst is None:
            worst = worst_factors(factor_misfits(coupling, factor, reach, c), series.share)
        c = [coupling.preactivations(_without(coupling.factors(c_p), worst)) for c_p in c]
    sums = products(coupling, c, m, x, reach, want_inputs, half)
    return sums if worst is None else _add_exact(coupling, factor, m, x, worst, sums)


def factor_misfits(coupling: Coupling, factor: Factor, reach: Tensor, c: list[Tensor]) -> Tensor:
    """How far the polynomial with coefficients c is from g, (factors, outputs)."""
    return coupling.factors(misfit(factor.channel.gradient, factor.message, factor.pre, reach, c))


def worst_factors(misfits: Tensor, share: float) -> Tensor:
    """Indices into (factors · outputs) of the ``share`` with the largest misfits, one at least. The largest n are in
    the n groups of neighbours with the largest maxima: to sort those takes a fraction of the time."""
    rows, outputs = misfits.shape
    count = max(1, int(share * misfits.numel()))
    if count * GROUP * GROUP > misfits.numel():
        return torch.topk(misfits.reshape(-1), count, sorted=False).indices
    groups = torch.nn.functional.pad(misfits, (0, -outputs % GROUP), value=-1.0).view(-1, GROUP)
    first = torch.topk(groups.amax(dim=1), count, sorted=False).indices
    found = torch.topk(groups[first].view(-1), count, sorted=False).indices
    group, place = first[found // GROUP], found % GROUP
    width = len(groups) // rows
    return group // width * outputs + group % width * GROUP + place


def _without(rows: Tensor, worst: Tensor) -> Tensor:
    """Coefficients (factors, outputs) with those of the worst factors set to 0."""
    return rows.reshape(-1).index_fill(0, worst, 0.0).view(rows.shape)


def products(
    coupling: Coupling, c: list[Tensor], m: Tensor, x: Tensor, reach: Tensor | float, want_inputs: bool, half: bool
) -> Sums:
    """The sums over p, with the scale of z = t/T put on the side of x̂. The constant input of a bias is 1/T there.
    Order 0 is most of them, and always in full precision."""
    z = x / reach
    x_powers = enumerate(powers(x, z, len(c)))
    terms = [multiply(coupling.back_to_weights, c[p], x_p, half and p > 0) for p, x_p in x_powers]
    if coupling.bias:
        terms = [_scale_last_column(term, reach, power) for power, term in enumerate(terms)]
    H = horner(m, terms)
    if not want_inputs:
        return Sums(None, H)
    m_powers = enumerate(powers(m, m, len(c)))
    sums = [multiply(coupling.back_to_inputs, m_p, c[p], half and p > 0) for p, m_p in m_powers]
    return Sums(horner(z.reshape(sums[0].shape), sums), H)


def _scale_last_column(term: Tensor, reach: Tensor | float, power: int) -> Tensor:
    """The bias's input is 1, so its z is 1/T: divide its column by T^power."""
    if power == 0:
        return term
    return torch.cat([term[:, :-1], term[:, -1:] / reach**power], dim=1)


def edge_gradients(
    gradient: Gradient, message: Fields | Target, pre: Preactivation, m: Tensor, X: Tensor
) -> tuple[Tensor, Tensor]:
    """m g and x̂ g (factors, columns) of single factors: message and (ω, V) are (factors, 1), m and X (factors,
    columns)."""
    g = gradient(message, Preactivation(pre.mean - m * X, pre.variance))
    return m * g, X * g


def _add_exact(coupling: Coupling, factor: Factor, m: Tensor, x: Tensor, worst: Tensor, sums: Sums) -> Sums:
    """Add the edges of the worst factors, given as indices into (factors · outputs), to B and H."""
    X = coupling.with_constant(coupling.gather(x), 1.0)
    often = coupling.counted(torch.ones_like(X[:, :1]))
    row, unit = worst // m.shape[0], worst % m.shape[0]
    B_rows = None if sums.inputs is None else torch.zeros_like(X)
    H = sums.weights

    def pick(tensor: Tensor) -> Tensor:
        return coupling.factors(tensor).reshape(-1)[worst].unsqueeze(1)

    message = relayout(factor.message, pick)
    pre = Preactivation(pick(factor.pre.mean), pick(factor.pre.variance))
    for part in row_chunks(len(worst), m.shape[1]):
        r, k = row[part], unit[part]
        chunk = Preactivation(pre.mean[part], pre.variance[part])
        told = relayout(message, lambda tensor, part=part: tensor[part])  # type: ignore[misc]
        to_inputs, to_weights = edge_gradients(factor.channel.gradient, told, chunk, m[k], X[r])
        H = H.index_add(0, k, to_weights * often[r])
        if B_rows is not None:
            B_rows.index_add_(0, r, to_inputs)
    if B_rows is None:
        return Sums(None, H)
    assert sums.inputs is not None
    return Sums(sums.inputs + coupling.scatter(coupling.without_constant(B_rows)), H)
