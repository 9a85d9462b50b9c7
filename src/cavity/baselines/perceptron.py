"""Continuous weights trained by gradient descent, with sign or ReLU activations: no bias, no batch normalisation.

    z^ℓ = w^ℓ x^ℓ,     x^{ℓ+1} = sign(z^ℓ) or max(0, z^ℓ),     L = cross-entropy of z^L

Weights have Xavier initialisation. The derivative of sign is taken as 1 where |z| ≤ 1 and as 0 elsewhere
(straight-through).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn

from cavity.baselines.classifier import Classifier, cross_entropy, initial_weights
from cavity.baselines.straight_through import binary_activation, just_above
from cavity.baselines.trainer import GradientTrainer
from cavity.training.schedules import Function

ACTIVATIONS = ("sign", "relu")


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
        super().__init__(inputs, hidden, outputs)
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
        self.activation = activation
        self.weights = nn.ParameterList()
        for number, (w, mask) in enumerate(initial_weights(self.shapes, density, seed)):
            self.weights.append(w)
            self.register_buffer(f"mask_{number}", mask)

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

    def point_weights(self) -> list[Tensor]:
        return [w.detach() for w in self._masked()]


class PerceptronTrainer(GradientTrainer):
    """Trains a perceptron by "sgd" (lr 0.1) or "adam" (lr 0.001)."""

    net: Perceptron
    #: For weights of size 1/√N; BinaryNet's 10 is for scaled pre-activations.
    DEFAULT_LR: ClassVar = {"sgd": 0.1, "adam": 0.001}
    BOUND = math.inf

    def __init__(
        self,
        net: Perceptron,
        optimizer: str = "adam",
        *,
        lr: float | None = None,
        schedule: str | Function | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(net, list(net.weights), optimizer, lr, seed, schedule)

    def learn(self, x: Tensor, y: Tensor) -> Tensor:
        loss = cross_entropy(self.net.logits(x), y)
        return self.optimizer.descend(loss, list(self.net.weights), self.slots, self.factor)
