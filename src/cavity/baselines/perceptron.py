"""Continuous weights trained by gradient descent, with sign or ReLU activations: no bias, no batch normalisation.

    z^ℓ = w^ℓ x^ℓ,     x^{ℓ+1} = sign(z^ℓ) or max(0, z^ℓ),     L = cross-entropy of z^L

Weights have Xavier initialisation. The derivative of sign is taken as 1 where |z| ≤ 1 and as 0 elsewhere
(straight-through).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from cavity.baselines.binarynet import binary_activation, just_above
from cavity.baselines.classifier import Classifier, cross_entropy
from cavity.baselines.optimizers import OPTIMIZERS, memory_state
from cavity.baselines.trainer import BaselineTrainer
from cavity.core.couplings import random_mask
from cavity.core.couplings.base import check_sizes

ACTIVATIONS = ("sign", "relu")
#: Step sizes for weights of size 1/√N; BinaryNet's 10 is for scaled pre-activations.
DEFAULT_LR = {"sgd": 0.1, "adam": 0.001}


class Perceptron(Classifier):
    """A perceptron ``inputs``-``hidden``-``outputs`` with real weights; ``density`` < 1 keeps a random fraction."""

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        outputs: int,
        *,
        activation: str = "sign",
        density: float = 1.0,
        seed: int = 0,
    ) -> None:
        check_sizes(inputs=inputs, outputs=outputs)
        for width in hidden:
            check_sizes(hidden=width)
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
        super().__init__(inputs, outputs)
        self.activation = activation
        generator = torch.Generator().manual_seed(seed)
        self.weights = nn.ParameterList()
        for number, (lower, upper) in enumerate(pairwise([inputs, *hidden, outputs])):
            w = nn.init.xavier_uniform_(torch.empty(upper, lower), generator=generator)
            self.weights.append(nn.Parameter(w))
            mask = random_mask((upper, lower), density, generator)
            self.register_buffer(f"mask_{number}", None if mask is None else mask.to(w.dtype))

    def _masked(self) -> list[Tensor]:
        """The weights (outputs, inputs) of each layer, 0 where masked."""
        masks = [self._buffers[f"mask_{number}"] for number in range(len(self.weights))]
        return [w if mask is None else w * mask for w, mask in zip(self.weights, masks, strict=True)]

    def logits(self, x: Tensor) -> Tensor:
        *lower, last = self._masked()
        for w in lower:
            z = nn.functional.linear(x, w)
            x = nn.functional.relu(z) if self.activation == "relu" else binary_activation(z, 1.0, just_above(1.0))
        return nn.functional.linear(x, last)

    def bayesian_logits(self, x: Tensor) -> Tensor:
        return self.logits(x)

    def mean_weights(self) -> list[Tensor]:
        return self.point_weights()

    def point_weights(self) -> list[Tensor]:
        return [w.detach() for w in self._masked()]


class PerceptronTrainer(BaselineTrainer):
    """Trains a perceptron by "sgd" (lr 0.1) or "adam" (lr 0.001)."""

    net: Perceptron

    def __init__(self, net: Perceptron, optimizer: str = "adam", *, lr: float | None = None, seed: int = 0) -> None:
        super().__init__(seed)
        if optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer must be one of {', '.join(OPTIMIZERS)}, got {optimizer!r}")
        self.net = net
        self.optimizer = OPTIMIZERS[optimizer](DEFAULT_LR[optimizer] if lr is None else lr, bound=math.inf)
        self.memory = self.optimizer.start(list(net.weights))

    def learn(self, x: Tensor, y: Tensor) -> Tensor:
        weights = list(self.net.weights)
        loss = cross_entropy(self.net.logits(x), y)
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            self.optimizer.update(weights, gradients, self.memory)
        return loss.detach()

    def optimizer_state(self) -> dict[str, Any]:
        return memory_state(self.memory)

    def load_optimizer_state(self, state: dict[str, Any]) -> None:
        for own, saved in zip(self.memory, state["memory"], strict=True):
            own.copy_(saved)
