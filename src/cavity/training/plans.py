"""The numbers of every step: what a plan gives each layer for ρ, rate, horizon and damping at each point of a run.

``Given`` takes numbers, as the paper has them. ``Annealed`` needs none: the messages choose the rate
(``core/posterior.py``), it falls along a cosine while the run goes on, and in the last part of the run ρ > 1 makes the
weights certain. ``Remembering`` is for a stream that never ends: evidence fades with the number of samples since.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cavity.core.priors.base import Prior
from cavity.core.state import Rule
from cavity.training.schedules import Constant, Cosine, Function


class Place(NamedTuple):
    """A step's place in its run: the fraction t of training that is done, the mini-batches of the whole run and of an
    epoch (None where nobody knows: a stream), and the samples of a mini-batch."""

    fraction: float
    steps: int | None
    epoch_steps: int | None
    batch_size: int


class Plan(ABC):
    """What decides the numbers of each step."""

    #: Whether precisions are the Fisher part of the paper's (``core/fisher.py``).
    fisher: bool

    @abstractmethod
    def rules(self, priors: Sequence[Prior], place: Place) -> list[Rule]:
        """The rule of each layer, from its kind of weights."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The plan in a line."""

    def quenches(self, place: Place) -> bool:
        """Whether the weights are being made certain: the posterior before that is kept for Bayesian prediction."""
        return False


#: The paper's schedule.
CONSTANT = Constant()


@dataclass(frozen=True)
class Given(Plan):
    """Numbers for each layer, the rate times a schedule; the paper has rate 1 for ever."""

    rho: tuple[float, ...]
    rate: tuple[float, ...]
    damping: tuple[float, ...]
    schedule: Function = CONSTANT
    fisher: bool = False

    @property
    def words(self) -> str:
        numbers = {"rate": self.rate, "rho": self.rho, "damping": self.damping}
        return ", ".join(f"{name} {_listed(values)}" for name, values in numbers.items())

    def rules(self, priors: Sequence[Prior], place: Place) -> list[Rule]:
        factor = self.schedule(place.fraction)
        return list(_given(self.rho, tuple([rate * factor for rate in self.rate]), self.damping))


@dataclass(frozen=True)
class Annealed(Plan):
    """Learn, anneal, quench; every number of it is a fraction or a count of samples, none belongs to a data set.

    With s(t) the schedule and κ(t) = κ·s(t)·√(USUAL_STEPS/steps), because the noise of n steps adds up like √n,

        discrete weights   e = κ RMS(m)/RMS(σH),  ρ = 1, damped by α;  in the quench ρ^steps = ``growth``, κ = ``cold``
        their readout      e = ``readout_rate``·s,  T = ``readout_samples``/batch size: it counts that many samples;
                           if ``bounded``, e = κs min(T, RMS(m)/RMS(σH)) with the same T
        real weights       e = κ min(T, RMS(m)/RMS(σD)),  T = ``count`` epochs: it counts every sample that often
        thresholds         likewise, with the size of the preactivations for RMS(m)
    """

    kappa: float = 0.05
    floor: float = 0.04
    damping: float = 0.8
    quench: float = 0.2
    growth: float = 40.0
    cold: float = 0.003
    readout_rate: float = 0.2
    readout_floor: float = 0.03
    readout_samples: float = 1280.0
    #: For an output whose curvature stays: a given rate overshoots where units of one sign push in one direction.
    bounded: bool = False
    count: float = 30.0
    precision: float = 6.0
    #: None is the cosine with a quench; anything else has no quench.
    schedule: Function | None = None
    fisher: bool = True

    @property
    def words(self) -> str:
        chosen = "the messages choose the rate"
        if self.schedule is not None:
            return f"{chosen}, times a schedule"
        return f"{chosen}, which is annealed" + (", then weights become certain" if self.quench else "")

    @classmethod
    def of_convolutions(cls, **given: Any) -> Annealed:
        """For networks with convolutions, whose 1-bit error is in the units of few inputs: their weights take longer
        to become certain, and the others go on learning what to make of them."""
        return cls(**{"quench": 0.4, "growth": 400.0, "cold": 0.02, **given})

    def quenches(self, place: Place) -> bool:
        return self.schedule is None and place.steps is not None and place.fraction >= 1 - self.quench

    def rules(self, priors: Sequence[Prior], place: Place) -> list[Rule]:
        t, steps, epoch_steps, batch_size = place
        schedule = self.schedule or (CONSTANT if steps is None else Cosine(end=1 - self.quench))
        s = schedule(t)
        shorter = batch_size / USUAL_BATCH if steps is None else USUAL_STEPS / steps
        kappa = annealed = min(max(self.kappa * shorter**0.5, SMALLEST_STEP), LARGEST_STEP) * max(s, self.floor)
        rho = 1.0
        if self.quenches(place):
            assert steps is not None
            kappa, rho = self.cold, self.growth ** (1 / max(1.0, self.quench * steps))
        rules = []
        horizon = None if epoch_steps is None else scalar(self.count * epoch_steps)
        kept = None if epoch_steps is None else scalar(THRESHOLD_COUNT * epoch_steps)
        threshold = Rule(scalar(1.0), scalar(self.kappa * max(s, self.floor)), True, kept, THRESHOLD_PRECISION)
        for number, prior in enumerate(priors):
            if not prior.polarizes:
                rate = scalar(annealed)
                rules.append(Rule(scalar(1.0), rate, True, horizon, self.precision, threshold=threshold))
            elif number == len(priors) - 1 and number > 0:
                samples = scalar(self.readout_samples / batch_size)
                unbounded = self.readout_rate * max(s, self.readout_floor)
                rate = scalar(self.kappa * max(s, self.floor) if self.bounded else unbounded)
                rules.append(Rule(scalar(1.0), rate, self.bounded, samples, threshold=threshold))
            else:
                rate = scalar(kappa)
                rules.append(Rule(scalar(rho), rate, relative=True, damping=self.damping, threshold=threshold))
        return rules


