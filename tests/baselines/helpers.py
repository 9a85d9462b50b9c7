"""Mini-batches for tests of baselines, and what every one of them must do."""

from __future__ import annotations

import torch


def batch(outputs, samples=40, inputs=20, seed=1):
    """Random inputs, and random classes or ±1 labels."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(samples, inputs, generator=generator)
    if outputs > 1:
        return x, torch.randint(outputs, (samples,), generator=generator)
    return x, 2 * torch.randint(2, (samples,), generator=generator) - 1


def copies(tensors):
    return [tensor.detach().clone() for tensor in tensors]
