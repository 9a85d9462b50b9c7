"""How the sums of a layer are computed, never what they mean: chosen by whoever runs the sweep (``engine/``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor


class Series(NamedTuple):
    """Cavity sums by a polynomial of degree ``order``, with the worst ``share`` of the factors evaluated exactly
    (``algorithms/series.py``)."""

    order: int
    share: float = 0.0


def as_is(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: nothing is compiled."""
    return function


class Arithmetic(NamedTuple):
    """How one layer computes its corrections to mean field."""

    #: The series of its cavity sums; None is edge by edge.
    series: Series | None = None
    #: Whether products of corrections round their operands to bfloat16.
    half: bool = False
    #: The largest edge of the whole mini-batch, where these samples are a part of it; None: they are all of it.
    reach: Tensor | None = None
    #: What wraps the function that is evaluated on one chunk of edges after another.
    fuse: Callable[[Callable[..., Any]], Callable[..., Any]] = as_is


#: As the equations are written: edge by edge, in full precision.
EXACT = Arithmetic()


def multiply(contraction: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, half: bool) -> Tensor:
    """contraction(a, b), from operands rounded to bfloat16 if ``half``. Sums are taken in float32 and rounded once
    more: a single operand is wrong by 2⁻⁸ at most, a sum of hundreds by much less."""
    return contraction(a.bfloat16(), b.bfloat16()).to(a.dtype) if half else contraction(a, b)
