"""Gauss–Legendre panels, and the class probabilities of independent Gaussian preactivations.

    P(argmax z = k) = ∫ dz 𝒩(z; ω_k, V_k) Π_{j≠k} Φ((z − ω_j)/√V_j)

The integrand is a Gaussian with one step of width √V_j at each ω_j. A single Gauss–Hermite rule misses steps that are
narrow beside the Gaussian; here panels are laid between breakpoints around every step. All of it runs in double
precision whatever the type of the network: in single precision a narrow step falls between two numbers.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cavity.core.messages import Preactivation
from cavity.core.special import log_ndtr

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


def panel_probabilities(pre: Preactivation) -> Tensor:
    """P(argmax z = k) for each class, (samples, classes), one grid of nodes shared by all classes; rows sum to 1."""
    rows = rows_at_once(pre.mean.shape[1], len(STEP_MARKS))
    chunks = zip(torch.split(pre.mean.double(), rows), torch.split(pre.variance.double(), rows), strict=True)
    return torch.cat([_panel_probabilities(omega, V) for omega, V in chunks]).to(pre.mean.dtype)


def _panel_probabilities(omega: Tensor, V: Tensor) -> Tensor:
    omega = omega - omega.amax(dim=1, keepdim=True)
    s = torch.sqrt(V)
    reach = math.sqrt(2 * SUPPORT)
    low = (omega - reach * s).amax(dim=1, keepdim=True)
    high = (omega + reach * s).amax(dim=1, keepdim=True)
    nodes = panels(step_marks(omega, s), low, high)
    a = nodes.above(omega) / s.unsqueeze(1)
    log_phi = log_ndtr(a)
    log_density = -0.5 * (a.square() + math.log(2 * math.pi)) - torch.log(s).unsqueeze(1)
    others = log_phi.sum(dim=2, keepdim=True) - log_phi
    p = torch.exp(log_density + others + nodes.log_weight.unsqueeze(2)).sum(dim=1)
    return p / p.sum(dim=1, keepdim=True)
