"""Every floor and bound that message passing needs, with its reason. Every use is counted."""

from __future__ import annotations

import torch
from torch import Tensor

#: No channel keeps any digits with a smaller V; this only affects inputs that are almost zero.
VARIANCE_FLOOR = 1e-12

#: The precision λ of a Gaussian weight sums messages G that can be negative; below this floor its
#: distribution could not be normalised.
PRECISION_FLOOR = 1e-6

#: At 1 + AV = 0 the integral over x diverges, and close to 0 the unit's mean is amplified without bound. A tenth keeps
#: the amplification below ten.
GAIN_FLOOR = 0.1


#: ρ > 1 multiplies natural parameters at every step, until single precision overflows (at ρ = 1.1 after 930 steps).
#: Beyond this bound the h and λ of a weight are scaled back together. A discrete weight keeps its value, which is
#: certain from |h| ≈ 20 on, and a Gaussian weight keeps its mean h/λ. The square of the bound is still finite.
FIELD_BOUND = 1e18


#: The count where nothing needed a floor; nobody changes it.
NONE = torch.zeros((), dtype=torch.int64)


def can_be_seen(x: Tensor) -> bool:
    """Whether a number can be looked at for the price of finding it: on the CPU, outside compiled code."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def floored_gain(A: Tensor | None, V: Tensor) -> tuple[Tensor, Tensor]:
    """(A, 1 + AV) with A raised where 1 + AV would fall below GAIN_FLOOR; ``None`` is A = 0."""
    if A is None:
        return torch.zeros_like(V), torch.ones_like(V)
    gain = 1 + A * V
    if _is_positive(A):
        return A, gain
    return torch.where(gain < GAIN_FLOOR, (GAIN_FLOOR - 1) / V, A), gain.clamp_min(GAIN_FLOOR)


def floored_gains(A: Tensor | None, V: Tensor) -> Tensor:
    """For how many entries floored_gain raises A, a 0-dimensional count."""
    return NONE if A is None or _is_positive(A) else (1 + A * V < GAIN_FLOOR).sum()


def _is_positive(A: Tensor) -> bool:
    """Whether it is known that no A is negative."""
    return can_be_seen(A) and float(A.amin()) >= 0
