"""Every floor and bound that message passing needs, with its reason. Whoever uses one also counts how often it
acted."""

from __future__ import annotations

import torch
from torch import Tensor

#: V below this leaves no channel any digits; it only acts on inputs that are all but zero.
VARIANCE_FLOOR = 1e-12

#: The precision λ of a Gaussian weight sums messages G that can be negative; below this floor the weight would have no
#: normalisable distribution.
PRECISION_FLOOR = 1e-6

#: 1 + AV below this is a message that pushes a unit away faster than V holds it: at 0 the integral over x diverges, and
#: close to 0 the unit's mean is amplified without bound. A tenth keeps the amplification below ten.
GAIN_FLOOR = 0.1


#: ρ > 1 multiplies natural parameters at every step, until single precision ends (at ρ = 1.1 after 930 steps). A weight
#: that is certain beyond this bound has h and λ scaled back together, which is ρ < 1 for it alone: a discrete weight
#: keeps its value, of which it is sure from |h| ≈ 20 on, a Gaussian one its mean h/λ. Squares of it are still finite.
FIELD_BOUND = 1e18


def floored_gain(A: Tensor | None, V: Tensor) -> tuple[Tensor, Tensor]:
    """(A, 1 + AV) with A raised where 1 + AV would fall below GAIN_FLOOR; ``None`` is A = 0."""
    if A is None:
        return torch.zeros_like(V), torch.ones_like(V)
    gain = 1 + A * V
    return torch.where(gain < GAIN_FLOOR, (GAIN_FLOOR - 1) / V, A), gain.clamp_min(GAIN_FLOOR)


def gain_is_floored(A: Tensor | None, V: Tensor) -> Tensor:
    """Where floored_gain has to act, shaped like V."""
    if A is None:
        return torch.zeros_like(V, dtype=torch.bool)
    return 1 + A * V < GAIN_FLOOR
