"""The evidence of labelled samples, log P(y | x), from the fixed point of message passing on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cavity.core.algorithms import ALGORITHMS, Algorithm
from cavity.core.entropy import FixedPoint, free_entropy, steady_point
from cavity.core.entropy.bound import require_noise
from cavity.core.entropy.fixed_point import prior_state
from cavity.core.messages import Fields
from cavity.core.network import Network
from cavity.core.state import Site

ITERATIONS, DAMPING, TOLERANCE = 500, 0.5, 1e-4


class Unreliable(FloatingPointError):
    """A free entropy was asked for where message passing has not converged, or is not finite."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """log P(y | x): what each sample adds to it (samples,), and the weights of each layer (layers,). A single term
    means little, their sum is the logarithm of a probability."""

    algorithm: str
    samples: Tensor
    weights: Tensor
    converged: bool
    #: Of the longest of the mini-batches, and the largest change of a weight mean in a last iteration.
    iterations: int
    change: float
    #: Variances, gains and weights that needed a floor in the last iterations.
    clamped: int
    #: (h, λ) of each layer given all samples.
    posterior: tuple[Fields, ...]

    @property
    def estimate(self) -> float:
        """The sum of the terms, converged or not."""
        return float(self.samples.double().sum() + self.weights.double().sum())

    @property
    def value(self) -> float:
        """log P(y | x); raises ``Unreliable`` where that is not known."""
        if not self.converged:
            raise Unreliable(
                f"{self.algorithm} has not converged in {self.iterations} iterations, a weight still moves by "
                f"{self.change:.2g}: raise iterations or damping, or use mini-batches (batch_size)"
            )
        if not math.isfinite(self.estimate):
            raise Unreliable(f"the free entropy of {self.algorithm} is {self.estimate}: its messages are not finite")
        return self.estimate

    def __repr__(self) -> str:
        state = (
            f"log P = {self.estimate:.6g}" if self.converged else f"NOT CONVERGED after {self.iterations} iterations"
        )
        return f"Evidence({self.algorithm}, {len(self.samples)} samples, {state})"


@torch.no_grad()
def log_evidence(
    net: Network,
    x: Tensor,
    y: Tensor,
    *,
    algorithm: str | Algorithm = "bp",
    iterations: int = ITERATIONS,
    damping: float = DAMPING,
    tolerance: float = TOLERANCE,
    batch_size: int | None = None,
) -> Evidence:
    """log P(y | x), with the weights summed over the prior that the network holds; the network stays as it is.

    Args:
        net: Its (h, λ) are the prior, so a network that was never trained gives the evidence of its design.
        x: Inputs (samples, *input_shape).
        y: Labels, as ``Trainer.step`` takes them.
        algorithm: ``"bp"`` and ``"bpi"`` (Bethe), ``"amp"`` (TAP), ``"mf"`` (a lower bound; every channel needs noise).
        iterations: Of message passing, at most.
        damping: The part of the old mean that stays in each of them. What does not converge is tried twice more, with
            half the step, 1 − damping.
        tolerance: Converged if no weight mean moves by more.
        batch_size: By the chain rule: the posterior of one mini-batch is the prior of the next. None: all at once.
    """
    method, (x, y) = ALGORITHMS.make(algorithm), checked(net, x, y)
    check_numbers(iterations, damping, tolerance)
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    sites, size = net.sites, len(x) if batch_size is None else batch_size
    if method.name == "mf":
        require_noise(sites)
    states = [
        prior_state(site, layer.natural, layer.state, damping)
        for site, layer in zip(sites, net.weighted(), strict=True)
    ]
    parts: list[Evidence] = []
    for rows, labels in zip(torch.split(x, size), torch.split(y, size), strict=True):
        point = steady_point(method, sites, states, rows, labels, iterations, tolerance)
        parts.append(_evidence(method, sites, point, rows, labels))
        states = [
            prior_state(site, state.natural, state, damping) for site, state in zip(sites, point.states, strict=True)
        ]
    return Evidence(
        method.name,
        torch.cat([part.samples for part in parts]),
        torch.stack([part.weights for part in parts]).sum(dim=0),
        all(part.converged for part in parts),
        max(part.iterations for part in parts),
        max((part.change for part in parts), key=lambda change: math.inf if math.isnan(change) else change),
        sum(part.clamped for part in parts),
        parts[-1].posterior,
    )


def _evidence(method: Algorithm, sites: Sequence[Site], point: FixedPoint, x: Tensor, y: Tensor) -> Evidence:
    samples, weights = free_entropy(method, sites, point, x, y)
    known = tuple(state.natural for state in point.states)
    return Evidence(
        method.name, samples, weights, point.converged, point.iterations, point.change, point.clamped, known
    )


def checked(net: Network, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """x and y as message passing takes them; ValueError or TypeError says what is wrong."""
    if net.front is not None:
        raise ValueError("the free entropy knows weights and activations only, the network has a fixed first layer")
    for number, site in enumerate(net.sites):
        if site.threshold is not None or site.pooling is not None:
            what = "thresholds" if site.pooling is None else "a pool below it"
            raise ValueError(f"the free entropy knows weights and activations only, layer {number} has {what}")
    x, y = net.check_inputs(x), torch.as_tensor(y).to(net.device)
    net.output.check(y, len(x), net.outputs)
    net.output.check_values(y, net.outputs)
    return x, y


def check_numbers(iterations: int, damping: float, tolerance: float) -> None:
    """Raise ValueError where one of them makes no sense."""
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")
    if not 0 <= damping < 1:
        raise ValueError(f"damping must be in [0, 1), got {damping}")
    if not tolerance > 0:
        raise ValueError(f"tolerance must be > 0, got {tolerance}")
