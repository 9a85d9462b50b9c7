"""Fixed random masks (pruning at initialisation), and the columns that remain."""

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


def free_columns(mask: Tensor) -> Tensor:
    """Indices of the unmasked columns of each unit, (outputs, d) with d the most of any unit. Shorter rows are padded
    with the number of columns, which is no valid index."""
    columns = mask.shape[1]
    numbered = torch.where(mask, torch.arange(columns, device=mask.device), columns)
    return numbered.sort(dim=1).values[:, : int(mask.sum(dim=1).max())].contiguous()
