"""What every baseline network offers: predictions like those of a network trained by message passing."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from cavity.channels import ArgMax, Label, Output
from cavity.predict import BATCH


class Classifier(nn.Module, ABC):
    """A network of known weights that scores classes; one output unit is a ±1 label, several are classes 0…C−1."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
        self.output: Output = Label() if outputs == 1 else ArgMax()

    @abstractmethod
    def logits(self, x: Tensor) -> Tensor:
        """Scores (samples, outputs) of x (samples, inputs): log-odds of +1, or log-probabilities up to a constant."""

    @abstractmethod
    def point_weights(self) -> list[Tensor]:
        """The weights (outputs, inputs) that each layer predicts with."""

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def check_inputs(self, x: Tensor) -> Tensor:
        """x as (samples, inputs) in the network's type and place; the values are looked at on the CPU only."""
        x = torch.as_tensor(x)
        if not x.is_floating_point():
            raise TypeError(f"x must be floating point (standardise integers first), got {x.dtype}")
        if x.ndim < 2 or x.shape[1:].numel() != self.inputs or len(x) == 0:
            raise ValueError(f"x must have shape (samples, {self.inputs}) with samples >= 1, got {tuple(x.shape)}")
        if x.device.type == "cpu" and not bool(torch.isfinite(x).all()):
            raise ValueError("x must be finite, it holds NaN or infinity")
        return x.to(device=self.device, dtype=self.dtype).flatten(1)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Scores (samples, outputs), a few thousand samples at a time."""
        return torch.cat([self.logits(part) for part in torch.split(self.check_inputs(x), BATCH)])

    def predict(self, x: Tensor) -> Tensor:
        """Labels (±1) or classes, (samples,)."""
        return self.output.predict(self(x))

    def predict_proba(self, x: Tensor) -> Tensor:
        """Class probabilities (samples, classes); a label output gives P(−1), P(+1)."""
        z = self(x)
        if self.outputs > 1:
            return torch.softmax(z, dim=1)
        return torch.sigmoid(torch.cat([-z, z], dim=1))


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """Mean −log p(y) of scores (samples, outputs): softmax for classes, log(1 + e^{−yz}) for a label y = ±1."""
    if logits.shape[1] > 1:
        return nn.functional.cross_entropy(logits, y)
    return nn.functional.softplus(-y.reshape(logits.shape).to(logits.dtype) * logits).mean()
