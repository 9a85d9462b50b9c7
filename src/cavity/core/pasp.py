"""Posterior-as-Prior: the posterior of one mini-batch, raised to the power ρ, is the prior of the next.

    q_{t+1}(W) ≈ [P(W | y_t, X_t, q_t)]^ρ

In natural parameters: θ = ρ·(h, λ), message passing for τ_max iterations adds (H, G), and the sum is the new (h, λ).
The damped mean m, not ∂ψ(θ), is where the next forward pass starts. ρ = 1, batches of one sample and one pass over the
data are Assumed Density Filtering.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from cavity.core.algorithms.base import Algorithm
from cavity.core.messages import Preactivation
from cavity.core.state import LayerState, Rule, Site, largest_move
from cavity.core.sweep import Iterate, iterate


@dataclass(frozen=True)
class Method:
    """What is done with every mini-batch: the algorithm, the chain of layers it works on, how many inner iterations,
    and the change of a weight mean below which they end early (None: never)."""

    algorithm: Algorithm
    sites: tuple[Site, ...]
    iterations: int = 1
    tolerance: float | None = None
    #: 1 − r ← (1 − r)(1 − step) after every iteration.
    reinforcement_step: float = 0.0

    @cached_property
    def parts(self) -> tuple[Site, ...]:
        """The sites of all weights and thresholds."""
        return tuple(part for site in self.sites for part in (site, site.threshold) if part is not None)

    @cached_property
    def _counts(self) -> tuple[int, int]:
        """Units of one sample whose V, or gain 1 + AV where A matters, may need a floor; and weights."""
        gains = [site for site in self.sites if site.below is not None and site.below.uses_precision]
        units = sum(math.prod(site.coupling.output_shape) for site in self.sites)
        weights = sum(part.coupling.outputs * part.coupling.columns for part in self.parts)
        return units + sum(math.prod(site.coupling.input_shape) for site in gains), weights

    def entries(self, samples: int) -> int:
        """All that may need a floor or a bound in one iteration."""
        units, weights = self._counts
        return units * samples + weights


class State(NamedTuple):
    """What one mini-batch leaves to the next: the posterior of every layer, and r where annealing has brought it."""

    layers: tuple[LayerState, ...]
    reinforcement: tuple[float, ...]


@dataclass(frozen=True)
class StepInfo:
    """Diagnostics of one mini-batch. Tensors stay on the device; nothing is computed until it is asked for."""

    #: Inner iterations done.
    iterations: int
    #: (ω, V) of the last layer in the last iteration, (samples, outputs): the prediction before the update.
    output: Preactivation
    clamped_entries: Tensor
    entries: int
    #: What the samples were labelled; in one process of several, its own samples.
    labels: Tensor
    #: Largest |h| or |λ| of each layer, (layers,): finite if the whole state is.
    largest: Tensor
    old_means: tuple[Tensor, ...]
    new_means: tuple[Tensor, ...]
    masks: tuple[Tensor | None, ...]

    @cached_property
    def message_change(self) -> Tensor:
        """Largest |m_new − m_old| of each layer over the mini-batch, (layers,)."""
        changes = zip(self.new_means, self.old_means, strict=True)
        return torch.stack([(new - old).abs().max() for new, old in changes])

    @cached_property
    def polarization(self) -> Tensor:
        """Mean of m² over the unmasked weights of each layer, (layers,): q₀ of the paper, averaged over units."""
        pairs = zip(self.new_means, self.masks, strict=True)
        return torch.stack([m.square().sum() / (m.numel() if mask is None else mask.sum()) for m, mask in pairs])

    @property
    def clamped(self) -> Tensor:
        """Fraction of variances, gains 1 + AV and weights that needed a floor or the bound, 0-dimensional."""
        return self.clamped_entries / self.entries


def annealed(r: Sequence[float], step: float) -> tuple[float, ...]:
    """1 − r ← (1 − r)(1 − step) for every layer."""
    return tuple(1 - (1 - value) * (1 - step) for value in r)


def update(
    method: Method,
    state: State,
    rules: Sequence[Rule],
    x: Tensor,
    y: Tensor,
    generator: torch.Generator | None = None,
    iterate: Iterate = iterate,
) -> tuple[State, StepInfo]:
    """Message passing on one mini-batch: x (samples, *input_shape), y labels; ``rules`` hold the numbers of each
    layer."""
    layers = [layer.begin(rule) for layer, rule in zip(state.layers, rules, strict=True)]
    old_means, r = tuple(layer.moments.mean for layer in layers), state.reinforcement
    clamped: list[Tensor] = []
    for done in range(1, method.iterations + 1):
        before = [layer.reinforced(r_l) for layer, r_l in zip(layers, r, strict=True)]
        result = iterate(method.algorithm, method.sites, before, x, y, done < method.iterations, generator)
        layers = result.learnt.states
        clamped.append(result.learnt.clamped)
        r = annealed(r, method.reinforcement_step) if method.reinforcement_step else r
        if method.tolerance is not None and converged(before, layers, method.tolerance):
            break
    info = StepInfo(
        done,
        result.pres[-1],
        sum(clamped[1:], clamped[0]),
        done * method.entries(len(x)),
        y,
        result.learnt.largest,
        old_means,
        tuple(layer.moments.mean for layer in layers),
        tuple(layer.mask for layer in layers),
    )
    return State(tuple(layers), r), info


def converged(before: Sequence[LayerState], after: Sequence[LayerState], tolerance: float) -> bool:
    """Whether no mean of a weight or threshold moved by more than ``tolerance``. Waits for the device: only where asked
    for."""
    return bool(largest_move(before, after) <= tolerance)
