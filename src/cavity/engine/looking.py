"""Which series is good enough for a layer, found by looking: a few sums are evaluated exactly and by every candidate.

The sums looked at are those of the units and samples where a polynomial fits worst. A candidate that is good enough
there has its worst factors done exactly, so it is looked at once more where it fits worst of what is left. If it passes
in full precision, it is tried in half.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from cavity.core.algorithms.series import (
    coefficients,
    factor_misfits,
    largest_edge,
    scale_of,
    series_sums,
    worst_factors,
)
from cavity.core.algorithms.sums import Sums, exact_sums
from cavity.core.arithmetic import EXACT, Arithmetic, Series
from cavity.core.couplings.base import Coupling
from cavity.core.couplings.dense import Dense
from cavity.core.messages import Preactivation, relayout
from cavity.core.state import Factor
from cavity.engine.half import half_pays

#: What may be chosen from: orders, and shares of factors done exactly.
ORDERS = (1, 2, 3, 4, 6, 8)
SHARES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.2)
#: The cost of evaluating every edge exactly, in matrix products (docs/benchmarks.md): what a share is weighed with.
EXACT_COST = 150.0
#: Likewise, of evaluating g once for every factor, and of finding the worst factors.
GRADIENT_COST, SEARCH_COST = 0.2, 1.5
#: The entries that fit worst are looked at, but weights move until the next look: choose for less than the tolerance.
#: Once the largest edge is within reach of the smallest √V, one mini-batch in a few holds factors that fit ten times
#: worse: choose for much less, and never without a share of exact factors, which catches them wherever they come.
MARGIN, CAREFUL_MARGIN = 0.7, 0.25
CAREFUL_REACH, CAREFUL_ROWS = 0.3, 128
#: The order until the first look, whose misfits say where to look first.
FIRST_ORDER = 3
#: Units and factors that are looked at, and about how many factors the sums of H are taken over.
PROBE_UNITS, PROBE_ROWS, PROBE_SUM = 8, 4, 128


def cost(series: Series, want_inputs: bool) -> float:
    """What a series costs, in matrix products of full precision."""
    products = series.order + 1 + series.share * EXACT_COST
    search = SEARCH_COST if series.share > 0 else 0.0
    return (2 if want_inputs else 1) * products + GRADIENT_COST * (series.order + 1) + search


def candidates(want_inputs: bool, density: float = 1.0) -> list[Series]:
    """All series that are cheaper than exact evaluation of that part of the edges, the cheapest first."""
    found = [(cost(Series(order, share), want_inputs), Series(order, share)) for order in ORDERS for share in SHARES]
    return [series for products, series in sorted(found) if products < density * EXACT_COST]


def careful_reach(rows: int) -> float:
    """T/√V from which on a layer needs care. What order 2 leaves of one factor grows with its cube, and weighs less in
    a field that ``rows`` factors add to, which grows like their root at least."""
    return float(CAREFUL_REACH * max(1.0, rows / CAREFUL_ROWS) ** (1 / 6))


class Look(NamedTuple):
    """Some factors (rows, units) with all their edges, as a layer of its own, and its exact sums."""

    rows: Tensor
    units: Tensor
    coupling: Dense
    factor: Factor
    m: Tensor
    X: Tensor
    exact: Sums


class Looks(NamedTuple):
    """Some units with many samples, some samples with all units where sums over units are wanted, and the largest
    entries of H and B that are known."""

    by_unit: Look
    by_row: Look | None
    largest_H: float
    largest_B: float


def look(coupling: Coupling, factor: Factor, m: Tensor, X: Tensor, rows: Tensor, units: Tensor) -> Look:
    """The factors of ``rows`` and ``units``, evaluated edge by edge."""

    def pick(tensor: Tensor) -> Tensor:
        return coupling.factors(tensor)[rows][:, units]

    part = Factor(factor.channel, relayout(factor.message, pick), Preactivation(*map(pick, factor.pre)))
    m, X = m[units], X[rows]
    alone = Dense(m.shape[1], m.shape[0])
    return Look(rows, units, alone, part, m, X, exact_sums(alone, part, m, X, True))


def choose(
    coupling: Coupling,
    factor: Factor,
    m: Tensor,
    x: Tensor,
    want_inputs: bool,
    tolerance: float,
    density: float = 1.0,
) -> Arithmetic:
    """The series that is cheapest in full precision of those within a part of ``tolerance`` on the entries looked at,
    in half precision where that is good enough too; edge by edge if none is cheaper than ``density`` of all edges.
    Waits for the device."""
    X = coupling.with_constant(coupling.gather(x), 1.0)
    reach = scale_of(largest_edge(m, x, coupling.bias))
    careful = bool(reach > careful_reach(len(X)) * factor.pre.variance.min().sqrt())
    tolerance = (CAREFUL_MARGIN if careful else MARGIN) * tolerance

    @cache
    def misfits(order: int) -> Tensor:
        c = coefficients(factor.channel.gradient, factor.message, factor.pre, reach, order)
        return factor_misfits(coupling, factor, reach, c)

    def looks(gaps: Tensor, largest_H: float = 0.0, largest_B: float = 0.0) -> Looks:
        rows = torch.arange(0, len(X), max(1, len(X) // PROBE_SUM), device=m.device)
        by_unit = look(coupling, factor, m, X, rows, worst(gaps.sum(dim=0), PROBE_UNITS))
        largest_H = max(largest_H, largest(by_unit.exact.weights))
        if not want_inputs:
            return Looks(by_unit, None, largest_H, largest_B)
        units = torch.arange(len(m), device=m.device)
        by_row = look(coupling, factor, m, X, worst(gaps.sum(dim=1), PROBE_ROWS), units)
        return Looks(by_unit, by_row, largest_H, max(largest_B, largest(by_row.exact.inputs)))

    def good(seen: Looks, how: Arithmetic, exactly: Tensor | None) -> bool:
        # An error that is not a number is no agreement.
        return error(seen, how, reach, exactly) <= tolerance

    first = looks(misfits(FIRST_ORDER))
    for series in candidates(want_inputs, density):
        if careful and series.share == 0:
            continue
        full = Arithmetic(series)
        exactly = chosen_factors(misfits(series.order), series.share) if series.share > 0 else None
        if not good(first, full, exactly):
            continue
        seen = [first]
        if exactly is not None:
            # The worst factors are exact now: look at the worst of those that are left.
            left = misfits(series.order).masked_fill(exactly, 0.0)
            seen.append(looks(left, first.largest_H, first.largest_B))
            if not good(seen[-1], full, exactly):
                continue
        if not half_pays(x, len(X) * m.numel()):
            return full
        halved = Arithmetic(series, half=True)
        return halved if all(good(one, halved, exactly) for one in seen) else full
    return EXACT


def chosen_factors(misfits: Tensor, share: float) -> Tensor:
    """Which factors (factors, outputs) of the whole layer are evaluated edge by edge: those looked at are among the
    worst, and have more than their share of them."""
    chosen = torch.zeros(misfits.numel(), dtype=torch.bool, device=misfits.device)
    chosen[worst_factors(misfits, share)] = True
    return chosen.view(misfits.shape)


def worst(gaps: Tensor, count: int) -> Tensor:
    """The indices of the ``count`` largest gaps."""
    return torch.topk(gaps, min(count, len(gaps))).indices


def error(looks: Looks, how: Arithmetic, reach: Tensor, exactly: Tensor | None) -> float:
    """The error of H_ki = Σ_n x̂_in g_{kn→i} over the units looked at, and of B_in = Σ_k m_ki g_{kn→i} over the
    samples, relative to the largest entry; the larger of both."""
    by_unit, by_row = looks.by_unit, looks.by_row
    H = sums_of(by_unit, how, reach, exactly, want_inputs=False).weights
    on_weights = largest(H - by_unit.exact.weights) / (looks.largest_H or 1.0)
    if by_row is None:
        return on_weights
    B, exact_B = sums_of(by_row, how, reach, exactly, want_inputs=True).inputs, by_row.exact.inputs
    assert B is not None
    assert exact_B is not None
    return max(on_weights, largest(B - exact_B) / (looks.largest_B or 1.0))


def sums_of(seen: Look, how: Arithmetic, reach: Tensor, exactly: Tensor | None, want_inputs: bool) -> Sums:
    """The sums of the factors looked at as the whole layer would evaluate them."""
    mine = None if exactly is None else exactly[seen.rows][:, seen.units].reshape(-1).nonzero().squeeze(1)
    assert how.series is not None
    return series_sums(seen.coupling, seen.factor, seen.m, seen.X, how.series, want_inputs, how.half, reach, mine)


def largest(entries: Tensor | None) -> float:
    """max|entries|; 0 if there are none."""
    return 0.0 if entries is None else float(entries.abs().max())


def relative_error(guess: Tensor, exact: Tensor) -> float:
    """max|guess − exact| / max|exact|; absolute if there is nothing but zeros."""
    return largest(guess - exact) / (largest(exact) or 1.0)
