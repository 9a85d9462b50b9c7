"""What makes elementwise mathematics fast on the CPU: one formula for two libraries, and choices made bit by bit.

Where there are few numbers NumPy begins an operation in a fifth of the time that PyTorch takes. Formulas that small
tables use most are therefore written for both, and take an `Array` of either. A choice between two values by a branch
for each number costs up to 60 times a product where the answers are mixed; from their bits it costs three or four.
In compiled code all of this is left to the compiler.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

#: A tensor, or a NumPy array.
Array: TypeAlias = Any
#: Of fewer numbers than this torch's own selection is as fast as any other.
FEWER = 8192


def library(x: Array) -> ModuleType:
    """The module whose functions take x."""
    return np if isinstance(x, np.ndarray) else torch


#: Whole numbers with as many bits.
BITS: dict[Any, Any] = {
    torch.float32: torch.int32,
    torch.float64: torch.int64,
    np.dtype(np.float32): np.int32,
    np.dtype(np.float64): np.int64,
}
#: The bits of 1.0.
ONE_32, ONE_64 = 0x3F800000, 0x3FF0000000000000


def negative(x: Array) -> Array:
    """Where x has its sign bit set, for ``pick``: all bits of a whole number, or a truth value in compiled code."""
    if library(x) is torch and torch.compiler.is_compiling():
        return x < 0
    whole = BITS[x.dtype]
    return x.view(whole) >> (8 * x.itemsize - 1)


def pick(where: Array, first: Array, second: Array) -> Array:
    """``first`` where the ``negative`` bits are set, else ``second``, whatever that is there: put together from their
    bits, for the price of three products."""
    if where.dtype is torch.bool:
        return torch.where(where, first, second)
    like = first.dtype
    a, b = first.view(where.dtype), second.view(where.dtype)
    return (((a ^ b) & where) ^ b).view(like)


def indicator(where: Array, like: Array) -> Array:
    """1 where the ``negative`` bits are set, else 0, in the type of ``like``."""
    if where.dtype is torch.bool:
        return where.to(like.dtype)
    return (where & (ONE_32 if like.itemsize == 4 else ONE_64)).view(like.dtype)


def kept(where: Array, x: Array) -> Array:
    """x where the ``negative`` bits are set, else 0."""
    return torch.where(where, x, 0.0) if where.dtype is torch.bool else (x.view(where.dtype) & where).view(x.dtype)


def select(condition: Tensor, first: Tensor | float, second: Tensor | float) -> Tensor:
    """``torch.where``, to the last bit."""
    small = torch.compiler.is_compiling() or condition.numel() < FEWER or condition.device.type != "cpu"
    like = first if isinstance(first, Tensor) else second
    if small or not isinstance(like, Tensor):
        return torch.where(condition, first, second)
    a, b = (x if isinstance(x, Tensor) else like.new_tensor(x) for x in (first, second))
    if a.dtype != b.dtype:
        return torch.where(condition, first, second)
    whole = BITS[like.dtype]
    a, b = a.view(whole), b.view(whole)
    return ((a ^ b) & condition.to(whole).neg_()).bitwise_xor(b).view(like.dtype)
