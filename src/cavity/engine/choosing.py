"""How a layer computes its corrections to mean field: exactly, by a series of fixed order, or by the cheapest series
that is good enough.

Good enough is measured, not estimated: every few mini-batches the sums of a few units and a few samples are evaluated
exactly (``looking.py``), and the cheapest series whose B and H agree with them to the tolerance, relative to the
largest entry, serves until the next look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from cavity.core.algorithms.base import Algorithm
from cavity.core.algorithms.series import LARGEST_ORDER
from cavity.core.arithmetic import EXACT, Arithmetic, Series
from cavity.core.messages import Fields, Target
from cavity.core.state import Factor, LayerState, Site, Up
from cavity.engine.distributed import Team
from cavity.engine.half import half_pays
from cavity.engine.looking import FIRST_ORDER, candidates, choose, cost

Accuracy = float | int | Literal["exact"] | None

#: The tolerance on B and H relative to their largest entry that training uses unless told otherwise.
DEFAULT_TOLERANCE = 1e-3
#: Layers with fewer edges per mini-batch than this are evaluated exactly: it costs no more than the series.
SMALL_EDGES = 1 << 16
#: Until the first look, and on devices where nothing can be looked at.
FIRST = Arithmetic(Series(FIRST_ORDER))
#: The costliest choice of this many looks is used.
REMEMBERED = 8
#: A series that costs up to this many times what is wanted stays: another one may have to be compiled first.
WASTE = 1.5
#: Looks happen at sweep 0, 1, 2, 4, … and then at every multiple of this.
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


def is_due(sweeps: int) -> bool:
    """Whether to look in the sweep after that many."""
    return sweeps % INTERVAL == 0 if sweeps >= INTERVAL else sweeps & (sweeps - 1) == 0


def edges(site: Site, samples: int) -> int:
    """Edges of a layer that a mini-batch evaluates: weights times samples times positions."""
    coupling = site.coupling
    return coupling.outputs * coupling.columns * coupling.positions * samples


def _price(how: Arithmetic, want_inputs: bool) -> tuple[float, bool]:
    """What a choice costs, edge by edge most of all; of two that differ in precision alone, full is dearer."""
    return (math.inf, True) if how.series is None else (cost(how.series, want_inputs), not how.half)


def _keeps(present: Arithmetic, wanted: Arithmetic, want_inputs: bool) -> bool:
    """Whether the present series is better than ``wanted``, but not so costly that a change pays. Orders alone are few
    and change rarely; with shares of exact factors every other look finds something a little cheaper."""
    if present.series is None or wanted.series is None or present.series.share == 0 or present.half > wanted.half:
        return False
    return 1.0 < cost(present.series, want_inputs) / cost(wanted.series, want_inputs) <= WASTE


class Choice:
    """The arithmetic of one layer, as the last looks have left it."""

    def __init__(self, accuracy: Accuracy = None) -> None:
        self.accuracy = check_accuracy(accuracy)
        self.present = FIRST
        #: What the last looks found.
        self.recent: list[Arithmetic] = []

    @property
    def tolerance(self) -> float | None:
        """How far sums may be off, relative to the largest; None where they are exact or of a given order."""
        if self.accuracy is None:
            return DEFAULT_TOLERANCE
        return self.accuracy if isinstance(self.accuracy, float) else None

    def is_open(self, algorithm: Algorithm, site: Site, x: Tensor, samples: int) -> bool:
        """Whether there is anything to look at: cavity sums that may be a series, in a mini-batch of ``samples``."""
        if algorithm.corrections != "cavity sums" or not site.channel.elementwise or self.tolerance is None:
            return False
        given = self.accuracy is not None
        return x.device.type != "meta" and (given or (x.dtype != torch.float64 and edges(site, samples) >= SMALL_EDGES))

    def arithmetic(self, algorithm: Algorithm, site: Site, x: Tensor, samples: int) -> Arithmetic:
        """How the layer computes its corrections in a mini-batch of ``samples``, of which x are all or a part."""
        if algorithm.corrections == "none" or not site.channel.elementwise:
            return EXACT
        pays = half_pays(x, edges(site, len(x)))
        if algorithm.corrections == "first order":
            # Eight bits of a correction that is itself good to a tenth are enough, unless more was asked for.
            return Arithmetic(half=pays and (self.tolerance or 0.0) >= DEFAULT_TOLERANCE)
        if isinstance(self.accuracy, int):
            return Arithmetic(Series(self.accuracy))
        if not self.is_open(algorithm, site, x, samples):
            return FIRST if x.device.type == "meta" else EXACT
        # It may have been chosen on another machine, or for another device or batch size.
        return self.present if pays else self.present._replace(half=False)

    def look(self, site: Site, state: LayerState, up: Up, message: Fields | Target, team: Team | None) -> None:
        """Choose anew from what a sweep has brought. Of several processes, each looks at its own samples, and the
        costliest of their choices counts for all."""
        assert self.tolerance is not None
        want_inputs, m = site.below is not None, state.moments.mean
        # Edge by edge costs less where only few columns are evaluated.
        density = 1.0 if state.columns is None else state.columns.shape[1] / m.shape[1]
        factor = Factor(site.channel, message, up.pre)
        found = choose(site.coupling, factor, m, up.inputs.mean, want_inputs, self.tolerance, density)
        if team is not None:
            ordered = [*(Arithmetic(s, half) for s in candidates(want_inputs) for half in (True, False)), EXACT]
            found = ordered[int(team.largest(torch.tensor([ordered.index(found)])))]
        # Edge by edge costs too much to be kept up for what one mini-batch needed.
        self.recent = [*(one for one in self.recent if one.series is not None), found][-REMEMBERED:]
        wanted = max(self.recent, key=lambda one: _price(one, want_inputs))
        if not _keeps(self.present, wanted, want_inputs):
            self.present = wanted

    def state_dict(self) -> dict[str, Any]:
        present, *recent = map(_saved, (self.present, *self.recent))
        return {"series": present, "recent": recent}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.present, *self.recent = map(_loaded, (state["series"], *state["recent"]))


def _saved(how: Arithmetic) -> list[Any] | None:
    return None if how.series is None else [*how.series, how.half]


def _loaded(saved: Sequence[Any] | None) -> Arithmetic:
    if saved is None:
        return EXACT
    order, share, half = saved[:3]
    if not (isinstance(order, int) and 1 <= order <= LARGEST_ORDER and 0 <= share <= 1):
        raise ValueError(f"a series of order {str(order)[:40]!r} and share {str(share)[:40]!r}")
    return Arithmetic(Series(order, float(share)), bool(half))
