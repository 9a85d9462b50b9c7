"""One skeleton for all algorithms: a sweep up, a sweep down, new weights. Moments go up, fields come down, and each
layer keeps a field on its weights. ω, B and H are the algorithm's; everything else is here and in the two modules
beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from cavity.channels.base import Output
from cavity.inner.algorithm import Algorithm, Carry, Factor, Site, Up
from cavity.inner.variances import floored, input_precision, preactivation_variance, variance_floor, weight_precision
from cavity.inner.weights import Rule, update_weights
from cavity.messages import Fields, Moments, Preactivation, Target


class Sweep(NamedTuple):
    """The outcome of one inner iteration: new state of each layer, (ω, V) of each layer, entries clamped."""

    carries: list[Carry]
    pres: list[Preactivation]
    clamped: Tensor


def sweep(
    algorithm: Algorithm,
    sites: Sequence[Site],
    carries: Sequence[Carry],
    x: Tensor,
    y: Tensor,
    reinforcement: Sequence[float],
    remember: bool,
    generator: torch.Generator | None,
) -> Sweep:
    """One iteration τ on inputs x (samples, *input_shape) and labels y (samples, …)."""
    ups, floored = sweep_up(algorithm, sites, carries, x)
    output = sites[-1].channel
    assert isinstance(output, Output)
    target = output.target(y, ups[-1].pre, generator)
    new, clamped = sweep_down(algorithm, sites, carries, ups, target, reinforcement, remember)
    return Sweep(new, [up.pre for up in ups], floored + clamped)


def sweep_up(
    algorithm: Algorithm, sites: Sequence[Site], carries: Sequence[Carry], x: Tensor
) -> tuple[list[Up], Tensor]:
    """Moments from the first layer to the last, and how many variances were floored."""
    clamped = torch.zeros((), device=x.device, dtype=torch.int64)
    inputs = Moments(x, None)
    below: Preactivation | None = None
    ups = []
    for site, carry in zip(sites, carries, strict=True):
        if site.below is not None:
            assert below is not None
            inputs = site.run(site.below.moments)(carry.down, below)
        omega = algorithm.up(site, carry, inputs, below)
        floor = variance_floor(site, inputs, algorithm.variance_floor)
        V, count = site.run(floored)(preactivation_variance(site, carry.weights, inputs), floor)
        pre = Preactivation(omega, V)
        ups.append(Up(inputs, pre, below))
        below, clamped = pre, clamped + count
    return ups, clamped


def sweep_down(
    algorithm: Algorithm,
    sites: Sequence[Site],
    carries: Sequence[Carry],
    ups: Sequence[Up],
    target: Target,
    reinforcement: Sequence[float],
    remember: bool,
) -> tuple[list[Carry], Tensor]:
    """Fields from the last layer to the first, the weights that they leave, and how many entries were floored."""
    message: Fields | Target = target
    clamped = torch.zeros((), device=target.labels.device, dtype=torch.int64)
    new: list[Carry] = []
    for site, carry, up, r in reversed(list(zip(sites, carries, ups, reinforcement, strict=True))):
        factor = Factor(site.channel, message, up.pre)
        B, H, memory = algorithm.down(site, carry, up, factor, remember)
        G = weight_precision(site, up.inputs, factor) if site.prior.uses_precision else None
        rule = Rule(site.rho, site.damping, r, site.evidence, site.focusing)
        natural, weights = site.run(update_weights)(
            site.prior, rule, site.mask, site.start, carry.natural, Fields(H, G), carry.weights
        )
        down = None
        if site.below is not None:
            assert B is not None
            assert up.below is not None
            A = input_precision(site, carry.weights, factor) if site.below.uses_precision else None
            shape = up.inputs.mean.shape
            message = down = Fields(B.reshape(shape), None if A is None else A.reshape(shape))
            clamped = _add(clamped, site.below.clamped(down, up.below))
        clamped = _add(clamped, site.prior.clamped(natural))
        new.append(Carry(weights, natural, down, memory))
    return new[::-1], clamped


def _add(total: Tensor, count: Tensor | None) -> Tensor:
    return total if count is None else total + count
