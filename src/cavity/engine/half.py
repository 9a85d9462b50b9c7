"""Where products of bfloat16 numbers are worth having: half the time, on processors with instructions for them.

``CAVITY_BFLOAT16=0`` in the environment computes as processors without them do.
"""

from __future__ import annotations

import os
from functools import cache

import torch
from torch import Tensor

#: Products of fewer multiplications than this are no faster in bfloat16 (two cores with AVX-512).
SMALL_PRODUCT = 1 << 22


def half_pays(x: Tensor, multiplications: int) -> bool:
    """Whether a product of tensors like x is faster in bfloat16: float32 on a CPU that multiplies bfloat16 itself.
    Elsewhere it is emulated, or has not been tried."""
    known = x.dtype == torch.float32 and x.device.type == "cpu" and _cpu_multiplies_bfloat16()
    return known and multiplications >= SMALL_PRODUCT


@cache
def _cpu_multiplies_bfloat16() -> bool:
    if os.environ.get("CAVITY_BFLOAT16") == "0":
        return False
    # torch tells since 2.11; older versions are not asked, and float32 serves.
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return torch.backends.mkldnn.is_available() and bool(capabilities.get("avx512_bf16"))  # type: ignore[no-untyped-call]
