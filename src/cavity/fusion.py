"""Elementwise work in one pass: functions of tensors compiled by ``torch.compile`` where it pays, eager elsewhere."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from functools import cache
from typing import Literal, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")

Mode = Literal["auto"] | bool

#: Edges times samples times steps from which compiling pays. On one core compiling takes about a minute and saves about
#: 40 ps an edge and sample (docs/benchmarks.md).
WORTHWHILE = 2e12


class Kernels:
    """Turns a pure elementwise function into its fused version, or leaves it as it is.

    Compiled kernels are made on first use, kept for the process and shared by all trainers. Shapes are dynamic, so that
    one kernel serves every layer and batch size.
    """

    def __init__(self, compiled: bool) -> None:
        self.compiled = compiled

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        return _compiled(function) if self.compiled else function


@cache
def _compiled(function: Callable[P, R]) -> Callable[P, R]:
    return torch.compile(function, dynamic=True)


EAGER = Kernels(False)


def checked_mode(mode: Mode) -> Mode:
    if mode not in ("auto", True, False):
        raise ValueError(f"compile must be 'auto', True or False, got {mode!r}")
    return mode


def pays(edges: int, steps: int) -> bool:
    """Whether a run of ``steps`` mini-batches with ``edges`` weights times samples each earns back its compile time.

    It depends on the size of the run alone, never on a clock, so that a resumed run decides as the first one did.
    """
    return edges * steps >= WORTHWHILE


def kernels(compiled: bool) -> Kernels:
    """Fused kernels if asked for and possible; otherwise eager ones, with one notice if nothing can be compiled
    here."""
    if not compiled:
        return EAGER
    if compiler_problem() is not None:
        _notice()
        return EAGER
    return Kernels(True)


@cache
def _notice() -> None:
    """Say once per process that nothing can be compiled."""
    warnings.warn(f"training runs without compiled kernels: {compiler_problem()}", RuntimeWarning, stacklevel=4)


@cache
def compiler_problem() -> str | None:
    """Why nothing can be compiled here, or None; found out by compiling a tiny kernel once."""
    if not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))):
        return "no C++ compiler was found"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.compile(_probe)(torch.ones(8))
    except Exception as problem:  # whatever the compiler stack raises, eager code still works
        return f"compiling a test kernel failed ({type(problem).__name__})"
    return None


def _probe(x: Tensor) -> Tensor:
    return x * 2 + 1
