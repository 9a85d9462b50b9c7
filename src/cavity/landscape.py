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
    values = []
    for layer in net.weighted():
        m = layer.mean
        units, columns = m.shape
        # Σ_{a≠b} m_a·m_b = |Σ_a m_a|² − Σ_a |m_a|², twice the sum over pairs.
        pairs = 0.5 * (m.sum(dim=0).square().sum() - m.square().sum())
        values.append(pairs / (units * columns))
    return torch.stack(values)
