"""Gauss–Legendre panels for integrands with one step of width √V_j at each ω_j, in double precision.

A single Gauss–Hermite rule misses steps that are narrow beside the Gaussian; here panels are laid between breakpoints
around every step. In single precision a narrow step would fall between two numbers.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

#: Nats below the peak at which an integrand is cut: e^{-42} is below double precision.
SUPPORT = 42.0
#: Breakpoints around each step, in units of its width; a Gaussian is smooth between them at 10 nodes a panel.
STEP_MARKS = (-9.0, -6.0, -3.5, -1.5, 0.0, 1.5, 3.5, 6.0, 9.0)
NODES = 10
#: Elements of the (samples, nodes, classes) tensor evaluated at once.
CHUNK_ELEMENTS = 1 << 21


@cache
def _legendre() -> tuple[Tensor, Tensor]:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return torch.from_numpy((nodes + 1) / 2), torch.from_numpy(weights / 2)


class Nodes(NamedTuple):
    """Quadrature nodes left + offset with their log-weights, all (samples, nodes). The sum is not taken here: next to a
    narrow step, (left − step) + offset keeps digits that left + offset has rounded away."""

    left: Tensor
    offset: Tensor
    log_weight: Tensor

    def above(self, steps: Tensor) -> Tensor:
        """Node less step, (samples, nodes, classes), for steps (samples, classes)."""
        return (self.left.unsqueeze(2) - steps.unsqueeze(1)) + self.offset.unsqueeze(2)


def panels(marks: Tensor, low: Tensor, high: Tensor) -> Nodes:
    """Gauss–Legendre nodes on the panels between marks (samples, marks) clipped to low and high (samples, 1)."""
    edges = torch.cat([low, torch.minimum(torch.maximum(marks, low), high), high], dim=1).sort(dim=1).values
    nodes, weights = (t.to(edges.device) for t in _legendre())
    width = edges.diff(dim=1).unsqueeze(2)
    left = edges[:, :-1].repeat_interleave(NODES, dim=1)
    return Nodes(left, (width * nodes).flatten(1), torch.log(width * weights).flatten(1))


def step_marks(centre: Tensor, s: Tensor) -> Tensor:
    """(samples, classes · marks): the breakpoints around steps of width s, both (samples, classes)."""
    marks = torch.tensor(STEP_MARKS, dtype=s.dtype, device=s.device)
    return (centre.unsqueeze(2) + s.unsqueeze(2) * marks).flatten(1)


def rows_at_once(classes: int, marks_per_class: int) -> int:
    """How many samples fit into CHUNK_ELEMENTS."""
    return max(1, CHUNK_ELEMENTS // (classes * (classes * marks_per_class + 1) * NODES))
