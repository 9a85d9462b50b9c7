"""One inner iteration: a sweep up, a sweep down, new weights. Moments go up, fields come down, and each layer keeps a
field on its weights. ω, B and H are the algorithm's; everything else is the same for all of them.

Every function takes values and returns values. ``engine/`` runs the same functions compiled, or in several processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cavity.core.algorithms.base import Algorithm
from cavity.core.arithmetic import EXACT, Arithmetic
from cavity.core.channels.base import Output
from cavity.core.fisher import bare_gradient, input_message, lacking, positive_part, weight_message
from cavity.core.messages import Fields, Moments, Preactivation, Response, Target
from cavity.core.posterior import Posterior, update_weights
from cavity.core.state import Factor, LayerState, Site, Up
from cavity.core.variances import floored, input_precision, preactivation_variance, variance_floor, weight_precision


class LayerDown(NamedTuple):
    """What the way down leaves at one layer: (H, G) on its weights, (B, A) on its inputs (None at the first layer),
    what the algorithm remembers, how many gains 1 + AV were raised to the floor, and the same of its thresholds."""

    fields: Fields
    down: Fields | None
    previous: Any
    floored: Tensor | None
    threshold: LayerDown | None = None
    #: (B, A) on the units of the layer below, where a pool is between them and the inputs.
    unpooled: Fields | None = None

    @property
    def message(self) -> Fields | None:
        """What the layer below is told."""
        return self.down if self.unpooled is None else self.unpooled


class Learnt(NamedTuple):
    """New states, how many entries needed a floor or the bound, and the largest |h| or |λ| of each layer, (layers,)."""

    states: list[LayerState]
    clamped: Tensor
    largest: Tensor


class Iteration(NamedTuple):
    """The outcome of one inner iteration: what was learnt, and the (ω, V) of each layer that it was learnt from."""

    learnt: Learnt
    pres: list[Preactivation]


#: ``iterate``, or a way to run the same.
Iterate = Callable[..., Iteration]


def iterate(
    algorithm: Algorithm,
    sites: Sequence[Site],
    states: Sequence[LayerState],
    x: Tensor,
    y: Tensor,
    remember: bool = False,
    generator: torch.Generator | None = None,
) -> Iteration:
    """One iteration τ on inputs x (samples, *input_shape) and labels y (samples, …), as the equations are written."""
    ups = sweep_up(algorithm, sites, states, x)
    output = sites[-1].channel
    assert isinstance(output, Output)
    target = output.target(y, ups[-1].pre, generator)
    downs = sweep_down(algorithm, sites, states, ups, target, [EXACT] * len(sites), remember)
    return Iteration(learn(sites, states, ups, downs), [up.pre for up in ups])


def sweep_up(algorithm: Algorithm, sites: Sequence[Site], states: Sequence[LayerState], x: Tensor) -> list[Up]:
    """Moments from the first layer to the last: x̂, Δ, then ω, V of each, with what thresholds add to them."""
    ups: list[Up] = []
    below: Preactivation | None = None
    for site, state in zip(sites, states, strict=True):
        unpooled = below
        if below is not None and site.pooling is not None:
            below = site.pooling.up(below)
        inputs = Moments(x, None) if below is None else _inputs(site, state, below)
        omega, V = algorithm.up(site, state, inputs, below), preactivation_variance(site, state.moments, inputs)
        if site.threshold is not None and state.threshold is not None:
            one = constant_input(omega)
            omega = omega + algorithm.up(site.threshold, state.threshold, one, None)
            V = V + preactivation_variance(site.threshold, state.threshold.moments, one)
        V, count = floored(V, variance_floor(site, inputs, algorithm.variance_floor))
        ups.append(Up(inputs, Preactivation(omega, V), below, count, unpooled))
        below = ups[-1].pre
    return ups


def _inputs(site: Site, state: LayerState, below: Preactivation) -> Moments:
    """x̂ = ∂_B φ, Δ = ∂²_B φ of the activation below, with the (B, A) that came down in the iteration before."""
    assert site.below is not None
    return site.below.moments(state.down, below)


def constant_input(omega: Tensor) -> Moments:
    """The input of a layer's thresholds: 1, and known, for every sample; (samples, 1)."""
    return Moments(omega.new_ones(len(omega), 1), None)


