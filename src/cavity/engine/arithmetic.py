"""How a layer's corrections to mean field, its cavity sums, are evaluated: exactly, by a series of fixed order, or by
the cheapest series that is good enough.

Good enough is measured, not estimated: every few mini-batches the sums of a few units and a few samples are evaluated
exactly (``looking.py``), and the cheapest series whose B and H agree with them to the tolerance, relative to the
largest entry, serves until the next look.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import Tensor

from cavity.core.algorithms.base import Factor, Series, Site
from cavity.core.algorithms.series import LARGEST_ORDER
from cavity.core.messages import Fields, Preactivation, Target
from cavity.core.precision import half_pays
from cavity.engine.looking import FIRST_ORDER, candidates, choose, cost

if TYPE_CHECKING:
    from cavity.engine.distributed import Team

Accuracy = float | int | Literal["exact"] | None

#: The tolerance on B and H relative to their largest entry that training uses unless told otherwise.
DEFAULT_TOLERANCE = 1e-3
#: Layers with fewer edges per mini-batch than this are evaluated exactly: it costs no more than the series.
SMALL_EDGES = 1 << 16
#: Until the first look, and on devices where nothing can be looked at.
FIRST = Series(FIRST_ORDER)
#: The costliest series of so many looks is used.
REMEMBERED = 8
#: A series that costs up to so many times what is wanted stays: another one may have to be compiled first.
WASTE = 1.5
#: Looks at mini-batch 0, 1, 2, 4, … and then every so many.
INTERVAL = 512


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
    """The series in use, None for edge by edge or for no corrections, and whether it is time to choose anew."""

    series: Series | None
    due: bool


def edges(site: Site, samples: int) -> int:
    """Edges of a layer that a mini-batch evaluates: weights times samples times positions."""
    coupling = site.coupling
    return coupling.outputs * coupling.columns * coupling.positions * samples


def _price(series: Series | None, want_inputs: bool) -> tuple[float, bool]:
    """What a choice costs, edge by edge most of all; of two that differ in precision alone, full is dearer."""
    return (math.inf, True) if series is None else (cost(series, want_inputs), not series.half)


def _keeps(present: Series | None, wanted: Series | None, want_inputs: bool) -> bool:
    """Whether the present series is better than ``wanted``, but not so costly that a change pays. Orders alone are few
    and change rarely; with shares of exact factors every other look finds something a little cheaper."""
    if present is None or wanted is None or present.share == 0 or present.half > wanted.half:
        return False
    return 1.0 < cost(present, want_inputs) / cost(wanted, want_inputs) <= WASTE


class Evaluation:
    """The choice for one layer, and what it currently is."""

    def __init__(self, accuracy: Accuracy = None) -> None:
        self.accuracy = check_accuracy(accuracy)
        self.series: Series | None = FIRST
        #: What the last looks chose.
        self.recent: list[Series | None] = []
        self.calls = 0

    @property
    def tolerance(self) -> float | None:
        """How far sums may be off, relative to the largest; None where they are exact or of a given order."""
        if self.accuracy is None:
            return DEFAULT_TOLERANCE
        return self.accuracy if isinstance(self.accuracy, float) else None

    def plan(self, site: Site, x: Tensor, samples: int | None = None, cavities: bool = True) -> Plan:
        """How to evaluate the layer's sums for mini-batch x, or this part of one of ``samples``; the counter of
        mini-batches goes on. Without ``cavities``, as in AMP, there is a first order and nothing to look at: eight bits
        of a correction that is itself good to a tenth will do, unless more is asked for than by default."""
        if not site.channel.elementwise:
            return Plan(None, False)
        half = half_pays(x, edges(site, len(x)))
        if not cavities:
            return Plan(Series(1, half=half and (self.tolerance or 0.0) >= DEFAULT_TOLERANCE), False)
        if self.accuracy == "exact":
            return Plan(None, False)
        if isinstance(self.accuracy, int):
            return Plan(Series(self.accuracy), False)
        small = edges(site, samples or len(x)) < SMALL_EDGES
        if self.accuracy is None and (x.dtype == torch.float64 or small):
            return Plan(None, False)
        due = self._due() and x.device.type != "meta"
        self.calls += 1
        series = self.series
        # It may have been chosen on another machine, or for another device or batch size.
        if series is not None and series.half and not half:
            series = series._replace(half=False)
        return Plan(series, due)

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
        assert self.tolerance is not None
        factor, want_inputs = Factor(site.channel, message, pre), site.below is not None
        density = 1.0 if columns is None else columns.shape[1] / m.shape[1]
        chosen = choose(site.coupling, factor, m, x, want_inputs, self.tolerance, density)
        if team is not None:
            ordered = [*(s._replace(half=half) for s in candidates(want_inputs) for half in (True, False)), None]
            chosen = ordered[int(team.largest(torch.tensor([ordered.index(chosen)])))]
        # Edge by edge costs too much to be kept up for what one mini-batch needed.
        self.recent = [*(series for series in self.recent if series is not None), chosen][-REMEMBERED:]
        wanted = max(self.recent, key=lambda one: _price(one, want_inputs))
        if not _keeps(self.series, wanted, want_inputs):
            self.series = wanted
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
