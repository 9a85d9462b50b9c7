"""How a number changes over a run: functions of the fraction t ∈ [0, 1) of training that is done, so that the number of
epochs alone decides. Importing this is cheap."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cavity.util.registry import Registry

#: From the fraction of training that is done to the factor on a number.
Function = Callable[[float], float]


class Schedule(ABC):
    """A factor for every fraction of training."""

    name: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def __call__(self, t: float) -> float:
        """The factor at fraction t."""


@dataclass(frozen=True)
class Constant(Schedule):
    """Always 1."""

    name: ClassVar[str] = "constant"
    summary: ClassVar[str] = "never changes, as in the paper"

    def __call__(self, t: float) -> float:
        return 1.0


@dataclass(frozen=True)
class Cosine(Schedule):
    """From 1 along half a cosine to ``floor`` at t = ``end``, where it stays."""

    name: ClassVar[str] = "cosine"
    summary: ClassVar[str] = "falls along half a cosine"
    floor: float = 0.0
    end: float = 1.0

    def __call__(self, t: float) -> float:
        return max(self.floor, 0.5 * (1 + math.cos(math.pi * min(t / self.end, 1.0))))


@dataclass(frozen=True)
class OneCycle(Schedule):
    """Up from ``start`` to 1 within the first ``warm`` of training, then down along a cosine to ``floor``."""

    name: ClassVar[str] = "one-cycle"
    summary: ClassVar[str] = "rises for a tenth of training, then falls along half a cosine"
    start: float = 0.1
    warm: float = 0.1
    floor: float = 0.0

    def __call__(self, t: float) -> float:
        if t < self.warm:
            return self.start + (1 - self.start) * t / self.warm
        return Cosine(self.floor)((t - self.warm) / (1 - self.warm))


@dataclass(frozen=True)
class Steps(Schedule):
    """1, then ``factor`` times as much from each of the fractions ``at`` on."""

    name: ClassVar[str] = "steps"
    summary: ClassVar[str] = "falls to a third at 60 %, 75 % and 90 % of training"
    at: Sequence[float] = (0.6, 0.75, 0.9)
    factor: float = 1 / 3

    def __call__(self, t: float) -> float:
        return self.factor ** sum(t >= place for place in self.at)


SCHEDULES: Registry[Schedule] = Registry("schedule", Constant, Cosine, OneCycle, Steps)
