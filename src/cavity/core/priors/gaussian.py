"""Gaussian weights: ψ(h, λ) = h²/2λ + ½ log 2π/λ, m = h/λ, σ = 1/λ."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from cavity.core.floors import PRECISION_FLOOR
from cavity.core.messages import Fields, Moments
from cavity.core.priors.base import Prior, check_epsilon


class Gaussian(Prior):
    """Real weights with natural parameters h (mean times precision) and λ (precision).

    Messages lower λ, even below 0, when several samples of a mini-batch contradict weights that are certain. ``floor``
    keeps λ above floor·N, where N is the number of inputs of a unit and the initial λ for init = 1. With 0, λ is only
    kept positive.
    """

    name: ClassVar[str] = "gaussian"
    summary: ClassVar[str] = "real numbers: suits tables and regression"
    polarizes: ClassVar[bool] = False
    largest_square = 0.0

    def __init__(self, floor: float = 0.0) -> None:
        if not 0 <= floor <= 1:
            raise ValueError(f"floor must be a fraction of the initial precision, in [0, 1], got {floor}")
        self.floor = float(floor)

    def _least(self, natural: Fields) -> float:
        return max(PRECISION_FLOOR, self.floor * natural.field.shape[-1])

    def _precision(self, natural: Fields) -> Tensor:
        assert natural.precision is not None
        return natural.precision.clamp_min(self._least(natural))

    def value(self, natural: Fields) -> Tensor:
        precision = self._precision(natural)
        return 0.5 * (natural.field.square() / precision + math.log(2 * math.pi) - torch.log(precision))

    def moments(self, natural: Fields) -> Moments:
        precision = self._precision(natural)
        return Moments(natural.field / precision, precision.reciprocal())

    def damp(self, old: Moments, new: Moments, alpha: float) -> Moments:
        return Moments(torch.lerp(new.mean, old.mean, alpha) if alpha else new.mean, new.variance)

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
        return (natural.precision < self._least(natural)).sum()
