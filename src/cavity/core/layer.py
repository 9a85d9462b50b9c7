"""What one layer does in one direction: moments up, fields down, and the weights that the fields leave."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from cavity.core.algorithms.base import Algorithm, Carry, Factor, Series, Site, Up
from cavity.core.messages import Fields, Moments, Preactivation, Target
from cavity.core.posterior import Posterior, Rule, update_weights
from cavity.core.variances import floored, input_precision, preactivation_variance, variance_floor, weight_precision


class SweepDown(NamedTuple):
    """New state of each layer, how many entries were clamped, and the largest |h| or |λ| of each layer,
    (layers,)."""

    carries: list[Carry]
    clamped: Tensor
    largest: Tensor


class LayerDown(NamedTuple):
    """What the sweep down leaves at one layer: its new state, clamped entries, and the largest |h| or |λ|."""

    carry: Carry
    clamped: Tensor
    largest: Tensor


def up_layer(
    algorithm: Algorithm, site: Site, carry: Carry, x: Tensor | None, below: Preactivation | None
) -> tuple[Up, Tensor]:
    """(x̂, Δ) and (ω, V) of one layer, from the network's inputs x or the preactivation below; and floored variances."""
    if site.below is None:
        assert x is not None
        inputs = Moments(x, None)
    else:
        assert below is not None
        inputs = site.below.moments(carry.down, below)
    omega = algorithm.up(site, carry, inputs, below)
    floor = variance_floor(site, inputs, algorithm.variance_floor)
    V, count = floored(preactivation_variance(site, carry.weights, inputs), floor)
    return Up(inputs, Preactivation(omega, V), below), count


def down_layer(
    algorithm: Algorithm,
    site: Site,
    carry: Carry,
    up: Up,
    message: Fields | Target,
    series: Series | None,
    r: float,
    remember: bool,
) -> LayerDown:
    """B and A on the inputs of one layer, H and G on its weights, and the weights that they leave."""
    found = layer_fields(algorithm, site, carry, up, message, series, remember)
    posterior = learnt(site, carry, found.fields, r)
    down, clamped = passed_down(site, carry, up, found)
    after = carry._replace(weights=posterior.moments, natural=posterior.natural, down=down, memory=found.memory)
    return LayerDown(after, clamped + posterior.clamped, posterior.largest)


class LayerFields(NamedTuple):
    """What the factors of one layer say: (H, G) on its weights, B on its inputs, and what is remembered of them."""

    fields: Fields
    inputs: Tensor | None
    factor: Factor
    memory: Any


def layer_fields(
    algorithm: Algorithm,
    site: Site,
    carry: Carry,
    up: Up,
    message: Fields | Target,
    series: Series | None,
    remember: bool,
    reach: Tensor | None = None,
) -> LayerFields:
    """B, H and G of the samples that came up; ``reach`` where they are a part of the mini-batch."""
    variances = site.prior.uses_precision or (site.below is not None and site.below.uses_precision)
    known = site.channel.response(message, up.pre) if variances or algorithm.needs_curvature else None
    factor = Factor(site.channel, message, up.pre, series, known, reach)
    B, H, memory = algorithm.down(site, carry, up, factor, remember)
    G = weight_precision(site, up.inputs, factor) if site.prior.uses_precision else None
    return LayerFields(Fields(H, G), B, factor, memory)


def learnt(site: Site, carry: Carry, message: Fields, r: float) -> Posterior:
    """The weights that (H, G) of all samples leave."""
    rule = Rule(site.rho, site.damping, r, site.evidence, site.focusing)
    return update_weights(site.prior, rule, carry.mask, carry.start, carry.natural, message, carry.weights)


def passed_down(site: Site, carry: Carry, up: Up, found: LayerFields) -> tuple[Fields | None, Tensor]:
    """(B, A) on the inputs of one layer, None at the first, and how many entries of them were clamped."""
    clamped = torch.zeros((), device=found.fields.field.device, dtype=torch.int64)
    if site.below is None:
        return None, clamped
    assert found.inputs is not None
    assert up.below is not None
    A = input_precision(site, carry.weights, found.factor) if site.below.uses_precision else None
    shape = up.inputs.mean.shape
    down = Fields(found.inputs.reshape(shape), None if A is None else A.reshape(shape))
    return down, add(clamped, site.below.clamped(down, up.below))


def add(total: Tensor, count: Tensor | None) -> Tensor:
    return total if count is None else total + count
