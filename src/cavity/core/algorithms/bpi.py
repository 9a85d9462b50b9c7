"""BP-inspired message passing: only g is a cavity quantity (paper, appendix "BPI equations").

ω_kn = Σ_i m_ki x̂_in        g_{kn→i} = ∂_ω φ(ω_kn − m_ki x̂_in, V_kn)
B_in = Σ_k m_ki g_{kn→i}     H_ki = Σ_n x̂_in g_{kn→i}
"""

from __future__ import annotations

from typing import ClassVar, Literal

from torch import Tensor

from cavity.core.algorithms.base import Algorithm, Down
from cavity.core.algorithms.series import cavity_sums
from cavity.core.arithmetic import Arithmetic
from cavity.core.messages import Moments, Preactivation
from cavity.core.state import Factor, LayerState, Site, Up


class BPI(Algorithm):
    """Cavity on g alone."""

    name: ClassVar[str] = "bpi"
    summary: ClassVar[str] = "BP-inspired: a cavity in the response g alone"
    colour: ClassVar[str] = "#8250b4"
    corrections: ClassVar[Literal["none", "first order", "cavity sums"]] = "cavity sums"

    def up(self, site: Site, state: LayerState, inputs: Moments, below: Preactivation | None) -> Tensor:
        return site.coupling.apply(state.moments.mean, inputs.mean)

    def down(
        self, site: Site, state: LayerState, up: Up, factor: Factor, arithmetic: Arithmetic, remember: bool
    ) -> Down:
        B, H = cavity_sums(site, factor, state.moments.mean, up.inputs.mean, arithmetic, state.columns)
        return Down(B, H)