def layer_down(
    algorithm: Algorithm,
    site: Site,
    state: LayerState,
    up: Up,
    message: Fields | Target,
    arithmetic: Arithmetic,
    remember: bool,
) -> LayerDown:
    """g and Γ of one layer's factors, then H and G on its weights and thresholds, B and A on its inputs. A sample that
    counts n times sends its message to the weights n times, and that to its own inputs once."""
    if state.rule.counts is not None:
        site = site.counting(state.rule.counts)
    parts = [part for part in (site, site.threshold) if part is not None]
    needed = algorithm.needs_curvature or any(_uses_curvature(part) for part in parts)
    response = site.channel.response(message, up.pre) if needed else None
    found = _messages(algorithm, site, state, up, message, response, arithmetic, remember)
    if site.pooling is not None and found.down is not None and up.unpooled is not None:
        found = found._replace(unpooled=site.pooling.down(found.down, up.unpooled))
    if site.threshold is None or state.threshold is None:
        return found
    up = Up(constant_input(up.pre.mean), up.pre, None, up.floored)
    # One edge for each factor costs no more than a series would.
    exact = Arithmetic(fuse=arithmetic.fuse)
    threshold = _messages(algorithm, site.threshold, state.threshold, up, message, response, exact, remember)
    return found._replace(threshold=threshold)


def _uses_curvature(site: Site) -> bool:
    """Whether G matters to the weights or A to the inputs."""
    return site.prior.uses_precision or (site.below is not None and site.below.uses_precision)


def _messages(
    algorithm: Algorithm,
    site: Site,
    state: LayerState,
    up: Up,
    message: Fields | Target,
    response: Response | None,
    arithmetic: Arithmetic,
    remember: bool,
) -> LayerDown:
    """What one coupling of a layer sends, where ``response`` is what its factors answer."""
    below, m = site.below, state.moments.mean
    on_weights, on_inputs = site.prior.uses_precision, below is not None and below.uses_precision
    # Where no precision is sent there is none to keep positive, and Γ⁺ in AMP's mΣx̂²Γ would make weights certain.
    projected = site.fisher and (on_weights or on_inputs)
    shown = positive_part(response) if projected and response is not None else response
    factor = Factor(site.channel, message, up.pre, shown)
    B, H, previous = algorithm.down(site, state, up, factor, arithmetic, remember)
    G = A = None
    if projected:
        assert response is not None
        gamma = factor.response.curvature
        lack = lacking(algorithm, site, response, gamma)
        if on_weights:
            H, G = weight_message(site, m, up.inputs.mean, H, gamma, lack)
        if on_inputs and B is not None:
            B, A = input_message(site, m, up.inputs.mean, B, gamma, lack)
    else:
        G = weight_precision(site, up.inputs, factor) if on_weights else None
        A = input_precision(site, state.moments, factor) if on_inputs else None
    if site.bare and site.prior.polarizes:
        H, G = bare_gradient(site, up.inputs.mean, factor.gradient)
    if below is None:
        return LayerDown(Fields(H, G), None, previous, None)
    assert B is not None
    assert up.below is not None
    shape = up.inputs.mean.shape
    down = Fields(B.reshape(shape), None if A is None else A.reshape(shape))
    return LayerDown(Fields(H, G), down, previous, below.clamped(down, up.below))


def sweep_down(
    algorithm: Algorithm,
    sites: Sequence[Site],
    states: Sequence[LayerState],
    ups: Sequence[Up],
    target: Target,
    arithmetic: Sequence[Arithmetic],
    remember: bool,
    layer: Callable[..., LayerDown] = layer_down,
) -> list[LayerDown]:
    """Fields from the last layer to the first. ``layer`` is what one layer does, where it is run in another way."""
    message: Fields | Target = target
    downs: list[LayerDown] = []
    for site, state, up, how in reversed(list(zip(sites, states, ups, arithmetic, strict=True))):
        downs.append(layer(algorithm, site, state, up, message, how, remember))
        message = downs[-1].message or message
    return downs[::-1]


def learn(sites: Sequence[Site], states: Sequence[LayerState], ups: Sequence[Up], downs: Sequence[LayerDown]) -> Learnt:
    """The weights that (H, G) of all samples leave in every layer."""
    new, clamped, largest = [], [], []
    for site, state, up, down in zip(sites, states, ups, downs, strict=True):
        learnt, after = _learnt(site, state, down)
        clamped += [up.floored, after.clamped] if down.floored is None else [up.floored, after.clamped, down.floored]
        top = after.largest
        if site.threshold is not None and state.threshold is not None and down.threshold is not None:
            threshold, moved = _learnt(site.threshold, state.threshold, down.threshold)
            learnt = learnt._replace(threshold=threshold)
            clamped.append(moved.clamped)
            top = torch.maximum(top, moved.largest)
        new.append(learnt)
        largest.append(top)
    return Learnt(new, torch.stack(clamped).sum(), torch.stack(largest))


def _learnt(site: Site, state: LayerState, down: LayerDown) -> tuple[LayerState, Posterior]:
    """The weights of one coupling after (H, G)."""
    assert state.start is not None
    after = update_weights(
        site.prior, state.rule, state.mask, state.start, state.natural, down.fields, state.moments, state.scale
    )
    new = state._replace(
        natural=after.natural, moments=after.moments, down=down.down, previous=down.previous, rate=after.rate
    )
    return new, after
