"""What an algorithm is. The four differ in two places only: how ω is formed on the way up, and how g becomes B and H on
the way down."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from torch import Tensor

from cavity.core.arithmetic import Arithmetic
from cavity.core.couplings.base import Coupling
from cavity.core.messages import Moments, Preactivation
from cavity.core.state import Factor, LayerState, Site, Up


class Down(NamedTuple):
    """B on the inputs (None at the first layer, which has nobody below), H on the weights, and what to remember."""

    inputs: Tensor | None
    weights: Tensor
    previous: Any = None


class Algorithm(ABC):
    """One of BP, BPI, MF, AMP. An algorithm has no state."""

    name: ClassVar[str]
    #: One line for lists and help texts.
    summary: ClassVar[str]
    #: In every figure.
    colour: ClassVar[str] = "#14808f"
    #: What training on a sample takes, in passes over the weights (docs/benchmarks.md).
    passes: ClassVar[float] = 5.0
    #: What ``down`` adds to the sums of mean field: nothing, terms of first order, or whole cavity sums.
    corrections: ClassVar[Literal["none", "first order", "cavity sums"]] = "none"
    #: Whether ``down`` needs Γ.
    needs_curvature: ClassVar[bool] = False
    #: The smallest V that the algorithm can stand, in units of what one uncertain weight adds to it.
    variance_floor: ClassVar[float] = 0.0
    #: Whether its free entropy is a lower bound, which needs noise in every channel and cannot count solutions.
    bounds_evidence: ClassVar[bool] = False
    #: Whether messages of every edge outlive an iteration, so that later ones cannot use a series.
    keeps_edges: ClassVar[bool] = False

    @abstractmethod
    def up(self, site: Site, state: LayerState, inputs: Moments, below: Preactivation | None) -> Tensor:
        """ω (samples, *output_shape) from the weights in ``state`` and the inputs (x̂, Δ).

        ``below`` is the preactivation that the inputs came from, None at the first layer.
        """

    @abstractmethod
    def down(
        self, site: Site, state: LayerState, up: Up, factor: Factor, arithmetic: Arithmetic, remember: bool
    ) -> Down:
        """B and H of the full sums and, if another iteration follows, what it must remember of this one."""

    def numbers_held(self, couplings: Sequence[Coupling], samples: int, iterations: int) -> int:
        """Numbers held from one inner iteration to the next beyond a few activations and weights."""
        return 0
