"""The local entropy of ±1 weights: how many solutions there are at a distance from a reference (Franz and Parisi).

    Z(γ) = Σ_W exp(γ Σ_ki w̃_ki w_ki) [W gets right what w̃ gets right],     S(d) = min_γ [log Z(γ) − γN(1 − 2d)]

At the minimum the solutions that count have distance d on average, 1 − 2d = Σ w̃m/N.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from cavity.analysis.entropy.evidence import (
    DAMPING,
    ITERATIONS,
    TOLERANCE,
    Unreliable,
    check_numbers,
    checked,
    require_room,
    runner,
)
from cavity.core.algorithms import ALGORITHMS, Algorithm
from cavity.core.channels import Channel, GaussianOutput
from cavity.core.entropy import free_entropy, prior_states, steady_point
from cavity.core.layer import Layer
from cavity.core.messages import Fields
from cavity.core.network import Network
from cavity.core.priors import Binary
from cavity.core.priors.known import Known
from cavity.core.state import LayerState, Site

#: The mean distance of the solutions may differ by this part from the one asked for: S is stationary in γ, so that what
#: is neglected is of second order, about ½·0.05²·d.
DISTANCE_TOLERANCE = 0.05
#: Couplings tried for one distance.
ATTEMPTS = 10


@dataclass(frozen=True, eq=False)
class LocalEntropy:
    """log-numbers of solutions at distances from a reference. A solution gets right whatever the reference gets right,
    so that its training error is at most the reference's."""

    #: Fractions of the weights that differ from the reference.
    distances: tuple[float, ...]
    #: log-numbers; None where message passing has not converged.
    values: tuple[float | None, ...]
    #: γ of each distance.
    couplings: tuple[float, ...]
    #: Samples that the reference gets right, of all.
    constraints: int
    samples: int
    #: How many weights there are.
    weights: int

    @property
    def converged(self) -> bool:
        """At every distance."""
        return None not in self.values

    @property
    def per_weight(self) -> tuple[float, ...]:
        """values / weights; raises ``Unreliable`` if one is missing."""
        missing = [d for d, value in zip(self.distances, self.values, strict=True) if value is None]
        if missing:
            raise Unreliable(f"message passing has not converged at distances {missing}: raise iterations or damping")
        return tuple(value / self.weights for value in self.values if value is not None)

    @property
    def unconstrained(self) -> tuple[float, ...]:
        """What ``per_weight`` is without any sample, −d log d − (1−d) log(1−d): nothing lies above it."""
        return tuple(-d * math.log(d) - (1 - d) * math.log1p(-d) for d in self.distances)


@torch.no_grad()
def local_entropy(
    net: Network,
    x: Tensor,
    y: Tensor,
    distances: Sequence[float],
    *,
    algorithm: str | Algorithm = "bp",
    iterations: int = ITERATIONS,
    damping: float = DAMPING,
    tolerance: float = TOLERANCE,
    tell: Callable[[int], object] = lambda done: None,
) -> LocalEntropy:
    """log of the number of ±1 weights at each Hamming distance from ``net``'s that get right what it gets right.

    Args:
        net: The reference is its most probable weights; they must be binary. Thresholds keep their values.
        x: Inputs (samples, *input_shape).
        y: Labels, as ``Trainer.step`` takes them.
        distances: Fractions of the weights, between 0 and 1.
        algorithm: ``"bp"``, ``"bpi"`` or ``"amp"``; mean field cannot count.
        iterations: Of message passing for each coupling, at most.
        damping: The part of the old mean that stays in each of them. What does not converge is tried twice more, with
            half the step, 1 − damping.
        tolerance: Converged if no weight mean moves by more.
        tell: Called with the number of distances that are done.
    """
    method, (x, y) = ALGORITHMS.make(algorithm), checked(net, x, y)
    check_numbers(iterations, damping, tolerance)
    _check(net, method, distances)
    predicted = net.predict(x)
    right = (predicted == y.reshape(predicted.shape)).reshape(len(x), -1).all(dim=1)
    if not bool(right.any()):
        raise ValueError(f"the network gets none of the {len(x)} samples right: every network is a solution")
    require_room(method, net, int(right.sum()))
    walk = _Walk(method, net, net.prepared(x[right]), y[right], iterations, damping, tolerance)
    found: dict[float, tuple[float | None, float]] = {}
    for d in sorted(set(map(float, distances))):
        found[d] = walk.to(d)
        tell(len(found))
    values, couplings = zip(*(found[float(d)] for d in distances), strict=True)
    return LocalEntropy(tuple(map(float, distances)), values, couplings, int(right.sum()), len(x), walk.weights)


def counting() -> list[str]:
    """The algorithms that can count solutions."""
    return [name for name, one in ALGORITHMS.items() if not one.bounds_evidence]


