"""Where in weight space a network is: polarisation of its units, overlaps between them (paper, "Unit polarization")."""

from __future__ import annotations

import torch
from torch import Tensor

from cavity.network import Network


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
