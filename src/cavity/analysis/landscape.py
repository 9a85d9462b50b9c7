"""Where in weight space a network is: polarisation of its units and overlaps between them (paper, "Unit polarization"),
and how flat its surroundings are (paper, "Local energy")."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from cavity.core.network import Network


def polarization(net: Network) -> Tensor:
    """⟨q₀⟩ of each layer, (layers,): mean of m² over the unmasked weights."""
    return torch.stack([layer.mean.square().sum() / layer.free_weights for layer in net.weighted()])


def overlap(net: Network) -> Tensor:
    """⟨q_ab⟩ = (1/K) Σ_{a<b} (1/N) Σ_i m_ai m_bi of each layer, (layers,), as the paper normalises it."""
    return torch.stack([mean_overlap(layer.mean) for layer in net.weighted()])


def mean_overlap(w: Tensor) -> Tensor:
    """⟨q_ab⟩ of one layer's weights (outputs, columns), 0-dimensional."""
    # Σ_{a≠b} w_a·w_b = |Σ_a w_a|² − Σ_a |w_a|², twice the sum over pairs.
    pairs = 0.5 * (w.sum(dim=0).square().sum() - w.square().sum())
    return pairs / w.numel()


def flipped(weights: Sequence[Tensor], fraction: float, generator: torch.Generator) -> list[Tensor]:
    """w ⊙ z of each layer, with independent z = −1 with probability ``fraction`` and +1 otherwise."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be in [0, 1], got {fraction}")
    draws = (torch.rand(w.shape, generator=generator, device=generator.device).to(w.device) for w in weights)
    return [torch.where(draw < fraction, -w, w) for w, draw in zip(weights, draws, strict=True)]


def local_energy(
    error: Callable[[Sequence[Tensor]], float],
    weights: Sequence[Tensor],
    fractions: Sequence[float],
    *,
    repeats: int,
    generator: torch.Generator,
) -> Tensor:
    """δE(w, p) = E_z error(w ⊙ z) − error(w) for each fraction p, from ``repeats`` draws of z: (fractions, repeats)."""
    start = error(weights)
    rises = [[error(flipped(weights, p, generator)) - start for _ in range(repeats)] for p in fractions]
    return torch.tensor(rises)