def _check(net: Network, method: Algorithm, distances: Sequence[float]) -> None:
    if method.bounds_evidence:
        able = " or ".join(f"'{name}'" for name in counting())
        raise ValueError(f"algorithm '{method.name}' cannot count solutions, its bound is -infinity: use {able}")
    others = [layer.prior.name for layer in net.weighted() if not isinstance(layer.prior, Binary)]
    if others:
        raise ValueError(f"a Hamming distance needs binary weights, the network has {others[0]} ones")
    if isinstance(net.output, GaussianOutput):
        raise ValueError("a Gaussian output is never right: local entropy needs labels or classes")
    if not distances or not all(0 < d < 1 for d in distances):
        raise ValueError(f"distances must be fractions between 0 and 1, got {list(distances)}")


Part = TypeVar("Part", bound=Channel[Any])


def _hard(channel: Part) -> Part:
    """The channel without its noise: a solution is right, not probably right."""
    hard = copy.copy(channel)
    hard.noise = 0.0
    return hard


class _Walk:
    """Message passing at one coupling γ after another, each from the fixed point before."""

    def __init__(
        self, method: Algorithm, net: Network, x: Tensor, y: Tensor, iterations: int, damping: float, tolerance: float
    ) -> None:
        self.method, self.x, self.y, self.iterations, self.tolerance = method, x, y, iterations, tolerance
        self.sites, self.iterate = _solving(net), runner(net)
        self.reference = tuple(_signs(layer) for layer in net.weighted())
        self.weights = sum(layer.free_weights for layer in net.weighted())
        self.gamma, self.damping = math.nan, damping
        self.states = tuple(_unlearnt(layer.state) for layer in net.weighted())

    def to(self, distance: float) -> tuple[float | None, float]:
        """S and γ of a distance, by the secant rule for atanh of the overlap, which is γ itself without samples."""
        q, aim = 1 - 2 * distance, math.atanh(1 - 2 * distance)
        gamma, slope, last = aim, 1.0, None
        for _ in range(ATTEMPTS):
            log_z, overlap = self.at(gamma)
            if log_z is None or not -1 < overlap < 1:
                return None, gamma
            if abs(overlap - q) <= 2 * DISTANCE_TOLERANCE * min(distance, 1 - distance):
                return log_z - gamma * self.weights * q, gamma
            reached = math.atanh(overlap)
            if last is not None and reached != last[1]:
                slope = min(4.0, max(0.25, (gamma - last[0]) / (reached - last[1])))
            last = gamma, reached
            gamma += slope * (aim - reached)
        return None, gamma

    def at(self, gamma: float) -> tuple[float | None, float]:
        """log Z(γ), None if it is not known, and the overlap Σ w̃m/N."""
        self.states = self._coupled(gamma)
        self.gamma = gamma
        point = steady_point(
            self.method, self.sites, self.states, self.x, self.y, self.iterations, self.tolerance, self.iterate
        )
        self.states = point.states
        samples, weights = free_entropy(
            self.method, self.sites, point.states, point.pres, self.x, self.y, exact_edges=math.inf
        )
        log_z = float(samples.double().sum() + weights.double().sum())
        log_z += self.weights * (abs(gamma) + math.log1p(math.exp(-2 * abs(gamma))))
        parts = zip(self.reference, self.states, strict=True)
        overlap = sum(float((w * state.moments.mean).double().sum()) for w, state in parts) / self.weights
        return log_z if point.converged and math.isfinite(log_z) else None, overlap

    def _coupled(self, gamma: float) -> tuple[LayerState, ...]:
        """The same messages with the prior γw̃; from nothing at the first coupling."""
        priors = [Fields(gamma * w, None) for w in self.reference]
        pairs = zip(self.states, self.reference, priors, strict=True)
        if math.isnan(self.gamma):
            first = [state._replace(natural=prior) for state, _, prior in pairs]
            return tuple(prior_states(self.sites, first, self.damping))
        moved = [(state, state.natural.field + (gamma - self.gamma) * w, prior) for state, w, prior in pairs]
        return tuple(state._replace(start=prior, natural=Fields(h, None)) for state, h, prior in moved)


def _signs(layer: Layer) -> Tensor:
    """The most probable ±1 weights, without the thresholds, 0 where masked."""
    return layer.point()[:, : layer.coupling.columns]


def _unlearnt(state: LayerState) -> LayerState:
    """The state with thresholds about which no message has said anything."""
    if state.threshold is None:
        return state
    h = torch.zeros_like(state.threshold.natural.field)
    return state._replace(threshold=state.threshold._replace(natural=Fields(h, None)))


def _solving(net: Network) -> tuple[Site, ...]:
    """The chain without noise, and with the reference's own thresholds: real numbers have no Hamming distance."""
    activations = [_hard(activation) for activation in net.activations]
    channels: list[Channel[Any]] = [*activations, _hard(net.output)]
    parts = zip(net.weighted(), (None, *activations), (None, *net.pools), channels, strict=True)
    chain = [(layer, layer.site(under, pool, over)) for layer, under, pool, over in parts]
    return tuple(
        site
        if site.threshold is None or layer.threshold is None
        else replace(site, threshold=replace(site.threshold, prior=Known(layer.threshold.point())))
        for layer, site in chain
    )
