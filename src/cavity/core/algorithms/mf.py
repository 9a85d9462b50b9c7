"""Mean field: no cavity anywhere (paper, appendix "MF equations").

ω_kn = Σ_i m_ki x̂_in        B_in = Σ_k m_ki g_kn        H_ki = Σ_n x̂_in g_kn
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor

from cavity.core.algorithms.base import Algorithm, Carry, Down, Factor, Site, Up
from cavity.core.couplings.base import Coupling
from cavity.core.messages import Moments, Preactivation


class MF(Algorithm):
    """Naive mean field."""

    name: ClassVar[str] = "mf"
    summary: ClassVar[str] = "mean field: no cavities, the cheapest"
    colour: ClassVar[str] = "#2f855a"
    passes: ClassVar[float] = 3.0

    def up(self, site: Site, carry: Carry, inputs: Moments, below: Preactivation | None) -> Tensor:
        return site.coupling.apply(carry.weights.mean, inputs.mean)

    def down(self, site: Site, carry: Carry, up: Up, factor: Factor, remember: bool) -> Down:
        g = factor.gradient
        B = None if site.below is None else site.coupling.back_to_inputs(carry.weights.mean, g)
        return Down(B, site.coupling.back_to_weights(g, up.inputs.mean), None)

    def memory(self, couplings: Sequence[Coupling], samples: int, iterations: int) -> int:
        return 0
