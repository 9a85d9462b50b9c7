"""The way down where several processes have a share of the samples each: as in ``skeleton.py``, but the weights of a
layer wait until its (H, G) have been added up over the processes, which happens while the layers below go on."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cavity.core.algorithms.base import Algorithm, Carry, Series, Site, Up
from cavity.core.algorithms.series import largest_edge, scale_of
from cavity.core.layer import SweepDown, layer_fields, learnt, passed_down
from cavity.core.messages import Fields, Target
from cavity.engine.arithmetic import Plan
from cavity.engine.distributed import Share
from cavity.engine.fusion import Kernels


class LayerMessages(NamedTuple):
    """What one process's samples say at one layer: (H, G), the message below, memory, and clamped entries."""

    fields: Fields
    down: Fields | None
    memory: Any
    clamped: Tensor


def layer_messages(
    algorithm: Algorithm,
    site: Site,
    carry: Carry,
    up: Up,
    message: Fields | Target,
    series: Series | None,
    remember: bool,
    reach: Tensor | None,
) -> LayerMessages:
    """``down_layer`` without the weights: they wait for the other processes."""
    found = layer_fields(algorithm, site, carry, up, message, series, remember, reach)
    down, clamped = passed_down(site, carry, up, found)
    return LayerMessages(found.fields, down, found.memory, clamped)


def sweep_down_together(
    algorithm: Algorithm,
    sites: Sequence[Site],
    carries: Sequence[Carry],
    ups: Sequence[Up],
    target: Target,
    reinforcement: Sequence[float],
    remember: bool,
    plans: Sequence[Plan] | None,
    share: Share,
    run: Kernels,
    hint: Hashable,
) -> SweepDown:
    """``sweep_down`` where each process has a share of the samples: (H, G) of a layer are added up while the layers
    below it are still on the way down, and the weights follow when all are on their way."""
    reaches = common_reaches(sites, carries, ups, plans if algorithm.has_cavities else None, share)
    message: Fields | Target = target
    found, sums, used = [], [], []
    for number in reversed(range(len(sites))):
        site, carry, up = sites[number], carries[number], ups[number]
        series, due = (None, False) if plans is None else plans[number]
        if due:
            means = carry.weights.mean, up.inputs.mean
            series = site.evaluation.look(site, *means, message, up.pre, share.team, carry.columns)
        used.append(series)
        part = run.call(
            # The layer above has laid out its message as its own series does.
            (hint, number, *used[-2:]),
            layer_messages,
            algorithm,
            site,
            carry,
            up,
            message,
            series,
            remember,
            reaches[number],
        )
        found.append(part)
        sums.append(share.add(part.fields))
        if part.down is not None:
            message = part.down
    new, counts, largest = [], [], []
    for number, part, total in zip(reversed(range(len(sites))), found, sums, strict=True):
        # The other half of ``down_layer``: weights from (H, G) of all processes.
        after = run.call(
            (hint, number, reinforcement),
            learnt,
            sites[number],
            carries[number],
            total.wait(),
            reinforcement[number],
        )
        weights, natural = after.moments, after.natural
        new.append(carries[number]._replace(weights=weights, natural=natural, down=part.down, memory=part.memory))
        counts.append(part.clamped + after.clamped)
        largest.append(after.largest)
    return SweepDown(new[::-1], torch.stack(counts).sum(), torch.stack(largest[::-1]))


def common_reaches(
    sites: Sequence[Site], carries: Sequence[Carry], ups: Sequence[Up], plans: Sequence[Plan] | None, share: Share
) -> list[Tensor | None]:
    """The largest edge of each layer over all processes where its sums may be a series, so that all of them
    interpolate at the same nodes as one process would."""
    by_series = [number for number, plan in enumerate(plans or ()) if plan.series is not None or plan.due]
    reaches: list[Tensor | None] = [None] * len(sites)
    if by_series:
        here = [largest_edge(carries[n].weights.mean, ups[n].inputs.mean, sites[n].coupling.bias) for n in by_series]
        together = scale_of(share.team.largest(torch.stack(here)))
        for number, reach in zip(by_series, together.unbind(), strict=True):
            reaches[number] = reach
    return reaches
