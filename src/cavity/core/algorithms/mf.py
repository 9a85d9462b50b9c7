"""Mean field: no cavity anywhere (paper, appendix "MF equations").

ω_kn = Σ_i m_ki x̂_in        B_in = Σ_k m_ki g_kn        H_ki = Σ_n x̂_in g_kn
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from cavity.core.algorithms.base import Algorithm, Down
from cavity.core.algorithms.sums import full_sums
from cavity.core.arithmetic import Arithmetic
from cavity.core.messages import Moments, Preactivation
from cavity.core.state import Factor, LayerState, Site, Up


class MF(Algorithm):
    """Naive mean field."""

    name: ClassVar[str] = "mf"
    summary: ClassVar[str] = "mean field: no cavities, the cheapest"
    colour: ClassVar[str] = "#2f855a"
    passes: ClassVar[float] = 3.0
    bounds_evidence: ClassVar[bool] = True

    def up(self, site: Site, state: LayerState, inputs: Moments, below: Preactivation | None) -> Tensor:
        return site.coupling.apply(state.moments.mean, inputs.mean)

    def down(
        self, site: Site, state: LayerState, up: Up, factor: Factor, arithmetic: Arithmetic, remember: bool
    ) -> Down:
        B, H = full_sums(site, factor.gradient, state.moments.mean, up.inputs.mean)
        return Down(B, H)
