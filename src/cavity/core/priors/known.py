"""A weight whose value is known, for use inside the library: ψ(h) = hb, m = b, σ = 0."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from cavity.core.messages import Fields, Moments
from cavity.core.priors.base import Prior


class Known(Prior):
    """All mass at the given values (outputs, columns): no message changes them, and they add nothing to log Z."""

    name: ClassVar[str] = "known"
    summary: ClassVar[str] = "one value, whatever the data say"
    polarizes: ClassVar[bool] = False
    uses_precision: ClassVar[bool] = False
    largest_square = 0.0

    def __init__(self, values: Tensor) -> None:
        self.values = values

    def value(self, natural: Fields) -> Tensor:
        return natural.field * self.values

    def moments(self, natural: Fields) -> Moments:
        mean = self.values.expand_as(natural.field)
        return Moments(mean, torch.zeros_like(mean))

    def damp(self, old: Moments, new: Moments, alpha: float) -> Moments:
        return new

    def point(self, natural: Fields, mean: Tensor) -> Tensor:
        return mean

    def sample(self, natural: Fields, moments: Moments, generator: torch.Generator) -> Tensor:
        return moments.mean
