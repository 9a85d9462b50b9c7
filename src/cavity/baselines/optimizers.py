"""The two update rules of the gradient baselines, each followed by clipping to [−bound, bound].

They do not use ``torch.optim``, whose optimisers would split the compiled graph of a training step in two.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor


class Optimizer(ABC):
    """Changes weights in place. ``lr`` is the step size, ``bound`` the largest |w|."""

    def __init__(self, lr: float, bound: float) -> None:
        if not (math.isfinite(lr) and lr > 0):
            raise ValueError(f"lr must be a finite number > 0, got {lr!r}")
        self.lr, self.bound = lr, bound

    def start(self, weights: Sequence[Tensor]) -> list[Tensor]:
        """The initial memory."""
        return []

    @abstractmethod
    def update(self, weights: Sequence[Tensor], gradients: Sequence[Tensor], memory: Sequence[Tensor]) -> None:
        """One update and clipping; ``memory`` is changed in place."""

    def descend(self, loss: Tensor, weights: Sequence[Tensor], memory: Sequence[Tensor]) -> Tensor:
        """One update by the gradient of ``loss``, which is returned without its graph."""
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            self.update(weights, gradients, memory)
        return loss.detach()


class SGD(Optimizer):
    """w ← clip(w − lr·∂L/∂w)."""

    def update(self, weights: Sequence[Tensor], gradients: Sequence[Tensor], memory: Sequence[Tensor]) -> None:
        for w, gradient in zip(weights, gradients, strict=True):
            # Not add_ with alpha=-lr: torch 2.13 compiles that, on the result of a product, as if alpha were 1.
            w.sub_(gradient, alpha=self.lr).clamp_(-self.bound, self.bound)


class Adam(Optimizer):
    """Kingma and Ba's rule with its usual constants; memory is the step count, then mean and mean square by layer."""

    DECAY: ClassVar[tuple[float, float]] = (0.9, 0.999)
    EPSILON: ClassVar[float] = 1e-8

    def start(self, weights: Sequence[Tensor]) -> list[Tensor]:
        moments = [torch.zeros_like(w, requires_grad=False) for w in weights for _ in self.DECAY]
        return [torch.zeros((), device=weights[0].device), *moments]

    def update(self, weights: Sequence[Tensor], gradients: Sequence[Tensor], memory: Sequence[Tensor]) -> None:
        first, second = self.DECAY
        count = memory[0].add_(1)
        rate = self.lr / (1 - first**count)
        unbias = (1 - second**count).rsqrt()
        pairs = zip(memory[1::2], memory[2::2], strict=True)
        for w, gradient, (mean, square) in zip(weights, gradients, pairs, strict=True):
            mean.lerp_(gradient, 1 - first)
            square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
            step = mean / (square.sqrt().mul_(unbias)).add_(self.EPSILON)
            w.sub_(step.mul_(rate)).clamp_(-self.bound, self.bound)


OPTIMIZERS: dict[str, type[Optimizer]] = {"sgd": SGD, "adam": Adam}