@dataclass(frozen=True)
class Remembering(Plan):
    """Learn for ever, from samples that are seen once: 37 % is left of what was learnt ``memory`` samples ago.

        discrete weights   h ← (1 − n/memory) h + e H,   e = √(``counted``/memory) within [``least``, 1]
        real weights       e = κ min(T, RMS(m)/RMS(σD)), T = memory/n: the posterior holds that many mini-batches

    n is the batch size. Nothing is annealed, and nothing must be known of tasks or their ends. Infinite memory never
    forgets on purpose: fields only grow, and weights that are certain leave fewer and fewer to what is new. A memory
    of up to ``counted`` samples counts each of them once; a longer one has to fit more samples into the same weights.
    """

    memory: float
    counted: float = 1e5
    least: float = 0.03
    kappa: float = 0.05
    precision: float = 6.0
    fisher: bool = True

    @property
    def words(self) -> str:
        kept = "nothing is forgotten" if math.isinf(self.memory) else f"a memory of {self.memory:,.0f} samples"
        return f"a stream, {kept}"

    def rules(self, priors: Sequence[Prior], place: Place) -> list[Rule]:
        kept = self.memory / place.batch_size
        # A mini-batch larger than the memory is all that is left.
        rho, horizon = scalar(max(0.0, 1 - 1 / kept)), None if math.isinf(kept) else scalar(max(1.0, kept))
        certain = Rule(rho, scalar(min(1.0, max(self.least, math.sqrt(self.counted / self.memory)))))
        real = Rule(scalar(1.0), scalar(self.kappa), True, horizon, self.precision if horizon is not None else 0.0)
        return [(certain if prior.polarizes else real)._replace(threshold=real) for prior in priors]


#: The length of run that κ is meant for, ten epochs of Fashion-MNIST; in a stream, whose length nobody knows, the
#: mini-batch. Longer and shorter runs have a κ between these bounds.
USUAL_STEPS, USUAL_BATCH = 4680, 128
SMALLEST_STEP, LARGEST_STEP = 0.03, 0.2
#: How often the posterior of a threshold counts each sample.
THRESHOLD_COUNT = 15.0
#: λ₀ of a threshold: before any evidence its standard deviation is the size of the preactivations.
THRESHOLD_PRECISION = 1.0


def _listed(values: tuple[float, ...]) -> str:
    """One number where all layers have the same."""
    return " ".join(f"{value:g}" for value in (values[:1] if len(set(values)) == 1 else values))


@lru_cache(maxsize=16)
def _given(rho: tuple[float, ...], rate: tuple[float, ...], damping: tuple[float, ...]) -> tuple[Rule, ...]:
    """Rules of given numbers, for thresholds as for weights; kept, because most steps have those of the one before."""
    numbers = zip(rho, rate, damping, strict=True)
    rules = [Rule(scalar(rho_l), scalar(rate_l), damping=damping_l) for rho_l, rate_l, damping_l in numbers]
    return tuple(rule._replace(threshold=rule) for rule in rules)


@lru_cache(maxsize=1024)
def scalar(number: float) -> Tensor:
    """A 0-dimensional tensor, which takes the type of what it is multiplied with: a compiled step takes any. Kept,
    because making one takes as long as a small product; nobody changes it."""
    return torch.tensor(number, dtype=torch.float64)
