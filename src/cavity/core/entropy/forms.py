"""Which form of the free entropy belongs to which algorithm, and the sum over layers that Bethe and TAP share."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cavity.core.algorithms.amp import AMP
from cavity.core.algorithms.base import Algorithm
from cavity.core.channels.base import Output
from cavity.core.entropy.bethe import edges, layer_edges
from cavity.core.entropy.bound import bound
from cavity.core.entropy.fixed_point import last_ups, with_cavities
from cavity.core.entropy.linearized import likelihood
from cavity.core.entropy.tap import expanded_layer
from cavity.core.entropy.terms import Terms, from_above, output_term, unit_term
from cavity.core.messages import Preactivation
from cavity.core.state import LayerState, Site, Up

#: Layers with more edges than this are taken to second order: one by one they would cost more than a training step.
EXACT_EDGES = 1 << 16


def free_entropy(
    algorithm: Algorithm,
    sites: Sequence[Site],
    states: Sequence[LayerState],
    pres: Sequence[Preactivation],
    x: Tensor,
    y: Tensor,
    exact_edges: float = EXACT_EDGES,
) -> Terms:
    """log P(y | x) of a fixed point of ``algorithm`` with these states and (ω, V), on inputs x (samples, *input_shape)
    and labels y. Large layers of BP and BPI, of more than ``exact_edges`` edges, are taken to second order."""
    output = likelihood(sites[-1].channel)
    if algorithm.bounds_evidence:
        return bound(sites, states, x, y, output)
    sites = with_cavities(sites)
    ups = last_ups(sites, states, pres, x)
    last = sites[-1].channel
    assert isinstance(last, Output)
    target = last.target(y, pres[-1], None)
    samples, weights = x.new_zeros(len(x)), []
    below: Preactivation | None = None
    told = from_above(sites, states, ups, target)
    for site, state, up, message in zip(sites, states, ups, told, strict=True):
        below = below if below is None or site.pooling is None else site.pooling.up(below)
        if isinstance(algorithm, AMP):
            found = expanded_layer(site, state, up, state.previous.g, up.pre.mean)
        elif edges(site.coupling, len(x)) > exact_edges:
            found = expanded_layer(site, state, _above(site, state, up, below), site.channel.gradient(message, up.pre))
        else:
            found = layer_edges(site, state, up, message, below)
        samples = samples + unit_term(site, state, below) + found.samples
        weights.append(found.weights)
        below = found.pre
    assert below is not None
    return Terms(samples + output_term(output, y, below), torch.stack(weights))


def _above(site: Site, state: LayerState, up: Up, below: Preactivation | None) -> Up:
    """With the inputs that the cavity's (ω, V) of the layer below give: φ of those units is taken there."""
    if site.below is None or below is None:
        return up
    return up._replace(inputs=site.below.moments(state.down, below))
