"""What every channel offers: the free energy φ of one unit and its derivatives.

    φ(B, A, ω, V) = log ∫ dx dz  e^{Bx − ½Ax²} P(x|z) 𝒩(z; ω, V)          activations
    φ(y, ω, V)    = log ∫ dz     P(y|z) 𝒩(z; ω, V)                        outputs

The Gaussian is normalised, so φ of an output is a log-likelihood. All methods are elementwise on tensors that
broadcast against each other, except where a class says otherwise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Generic

import torch
from torch import Tensor

from cavity.core.messages import Fields, Incoming, Moments, Preactivation, Response, Target


class Channel(ABC, Generic[Incoming]):
    """A factor seen from below: it is sent (ω, V) and answers with (g, Γ)."""

    #: What people call it, and one line about it for lists and help texts.
    name: ClassVar[str]
    summary: ClassVar[str]
    #: False where the units of a sample are coupled, so that no single edge can be taken out of ω.
    elementwise: ClassVar[bool] = True
    #: ν, the variance of what the channel adds to z.
    noise: float = 0.0

    @abstractmethod
    def value(self, message: Incoming, pre: Preactivation) -> Tensor:
        """φ, one number per unit (per sample where the units are coupled)."""

    def gradient(self, message: Incoming, pre: Preactivation) -> Tensor:
        """g = ∂_ω φ, shaped like ω; worth writing where it is cheaper than the whole response."""
        return self.response(message, pre).gradient

    @abstractmethod
    def response(self, message: Incoming, pre: Preactivation) -> Response:
        """g = ∂_ω φ and Γ = −∂²_ω φ, shaped like ω."""


class Units(ABC):
    """Units as the coupling above sees them: their moments, given what came down and what is known from below."""

    #: E[x²] where it is the same for every distribution on x, else None.
    second_moment: ClassVar[float | None] = None
    #: Whether φ depends on A at all.
    uses_precision: ClassVar[bool] = True

    @abstractmethod
    def value(self, message: Fields, pre: Preactivation) -> Tensor:
        """φ, one number per unit."""

    @abstractmethod
    def moments(self, message: Fields | None, pre: Preactivation) -> Moments:
        """x̂ = ∂_B φ and Δ = ∂²_B φ, shaped like ω; ``None``: nothing has come down yet, B = A = 0."""

    def clamped(self, message: Fields, pre: Preactivation) -> Tensor | None:
        """How many units needed a floor to keep φ finite, a 0-dimensional count; None: it never happens."""
        return None


class Activation(Channel[Fields], Units):
    """An activation x ~ P(x|z) between two layers. Its message is what came down, (B, A)."""

    @abstractmethod
    def forward(self, z: Tensor) -> Tensor:
        """The most probable activation for a known preactivation z."""

    def at_size(self, size: float) -> Activation:
        """The activation for preactivations of that usual size; most take them as they come."""
        return self


class Output(Channel[Target]):
    """The likelihood P(y|z) on top of the network. Its message is the target."""

    #: Whether Γ stays, however well a sample is fitted (``core/fisher.py``).
    curvature_stays: ClassVar[bool] = False

    @property
    def branches(self) -> bool:
        """Whether what is computed depends on values, so that no compiled graph can hold it."""
        return False

    @abstractmethod
    def target(self, y: Tensor, pre: Preactivation, generator: torch.Generator | None) -> Target:
        """The message of labels y for the last preactivation, in its shape and type."""

    @abstractmethod
    def check(self, y: Tensor, samples: int, outputs: int) -> None:
        """Raise ValueError if y has the wrong shape or type for a last layer of ``outputs`` units."""

    @abstractmethod
    def check_values(self, y: Tensor, outputs: int) -> None:
        """Raise ValueError if a label is outside the set. Reads the values: not for a device's hot path."""

    @abstractmethod
    def predict(self, z: Tensor) -> Tensor:
        """The most probable y for known preactivations z, (samples, outputs)."""

    @abstractmethod
    def decide(self, pre: Preactivation) -> Tensor:
        """The most probable y under 𝒩(ω, V)."""

    @abstractmethod
    def probabilities(self, pre: Preactivation) -> Tensor:
        """P(y) of each class under 𝒩(ω, V), (samples, classes); rows sum to 1."""


class UnitOutput(Output):
    """An output with one number per sample and unit; a single unit may leave its axis out."""

    #: How errors call it.
    phrase: ClassVar[str]

    def check(self, y: Tensor, samples: int, outputs: int) -> None:
        allowed = [(samples, outputs)] + ([(samples,)] if outputs == 1 else [])
        if tuple(y.shape) not in allowed:
            shapes = " or ".join(str(shape) for shape in allowed)
            raise ValueError(f"y must have shape {shapes} for {self.phrase}, got {tuple(y.shape)}")

    def predict(self, z: Tensor) -> Tensor:
        return z.squeeze(1) if z.shape[1] == 1 else z

    def decide(self, pre: Preactivation) -> Tensor:
        return self.predict(pre.mean)


def check_noise(noise: float) -> float:
    """A variance ν ≥ 0 of what is added to z."""
    if not (math.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise must be a finite variance >= 0, got {noise}")
    return float(noise)
