"""BinaryNet as one writes it in PyTorch: a module, a straight-through sign, ``torch.optim.SGD`` and clipping.

It computes what ``cavity.baselines.BinaryNet`` does. That one is tuned by hand, with fewer passes over the weights and
the whole step in one graph; this one is what people train, and what message passing is measured against. Compiled, it
is ``torch.compile`` of the module.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from cavity.baselines.binarynet import BinaryNet
from cavity.baselines.classifier import cross_entropy
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


class IdiomaticBinaryNet(BinaryNet):
    """The same network and start, with z = sign(w) x/√N written down as it stands."""

    def logits(self, x: Tensor) -> Tensor:
        *hidden, (last, last_scale) = zip(self.weights, self.scales, strict=True)
        for w, scale in hidden:
            x = sign_through(F.linear(x, sign_through(w)) * scale)
        return F.linear(x, sign_through(last)) * last_scale


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
