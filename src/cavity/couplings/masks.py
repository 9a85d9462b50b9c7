"""Fixed random masks: pruning at initialisation."""

from __future__ import annotations

import torch
from torch import Tensor


def random_mask(shape: tuple[int, int], density: float, generator: torch.Generator) -> Tensor | None:
    """A boolean mask (outputs, columns) that keeps each weight with probability ``density``; None keeps all."""
    if not 0 < density <= 1:
        raise ValueError(f"density must be in (0, 1], got {density}")
    if density == 1:
        return None
    return torch.rand(shape, generator=generator) < density
