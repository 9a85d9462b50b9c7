"""Runs the sweeps of ``core/sweep.py``: compiled or not, by series or edge by edge, alone or with other processes.

The functions are the same in all cases. What a runner changes from one mini-batch to the next is how sums are computed
(``choosing.py``), and that is all it remembers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cavity.core.algorithms.base import Algorithm
from cavity.core.algorithms.series import largest_edge, scale_of
from cavity.core.algorithms.sums import CHUNK_EDGES
from cavity.core.arithmetic import Arithmetic
from cavity.core.channels.base import Output
from cavity.core.messages import Fields, Target
from cavity.core.state import LayerState, Site, Up
from cavity.core.sweep import Iteration, LayerDown, Learnt, layer_down, learn, sweep_down, sweep_up
from cavity.engine.choosing import Accuracy, Choice, edges, is_due
from cavity.engine.compiling import EAGER, Kernels
from cavity.engine.distributed import Pending, Portion, Team


class _Way(NamedTuple):
    """How the way down is gone: the arithmetic of each layer, what of it kernels are made for, and the kernels."""

    how: list[Arithmetic]
    key: Hashable
    kernels: Kernels


class Runner:
    """One inner iteration after the other, for a chain of ``layers`` layers."""

    def __init__(self, layers: int, accuracy: Accuracy = None, team: Team | None = None) -> None:
        self.choices = [Choice(accuracy) for _ in range(layers)]
        self.kernels = EAGER
        #: The processes that train together, None where this is the only one.
        self.team = team
        #: Sweeps done: what decides when to look.
        self.sweeps = 0
        #: Ways down that have been found, by all that they depend on.
        self._ways: dict[Hashable, _Way] = {}

    def __call__(
        self,
        algorithm: Algorithm,
        sites: Sequence[Site],
        states: Sequence[LayerState],
        x: Tensor,
        y: Tensor,
        remember: bool = False,
        generator: torch.Generator | None = None,
    ) -> Iteration:
        """``core.sweep.iterate``. Of several processes, x are the samples of this one and y the labels of all."""
        portion = None if self.team is None else self.team.portion(len(y))
        begins = states[0].begins
        by_edge = algorithm.keeps_edges and (remember or not begins)
        kinds = tuple(map(_kind, states))
        hint = x.shape, x.stride(), x.dtype, x.device, y.shape, y.dtype, begins, remember, kinds

        # Messages of every edge that outlive an iteration are overwritten in place, chunk by chunk.
        kernels = EAGER if algorithm.keeps_edges and not begins else self.kernels
        args: tuple[Any, ...] = algorithm, sites, states, x
        ups = kernels.of(sweep_up, hint, args, between=True)(*args)
        output = sites[-1].channel
        assert isinstance(output, Output)
        last = ups[-1].pre
        target = output.target(y, last, generator) if portion is None else portion.target(output, y, last, generator)

        told = algorithm, sites, states, ups, target
        looks = () if by_edge or not is_due(self.sweeps) else self.looks(algorithm, sites, x, len(y))
        self.sweeps += 1
        if looks:
            # What a look finds may differ from sweep to sweep at first: not worth compiling before it is known.
            how = self.arithmetic(algorithm, sites, x, len(y))
            downs = sweep_down(*told, _reaching(how, sites, states, ups, portion), remember)
            self.look(looks, sites, states, ups, downs, target)
        way = self._way(algorithm, sites, x, len(y), by_edge or output.branches)
        return Iteration(self._down(told, way, remember, portion, hint), [up.pre for up in ups])

    def _way(self, algorithm: Algorithm, sites: Sequence[Site], x: Tensor, samples: int, eager: bool) -> _Way:
        """The way down, found once for each kind of mini-batch and choice of arithmetic."""
        choices = tuple([choice.present for choice in self.choices])
        key = algorithm, x.shape, x.dtype, x.device, samples, eager, self.kernels, choices
        way = self._ways.get(key)
        if way is None:
            how = self.arithmetic(algorithm, sites, x, samples)
            eager = eager or _is_chunked(algorithm, sites, how, len(x))
            kinds = tuple((one.series, one.half) for one in how)
            way = self._ways[key] = _Way(how, kinds, EAGER if eager else self.kernels)
        return way

    def arithmetic(self, algorithm: Algorithm, sites: Sequence[Site], x: Tensor, samples: int) -> list[Arithmetic]:
        """How each layer computes its corrections now, in a mini-batch of ``samples`` of which x are all or a part."""
        return [
            choice.arithmetic(algorithm, site, x, samples)._replace(fuse=self.kernels.fuse)
            for choice, site in zip(self.choices, sites, strict=True)
        ]

    def looks(self, algorithm: Algorithm, sites: Sequence[Site], x: Tensor, samples: int) -> list[int]:
        """The layers whose arithmetic is to be chosen by looking."""
        pairs = zip(self.choices, sites, strict=True)
        return [n for n, (choice, site) in enumerate(pairs) if choice.is_open(algorithm, site, x, samples)]

    def look(
        self,
        layers: Sequence[int],
        sites: Sequence[Site],
        states: Sequence[LayerState],
        ups: Sequence[Up],
        downs: Sequence[LayerDown],
        target: Target,
    ) -> None:
        """Choose anew for some layers, from what a sweep has brought."""
        messages = [*(down.message for down in downs[1:]), target]
        for number in layers:
            message = messages[number]
            assert message is not None
            self.choices[number].look(sites[number], states[number], ups[number], message, self.team)

    def _down(
        self,
        told: tuple[Algorithm, Sequence[Site], Sequence[LayerState], list[Up], Target],
        way: _Way,
        remember: bool,
        portion: Portion | None,
        hint: Hashable,
    ) -> Learnt:
        """The way down and the weights it leaves. Alone, both are one kernel. Among several processes each layer is
        one, and its (H, G) are added up over the processes while the layers below it are still on their way."""
        how, key, kernels = way
        if portion is None:
            args: tuple[Any, ...] = *told, how, remember
            return kernels.of(down_and_learn, (hint, key), args)(*args)
        _, sites, states, ups, _ = told
        how = _reaching(how, sites, states, ups, portion)
        sums: list[Pending] = []

        def layer(*args: Any) -> LayerDown:
            # The layer above has laid out its message as its own series does.
            found = kernels.of(layer_down, (hint, len(sums), key), args)(*args)
            sums.append(portion.add(*(part.fields for part in (found, found.threshold) if part is not None)))
            return found

        downs = sweep_down(*told, how, remember, layer)
        learnt: list[Learnt] = []
        # From the last layer on, whose fields have been on their way the longest.
        for number, total in zip(reversed(range(len(sites))), sums, strict=True):
            down = _with_fields(downs[number], total.wait())
            args = (sites[number],), (states[number],), (ups[number],), (down,)
            learnt.insert(0, kernels.of(learn, (hint, number), args)(*args))
        states_, clamped, largest = zip(*learnt, strict=True)
        return Learnt([one[0] for one in states_], torch.stack(clamped).sum(), torch.cat(largest))

    def snapshot(self) -> tuple[int, list[tuple[Arithmetic, list[Arithmetic]]]]:
        """What ``go_back`` takes: references, because a look replaces what it changes."""
        return self.sweeps, [(choice.present, choice.recent) for choice in self.choices]

    def go_back(self, before: tuple[int, list[tuple[Arithmetic, list[Arithmetic]]]]) -> None:
        """As it was at a snapshot."""
        self.sweeps, choices = before
        for choice, (present, recent) in zip(self.choices, choices, strict=True):
            choice.present, choice.recent = present, recent

    def state_dict(self) -> list[dict[str, Any]]:
        """What the next sweep needs to compute as this run would."""
        return [{"calls": self.sweeps, **choice.state_dict()} for choice in self.choices]

    def load_state_dict(self, state: Sequence[dict[str, Any]]) -> None:
        # Layers without a choice did not count in earlier versions.
        calls = [saved["calls"] for saved in state]
        if not all(isinstance(number, int) and number >= 0 for number in calls):
            raise ValueError(f"calls is {str(calls)[:40]}, expected whole numbers from 0")
        self.sweeps = max(calls)
        for choice, saved in zip(self.choices, state, strict=True):
            choice.load_state_dict(saved)


def down_and_learn(
    algorithm: Algorithm,
    sites: Sequence[Site],
    states: Sequence[LayerState],
    ups: Sequence[Up],
    target: Target,
    how: Sequence[Arithmetic],
    remember: bool,
) -> Learnt:
    """Fields and weights in one function, so that they are one kernel."""
    return learn(sites, states, ups, sweep_down(algorithm, sites, states, ups, target, how, remember))


def _with_fields(down: LayerDown, fields: Sequence[Fields]) -> LayerDown:
    """The same with (H, G) of its weights and, if there are any, its thresholds."""
    threshold = None if down.threshold is None else down.threshold._replace(fields=fields[1])
    return down._replace(fields=fields[0], threshold=threshold)


def _is_chunked(algorithm: Algorithm, sites: Sequence[Site], how: Sequence[Arithmetic], samples: int) -> bool:
    """Whether a layer goes edge by edge over several chunks: a loop that no kernel should unroll."""
    return algorithm.corrections == "cavity sums" and any(
        one.series is None and site.channel.elementwise and edges(site, samples) > CHUNK_EDGES
        for site, one in zip(sites, how, strict=True)
    )


def _reaching(
    how: Sequence[Arithmetic],
    sites: Sequence[Site],
    states: Sequence[LayerState],
    ups: Sequence[Up],
    portion: Portion | None,
) -> list[Arithmetic]:
    """Where several processes evaluate a series, with the largest edge of each layer over all of them, so that all
    interpolate at the same nodes as one process would."""
    result = list(how)
    by_series = [number for number, one in enumerate(how) if one.series is not None]
    if portion is not None and by_series:
        here = [largest_edge(states[n].moments.mean, ups[n].inputs.mean, sites[n].coupling.bias) for n in by_series]
        together = scale_of(portion.team.largest(torch.stack(here)))
        for number, reach in zip(by_series, together.unbind(), strict=True):
            result[number] = how[number]._replace(reach=reach)
    return result


def _kind(state: LayerState) -> Hashable:
    """What of a layer's rule a kernel is made for: all but the numbers that it takes as tensors."""
    rule, threshold = state.rule, state.threshold
    numbers = rule.relative, rule.horizon is None, rule.precision, rule.damping, rule.reinforcement, rule.focusing
    return numbers if threshold is None else (numbers, _kind(threshold))
