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

from cavity.baselines.classifier import Masked, cross_entropy
from cavity.baselines.straight_through import binary_activation, just_above
from cavity.baselines.trainer import GradientTrainer


class Perceptron(Masked):
    """A perceptron ``inputs``-``hidden``-``outputs`` with real weights; ``density`` < 1 keeps a random fraction."""

    ACTIVATIONS = ("sign", "relu")

    def _keep(self, masks: Sequence[Tensor | None]) -> None:
        for number, mask in enumerate(masks):
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
    """Trains a perceptron by "adam" (lr 0.001) or "sgd" (lr 0.1)."""

    net: Perceptron
    #: For weights of size 1/√N; BinaryNet's 10 is for scaled pre-activations.
    DEFAULT_LR: ClassVar = {"sgd": 0.1, "adam": 0.001}
    BOUND = math.inf

    def learn(self, x: Tensor, y: Tensor) -> Tensor:
        loss = cross_entropy(self.net.logits(x), y)
        return self.optimizer.descend(loss, list(self.net.weights), self.slots, self.factor)
