"""Message passing on all of the given samples until nothing moves, with the messages kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from cavity.core.algorithms.base import Algorithm
from cavity.core.entropy.linearized import Linearized, likelihood
from cavity.core.entropy.terms import unmasked
from cavity.core.messages import Fields, Moments
from cavity.core.state import LayerState, Rule, Site
from cavity.core.sweep import iterate

#: How often message passing is tried again with more damping.
RETRIES = 2


@dataclass(frozen=True)
class FixedPoint:
    """Where message passing has come to."""

    states: tuple[LayerState, ...]
    iterations: int
    #: Largest |m_new − m_old| of a weight in the last iteration; NaN if a message is not finite.
    change: float
    #: Variances, gains and weights that needed a floor in the last iteration.
    clamped: int
    tolerance: float

    @property
    def converged(self) -> bool:
        return self.change <= self.tolerance


def prior_state(site: Site, natural: Fields, state: LayerState, damping: float) -> LayerState:
    """A layer that holds the prior ``natural`` and has seen nothing."""
    m, sigma = site.prior.moments(natural)
    assert sigma is not None
    moments = Moments(unmasked(m, state.mask), unmasked(sigma, state.mask))
    return LayerState(natural, moments, state.mask, state.columns).begin(Rule(damping=damping))


def with_cavities(sites: Sequence[Site]) -> tuple[Site, ...]:
    """The chain with an output that every edge can be taken out of."""
    *others, last = sites
    output = likelihood(last.channel)
    return (*others, replace(last, channel=output if output.elementwise else Linearized(output)))


def fixed_point(
    algorithm: Algorithm,
    sites: Sequence[Site],
    states: Sequence[LayerState],
    x: Tensor,
    y: Tensor,
    iterations: int,
    tolerance: float,
) -> FixedPoint:
    """Iterate from ``states``, which have begun, on inputs x (samples, *input_shape) and labels y."""
    sites, states, done, change, clamped = with_cavities(sites), list(states), 0, float("inf"), 0
    while done < iterations and change > tolerance:
        done += 1
        learnt = iterate(algorithm, sites, states, x, y, remember=True).learnt
        moves = [
            (new.moments.mean - old.moments.mean).abs().max() for old, new in zip(states, learnt.states, strict=True)
        ]
        # max() of Python would drop a NaN.
        change = float(sum(moves) if any(move != move for move in moves) else max(moves))
        states, clamped = learnt.states, int(learnt.clamped)
    return FixedPoint(tuple(states), done, change, clamped, tolerance)


def steady_point(
    algorithm: Algorithm,
    sites: Sequence[Site],
    states: Sequence[LayerState],
    x: Tensor,
    y: Tensor,
    iterations: int,
    tolerance: float,
) -> FixedPoint:
    """``fixed_point``; where it has not converged, again from the prior with half the step, 1 − α, up to RETRIES
    times."""
    point = fixed_point(algorithm, sites, states, x, y, iterations, tolerance)
    damping = states[0].rule.damping
    for _ in range(RETRIES):
        if point.converged or math.isnan(point.change):
            break
        damping = 0.5 * (1 + damping)
        again = [_restarted(site, state, damping) for site, state in zip(sites, point.states, strict=True)]
        point = fixed_point(algorithm, sites, again, x, y, iterations, tolerance)
    return point


def _restarted(site: Site, state: LayerState, damping: float) -> LayerState:
    assert state.start is not None
    return prior_state(site, state.start, state, damping)
