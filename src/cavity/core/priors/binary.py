"""Binary weights w = ±1: ψ(h) = log 2cosh h, m = tanh h, σ = 1 − m²."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from cavity.core.messages import Fields, Moments
from cavity.core.priors.base import Prior
from cavity.core.special import tanh_moments


class Binary(Prior):
    """±1 weights; h is half the log-odds of +1."""

    name: ClassVar[str] = "binary"
    summary: ClassVar[str] = "±1: ships as bits"
    uses_precision: ClassVar[bool] = False
    largest_square = 1.0

    def value(self, natural: Fields) -> Tensor:
        h = natural.field.abs()
        return h + torch.log1p(torch.exp(-2 * h))

    def moments(self, natural: Fields) -> Moments:
        return Moments(*tanh_moments(natural.field))

    def damp(self, old: Moments, new: Moments, alpha: float) -> Moments:
        m = torch.lerp(new.mean, old.mean, alpha)
        return Moments(m, 1 - m.square())

    def point(self, natural: Fields, mean: Tensor) -> Tensor:
        return (mean >= 0).to(mean.dtype).mul_(2).sub_(1)

    def sample(self, natural: Fields, moments: Moments, generator: torch.Generator) -> Tensor:
        m = moments.mean
        uniform = torch.rand(m.shape, generator=generator, device=generator.device, dtype=m.dtype).to(m.device)
        return torch.where(2 * uniform - 1 < m, 1.0, -1.0).to(m.dtype)
