"""The ArgMax output y = argmax_k z_k, with z_k ~ 𝒩(ω_k, V_k) independent.

    Z_{k*} = ∫ dz 𝒩(z; ω_*, V_*) Π_{k≠k*} Φ((z − ω_k)/√V_k)

has no closed form. Four methods give φ = log Z and its derivatives:

- ``quadrature`` the integral on twenty nodes (``contest.py``): to 1e-3 and better, at a twentieth of a step
- ``exact``      the integral to the last digits, on hundreds of nodes (``winner.py``): more than the rest of a step
- ``pairwise``   the paper's approach 2:  φ ≈ Σ_k log Φ((ω_* − ω_k)/√(V_k + V_*))
- ``sampled``    the paper's approach 1:  φ ≈ Σ_k log Φ((ω_* + ε√V_* − ω_k)/√V_k), one ε ~ 𝒩(0,1) per sample

The classes of a sample are coupled, so g is not cavity-corrected.
"""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from cavity.core.channels.base import Output
from cavity.core.channels.classes import class_probabilities
from cavity.core.channels.contest import contest_response
from cavity.core.channels.winner import WinnerResponse, winner_response
from cavity.core.messages import Preactivation, Response, Target
from cavity.core.special import hazard, hazard_slope, log_ndtr

Method = Literal["quadrature", "exact", "pairwise", "sampled"]


class _Duel(NamedTuple):
    """The winner against every class: margin −x in units of scale, and which class is the winner itself."""

    x: Tensor
    scale: Tensor
    winner: Tensor


def one_hot(labels: Tensor, classes: int) -> Tensor:
    """(samples, classes) boolean; unlike torch's own, it never waits for the device."""
    return labels.unsqueeze(1) == torch.arange(classes, device=labels.device)


def _all_against_winner(losers: Tensor, winner: Tensor) -> Tensor:
    """``losers`` for the other classes and their sum for the winner."""
    losers = losers.masked_fill(winner, 0.0)
    return torch.where(winner, losers.sum(dim=1, keepdim=True), losers)


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

    def _duel(self, message: Target, pre: Preactivation) -> _Duel:
        omega, V = pre
        index = message.labels.unsqueeze(1)
        omega_winner, V_winner = omega.gather(1, index), V.gather(1, index)
        if message.noise is None:
            scale = torch.sqrt(V + V_winner)
            x = (omega - omega_winner) / scale
        else:
            scale = torch.sqrt(V)
            x = (omega - omega_winner - message.noise * torch.sqrt(V_winner)) / scale
        return _Duel(x, scale, one_hot(message.labels, omega.shape[1]))

    def _integrated(self, message: Target, pre: Preactivation) -> WinnerResponse | None:
        """φ, g and Γ of the integral, where the method is one."""
        if self.method == "quadrature":
            return contest_response(message.labels, pre)
        return winner_response(message.labels, pre) if self.method == "exact" else None

    def value(self, message: Target, pre: Preactivation) -> Tensor:
        """φ of each sample, (samples,)."""
        integrated = self._integrated(message, pre)
        if integrated is not None:
            return integrated.value
        duel = self._duel(message, pre)
        return log_ndtr(-duel.x).masked_fill(duel.winner, 0.0).sum(dim=1)

    def gradient(self, message: Target, pre: Preactivation) -> Tensor:
        integrated = self._integrated(message, pre)
        if integrated is not None:
            return integrated.gradient
        duel = self._duel(message, pre)
        g = _all_against_winner(hazard(duel.x) / duel.scale, duel.winner)
        return torch.where(duel.winner, g, -g)

    def response(self, message: Target, pre: Preactivation) -> Response:
        integrated = self._integrated(message, pre)
        if integrated is not None:
            return Response(integrated.gradient, integrated.curvature)
        duel = self._duel(message, pre)
        gamma = _all_against_winner(hazard_slope(duel.x) / duel.scale.square(), duel.winner)
        return Response(self.gradient(message, pre), gamma)

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
