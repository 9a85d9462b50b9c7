"""The interface of a weight prior. Each is an exponential family over a base measure μ:

    q_{h,λ}(w) ∝ μ(w) e^{hw − ½λw²},      ψ(h, λ) = log ∫ dμ(w) e^{hw − ½λw²}

so the message (H, G) of a mini-batch is added to the natural parameters (h, λ) = θ, and tempering by ρ multiplies them:
[q]^ρ is the density relative to μ, raised to ρ. If w² is constant, λ has no effect and is ``None``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from cavity.core.messages import Fields, Moments


class Prior(ABC):
    """A family of weight distributions. Shapes are (outputs, inputs) throughout."""

    name: ClassVar[str]
    #: One line for lists.
    summary: ClassVar[str]
    #: Whether weights become certain of one of a few values, which ρ > 1 helps them to.
    polarizes: ClassVar[bool] = True
    #: Whether λ matters.
    uses_precision: ClassVar[bool] = True
    #: The largest w² of the support, 0 if unbounded; rounding errors of σ are relative to it.
    largest_square: float

    @abstractmethod
    def value(self, natural: Fields) -> Tensor:
        """ψ(h, λ)."""

    @abstractmethod
    def moments(self, natural: Fields) -> Moments:
        """m = ∂_h ψ and σ = ∂²_h ψ."""

    @abstractmethod
    def damp(self, old: Moments, new: Moments, alpha: float) -> Moments:
        """m ← α m_old + (1−α) m_new and the variance that goes with it."""

    def initial(self, shape: tuple[int, int], epsilon: float, generator: torch.Generator) -> Fields:
        """Random natural parameters that break the symmetry of the units, of size ε: here h = ε·𝒩(0, 1), λ = 0."""
        check_epsilon(epsilon)
        precision = torch.zeros(shape) if self.uses_precision else None
        return Fields(epsilon * torch.randn(shape, generator=generator), precision)

    @abstractmethod
    def point(self, natural: Fields, mean: Tensor) -> Tensor:
        """The most probable weights."""

    @abstractmethod
    def sample(self, natural: Fields, moments: Moments, generator: torch.Generator) -> Tensor:
        """One draw of every weight from the current distribution."""

    def clamped(self, natural: Fields) -> Tensor | None:
        """How many weights needed a floor, a 0-dimensional count; None if it cannot happen."""
        return None


#: The smallest and the largest spread whose square, and its inverse times many inputs, single precision holds.
EPSILON_RANGE = (1e-15, 1e15)


def check_epsilon(epsilon: float) -> None:
    lowest, highest = EPSILON_RANGE
    if epsilon != 0 and not lowest <= epsilon <= highest:
        raise ValueError(f"init must be 0 or from {lowest:g} to {highest:g}, got {epsilon}")
