"""Functions of tensors compiled by ``torch.compile`` where it pays, as they are elsewhere."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Hashable
from functools import cache, wraps
from types import FunctionType
from typing import Any, Literal, ParamSpec, TypeVar, cast

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")

Mode = Literal["auto"] | bool

#: Seconds that compiling takes in a run, in which each layer is compiled again whenever its series changes,
COMPILE_SECONDS = 100.0
#: and what it saves for every weight of every sample, and for every mini-batch, which has fewer operations.
SAVED_PER_EDGE, SAVED_PER_STEP = 1e-10, 2e-3


class Kernels:
    """Runs functions of tensors compiled, or as they are."""

    def __init__(self, compiled: bool) -> None:
        self.compiled = compiled
        self._known: dict[Hashable, Callable[..., Any]] = {}

    def fuse(self, function: Callable[P, R]) -> Callable[P, R]:
        """``function``, compiled; inside a function that is being compiled, as it is."""
        if not self.compiled or torch.compiler.is_compiling():
            return function

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return _variant(function, signature(args))(*args, **kwargs)

        return call

    def of(
        self, function: Callable[..., R], hint: Hashable, args: tuple[Any, ...], between: bool = False
    ) -> Callable[..., R]:
        """``function`` compiled for such ``args``, where ``hint`` says all that can change about their kind from call
        to call: finding the signature of a whole network costs as much as a small layer. Results that are only handed
        on ``between`` kernels may have aligned rows."""
        if not self.compiled:
            return function
        key = function, hint
        if key not in self._known:
            self._known[key] = _variant(function, signature(args), between)
        return self._known[key]


EAGER = Kernels(False)

#: Rows that begin at a cache line make products up to a seventh faster on the CPU. The compiler can lay out so what it
#: allocates, but does not by itself; rows of up to 64 numbers are not worth it. Other devices have not been tried.
ALIGNED_ROWS = {
    "comprehensive_padding": True,
    "disable_padding_cpu": False,
    "padding_alignment_bytes": 64,
    "padding_stride_threshold": 64,
}

#: Compiled functions by name and by signature of their arguments, kept for the process and shared by all trainers.
_variants: dict[Hashable, Callable[..., Any]] = {}


def _variant(function: Callable[P, R], key: Hashable, between: bool = False) -> Callable[P, R]:
    """``function`` compiled for one kind of arguments.

    What torch.compile would check at each call (that no argument changed its shape, and no object it met its value)
    costs as much as a small layer. Here the arguments' own signature is the key, and objects count by their contents:
    they must not change.
    """
    if (function, key) not in _variants:
        copy = _copy(function, len(_variants))
        options = _options(pad_outputs=between)
        compiled = torch.compile(copy, dynamic=False, fullgraph=True, options=options)
        _variants[function, key] = _bare(copy, cast(Callable[P, R], compiled))
    return cast(Callable[P, R], _variants[function, key])


def _bare(function: FunctionType, compiled: Callable[P, R]) -> Callable[P, R]:
    """``compiled`` at the first call; after that what the compiler has made of ``function``, called by itself. The
    wrapper around it looks for the code that fits the arguments, which takes a few per cent of a small step.

    At the first call no number is the same object as another: the compiler would make one input of the two, and go on
    using it for both when they differ."""
    made: Callable[P, R] | None = None

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        nonlocal made
        if made is not None:
            return made(*args, **kwargs)
        result = compiled(*map(apart, args), **kwargs)
        made = _made_of(function) or compiled
        return result

    return call


def apart(value: Any) -> Any:
    """The same arguments, in which every 0-dimensional tensor is an object of its own."""
    if isinstance(value, Tensor):
        return value.clone() if value.ndim == 0 else value
    if isinstance(value, tuple | list):
        parts = map(apart, value)
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _made_of(function: FunctionType) -> Callable[..., Any] | None:
    """The function that torch.compile has put in the place of ``function``; None where this version of torch does not
    tell, or has made several."""
    try:
        (entry,) = torch._dynamo.eval_frame._debug_get_cache_entry_list(function.__code__)
        return FunctionType(
            entry.code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
    except (AttributeError, TypeError, ValueError):
        return None


def _options(pad_outputs: bool) -> dict[str, Any]:
    """Of the compiler, which older versions of torch may not all know."""
    return {"guard_filter_fn": lambda guards: [False] * len(guards), "pad_outputs": pad_outputs, **ALIGNED_ROWS}


def signature(value: object) -> Hashable:
    """Shape, layout and type of every tensor; of a plain object its class and attributes; anything else as it is."""
    if isinstance(value, Tensor):
        return value.shape, value.stride(), value.dtype, value.device
    if isinstance(value, tuple | list):
        return type(value), tuple(map(signature, value))
    if hasattr(value, "__dict__") and not callable(value):
        return type(value), tuple((name, signature(part)) for name, part in sorted(vars(value).items()))
    return value


def _copy(function: Callable[..., Any], number: int) -> FunctionType:
    """The same function with a code object of its own: compiled code is kept by code object."""
    assert isinstance(function, FunctionType)
    code = function.__code__.replace(co_name=f"{function.__name__}_{number}")
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)


def checked_mode(mode: Mode) -> Mode:
    if mode not in ("auto", True, False):
        raise ValueError(f"compile must be 'auto', True or False, got {mode!r}")
    return mode


def pays(edges: int, steps: int) -> bool:
    """Whether a run of ``steps`` mini-batches with ``edges`` weights times samples each earns back its compile time.

    It depends on the size of the run alone, never on a clock, so that a resumed run decides as the first one did.
    """
    return steps * (edges * SAVED_PER_EDGE + SAVED_PER_STEP) >= COMPILE_SECONDS


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
            torch.compile(_probe, options=_options(pad_outputs=True))(torch.ones(8))
    except Exception as problem:  # whatever the compiler stack raises, eager code still works
        return f"compiling a test kernel failed ({type(problem).__name__})"
    return None


def _probe(x: Tensor) -> Tensor:
    return x * 2 + 1
