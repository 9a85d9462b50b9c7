"""BinaryNet as one writes it in PyTorch: a module, a straight-through sign, ``torch.optim.SGD`` and clipping.

It computes what ``cavity.baselines.BinaryNet`` does. That one is tuned by hand, with fewer passes over the weights and
the whole step in one graph; this one is what people train, and what message passing is measured against. Compiled, it
is ``torch.compile`` of the module.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cavity.baselines.classifier import Classifier, cross_entropy
from cavity.baselines.trainer import BaselineTrainer

#: The paper's.
LEARNING_RATE = 10.0


class SignThrough(torch.autograd.Function):
    """sign(z), with the gradient let through where |z| ≤ 1."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        ctx.save_for_backward(z)
        return z.sign()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (z,) = ctx.saved_tensors
        passed: Tensor = gradients[0] * (z.abs() <= 1)
        return passed


def sign_through(z: Tensor) -> Tensor:
    binary: Tensor = SignThrough.apply(z)  # type: ignore[no-untyped-call]
    return binary


class BinaryLinear(nn.Module):
    """z = sign(w) x/√N."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.scale = 1 / math.sqrt(inputs)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, sign_through(self.weight)) * self.scale


class IdiomaticBinaryNet(Classifier):
    """A perceptron ``inputs``-``hidden``-``outputs`` of binary weights and activations."""

    def __init__(self, inputs: int, hidden: Sequence[int], outputs: int, *, seed: int = 0) -> None:
        super().__init__(inputs, hidden, outputs)
        self.layers = nn.ModuleList(BinaryLinear(*pair) for pair in pairwise([inputs, *hidden, outputs]))
        generator = torch.Generator().manual_seed(seed)
        for w in self.parameters():
            nn.init.xavier_uniform_(w, generator=generator)

    def logits(self, x: Tensor) -> Tensor:
        *hidden, last = self.layers
        for layer in hidden:
            x = sign_through(layer(x))
        scores: Tensor = last(x)
        return scores

    def bayesian_logits(self, x: Tensor) -> Tensor:
        return self.logits(x)

    @torch.no_grad()
    def point_weights(self) -> list[Tensor]:
        return [w.sign() for w in self.parameters()]

    def mean_weights(self) -> list[Tensor]:
        return self.point_weights()


class IdiomaticTrainer(BaselineTrainer):
    """Gradient, step, clip."""

    net: IdiomaticBinaryNet

    def __init__(self, net: IdiomaticBinaryNet, *, compile: bool, seed: int) -> None:
        super().__init__(seed)
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE)
        self._logits = torch.compile(net.logits, dynamic=False) if compile else net.logits

    def learn(self, x: Tensor, y: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = cross_entropy(self._logits(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        with torch.no_grad():
            for w in self.net.parameters():
                w.clamp_(-1, 1)
        return loss.detach()

    def optimizer_state(self) -> dict[str, Any]:
        return self.optimizer.state_dict()

    def load_optimizer_state(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state)
