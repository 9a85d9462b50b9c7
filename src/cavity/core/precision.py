"""Products whose operands are rounded to bfloat16: half the time, where the processor has instructions for them.

A correction of a few per cent may be wrong in its third digit. Rounding to 8 bits makes a single operand wrong by 2⁻⁸
at most, and a sum of hundreds of them by much less; sums are taken in float32 and rounded once more.

``CAVITY_BFLOAT16=0`` in the environment computes as processors without them do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

#: Products of fewer multiplications than this are no faster in bfloat16 (two cores with AVX-512).
SMALL_PRODUCT = 1 << 22


def half_pays(x: Tensor, multiplications: int) -> bool:
    """Whether a product of tensors like x is faster in bfloat16: float32 on a CPU that multiplies bfloat16 itself.
    Elsewhere it is emulated, or not tried yet."""
    known = x.dtype == torch.float32 and x.device.type == "cpu" and _cpu_multiplies_bfloat16()
    return known and multiplications >= SMALL_PRODUCT


@cache
def _cpu_multiplies_bfloat16() -> bool:
    if os.environ.get("CAVITY_BFLOAT16") == "0":
        return False
    # torch tells since 2.11; before that nobody is asked, and float32 serves.
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return torch.backends.mkldnn.is_available() and bool(capabilities.get("avx512_bf16"))  # type: ignore[no-untyped-call]


def multiply(contraction: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, half: bool) -> Tensor:
    """contraction(a, b), from operands rounded to bfloat16 if ``half``."""
    return contraction(a.bfloat16(), b.bfloat16()).to(a.dtype) if half else contraction(a, b)
