"""Weights on a few atoms a with base weights μ_a: p_a ∝ μ_a e^{ha − ½λa²}, ψ = log Σ_a μ_a e^{ha − ½λa²}."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from cavity.core.messages import Fields, Moments
from cavity.core.priors.base import Prior


class Atoms(Prior):
    """Discrete weights on the given values; ``base`` are their relative weights at h = λ = 0 (default: all equal)."""

    name: ClassVar[str] = "atoms"
    summary: ClassVar[str] = "values of your own"

    def __init__(self, values: Sequence[float], base: Sequence[float] | None = None) -> None:
        base = [1.0] * len(values) if base is None else base
        if len(values) < 2 or len(set(values)) != len(values) or not all(map(math.isfinite, values)):
            raise ValueError(f"values must be two or more different finite numbers, got {list(values)}")
        if len(base) != len(values) or not all(math.isfinite(b) and b > 0 for b in base):
            raise ValueError(f"base must hold one positive weight for each of {len(values)} values, got {list(base)}")
        self.values = tuple(float(a) for a in values)
        self.base = tuple(float(b) for b in base)
        squares = [a * a for a in self.values]
        self.smallest_square, self.largest_square = min(squares), max(squares)

    def _log_weights(self, natural: Fields) -> Tensor:
        """(atoms, outputs, inputs) log-probabilities up to a constant: ha − ½λ(a² − a_ref²) + log μ_a.

        a_ref² is the square that λ favours, so that a large λ does not swamp the h of the atoms that remain likely."""
        h, precision = natural
        assert precision is not None
        low, high = 0.5 * precision.clamp_min(0), 0.5 * precision.clamp_max(0)
        return torch.stack(
            [
                (math.log(b) + a * h) - (a * a - self.smallest_square) * low - (a * a - self.largest_square) * high
                for a, b in zip(self.values, self.base, strict=True)
            ]
        )

    def value(self, natural: Fields) -> Tensor:
        _, precision = natural
        assert precision is not None
        reference = torch.where(precision < 0, self.largest_square, self.smallest_square)
        return torch.logsumexp(self._log_weights(natural), dim=0) - 0.5 * reference * precision

    def moments(self, natural: Fields) -> Moments:
        """The variance is Σ_{a<b} p_a p_b (a−b)², and a pair ±a adds a(p_a + p_{−a}) tanh(ah + ½ log μ_a/μ_{−a}) to the
        mean: no digits cancel when one atom dominates, or when h is small."""
        p = torch.softmax(self._log_weights(natural), dim=0)
        mean, variance = torch.zeros_like(natural.field), torch.zeros_like(natural.field)
        for i, a in enumerate(self.values):
            if -a not in self.values:
                mean = mean + a * p[i]
            elif a > 0:
                j = self.values.index(-a)
                tilt = a * natural.field + 0.5 * math.log(self.base[i] / self.base[j])
                mean = mean + a * (p[i] + p[j]) * torch.tanh(tilt)
            for j in range(i):
                variance = variance + (a - self.values[j]) ** 2 * (p[i] * p[j])
        return Moments(mean, variance)

    def damp(self, old: Moments, new: Moments, alpha: float) -> Moments:
        """Moments of the mixture α·old + (1−α)·new; for atoms ±1 this is 1 − m²."""
        assert old.variance is not None
        assert new.variance is not None
        mean = torch.lerp(new.mean, old.mean, alpha)
        between = alpha * (1 - alpha) * (old.mean - new.mean).square()
        return Moments(mean, torch.lerp(new.variance, old.variance, alpha) + between)

    def point(self, natural: Fields, mean: Tensor) -> Tensor:
        values = torch.tensor(self.values, dtype=mean.dtype, device=mean.device)
        return values[self._log_weights(natural).argmax(dim=0)]

    def sample(self, natural: Fields, moments: Moments, generator: torch.Generator) -> Tensor:
        """Uses p_a of the damped moments where they determine it (up to three atoms), else that of (h, λ)."""
        determined = len(self.values) <= 3
        log_weights = torch.log(self._from_moments(moments)) if determined else self._log_weights(natural)
        uniform = torch.rand(log_weights.shape, generator=generator, device=generator.device)
        gumbel = -torch.log(-torch.log(uniform.to(log_weights)))
        values = torch.tensor(self.values, dtype=log_weights.dtype, device=log_weights.device)
        return values[(log_weights + gumbel).argmax(dim=0)]

    def _from_moments(self, moments: Moments) -> Tensor:
        """p_a = ⟨Π_{b≠a} (w − b)⟩ / Π_{b≠a} (a − b), (atoms, outputs, inputs), of two or three atoms."""
        m, variance = moments
        assert variance is not None
        found = []
        for a in self.values:
            others = [b for b in self.values if b != a]
            above = m - others[0] if len(others) == 1 else variance + (m - others[0]) * (m - others[1])
            found.append(above / math.prod(a - b for b in others))
        return torch.stack(found).clamp_min(0)


class Ternary(Atoms):
    """Weights in {−1, 0, +1}."""

    name: ClassVar[str] = "ternary"
    summary: ClassVar[str] = "−1, 0 or 1: learns which weights to leave out"

    def __init__(self) -> None:
        super().__init__((-1.0, 0.0, 1.0))
