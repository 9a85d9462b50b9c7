"""Posterior-as-Prior: the posterior of one mini-batch, raised to the power ρ, is the prior of the next.

    q_{t+1}(W) ≈ [P(W | y_t, X_t, q_t)]^ρ

In natural parameters: θ = ρ·(h, λ), message passing for τ_max iterations adds (H, G), and the sum is the new (h, λ).
The damped mean m, not ∂ψ(θ), is where the next forward pass starts. ρ = 1, batches of one sample and one pass over the
data are Assumed Density Filtering.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from cavity.core.algorithms.base import Algorithm, Carry, Site
from cavity.core.messages import Preactivation
from cavity.core.network import Network
from cavity.core.posterior import Focusing
from cavity.core.sweep import sweep
from cavity.engine.distributed import Share
from cavity.engine.fusion import EAGER, Kernels


@dataclass(frozen=True)
class Settings:
    """How to update: one number per layer for ρ and α."""

    rho: tuple[float, ...]
    damping: tuple[float, ...]
    reinforcement_step: float
    focusing: Focusing | None
    inner_iterations: int
    tolerance: float | None


@dataclass(frozen=True)
class Engine:
    """With what to update: the algorithm and the layers as it sees them."""

    algorithm: Algorithm
    sites: Sequence[Site]
    run: Kernels = EAGER


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
    old_means: tuple[Tensor, ...]
    new_means: tuple[Tensor, ...]
    free_weights: tuple[int, ...]

    @cached_property
    def message_change(self) -> Tensor:
        """Largest |m_new − m_old| of each layer over the mini-batch, (layers,)."""
        changes = zip(self.new_means, self.old_means, strict=True)
        return torch.stack([(new - old).abs().max() for new, old in changes])

    @cached_property
    def polarization(self) -> Tensor:
        """Mean of m² over the unmasked weights of each layer, (layers,): q₀ of the paper, averaged over units."""
        sums = [mean.square().sum() / free for mean, free in zip(self.new_means, self.free_weights, strict=True)]
        return torch.stack(sums)

    @property
    def clamped(self) -> Tensor:
        """Fraction of variances, gains 1 + AV and weights that needed a floor or the bound, 0-dimensional."""
        return self.clamped_entries / self.entries


@dataclass(frozen=True)
class Update:
    """The new state of every layer, not yet written into the network."""

    carries: tuple[Carry, ...]
    reinforcement: tuple[float, ...]
    #: Largest |h| or |λ| of each layer, (layers,).
    largest: Tensor
    info: StepInfo


def annealed(r: Sequence[float], step: float) -> tuple[float, ...]:
    """1 − r ← (1 − r)(1 − step) for every layer."""
    return tuple(1 - (1 - value) * (1 - step) for value in r)


def update(
    network: Network,
    x: Tensor,
    y: Tensor,
    engine: Engine,
    settings: Settings,
    reinforcement: tuple[float, ...],
    generator: torch.Generator | None,
    share: Share | None = None,
) -> Update:
    """Message passing on one mini-batch: x (samples, *input_shape), y labels. The network is not changed.

    ``reinforcement`` is r of each layer at the start; the update carries where annealing has brought it. With a
    ``share``, x are the samples of this process and y the labels of all; diagnostics are those of its own."""
    layers = network.weighted()
    carries = network.carries()
    old_means = tuple(carry.weights.mean for carry in carries)
    r, clamped, done = reinforcement, torch.zeros((), device=x.device, dtype=torch.int64), 0
    for iteration in range(1, settings.inner_iterations + 1):
        before = carries
        remember = iteration < settings.inner_iterations
        result = sweep(engine.algorithm, engine.sites, carries, x, y, r, remember, generator, engine.run, share)
        carries, clamped, done = result.carries, clamped + result.clamped, iteration
        r = annealed(r, settings.reinforcement_step)
        if settings.tolerance is not None and _converged(before, carries, settings.tolerance):
            break
    free = tuple(layer.free_weights for layer in layers)
    entries = done * _entries(network, result.pres)
    info = StepInfo(
        done,
        result.pres[-1],
        clamped,
        entries,
        y if share is None else y[share.part],
        old_means,
        tuple(carry.weights.mean for carry in carries),
        free,
    )
    return Update(tuple(carries), r, result.largest, info)


def _entries(network: Network, pres: Sequence[Preactivation]) -> int:
    """All that may need a floor or a bound in one iteration: V of every unit, 1 + AV where A matters, and weights."""
    gains = zip(pres[:-1], network.activations, strict=True)
    return (
        sum(pre.mean.numel() for pre in pres)
        + sum(pre.mean.numel() for pre, activation in gains if activation.uses_precision)
        + sum(layer.field.numel() for layer in network.weighted())
    )


def _converged(before: Sequence[Carry], after: Sequence[Carry], tolerance: float) -> bool:
    """Whether no weight mean moved by more than ``tolerance``. Waits for the device: only where asked for."""
    changes = [(new.weights.mean - old.weights.mean).abs().max() for old, new in zip(before, after, strict=True)]
    return bool(torch.stack(changes).max() <= tolerance)
