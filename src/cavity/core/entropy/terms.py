"""The terms that all forms of the free entropy share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cavity.core.channels.base import Channel
from cavity.core.messages import Fields, Moments, Preactivation, Target
from cavity.core.priors.base import Prior
from cavity.core.state import LayerState


class Terms(NamedTuple):
    """A free entropy: what belongs to each sample (samples,), and to the weights of each layer (layers,)."""

    samples: Tensor
    weights: Tensor


def from_above(states: Sequence[LayerState], target: Target) -> list[Fields | Target]:
    """What each layer is told: the (B, A) that the next one sends down, and the target."""
    return [*(state.down for state in states[1:] if state.down is not None), target]


def by_sample(values: Tensor) -> Tensor:
    """Sums over all units: (samples, …) → (samples,)."""
    return values if values.ndim == 1 else values.flatten(1).sum(dim=1)


def factor_term(channel: Channel[Any], message: Fields | Target, pre: Preactivation) -> Tensor:
    """Σ_k φ_kn of one layer, (samples,)."""
    return by_sample(channel.value(message, pre))


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


def input_coupling(down: Fields | None, inputs: Moments) -> Tensor:
    """Σ_i B x̂ − ½A(x̂² + Δ) of each sample: the mean of what comes down to the inputs of a layer, (samples,)."""
    x, delta = inputs
    if down is None:
        return torch.zeros_like(x.flatten(1)[:, 0])
    coupling = down.field * x
    if down.precision is not None:
        assert delta is not None
        coupling = coupling - 0.5 * down.precision * (x.square() + delta)
    return by_sample(coupling)


def unmasked(values: Tensor, mask: Tensor | None) -> Tensor:
    """``values`` (…, outputs, columns), 0 where there is no weight."""
    return values if mask is None else values * mask
