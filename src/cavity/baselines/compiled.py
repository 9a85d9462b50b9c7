"""A training step as one graph: forward, backward and update, compiled for each shape it meets, or called as it is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor

Step = Callable[..., Tensor]
#: Network and batch shapes for which a compiled step is kept; a grid soon exceeds the compiler's default of eight.
COMPILED_SHAPES = 64


class Stepper:
    """Calls ``step(x, y, …)``. With ``compile`` it is compiled at each new batch size, which takes seconds."""

    def __init__(self, step: Step, compile: bool) -> None:
        self.compile = compile
        self._step = _compiled(step) if compile else step
        self._sizes_met: set[int] = set()

    def __call__(self, x: Tensor, y: Tensor, *others: Any) -> Tensor:
        new = self.compile and len(x) not in self._sizes_met
        self._sizes_met.add(len(x))
        with _compiling() if new else nullcontext():
            return self._step(x, y, *others)


@cache
def _compiled(step: Step) -> Step:
    """The compiled step, one for all trainers; it stays one graph where this torch can trace autograd."""
    compiled: Step = torch.compile(step, dynamic=False, fullgraph=_traces_autograd())
    return compiled


def _traces_autograd() -> bool:
    return hasattr(torch._dynamo.config, "trace_autograd_ops")


@contextmanager
def _compiling() -> Iterator[None]:
    """Compiler settings for tracing a step, without torch's own deprecation warnings."""
    one_graph: dict[str, Any] = {"trace_autograd_ops": True} if _traces_autograd() else {}
    with warnings.catch_warnings(), torch._dynamo.config.patch(recompile_limit=COMPILED_SHAPES, **one_graph):
        for message in (".*torch.jit.script_method", ".*should not be instantiated"):
            warnings.filterwarnings("ignore", message=message, category=DeprecationWarning)
        yield
