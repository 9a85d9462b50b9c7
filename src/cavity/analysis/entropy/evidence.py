"""The evidence of labelled samples, log P(y | x), from the fixed point of message passing on them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from cavity.core.algorithms import ALGORITHMS, Algorithm
from cavity.core.entropy import free_entropy, prior_states, steady_point
from cavity.core.entropy.bound import require_noise
from cavity.core.messages import Fields
from cavity.core.network import Network
from cavity.engine import allocation
from cavity.engine.compiling import kernels
from cavity.engine.runner import Runner

ITERATIONS, DAMPING, TOLERANCE = 500, 0.5, 1e-4
#: Of cavity sums, relative to the largest.
ACCURACY = 1e-4


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
    #: (h, λ) of the weights of each layer given all samples, and of its thresholds, None where it has none.
    posterior: tuple[Fields, ...]
    thresholds: tuple[Fields | None, ...]

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
    compile: bool = False,
) -> Evidence:
    """log P(y | x), with the weights summed over the prior that the network holds; the network stays as it is.

    Args:
        net: Its (h, λ) are the prior, so a network that was never trained gives the evidence of its design. One with
            thresholds or whitening should have been started from inputs (``net.balance(x)``), as training does.
        x: Inputs (samples, *input_shape).
        y: Labels, as ``Trainer.step`` takes them.
        algorithm: ``"bp"`` and ``"bpi"`` (Bethe), ``"amp"`` (TAP), ``"mf"`` (a lower bound; every channel needs noise).
        iterations: Of message passing, at most.
        damping: The part of the old mean that stays in each of them. What does not converge is tried twice more, with
            half the step, 1 − damping.
        tolerance: Converged if no weight mean moves by more.
        batch_size: By the chain rule: the posterior of one mini-batch is the prior of the next. None: all at once.
        compile: Fuse elementwise work by torch.compile, which takes a minute and pays for hundreds of mini-batches.
    """
    method, (x, y) = ALGORITHMS.make(algorithm), checked(net, x, y)
    check_numbers(iterations, damping, tolerance)
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    sites, size = net.sites, len(x) if batch_size is None else min(len(x), batch_size)
    if method.bounds_evidence:
        require_noise(sites)
    require_room(method, net, size)
    states, run = prior_states(sites, net.states(), damping), runner(net, compile)
    points, terms = [], []
    for rows, labels in zip(torch.split(net.prepared(x), size), torch.split(y, size), strict=True):
        points.append(steady_point(method, sites, states, rows, labels, iterations, tolerance, run))
        given = method, sites, points[-1].states, points[-1].pres, rows, labels
        terms.append(run.kernels.of(free_entropy, (rows.shape, labels.shape), given)(*given))
        # Messages of every edge are the largest thing held: the next mini-batch has its own.
        states = prior_states(sites, points[-1].states, damping)
        points[-1] = replace(points[-1], states=(), pres=())
    return Evidence(
        method.name,
        torch.cat([one.samples for one in terms]),
        torch.stack([one.weights for one in terms]).sum(dim=0),
        all(point.converged for point in points),
        max(point.iterations for point in points),
        max((point.change for point in points), key=lambda change: math.inf if math.isnan(change) else change),
        sum(point.clamped for point in points),
        tuple(state.natural for state in states),
        tuple(state.threshold and state.threshold.natural for state in states),
    )


def checked(net: Network, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """x and y as message passing takes them; ValueError or TypeError says what is wrong."""
    x, y = net.check_inputs(x), torch.as_tensor(y).to(net.device)
    net.output.check(y, len(x), net.outputs)
    net.output.check_values(y, net.outputs)
    return x, y


def runner(net: Network, compile: bool = False) -> Runner:
    """What runs the iterations: BPI's cavity sums by a series, and fused kernels if asked for."""
    run = Runner(len(net.layers), "exact" if net.dtype == torch.float64 else ACCURACY)
    run.kernels = kernels(compile)
    return run


def require_room(method: Algorithm, net: Network, samples: int) -> None:
    """MemoryError before the messages of every edge fill the memory."""
    couplings = [part.coupling for layer in net.weighted() for part in (layer, layer.threshold) if part is not None]
    numbers = method.numbers_held(couplings, samples, iterations=2)
    if numbers:
        what, remedy = f"{method.name} on {samples} samples at once", "use mini-batches, or algorithm 'amp' or 'bpi'"
        allocation.require(numbers * net.dtype.itemsize, net.device, what, remedy)


def check_numbers(iterations: int, damping: float, tolerance: float) -> None:
    """Raise ValueError where one of them makes no sense."""
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")
    if not 0 <= damping < 1:
        raise ValueError(f"damping must be in [0, 1), got {damping}")
    if not tolerance > 0:
        raise ValueError(f"tolerance must be > 0, got {tolerance}")
