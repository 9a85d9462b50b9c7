"""One skeleton for all algorithms: a sweep up, a sweep down, new weights. Moments go up, fields come down, and each
layer keeps a field on its weights. ω, B and H are the algorithm's; everything else is here and in the modules
beside. What one layer does in one direction is one function; where kernels are compiled, each direction is fused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from cavity.core.algorithms.base import Algorithm, Carry, Site, Up
from cavity.core.algorithms.edges import CHUNK_EDGES
from cavity.core.channels.base import Output
from cavity.core.layer import SweepDown, down_layer, up_layer
from cavity.core.messages import Fields, Preactivation, Target
from cavity.engine.arithmetic import Plan, edges
from cavity.engine.fusion import EAGER, Kernels, between_kernels
from cavity.engine.together import sweep_down_together

if TYPE_CHECKING:
    from cavity.engine.distributed import Share


class Sweep(NamedTuple):
    """The outcome of one inner iteration: that of the sweep down, and (ω, V) of each layer."""

    carries: list[Carry]
    clamped: Tensor
    largest: Tensor
    pres: list[Preactivation]


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
    share: Share | None = None,
) -> Sweep:
    """One iteration τ on inputs x (samples, *input_shape) and labels y (samples, …): one kernel up, one down.

    Where x is the ``share`` of one process, y are the labels of all samples, and the way down is a kernel a layer."""
    samples = len(x) if share is None else share.samples
    plans = None
    if algorithm.has_corrections:
        plans = tuple(site.evaluation.plan(site, x, samples, algorithm.has_cavities) for site in sites)
    going_on = carries[0].natural is not carries[0].start
    hint = x.shape, x.stride(), x.dtype, x.device, y.shape, y.dtype, going_on, remember
    # Cavities that outlive an iteration are overwritten in place, chunk by chunk.
    run_up = EAGER if algorithm.has_cavities and going_on else run
    ups, floored = run_up.call(hint, sweep_up, algorithm, sites, carries, x)
    output = sites[-1].channel
    assert isinstance(output, Output)
    last = ups[-1].pre
    target = output.target(y, last, generator) if share is None else share.target(output, y, last, generator)
    loop = plans is not None and algorithm.has_cavities and _is_a_loop(sites, plans, x, going_on or remember)
    run_down = EAGER if output.branches or loop else run
    told = algorithm, sites, carries, ups, target, reinforcement, remember, plans
    if share is None:
        down = run_down.call((hint, plans, reinforcement), sweep_down, *told)
    else:
        down = sweep_down_together(*told, share, run_down, hint)
    return Sweep(down.carries, floored + down.clamped, down.largest, [up.pre for up in ups])


def _is_a_loop(sites: Sequence[Site], plans: Sequence[Plan], x: Tensor, iterates: bool) -> bool:
    """Whether the way down looks at its series or goes edge by edge over several chunks."""
    chunked = (
        plan.series is None and site.channel.elementwise and edges(site, len(x)) > CHUNK_EDGES
        for site, plan in zip(sites, plans, strict=True)
    )
    return iterates or any(plan.due for plan in plans) or any(chunked)


@between_kernels
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
    """Fields from the last layer to the first, and the weights that they leave; ``plans`` say how each layer's
    corrections are evaluated, None where there are none."""
    message: Fields | Target = target
    new, counts, largest = [], [], []
    for number in reversed(range(len(sites))):
        site, carry, up, r = sites[number], carries[number], ups[number], reinforcement[number]
        series, due = (None, False) if plans is None else plans[number]
        if due:
            means = carry.weights.mean, up.inputs.mean
            series = site.evaluation.look(site, *means, message, up.pre, columns=carry.columns)
        result = down_layer(algorithm, site, carry, up, message, series, r, remember)
        new.append(result.carry)
        counts.append(result.clamped)
        largest.append(result.largest)
        if result.carry.down is not None:
            message = result.carry.down
    return SweepDown(new[::-1], torch.stack(counts).sum(), torch.stack(largest[::-1]))
