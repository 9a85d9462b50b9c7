"""The interface of a baseline network: the same predictions as a network trained by message passing.

A baseline with a posterior over its weights also gives Bayesian scores, and its probabilities are Bayesian.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from cavity.core.channels import ArgMax, Label, Output
from cavity.core.couplings import random_mask
from cavity.core.couplings.base import check_sizes
from cavity.core.predict import BATCH


class Classifier(nn.Module, ABC):
    """A perceptron ``inputs``-``hidden``-``outputs``; one output unit is a ±1 label, several are classes 0…C−1."""

    #: Whether there is a posterior, and ``bayesian_logits`` differs from ``logits``.
    bayesian: ClassVar[bool] = False

    def __init__(self, inputs: int, hidden: Sequence[int], outputs: int) -> None:
        super().__init__()
        check_sizes(inputs=inputs, outputs=outputs)
        for width in hidden:
            check_sizes(hidden=width)
        self.inputs, self.outputs = inputs, outputs
        #: (outputs, inputs) of each layer's weights.
        self.shapes = [(upper, lower) for lower, upper in pairwise([inputs, *hidden, outputs])]
        self.output: Output = Label() if outputs == 1 else ArgMax()

    @abstractmethod
    def logits(self, x: Tensor) -> Tensor:
        """Scores (samples, outputs) of x (samples, inputs): log-odds of +1, or log-probabilities up to a constant."""

    def bayesian_logits(self, x: Tensor) -> Tensor:
        """The same under the posterior of the weights; ``logits`` where there is none."""
        return self.logits(x)

    @abstractmethod
    def point_weights(self) -> list[Tensor]:
        """The weights (outputs, inputs) that each layer predicts with."""

    def mean_weights(self) -> list[Tensor]:
        """The weights' means under the posterior; ``point_weights`` where there is none."""
        return self.point_weights()

    def _any_tensor(self) -> Tensor:
        return next(chain(self.parameters(), self.buffers()))

    @property
    def device(self) -> torch.device:
        return self._any_tensor().device

    @property
    def dtype(self) -> torch.dtype:
        return self._any_tensor().dtype

    def check_inputs(self, x: Tensor) -> Tensor:
        """x as (samples, inputs) with the network's dtype and device; values are checked on the CPU only."""
        x = torch.as_tensor(x)
        if not x.is_floating_point():
            raise TypeError(f"x must be floating point (standardise integers first), got {x.dtype}")
        if x.ndim < 2 or x.shape[1:].numel() != self.inputs or len(x) == 0:
            raise ValueError(f"x must have shape (samples, {self.inputs}) with samples >= 1, got {tuple(x.shape)}")
        if x.device.type == "cpu" and not bool(torch.isfinite(x).all()):
            raise ValueError("x must be finite, it holds NaN or infinity")
        return x.to(device=self.device, dtype=self.dtype).flatten(1)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (samples, outputs), a few thousand samples at a time."""
        return self._in_parts(self.logits, x)

    @torch.no_grad()
    def _in_parts(self, scores: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        return torch.cat([scores(part) for part in torch.split(self.check_inputs(x), BATCH)])

    def predict(self, x: Tensor, method: str = "point") -> Tensor:
        """Labels (±1) or classes, (samples,), from one set of weights ("point") or from the posterior ("bayes")."""
        scores = {"point": self.logits, "bayes": self.bayesian_logits}
        if method not in scores:
            raise ValueError(f"method must be 'point' or 'bayes', got {method!r}")
        return self.output.predict(self._in_parts(scores[method], x))

    def predict_proba(self, x: Tensor) -> Tensor:
        """Class probabilities (samples, classes), Bayesian where there is a posterior; a label gives P(−1), P(+1)."""
        z = self._in_parts(self.bayesian_logits, x)
        if self.outputs > 1:
            return torch.softmax(z, dim=1)
        return torch.sigmoid(torch.cat([-z, z], dim=1))


class Masked(Classifier):
    """A classifier with ``weights`` and units of one of ``ACTIVATIONS``; ``density`` < 1 keeps a random fraction."""

    ACTIVATIONS: ClassVar[tuple[str, ...]]

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
        require_one("activation", activation, self.ACTIVATIONS)
        self.activation, self.density = activation, density
        weights, masks = zip(*initial_weights(self.shapes, density, seed), strict=True)
        self.weights = nn.ParameterList(weights)
        self._keep(masks)

    @abstractmethod
    def _keep(self, masks: Sequence[Tensor | None]) -> None:
        """Register which weights (outputs, inputs) each layer keeps; None keeps all."""


def require_one(name: str, value: str, known: Sequence[str]) -> None:
    """ValueError unless it is one of those that are known."""
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def require_above(name: str, value: float, least: float = 0.0, *, least_too: bool = False) -> None:
    """ValueError unless it is finite and > least, or >= least."""
    if not (math.isfinite(value) and (value >= least if least_too else value > least)):
        raise ValueError(f"{name} must be a finite number {'>=' if least_too else '>'} {least:g}, got {value!r}")


def initial_weights(
    shapes: Sequence[tuple[int, int]], density: float, seed: int
) -> Iterator[tuple[nn.Parameter, Tensor | None]]:
    """Xavier's w (outputs, inputs) of each layer, and its mask of the random fraction ``density``; None keeps all."""
    generator = torch.Generator().manual_seed(seed)
    for shape in shapes:
        # Adding +0 leaves no −0, whose sign would be −1.
        w = nn.init.xavier_uniform_(torch.empty(shape), generator=generator) + 0.0
        mask = random_mask(shape, density, generator)
        yield nn.Parameter(w), None if mask is None else mask.to(w.dtype)


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """Mean −log p(y) of scores (samples, outputs): softmax for classes, log(1 + e^{−yz}) for a label y = ±1."""
    if logits.shape[1] > 1:
        return nn.functional.cross_entropy(logits, y)
    return nn.functional.softplus(-y.reshape(logits.shape).to(logits.dtype) * logits).mean()
