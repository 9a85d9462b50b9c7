"""The ArgMax output y = argmax_k z_k, with z_k ~ 𝒩(ω_k, V_k) independent.

    Z_{k*} = ∫ dz 𝒩(z; ω_*, V_*) Π_{k≠k*} Φ((z − ω_k)/√V_k)

has no closed form. Four methods give φ = log Z and its derivatives:

- ``quadrature`` the integral on twenty nodes (``contest.py``): to 1e-3 and better, at a twentieth of a step
- ``exact``      the integral to the last digits, on hundreds of nodes (``winner.py``): more than the rest of a step
- ``pairwise``   the paper's approach 2:  φ ≈ Σ_k log Φ((ω_* − ω_k)/√(V_k + V_*)), exact for two classes
- ``sampled``    the paper's approach 1:  φ ≈ Σ_k log Φ((ω_* + ε√V_* − ω_k)/√V_k), one ε ~ 𝒩(0,1) per sample

Two classes have the closed form, and ``quadrature`` takes it. The classes of a sample are coupled, so g is not
cavity-corrected.
"""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from cavity.core.channels.base import Output
from cavity.core.channels.classes import class_probabilities
from cavity.core.channels.contest import contest_response
from cavity.core.channels.winner import WinnerResponse, one_hot, winner_response
from cavity.core.messages import Preactivation, Response, Target
from cavity.core.special import hazard, hazard_slope, log_ndtr

Method = Literal["quadrature", "exact", "pairwise", "sampled"]


class ArgMax(Output):
    """Classes 0…C−1; ``method`` as in the module's text."""

    name: ClassVar[str] = "argmax"
    summary: ClassVar[str] = "several classes, the largest output unit"
    elementwise: ClassVar[bool] = False

    def __init__(self, method: Method = "quadrature") -> None:
        if method not in get_args(Method):
            raise ValueError(f"method must be one of {', '.join(get_args(Method))}, got {method!r}")
        self.method = method

    @property
    def branches(self) -> bool:
        return self.method == "exact"

    def _answer(self, message: Target, pre: Preactivation) -> WinnerResponse:
        """φ (samples,), g and Γ (samples, classes)."""
        if self.method == "quadrature" and pre.mean.shape[1] > 2:
            return contest_response(message.labels, pre)
        if self.method == "exact":
            return winner_response(message.labels, pre)
        omega, V = pre
        index, winner = message.labels.unsqueeze(1), one_hot(message.labels, omega.shape[1])
        lead, V_winner = omega - omega.gather(1, index), V.gather(1, index)
        if message.noise is None:
            scale = torch.sqrt(V + V_winner)
        else:
            lead, scale = lead - message.noise * torch.sqrt(V_winner), torch.sqrt(V)
        x = lead / scale
        value, g, gamma = (
            losers.masked_fill(winner, 0.0)
            for losers in (log_ndtr(-x), hazard(x) / scale, hazard_slope(x) / scale.square())
        )
        return WinnerResponse(
            value.sum(dim=1),
            torch.where(winner, g.sum(dim=1, keepdim=True), -g),
            torch.where(winner, gamma.sum(dim=1, keepdim=True), gamma),
        )

    def value(self, message: Target, pre: Preactivation) -> Tensor:
        """φ of each sample, (samples,)."""
        return self._answer(message, pre).value

    def response(self, message: Target, pre: Preactivation) -> Response:
        return Response(*self._answer(message, pre)[1:])

    def target(self, y: Tensor, pre: Preactivation, generator: torch.Generator | None) -> Target:
        noise = None
        if self.method == "sampled":
            device = "cpu" if generator is None else generator.device
            drawn = torch.randn((len(y), 1), generator=generator, device=device, dtype=pre.mean.dtype)
            noise = drawn.to(pre.mean.device, non_blocking=True)
        return Target(y.to(torch.int64), noise)

    def check(self, y: Tensor, samples: int, outputs: int) -> None:
        if tuple(y.shape) != (samples,):
            raise ValueError(f"y must have shape ({samples},) for an argmax output, got {tuple(y.shape)}")
        if y.is_floating_point() or y.is_complex():
            raise TypeError(f"y must hold integer classes for an argmax output, got {y.dtype}")

    def check_values(self, y: Tensor, outputs: int) -> None:
        if bool(((y < 0) | (y >= outputs)).any()):
            raise ValueError(
                f"y must hold classes 0 to {outputs - 1} for an argmax output, got {int(y.min())} to {int(y.max())}"
            )

    def predict(self, z: Tensor) -> Tensor:
        return z.argmax(dim=1)

    def decide(self, pre: Preactivation) -> Tensor:
        return self.probabilities(pre).argmax(dim=1)

    def probabilities(self, pre: Preactivation) -> Tensor:
        """P(argmax z = k) by quadrature, whatever the method of training."""
        return class_probabilities(pre)


def with_methods() -> list[str]:
    """The output with each of its methods, as options name it."""
    return [f"{ArgMax.name}-{method}" for method in get_args(Method)]
