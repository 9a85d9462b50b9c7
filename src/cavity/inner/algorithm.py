"""What the skeleton and an algorithm tell each other. The four algorithms differ in two places only: how ω is formed
on the way up, and how g becomes B and H on the way down."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from torch import Tensor

from cavity.channels.base import Activation, Channel
from cavity.couplings.base import Coupling
from cavity.fusion import Kernels
from cavity.inner.weights import Focusing
from cavity.messages import Fields, Moments, Preactivation, Response, Target, relayout
from cavity.priors.base import Prior

if TYPE_CHECKING:
    from cavity.inner.evaluation import Evaluation


@dataclass(frozen=True)
class Site:
    """What does not change about one layer while message passing runs on a mini-batch."""

    coupling: Coupling
    prior: Prior
    mask: Tensor | None
    #: (h, λ) that the last mini-batch left, and the power ρ that makes it this one's prior θ.
    start: Fields
    rho: float
    below: Activation | None
    channel: Channel[Any]
    damping: float
    focusing: Focusing | None
    evidence: float
    #: How BP and BPI evaluate their cavity sums, and how elementwise work is run.
    evaluation: Evaluation
    run: Kernels


class Carry(NamedTuple):
    """What one inner iteration leaves to the next, for one layer."""

    weights: Moments
    natural: Fields
    down: Fields | None
    memory: Any


class Up(NamedTuple):
    """What the way up leaves for the way down at one layer: inputs (x̂, Δ), (ω, V), and the (ω, V) of the layer below
    that the inputs came from (None at the first layer)."""

    inputs: Moments
    pre: Preactivation
    below: Preactivation | None


@dataclass(frozen=True)
class Factor:
    """The factors on top of one layer: a channel, what it was told from above, and (ω, V)."""

    channel: Channel[Any]
    message: Fields | Target
    pre: Preactivation

    @cached_property
    def response(self) -> Response:
        """g_kn and Γ_kn at the full preactivation."""
        return self.channel.response(self.message, self.pre)

    def by_edge(self, coupling: Coupling) -> Factor:
        """One row per factor and a last axis for the edges: tensors (factors, outputs, 1)."""

        def lay(tensor: Tensor) -> Tensor:
            return coupling.factors(tensor).unsqueeze(2)

        return Factor(self.channel, relayout(self.message, lay), Preactivation(*map(lay, self.pre)))

    def chunk(self, rows: slice) -> Factor:
        """The factors of some rows only."""
        message = relayout(self.message, lambda tensor: tensor[rows])
        return Factor(self.channel, message, Preactivation(self.pre.mean[rows], self.pre.variance[rows]))

    def gradient_without(self, edge: Tensor) -> Tensor:
        """g_{kn→i}: the gradient at ω_kn − edge, where edge is m x̂ of each edge (factors, outputs, columns)."""
        return self.channel.gradient(self.message, Preactivation(self.pre.mean - edge, self.pre.variance))


class Down(NamedTuple):
    """B on the inputs (None at the first layer, which has nobody below), H on the weights, and memory."""

    inputs: Tensor | None
    weights: Tensor
    memory: Any


class Algorithm(ABC):
    """One of BP, BPI, MF, AMP."""

    name: ClassVar[str]
    #: The smallest V that the algorithm can stand, in units of what one uncertain weight adds to it.
    variance_floor: ClassVar[float] = 0.0

    @abstractmethod
    def up(self, site: Site, carry: Carry, inputs: Moments, below: Preactivation | None) -> Tensor:
        """ω (samples, *output_shape) from the weights in ``carry`` and the inputs (x̂, Δ).

        ``below`` is the preactivation that the inputs came from, None at the first layer.
        """

    @abstractmethod
    def down(self, site: Site, carry: Carry, up: Up, factor: Factor, remember: bool) -> Down:
        """B and H of the full sums and, if another iteration follows, what it must remember of this one."""

    @abstractmethod
    def memory(self, couplings: Sequence[Coupling], samples: int, iterations: int) -> int:
        """Numbers held from one inner iteration to the next beyond a few activations and weights."""
