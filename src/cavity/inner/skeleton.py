"""One skeleton for all algorithms: a sweep up, a sweep down, new weights. Moments go up, fields come down, and each
layer keeps a field on its weights. ω, B and H are the algorithm's; everything else is here and in the two modules
beside. What one layer does in one direction is one function; where kernels are compiled, each direction is fused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from cavity.channels.base import Output
from cavity.fusion import EAGER, Kernels
from cavity.inner.algorithm import Algorithm, Carry, Factor, Series, Site, Up
from cavity.inner.cavity import CHUNK_EDGES
from cavity.inner.evaluation import Plan, edges
from cavity.inner.variances import floored, input_precision, preactivation_variance, variance_floor, weight_precision
from cavity.inner.weights import Rule, update_weights
from cavity.messages import Fields, Moments, Preactivation, Target


class SweepDown(NamedTuple):
    """New state of each layer, how many entries were clamped, and the largest |h| of each layer, (layers,)."""

    carries: list[Carry]
    clamped: Tensor
    largest: Tensor


class Sweep(NamedTuple):
    """The outcome of one inner iteration: that of the sweep down, and (ω, V) of each layer."""

    carries: list[Carry]
    clamped: Tensor
    largest: Tensor
    pres: list[Preactivation]


class LayerDown(NamedTuple):
    """What the sweep down leaves at one layer: its new state, clamped entries, and the largest |h|."""

    carry: Carry
    clamped: Tensor
    largest: Tensor


def sweep(
    algorithm: Algorithm,
    sites: Sequence[Site],
    carries: Sequence[Carry],
    x: Tensor,
    y: Tensor,
    reinforcement: Sequence[float],
    remember: bool,
    generator: torch.Generator | None,
    run: Kernels = EAGER,
) -> Sweep:
    """One iteration τ on inputs x (samples, *input_shape) and labels y (samples, …): one kernel up, one down."""
    plans = tuple(site.evaluation.plan(site, x) for site in sites) if algorithm.has_cavities else None
    going_on = carries[0].natural is not carries[0].start
    hint = x.shape, x.stride(), x.dtype, x.device, y.shape, y.dtype, going_on, remember
    # Cavities that outlive an iteration are overwritten in place, chunk by chunk.
    run_up = EAGER if algorithm.has_cavities and going_on else run
    ups, floored = run_up.call(hint, sweep_up, algorithm, sites, carries, x)
    output = sites[-1].channel
    assert isinstance(output, Output)
    target = output.target(y, ups[-1].pre, generator)
    run_down = EAGER if _is_a_loop(sites, plans, x, going_on or remember) else run
    down = run_down.call(
        (hint, plans, reinforcement), sweep_down, algorithm, sites, carries, ups, target, reinforcement, remember, plans
    )
    return Sweep(down.carries, floored + down.clamped, down.largest, [up.pre for up in ups])


def _is_a_loop(sites: Sequence[Site], plans: Sequence[Plan] | None, x: Tensor, iterates: bool) -> bool:
    """Whether the way down looks at its series or goes edge by edge over several chunks."""
    if plans is None:
        return False
    chunked = (
        plan.series is None and site.channel.elementwise and edges(site, x) > CHUNK_EDGES
        for site, plan in zip(sites, plans, strict=True)
    )
    return iterates or any(plan.due for plan in plans) or any(chunked)


def sweep_up(
    algorithm: Algorithm, sites: Sequence[Site], carries: Sequence[Carry], x: Tensor
) -> tuple[list[Up], Tensor]:
    """Moments from the first layer to the last, and how many variances were floored."""
    below: Preactivation | None = None
    ups, counts = [], []
    for site, carry in zip(sites, carries, strict=True):
        up, count = up_layer(algorithm, site, carry, x if below is None else None, below)
        ups.append(up)
        counts.append(count)
        below = up.pre
    return ups, torch.stack(counts).sum()


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


def sweep_down(
    algorithm: Algorithm,
    sites: Sequence[Site],
    carries: Sequence[Carry],
    ups: Sequence[Up],
    target: Target,
    reinforcement: Sequence[float],
    remember: bool,
    plans: Sequence[Plan] | None,
) -> SweepDown:
    """Fields from the last layer to the first, and the weights that they leave; ``plans`` say how each layer's cavity
    sums are evaluated, None where there are none."""
    message: Fields | Target = target
    new, counts, largest = [], [], []
    for number in reversed(range(len(sites))):
        site, carry, up, r = sites[number], carries[number], ups[number], reinforcement[number]
        series, due = (None, False) if plans is None else plans[number]
        if due:
            series = site.evaluation.look(site, carry.weights.mean, up.inputs.mean, message, up.pre)
        result = down_layer(algorithm, site, carry, up, message, series, r, remember)
        new.append(result.carry)
        counts.append(result.clamped)
        largest.append(result.largest)
        if result.carry.down is not None:
            message = result.carry.down
    return SweepDown(new[::-1], torch.stack(counts).sum(), torch.stack(largest[::-1]))


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
    variances = site.prior.uses_precision or (site.below is not None and site.below.uses_precision)
    known = site.channel.response(message, up.pre) if variances or algorithm.needs_curvature else None
    factor = Factor(site.channel, message, up.pre, series, known)
    B, H, memory = algorithm.down(site, carry, up, factor, remember)
    G = weight_precision(site, up.inputs, factor) if site.prior.uses_precision else None
    rule = Rule(site.rho, site.damping, r, site.evidence, site.focusing)
    natural, weights = update_weights(
        site.prior, rule, carry.mask, carry.start, carry.natural, Fields(H, G), carry.weights
    )
    clamped = torch.zeros((), device=H.device, dtype=torch.int64)
    down = None
    if site.below is not None:
        assert B is not None
        assert up.below is not None
        A = input_precision(site, carry.weights, factor) if site.below.uses_precision else None
        shape = up.inputs.mean.shape
        down = Fields(B.reshape(shape), None if A is None else A.reshape(shape))
        clamped = _add(clamped, site.below.clamped(down, up.below))
    clamped = _add(clamped, site.prior.clamped(natural))
    after = carry._replace(weights=weights, natural=natural, down=down, memory=memory)
    return LayerDown(after, clamped, natural.field.abs().amax())


def _add(total: Tensor, count: Tensor | None) -> Tensor:
    return total if count is None else total + count
