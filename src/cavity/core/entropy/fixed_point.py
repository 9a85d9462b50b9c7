"""Message passing on all of the given samples until nothing moves, with the messages kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from cavity.core.algorithms.base import Algorithm
from cavity.core.entropy.linearized import Linearized, likelihood
from cavity.core.entropy.terms import unmasked
from cavity.core.messages import Moments, Preactivation
from cavity.core.state import LayerState, Rule, Site, Up, largest_move
from cavity.core.sweep import Iterate, iterate

#: How often message passing is tried again with more damping.
RETRIES = 2


@dataclass(frozen=True)
class FixedPoint:
    """Where message passing has come to."""

    states: tuple[LayerState, ...]
    #: (ω, V) of each layer in the last iteration.
    pres: tuple[Preactivation, ...]
    iterations: int
    #: Largest |m_new − m_old| of a weight or threshold in the last iteration; NaN if a message is not finite.
    change: float
    #: Variances, gains and weights that needed a floor in the last iteration.
    clamped: int
    tolerance: float

    @property
    def converged(self) -> bool:
        return self.change <= self.tolerance


def prior_state(site: Site, state: LayerState, damping: float) -> LayerState:
    """A layer whose prior is the (h, λ) of ``state``, and which has seen nothing."""
    m, sigma = site.prior.moments(state.natural)
    assert sigma is not None
    moments, threshold, rule = (
        Moments(unmasked(m, state.mask), unmasked(sigma, state.mask)),
        None,
        Rule(damping=damping),
    )
    if site.threshold is not None and state.threshold is not None:
        threshold = prior_state(site.threshold, state.threshold, damping)
    known = LayerState(state.natural, moments, state.mask, state.columns, threshold, state.scale)
    return known.begin(rule._replace(threshold=rule))


def prior_states(sites: Sequence[Site], states: Sequence[LayerState], damping: float) -> list[LayerState]:
    """``prior_state`` of all layers."""
    return [prior_state(site, state, damping) for site, state in zip(sites, states, strict=True)]


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
    iterate: Iterate = iterate,
) -> FixedPoint:
    """Iterate from ``states``, which have begun, on inputs x (samples, *input_shape) and labels y."""
    sites, done, change = with_cavities(sites), 0, math.inf
    while done < iterations and change > tolerance:
        done += 1
        learnt, pres = iterate(algorithm, sites, states, x, y, remember=True)
        change = float(largest_move(states, learnt.states))
        states = learnt.states
    return FixedPoint(tuple(states), tuple(pres), done, change, int(learnt.clamped), tolerance)


def steady_point(
    algorithm: Algorithm,
    sites: Sequence[Site],
    states: Sequence[LayerState],
    x: Tensor,
    y: Tensor,
    iterations: int,
    tolerance: float,
    iterate: Iterate = iterate,
) -> FixedPoint:
    """``fixed_point``; where it has not converged, again from the prior with half the step, 1 − α, up to RETRIES
    times."""
    point = fixed_point(algorithm, sites, states, x, y, iterations, tolerance, iterate)
    damping = states[0].rule.damping
    for _ in range(RETRIES):
        if point.converged or math.isnan(point.change):
            break
        damping = 0.5 * (1 + damping)
        again = prior_states(sites, [_before(state) for state in point.states], damping)
        point = fixed_point(algorithm, sites, again, x, y, iterations, tolerance, iterate)
    return point


def _before(state: LayerState) -> LayerState:
    """The state with the (h, λ) that message passing began with."""
    assert state.start is not None
    threshold = None if state.threshold is None else _before(state.threshold)
    return state._replace(natural=state.start, threshold=threshold)


def last_ups(sites: Sequence[Site], states: Sequence[LayerState], pres: Sequence[Preactivation], x: Tensor) -> list[Up]:
    """What the way up has left at each layer, from the (ω, V) that were kept: no sum over edges is taken again."""
    ups: list[Up] = []
    below: Preactivation | None = None
    for site, state, pre in zip(sites, states, pres, strict=True):
        pooled = below if below is None or site.pooling is None else site.pooling.up(below)
        inputs = Moments(x, None) if pooled is None or site.below is None else site.below.moments(state.down, pooled)
        ups.append(Up(inputs, pre, pooled, pre.mean.new_zeros(()), below))
        below = pre
    return ups
