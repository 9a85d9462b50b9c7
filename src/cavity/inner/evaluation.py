"""How a layer's cavity sums are evaluated: exactly, by a series of fixed order, or by the cheapest series that is good
enough.

Good enough is measured, not estimated: every few mini-batches the sums of a few units and a few samples are evaluated
exactly, those where a polynomial fits worst, and the cheapest series whose B and H agree with them to the tolerance,
relative to the largest entry, serves until the next look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import Tensor

from cavity.couplings.base import Coupling
from cavity.couplings.dense import Dense
from cavity.fusion import EAGER
from cavity.inner.algorithm import Factor, Series, Site
from cavity.inner.cavity import Sums, exact_sums
from cavity.inner.series import LARGEST_ORDER, coefficients, largest_edge, misfit, series_sums
from cavity.messages import Fields, Preactivation, Target, relayout

if TYPE_CHECKING:
    from cavity.distributed import Team

Accuracy = float | int | Literal["exact"] | None

#: The tolerance on B and H relative to their largest entry that training uses unless told otherwise.
DEFAULT_TOLERANCE = 1e-3
#: Layers with fewer edges per mini-batch than this are evaluated exactly: it costs no more than the series.
SMALL_EDGES = 1 << 18
#: Until the first look, and on devices where nothing can be looked at.
FIRST = Series(order=3)
#: What may be chosen from: orders, and shares of factors done exactly.
ORDERS = (1, 2, 3, 4, 6, 8)
SHARES = (0.0, 0.003, 0.01, 0.03, 0.05, 0.1, 0.2)
#: The cost of evaluating every edge exactly, in matrix products (docs/benchmarks.md): what a share is weighed with.
EXACT_COST = 150.0
#: The entries that fit worst are looked at, but weights move until the next look: choose for less than the tolerance.
#: Once the largest edge is within reach of the smallest √V, one mini-batch in a few holds factors that fit ten times
#: worse: choose for much less, and never without a share of exact factors, which catches them wherever they come.
MARGIN, CAREFUL_MARGIN = 0.7, 0.25
CAREFUL_REACH = 0.3
#: The costliest series of so many looks is used.
REMEMBERED = 8
#: Looks at mini-batch 0, 1, 2, 4, … and then every so many.
INTERVAL = 256
#: Units and factors that are looked at, and about how many factors the sums of H are taken over.
PROBE_UNITS, PROBE_ROWS, PROBE_SUM = 8, 4, 128


class Cost(NamedTuple):
    """A candidate and what it costs in matrix products."""

    products: float
    series: Series


def candidates(want_inputs: bool, density: float = 1.0) -> list[Series]:
    """All series that are cheaper than exact evaluation of that part of the edges, the cheapest first."""
    per_order = 2 if want_inputs else 1
    costs = [
        Cost(per_order * (order + 1) + share * EXACT_COST * per_order, Series(order, share))
        for order in ORDERS
        for share in SHARES
    ]
    return [cost.series for cost in sorted(costs) if cost.products < density * EXACT_COST]


def check_accuracy(accuracy: Accuracy) -> Accuracy:
    """ValueError unless it is None, 'exact', an order or a tolerance in (0, 1)."""
    if accuracy is None or accuracy == "exact":
        return accuracy
    if isinstance(accuracy, int) and not isinstance(accuracy, bool) and 1 <= accuracy <= LARGEST_ORDER:
        return accuracy
    if isinstance(accuracy, float) and 0 < accuracy < 1:
        return accuracy
    raise ValueError(
        f"accuracy must be None, 'exact', an order (integer from 1 to {LARGEST_ORDER}) or a tolerance "
        f"(float in (0, 1)), got {accuracy!r}"
    )


class Plan(NamedTuple):
    """The series in use, None for edge by edge, and whether it is time to choose anew."""

    series: Series | None
    due: bool


def edges(site: Site, samples: int) -> int:
    """Edges of a layer that a mini-batch evaluates: weights times samples times positions."""
    coupling = site.coupling
    return coupling.outputs * coupling.columns * coupling.positions * samples


class Evaluation:
    """The choice for one layer, and what it currently is."""

    def __init__(self, accuracy: Accuracy = None) -> None:
        self.accuracy = check_accuracy(accuracy)
        self.series: Series | None = FIRST
        #: What the last looks chose.
        self.recent: list[Series | None] = []
        self.calls = 0

    def plan(self, site: Site, x: Tensor, samples: int | None = None) -> Plan:
        """How to evaluate the layer's sums for mini-batch x, or this part of one of ``samples``; the counter of
        mini-batches goes on."""
        if not site.channel.elementwise or self.accuracy == "exact":
            return Plan(None, False)
        if isinstance(self.accuracy, int):
            return Plan(Series(self.accuracy), False)
        if self.accuracy is None and (x.dtype == torch.float64 or edges(site, samples or len(x)) < SMALL_EDGES):
            return Plan(None, False)
        due = self._due() and x.device.type != "meta"
        self.calls += 1
        return Plan(self.series, due)

    def look(
        self,
        site: Site,
        m: Tensor,
        x: Tensor,
        message: Fields | Target,
        pre: Preactivation,
        team: Team | None = None,
        columns: Tensor | None = None,
    ) -> Series | None:
        """Choose anew for means m (outputs, columns) and x̂ (samples, *input_shape); None is edge by edge, which costs
        less where only ``columns`` (outputs, d) are evaluated. Of several processes, each looks at its own samples, and
        the costliest of their choices counts for all."""
        tolerance = DEFAULT_TOLERANCE if self.accuracy is None else float(self.accuracy)
        factor, want_inputs = Factor(site.channel, message, pre), site.below is not None
        density = 1.0 if columns is None else columns.shape[1] / m.shape[1]
        chosen = choose(site.coupling, factor, m, x, want_inputs, tolerance, density)
        ordered = [*candidates(want_inputs), None]
        if team is not None:
            chosen = ordered[int(team.largest(torch.tensor([ordered.index(chosen)])))]
        # Edge by edge costs too much to be kept up for what one mini-batch needed.
        self.recent = [*(series for series in self.recent if series is not None), chosen][-REMEMBERED:]
        self.series = max(self.recent, key=ordered.index)
        return self.series

    def _due(self) -> bool:
        return self.calls % INTERVAL == 0 if self.calls >= INTERVAL else self.calls & (self.calls - 1) == 0

    def state_dict(self) -> dict[str, Any]:
        series, *recent = (None if one is None else list(one) for one in (self.series, *self.recent))
        return {"calls": self.calls, "series": series, "recent": recent}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.calls = state["calls"]
        self.series, *self.recent = (
            None if one is None else Series(*one) for one in (state["series"], *state.get("recent", ()))
        )


class Look(NamedTuple):
    """Some factors (rows, units) with all their edges, as a layer of its own, and its exact sums."""

    coupling: Dense
    factor: Factor
    m: Tensor
    X: Tensor
    exact: Sums


def look(coupling: Coupling, factor: Factor, m: Tensor, X: Tensor, rows: Tensor, units: Tensor) -> Look:
    """The factors of ``rows`` and ``units``, evaluated edge by edge."""

    def pick(tensor: Tensor) -> Tensor:
        return coupling.factors(tensor)[rows][:, units]

    part = Factor(factor.channel, relayout(factor.message, pick), Preactivation(*map(pick, factor.pre)))
    m, X = m[units], X[rows]
    alone = Dense(m.shape[1], m.shape[0])
    return Look(alone, part, m, X, exact_sums(alone, part, m, X, True, EAGER))


def choose(
    coupling: Coupling,
    factor: Factor,
    m: Tensor,
    x: Tensor,
    want_inputs: bool,
    tolerance: float,
    density: float = 1.0,
) -> Series | None:
    """The cheapest series within a part of ``tolerance`` on the entries looked at; None if there is none that is
    cheaper than ``density`` of all edges. Waits for the device."""
    X = coupling.with_constant(coupling.gather(x), 1.0)
    reach = largest_edge(m, x, coupling.bias)
    careful = bool(reach > CAREFUL_REACH * factor.pre.variance.min().sqrt())
    tolerance = (CAREFUL_MARGIN if careful else MARGIN) * tolerance
    gradient, message, pre = factor.channel.gradient, factor.message, factor.pre
    c = coefficients(gradient, message, pre, reach, FIRST.order)
    gaps = coupling.factors(misfit(gradient, message, pre, reach, c))
    some_rows = torch.arange(0, len(X), max(1, len(X) // PROBE_SUM), device=m.device)
    by_unit = look(coupling, factor, m, X, some_rows, worst(gaps.sum(dim=0), PROBE_UNITS))
    by_row = None
    if want_inputs:
        every_unit = torch.arange(len(m), device=m.device)
        by_row = look(coupling, factor, m, X, worst(gaps.sum(dim=1), PROBE_ROWS), every_unit)
    for series in candidates(want_inputs, density):
        if careful and series.share == 0:
            continue
        if error_on_weights(by_unit, series, reach) > tolerance:
            continue
        if by_row is None or error_on_inputs(by_row, series, reach) <= tolerance:
            return series
    return None


def worst(gaps: Tensor, count: int) -> Tensor:
    """The indices of the ``count`` largest gaps."""
    return torch.topk(gaps, min(count, len(gaps))).indices


def error_on_weights(seen: Look, series: Series, reach: Tensor) -> float:
    """Largest error of H_ki = Σ_n x̂_in g_{kn→i} relative to the largest |H_ki|, over the units looked at."""
    guess = series_sums(seen.coupling, seen.factor, seen.m, seen.X, series, False, reach)
    return relative_error(guess.weights, seen.exact.weights)


def error_on_inputs(seen: Look, series: Series, reach: Tensor) -> float:
    """Largest error of B_in = Σ_k m_ki g_{kn→i} relative to the largest |B_in|, over the factors looked at."""
    guess = series_sums(seen.coupling, seen.factor, seen.m, seen.X, series, True, reach)
    assert guess.inputs is not None
    assert seen.exact.inputs is not None
    return relative_error(guess.inputs, seen.exact.inputs)


def relative_error(guess: Tensor, exact: Tensor) -> float:
    """max|guess − exact| / max|exact|, 0 if both vanish."""
    scale = float(exact.abs().max())
    gap = float((guess - exact).abs().max())
    return gap / scale if scale > 0 else gap
