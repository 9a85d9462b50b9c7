"""The terms that all forms of the free entropy share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from cavity.core.channels.base import Output
from cavity.core.messages import Fields, Moments, Preactivation, Target
from cavity.core.priors.base import Prior
from cavity.core.state import LayerState, Site, Up
from cavity.core.sweep import constant_input


class Terms(NamedTuple):
    """A free entropy: what belongs to each sample (samples,), and to the weights of each layer (layers,)."""

    samples: Tensor
    weights: Tensor


class LayerTerms(NamedTuple):
    """What one layer adds, but for φ of its units: to each sample (samples,), and for its weights, 0-dimensional; and
    the (ω, V) at which φ counts."""

    pre: Preactivation
    samples: Tensor
    weights: Tensor


class Part(NamedTuple):
    """One of the couplings of a layer with what is known about it: its weights and inputs, or its thresholds."""

    site: Site
    state: LayerState
    inputs: Moments


def parts(site: Site, state: LayerState, inputs: Moments) -> Iterator[Part]:
    """The weights of a layer, then its thresholds, if there are any: more edges of the same factors, with inputs 1."""
    yield Part(site, state, inputs)
    if site.threshold is not None and state.threshold is not None:
        yield Part(site.threshold, state.threshold, constant_input(inputs.mean))


def from_above(
    sites: Sequence[Site], states: Sequence[LayerState], ups: Sequence[Up], target: Target
) -> list[Fields | Target]:
    """What each layer is told: the (B, A) that the next one sends down, through the pool below it, and the target."""
    messages: list[Fields | Target] = []
    for site, state, up in zip(sites[1:], states[1:], ups[1:], strict=True):
        assert state.down is not None
        assert up.unpooled is not None
        messages.append(state.down if site.pooling is None else site.pooling.down(state.down, up.unpooled))
    return [*messages, target]


def by_sample(values: Tensor) -> Tensor:
    """Sums over all units: (samples, …) → (samples,)."""
    return values if values.ndim == 1 else values.flatten(1).sum(dim=1)


def unit_term(site: Site, state: LayerState, below: Preactivation | None) -> Tensor | float:
    """Σ_i φ_in of the units that a layer sees, pooled or not, (samples,); 0 at the first layer. ``below`` is their
    (ω, V)."""
    if site.below is None:
        return 0.0
    assert state.down is not None
    assert below is not None
    return by_sample(site.below.value(state.down, below))


def output_term(output: Output, y: Tensor, pre: Preactivation) -> Tensor:
    """Σ_k φ_kn of the output, log-likelihoods, (samples,)."""
    return by_sample(output.value(output.target(y, pre, None), pre))


def weight_term(prior: Prior, state: LayerState) -> Tensor:
    """Σ_ki ψ(θ + H, λ + G) − ψ(θ, λ): what the evidence does to the weights' own normalisation, 0-dimensional."""
    assert state.start is not None
    return unmasked(prior.value(state.natural) - prior.value(state.start), state.mask).sum()


def weight_coupling(state: LayerState) -> Tensor:
    """Σ_ki H m − ½G(m² + σ): the mean of what the messages say about the weights, 0-dimensional."""
    assert state.start is not None
    (h, precision), (h_start, precision_start) = state.natural, state.start
    m, sigma = state.moments
    coupling = (h - h_start) * m
    if precision is not None:
        assert precision_start is not None
        assert sigma is not None
        coupling = coupling - 0.5 * (precision - precision_start) * (m.square() + sigma)
    return unmasked(coupling, state.mask).sum()


def input_coupling(down: Fields | None, inputs: Moments) -> Tensor | float:
    """Σ_i B x̂ − ½A(x̂² + Δ) of each sample: the mean of what comes down to some units, (samples,); 0 if nothing
    does."""
    if down is None:
        return 0.0
    x, delta = inputs
    coupling = down.field * x
    if down.precision is not None:
        assert delta is not None
        coupling = coupling - 0.5 * down.precision * (x.square() + delta)
    return by_sample(coupling)


def unmasked(values: Tensor, mask: Tensor | None) -> Tensor:
    """``values`` (…, outputs, columns), 0 where there is no weight."""
    return values if mask is None else values * mask


def total(values: Sequence[Tensor]) -> Tensor:
    """The sum of some tensors of one shape."""
    return torch.stack(tuple(values)).sum(dim=0)
