"""BinaryNet as in the paper's appendix "SGD implementation".

Continuous weights w in [−1, 1] are kept and updated; both passes use w_b = sign(w) and binary activations:

    z^ℓ = sign(w^ℓ) x^ℓ / √N_ℓ,     x^{ℓ+1} = sign(z^ℓ),     L = cross-entropy of z^L

with no bias and no batch normalisation. In a sparse layer, N_ℓ counts the inputs that a unit sees. Units may also be
gates, 1[|z| > 1]. The gradient passes signs and gates straight through (``straight_through.py``); clipping keeps every
weight in [−1, 1].

It is written for speed, because message passing is measured against it: no pass over the weights for 1/√N, no gradient
of the inputs, and a step that can be compiled as one graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from cavity.baselines.classifier import Masked, cross_entropy
from cavity.baselines.compiled import Stepper
from cavity.baselines.straight_through import ACTIVATIONS, Layer, all_binary, layer_constants, logits
from cavity.baselines.trainer import GradientTrainer, Optimizer
from cavity.training.schedules import Function


class BinaryNet(Masked):
    """A perceptron ``inputs``-``hidden``-``outputs`` with binary weights and activations ("sign" or "gate").

    One output unit is a ±1 label, several are classes. ``density`` < 1 keeps a random fraction of the weights.
    """

    ACTIVATIONS = ACTIVATIONS

    def _keep(self, masks: Sequence[Tensor | None]) -> None:
        for number, mask in enumerate(masks):
            self.register_buffer(f"magnitude_{number}", torch.ones(()) if mask is None else mask)
        # N is what a unit sees: with all inputs counted, a sparse network would have logits too small to learn from.
        self._constants = [layer_constants(self.density * columns, self.activation) for _, columns in self.shapes]
        self.scales = [scale for scale, _, _ in self._constants]

    @property
    def layers(self) -> list[Layer]:
        """The constants of each layer."""
        magnitudes = (self.get_buffer(f"magnitude_{number}") for number in range(len(self.weights)))
        return [Layer(magnitude, *rest) for magnitude, rest in zip(magnitudes, self._constants, strict=True)]

    def logits(self, x: Tensor) -> Tensor:
        return logits(list(self.weights), self.layers, x)

    @torch.no_grad()
    def point_weights(self) -> list[Tensor]:
        return all_binary(list(self.weights), self.layers)


def training_step(
    x: Tensor,
    y: Tensor,
    weights: Sequence[Tensor],
    layers: Sequence[Layer],
    slots: Sequence[Tensor],
    optimizer: Optimizer,
    factor: Tensor | None = None,
) -> Tensor:
    """Forward, backward and update on one mini-batch; returns the loss before the update."""
    return optimizer.descend(cross_entropy(logits(weights, layers, x), y), weights, slots, factor)


class BinaryNetTrainer(GradientTrainer):
    """Trains a BinaryNet by "sgd" (lr 10), "adam" (lr 0.001), or an optimiser that is given.

    ``compile=True`` compiles the whole step for each new batch size, which takes seconds and needs a C++ compiler.
    """

    net: BinaryNet
    DEFAULT_LR: ClassVar = {"sgd": 10.0, "adam": 0.001}
    BOUND = 1.0

    def __init__(
        self,
        net: BinaryNet,
        optimizer: str | Optimizer = "sgd",
        *,
        lr: float | None = None,
        schedule: str | Function | None = None,
        compile: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(net, optimizer, lr=lr, schedule=schedule, seed=seed)
        self._step = Stepper(training_step, compile)

    def learn(self, x: Tensor, y: Tensor) -> Tensor:
        return self._step(x, y, list(self.net.weights), self.net.layers, self.slots, self.optimizer, self.factor)
