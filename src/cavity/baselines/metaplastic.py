"""BinaryNet with metaplastic weights (Laborieux, Ernoult, Hirtzlin and Querlioz, "Synaptic metaplasticity in binarized
neural networks", Nature Communications 12, 2549, 2021).

The continuous weight w behind w_b = sign(w) is how firmly a sign is held. It is not clipped, and the further it is from
zero, the less of an update that would bring it back is done. With the step u that Adam makes of the gradient,

    w ← w − lr·u·f(w) where u·w > 0 (towards zero),     w ← w − lr·u elsewhere,     f(w) = 1 − tanh²(m w).

m = 0 is Adam without clipping. Nobody tells it where a task ends.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cavity.baselines.binarynet import BinaryNet, BinaryNetTrainer
from cavity.baselines.classifier import require_above
from cavity.baselines.trainer import Adam
from cavity.training.schedules import Function

#: The best of a few on permuted MNIST with 100 hidden units (``docs/api/baselines.md``).
METAPLASTICITY, LR = 2.0, 0.005


class MetaplasticAdam(Adam):
    """Adam, whose steps towards zero are multiplied by 1 − tanh²(m w)."""

    def __init__(self, lr: float, metaplasticity: float) -> None:
        super().__init__(lr, math.inf)
        require_above("metaplasticity", metaplasticity, least_too=True)
        self.metaplasticity = metaplasticity

    def move(self, w: Tensor, step: Tensor) -> None:
        yielding = 1 - torch.tanh(self.metaplasticity * w).square()
        w.sub_(torch.where(step * w > 0, step * yielding, step))


class MetaplasticTrainer(BinaryNetTrainer):
    """Trains a BinaryNet by Adam with ``metaplasticity`` m; the rest is as in ``BinaryNetTrainer``."""

    def __init__(
        self,
        net: BinaryNet,
        *,
        metaplasticity: float = METAPLASTICITY,
        lr: float | None = None,
        schedule: str | Function | None = None,
        compile: bool = False,
        seed: int = 0,
    ) -> None:
        optimizer = MetaplasticAdam(LR if lr is None else lr, metaplasticity)
        super().__init__(net, optimizer, schedule=schedule, compile=compile, seed=seed)
