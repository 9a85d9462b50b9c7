"""Gaussian weights: ψ(h, λ) = h²/2λ + ½ log 2π/λ, m = h/λ, σ = 1/λ."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from cavity.floors import PRECISION_FLOOR
from cavity.messages import Fields, Moments
from cavity.priors.base import Prior, check_epsilon


def _precision(natural: Fields) -> Tensor:
    assert natural.precision is not None
    return natural.precision.clamp_min(PRECISION_FLOOR)


class Gaussian(Prior):
    """Real weights with natural parameters h (mean times precision) and λ (precision)."""

    name: ClassVar[str] = "gaussian"

    @property
    def largest_square(self) -> float:
        return 0.0

    def value(self, natural: Fields) -> Tensor:
        precision = _precision(natural)
        return 0.5 * (natural.field.square() / precision + math.log(2 * math.pi) - torch.log(precision))

    def moments(self, natural: Fields) -> Moments:
        precision = _precision(natural)
        return Moments(natural.field / precision, precision.reciprocal())

    def damp(self, old: Moments, new: Moments, alpha: float) -> Moments:
        return Moments(torch.lerp(new.mean, old.mean, alpha), new.variance)

    def initial(self, shape: tuple[int, int], epsilon: float, generator: torch.Generator) -> Fields:
        """Mean (ε/√N)·𝒩(0, 1) and standard deviation ε/√N, for N inputs."""
        check_epsilon(epsilon)
        if epsilon == 0:
            raise ValueError("init must be > 0 for gaussian weights: it is their standard deviation, got 0")
        precision = shape[1] / epsilon**2
        mean = epsilon / math.sqrt(shape[1]) * torch.randn(shape, generator=generator)
        return Fields(mean * precision, torch.full(shape, precision))

    def point(self, natural: Fields, mean: Tensor) -> Tensor:
        return mean

    def sample(self, natural: Fields, moments: Moments, generator: torch.Generator) -> Tensor:
        m, variance = moments
        assert variance is not None
        noise = torch.randn(m.shape, generator=generator, device=generator.device, dtype=m.dtype).to(m.device)
        return m + torch.sqrt(variance) * noise

    def clamped(self, natural: Fields) -> Tensor:
        assert natural.precision is not None
        return (natural.precision < PRECISION_FLOOR).sum()
