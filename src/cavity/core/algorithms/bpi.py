"""BP-inspired message passing: only g is a cavity quantity (paper, appendix "BPI equations").

ω_kn = Σ_i m_ki x̂_in        g_{kn→i} = ∂_ω φ(ω_kn − m_ki x̂_in, V_kn)
B_in = Σ_k m_ki g_{kn→i}     H_ki = Σ_n x̂_in g_{kn→i}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor

from cavity.core.algorithms.base import Algorithm, Carry, Down, Factor, Site, Up
from cavity.core.algorithms.edges import exact_sums
from cavity.core.algorithms.mf import MF
from cavity.core.algorithms.series import series_sums
from cavity.core.couplings.base import Coupling
from cavity.core.messages import Moments, Preactivation


class BPI(Algorithm):
    """Cavity on g alone; a coupled output such as ArgMax has none, and is mean field."""

    name: ClassVar[str] = "bpi"
    summary: ClassVar[str] = "BP-inspired: a cavity in the response g alone"
    colour: ClassVar[str] = "#8250b4"
    has_cavities: ClassVar[bool] = True

    def __init__(self) -> None:
        self._uncorrected = MF()

    def up(self, site: Site, carry: Carry, inputs: Moments, below: Preactivation | None) -> Tensor:
        return site.coupling.apply(carry.weights.mean, inputs.mean)

    def down(self, site: Site, carry: Carry, up: Up, factor: Factor, remember: bool) -> Down:
        if not site.channel.elementwise:
            return self._uncorrected.down(site, carry, up, factor, remember)
        m, x, want_inputs = carry.weights.mean, up.inputs.mean, site.below is not None
        if factor.series is None:
            B, H = exact_sums(site.coupling, factor, m, x, want_inputs, site.run, carry.columns)
        else:
            B, H = series_sums(site.coupling, factor, m, x, factor.series, want_inputs, factor.reach)
        return Down(B, H, None)

    def memory(self, couplings: Sequence[Coupling], samples: int, iterations: int) -> int:
        return 0
