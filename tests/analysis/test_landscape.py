"""Flipping weights, and what it costs."""

from __future__ import annotations

import pytest
import torch

from cavity.analysis.landscape import flipped, local_energy


def test_the_right_fraction_is_flipped():
    weights = [torch.ones(100, 100), -torch.ones(10, 100)]
    changed = flipped(weights, 0.2, torch.Generator().manual_seed(0))
    shares = [float((new != old).float().mean()) for new, old in zip(changed, weights, strict=True)]
    assert shares == pytest.approx([0.2, 0.2], abs=0.04)
    assert all(set(new.unique().tolist()) == {-1.0, 1.0} for new in changed)
    assert torch.equal(flipped(weights, 1.0, torch.Generator())[0], -weights[0])
    with pytest.raises(ValueError, match=r"fraction must be in \[0, 1\], got 1.5"):
        flipped(weights, 1.5, torch.Generator())


def test_local_energy_is_the_rise_over_the_start():
    """An error that counts minus ones rises by the fraction that was flipped."""
    weights = [torch.ones(50, 200)]
    rises = local_energy(
        lambda w: 3.0 + 100 * float((w[0] < 0).float().mean()),
        weights,
        (0.0, 0.1, 0.5),
        repeats=4,
        generator=torch.Generator().manual_seed(0),
    )
    assert rises.shape == (3, 4)
    assert rises[0].tolist() == [0.0] * 4
    torch.testing.assert_close(rises.mean(dim=1), torch.tensor([0.0, 10.0, 50.0]), rtol=0, atol=1.0)
    assert rises[1].std() > 0
