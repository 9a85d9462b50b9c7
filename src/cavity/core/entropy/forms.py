"""Which form of the free entropy belongs to which algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from cavity.core.algorithms.amp import AMP
from cavity.core.algorithms.base import Algorithm
from cavity.core.algorithms.bp import BP
from cavity.core.algorithms.mf import MF
from cavity.core.entropy.bethe import bethe
from cavity.core.entropy.bound import bound, require_noise
from cavity.core.entropy.fixed_point import FixedPoint, with_cavities
from cavity.core.entropy.linearized import likelihood
from cavity.core.entropy.tap import tap
from cavity.core.entropy.terms import Terms
from cavity.core.state import Site
from cavity.core.sweep import iterate, sweep_up


def free_entropy(algorithm: Algorithm, sites: Sequence[Site], point: FixedPoint, x: Tensor, y: Tensor) -> Terms:
    """log P(y | x) of the fixed point that ``algorithm`` has come to on inputs x (samples, *input_shape), labels y."""
    states, output = point.states, likelihood(sites[-1].channel)
    sites = (*sites[:-1], replace(sites[-1], channel=output))
    if isinstance(algorithm, MF):
        require_noise(sites)
        ups = sweep_up(algorithm, sites, states, x)
        return bound(sites, states, x, output.target(y, ups[-1].pre, None))
    if states[0].memory is None:
        # BPI keeps no messages of edges; in its first iteration BP sends the same.
        fresh = iterate(BP(), with_cavities(sites), states, x, y, remember=True).learnt.states
        states = tuple(old._replace(memory=new.memory) for old, new in zip(states, fresh, strict=True))
    ups = sweep_up(algorithm, sites, states, x)
    form = tap if isinstance(algorithm, AMP) else bethe
    return form(sites, states, ups, output.target(y, ups[-1].pre, None))
