"""An output that couples its units, seen by one of them: linear around the present (ω, V).

    g_k(ω' ) = g_k + Γ_k (ω_k − ω'_k)

No single edge can be taken out of a coupled output, but to first order one can, and in the free entropy this order
counts: without it the messages on the weights would not be those of a stationary point.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from cavity.core.channels.argmax import ArgMax
from cavity.core.channels.base import Output
from cavity.core.messages import Preactivation, Response, Target


class Linearized(Output):
    """``output`` with messages that are linear in ω: its target is (g + Γω, Γ)."""

    name: ClassVar[str] = "linearized"
    summary: ClassVar[str] = "an output that couples its units, to first order"

    def __init__(self, output: Output) -> None:
        self.output = output

    def target(self, y: Tensor, pre: Preactivation, generator: torch.Generator | None) -> Target:
        g, gamma = self.output.response(self.output.target(y, pre, generator), pre)
        return Target(g + gamma * pre.mean, gamma)

    def gradient(self, message: Target, pre: Preactivation) -> Tensor:
        return self.response(message, pre).gradient

    def response(self, message: Target, pre: Preactivation) -> Response:
        assert message.noise is not None
        return Response(message.labels - message.noise * pre.mean, message.noise)

    def value(self, message: Target, pre: Preactivation) -> Tensor:
        assert message.noise is not None
        return pre.mean * (message.labels - 0.5 * message.noise * pre.mean)

    def check(self, y: Tensor, samples: int, outputs: int) -> None:
        self.output.check(y, samples, outputs)

    def check_values(self, y: Tensor, outputs: int) -> None:
        self.output.check_values(y, outputs)

    def predict(self, z: Tensor) -> Tensor:
        return self.output.predict(z)

    def decide(self, pre: Preactivation) -> Tensor:
        return self.output.decide(pre)

    def probabilities(self, pre: Preactivation) -> Tensor:
        return self.output.probabilities(pre)


def likelihood(output: Any) -> Output:
    """The output whose φ is the log-likelihood: an argmax by one of its integrals, not by a Jensen bound."""
    assert isinstance(output, Output)
    if isinstance(output, ArgMax) and output.method not in ("quadrature", "exact"):
        return ArgMax("quadrature")
    return output
