"""What the skeleton and an algorithm tell each other. The four algorithms differ in two places only: how ω is formed
on the way up, and how g becomes B and H on the way down."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from torch import Tensor

from cavity.core.channels.base import Activation, Channel
from cavity.core.couplings.base import Coupling
from cavity.core.messages import Fields, Moments, Preactivation, Response, Target, relayout
from cavity.core.posterior import Focusing
from cavity.core.priors.base import Prior
from cavity.engine.fusion import Kernels, Keyed, contents

if TYPE_CHECKING:
    from cavity.engine.arithmetic import Evaluation


@dataclass(frozen=True, eq=False)
class Site(Keyed):
    """What does not change about one layer from mini-batch to mini-batch: no tensors."""

    coupling: Coupling
    prior: Prior
    rho: float
    below: Activation | None
    channel: Channel[Any]
    damping: float
    focusing: Focusing | None
    evidence: float
    #: How corrections to mean field are evaluated, and how elementwise work is run.
    evaluation: Evaluation
    run: Kernels

    @cached_property
    def kernel_key(self) -> Hashable:
        objects = (self.coupling, self.prior, self.below, self.channel)
        return (*map(contents, objects), self.rho, self.damping, self.focusing, self.evidence)


class Series(NamedTuple):
    """Cavity sums, or their first order, by a polynomial of degree ``order``: with a share of the factors evaluated
    exactly, and the products beyond order 0 in ``half`` precision or not (``series.py``)."""

    order: int
    share: float = 0.0
    half: bool = False


class Carry(NamedTuple):
    """What one inner iteration leaves to the next, for one layer: (m, σ), the posterior field^τ, the message (B, A) on
    its inputs and what the algorithm remembers; and what stays, the field before the mini-batch, the mask, and the
    columns that it leaves to each unit, if they are few (outputs, d)."""

    weights: Moments
    natural: Fields
    down: Fields | None
    memory: Any
    start: Fields
    mask: Tensor | None
    columns: Tensor | None = None


class Up(NamedTuple):
    """What the way up leaves for the way down at one layer: inputs (x̂, Δ), (ω, V), and the (ω, V) of the layer below
    that the inputs came from (None at the first layer)."""

    inputs: Moments
    pre: Preactivation
    below: Preactivation | None


class Factor(NamedTuple):
    """The factors on top of one layer: a channel, what it was told from above, and (ω, V)."""

    channel: Channel[Any]
    message: Fields | Target
    pre: Preactivation
    #: How corrections around these factors are evaluated; None is edge by edge, or none.
    series: Series | None = None
    #: g_kn and Γ_kn at the full preactivation, where the layer needs both.
    known_response: Response | None = None
    #: The largest edge of a mini-batch of which these samples are a part; None: they are all of it.
    reach: Tensor | None = None

    @property
    def gradient(self) -> Tensor:
        """g_kn at the full preactivation."""
        known = self.known_response
        return self.channel.gradient(self.message, self.pre) if known is None else known.gradient

    @property
    def response(self) -> Response:
        """g_kn and Γ_kn at the full preactivation."""
        known = self.known_response
        return self.channel.response(self.message, self.pre) if known is None else known

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


class Algorithm(Keyed):
    """One of BP, BPI, MF, AMP. An algorithm has no state."""

    name: ClassVar[str]
    #: One line for lists.
    summary: ClassVar[str]
    #: In every figure.
    colour: ClassVar[str] = "#14808f"
    #: What training on a sample takes, in passes over the weights (docs/benchmarks.md).
    passes: ClassVar[float] = 5.0
    #: Whether ``down`` needs cavity sums, which have a cheap and an exact evaluation.
    has_cavities: ClassVar[bool] = False
    #: Whether ``down`` needs Γ.
    needs_curvature: ClassVar[bool] = False
    #: The smallest V that the algorithm can stand, in units of what one uncertain weight adds to it.
    variance_floor: ClassVar[float] = 0.0

    @property
    def kernel_key(self) -> Hashable:
        return type(self)

    @property
    def has_corrections(self) -> bool:
        """Whether ``down`` adds corrections to the sums of mean field."""
        return self.has_cavities or self.needs_curvature

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
