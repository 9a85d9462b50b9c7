"""Several answers to one sample: blocks of output units, each an argmax of its own.

    φ(y, ω, V) = Σ_b φ_b(y_b, ω_b, V_b)

The blocks share everything below the last layer and nothing else: given the preactivations they are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from cavity.core.channels.argmax import ArgMax
from cavity.core.channels.base import Output
from cavity.core.messages import Preactivation, Response, Target


class Several(Output):
    """Classes 0…C_b−1 in each of several blocks; ``sizes`` are the C_b, labels (samples, blocks)."""

    name: ClassVar[str] = "several"
    summary: ClassVar[str] = "several classes a sample, the largest output unit of each block"
    elementwise: ClassVar[bool] = False

    def __init__(self, sizes: Sequence[int]) -> None:
        if not sizes or min(sizes) < 2:
            raise ValueError(f"sizes must be two units or more for each block, got {list(sizes)}")
        self.sizes, self.block = [int(size) for size in sizes], ArgMax()

    def _blocks(self, pre: Preactivation) -> list[Preactivation]:
        parts = zip(*(torch.split(tensor, self.sizes, dim=1) for tensor in pre), strict=True)
        return [Preactivation(omega, V) for omega, V in parts]

    def _told(self, message: Target, pre: Preactivation) -> list[tuple[Target, Preactivation]]:
        return [(Target(y, None), part) for y, part in zip(message.labels.unbind(1), self._blocks(pre), strict=True)]

    def value(self, message: Target, pre: Preactivation) -> Tensor:
        """φ of each sample, (samples,)."""
        return torch.stack([self.block.value(*told) for told in self._told(message, pre)]).sum(dim=0)

    def response(self, message: Target, pre: Preactivation) -> Response:
        found = [self.block.response(*told) for told in self._told(message, pre)]
        return Response(*(torch.cat(parts, dim=1) for parts in zip(*found, strict=True)))

    def target(self, y: Tensor, pre: Preactivation, generator: torch.Generator | None) -> Target:
        return Target(y.to(torch.int64), None)

    def check(self, y: Tensor, samples: int, outputs: int) -> None:
        if tuple(y.shape) != (samples, len(self.sizes)) or y.is_floating_point():
            raise ValueError(f"y must hold whole numbers of shape ({samples}, {len(self.sizes)}), got {tuple(y.shape)}")
        if outputs != sum(self.sizes):
            raise ValueError(f"the last layer must have {sum(self.sizes)} units for blocks {self.sizes}, got {outputs}")

    def check_values(self, y: Tensor, outputs: int) -> None:
        for number, size in enumerate(self.sizes):
            self.block.check_values(y[:, number], size)

    def predict(self, z: Tensor) -> Tensor:
        """(samples, blocks)."""
        return torch.stack([part.argmax(dim=1) for part in torch.split(z, self.sizes, dim=1)], dim=1)

    def decide(self, pre: Preactivation) -> Tensor:
        return self.predict(self.probabilities(pre))

    def probabilities(self, pre: Preactivation) -> Tensor:
        """P of the classes of every block, side by side, (samples, units); each block sums to 1."""
        return torch.cat([self.block.probabilities(part) for part in self._blocks(pre)], dim=1)
