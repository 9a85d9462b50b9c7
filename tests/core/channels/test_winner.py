"""The exact ArgMax output: an even grid where it is enough, panels elsewhere, and both agree."""

from __future__ import annotations

import pytest
import torch

from cavity.core.channels import winner
from cavity.core.channels.winner import winner_response
from cavity.core.messages import Preactivation


@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("classes", [2, 10])
def test_the_even_grid_gives_what_the_panels_give(spread, classes, monkeypatch) -> None:
    generator = torch.Generator().manual_seed(classes)
    omega = spread * torch.randn(20, classes, generator=generator, dtype=torch.float64)
    V = 0.8 + 0.4 * torch.rand(20, classes, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (20,), generator=generator)
    panels: list[int] = []
    monkeypatch.setattr(winner, "_grid", lambda *args, make=winner._grid: panels.append(1) or make(*args))
    quick = winner_response(labels, Preactivation(omega, V))
    assert not panels
    monkeypatch.setattr(winner, "EVEN_NODES", 1)
    careful = winner_response(labels, Preactivation(omega, V))
    assert panels
    # log Z itself is held to max(1, |log Z|): where it is nearly 0, its digits are those of 1 − Z.
    torch.testing.assert_close(quick.value, careful.value, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(quick.gradient, careful.gradient, rtol=1e-11, atol=0.0)
    torch.testing.assert_close(quick.curvature, careful.curvature, rtol=1e-11, atol=0.0)


def test_samples_that_need_panels_get_them_beside_others(monkeypatch) -> None:
    omega = torch.tensor([[0.0, 1.0, -1.0], [0.0, 1.0, -1.0], [0.0, 40.0, -1.0]], dtype=torch.float64)
    V = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1e-6, 1.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0, 0])
    together = winner_response(labels, Preactivation(omega, V))
    for row in range(3):
        alone = winner_response(labels[row : row + 1], Preactivation(omega[row : row + 1], V[row : row + 1]))
        for found, expected in zip(together, alone, strict=True):
            torch.testing.assert_close(found[row : row + 1], expected, rtol=1e-14, atol=0.0)
    assert torch.isfinite(together.value).all()
