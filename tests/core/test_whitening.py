"""A fixed first layer: what it does to the statistics of patches, and that it begins, stays and is kept."""

from __future__ import annotations

import pytest
import torch

import cavity
from cavity.export import ExportError, Inputs, Trained, describe
from cavity.runs.checkpoint import load_checkpoint, save_checkpoint


def images(samples: int, seed: int = 0) -> torch.Tensor:
    """Three channels of smooth noise, far from centred."""
    noise = torch.randn(samples, 3, 11, 11, generator=torch.Generator().manual_seed(seed))
    return 3 + torch.nn.functional.avg_pool2d(noise, 3, 1) + 0.1 * noise[:, :1, 1:-1, 1:-1]


def test_components_are_centred_uncorrelated_and_of_variance_one() -> None:
    """But for ε, which shrinks faint ones."""
    x = images(400)
    white = cavity.Whitening((3, 9, 9), 7, 3, stride=2)
    white.fit(x)
    found = white(x)
    assert found.shape == (400, *white.output_shape) == (400, 7, 4, 4)
    rows = found.transpose(0, 1).flatten(1).double()
    patches = torch.nn.functional.unfold(x.double(), 3, stride=2).transpose(0, 1).flatten(1)
    values = torch.linalg.eigvalsh(torch.cov(patches, correction=0)).flip(0)
    expected = values[:7] / (values[:7] + 0.01 * values.mean())
    torch.testing.assert_close(torch.cov(rows, correction=0), torch.diag(expected), atol=1e-4, rtol=0)
    torch.testing.assert_close(rows.mean(dim=1), torch.zeros(7, dtype=torch.float64), atol=1e-4, rtol=0)


def network() -> cavity.Network:
    return cavity.network("white:7:3:2,conv:5:2,dense:6", (3, 9, 9), 4, threshold=True, seed=0)


def test_fit_computes_it_once_and_the_layers_see_what_it_gives() -> None:
    net, x, y = network(), images(60), torch.arange(60) % 4
    assert not net.balanced
    assert net.input_shape == (3, 9, 9)
    cavity.Trainer(net, "mf").fit((x, y), epochs=1, batch_size=20)
    assert net.balanced
    filters = net.front.filters.clone()
    cavity.Trainer(net, "mf").fit((2 * x, y), epochs=1, batch_size=20)
    assert torch.equal(net.front.filters, filters)
    bare = cavity.network("conv:5:2,dense:6", (7, 4, 4), 4, threshold=True)
    state = {name: tensor for name, tensor in net.state_dict().items() if not name.startswith("front.")}
    bare.load_state_dict(state)
    inside = net.front(x)
    assert torch.equal(net(x), bare(inside))
    torch.testing.assert_close(net.predict_proba(x), bare.predict_proba(inside))


def test_it_is_part_of_a_checkpoint(tmp_path) -> None:
    net, x, y = network(), images(60), torch.arange(60) % 4
    trainer = cavity.Trainer(net, "mf")
    trainer.fit((x, y), epochs=1, batch_size=20)
    save_checkpoint(tmp_path / "one", net, trainer)
    other = network()
    load_checkpoint(tmp_path / "one").restore(other)
    assert torch.equal(other.front.filters, net.front.filters)
    assert other.balanced
    assert torch.equal(other(x), net(x))


def test_what_is_impossible_is_refused() -> None:
    conv = cavity.Conv2d((3, 9, 9), 2, 3)
    with pytest.raises(ValueError, match="components must be at most the 27 numbers of a patch, got 28"):
        cavity.network("white:28:3", (3, 9, 9), 4)
    with pytest.raises(ValueError, match="white:7:3 must come first"):
        cavity.network("conv:4:3,white:7:3", (3, 9, 9), 4)
    with pytest.raises(ValueError, match=r"takes inputs of shape \(3, 9, 9\), but the whitening gives \(7, 7, 7\)"):
        cavity.Network([cavity.Whitening((3, 9, 9), 7, 3), conv, "sign", cavity.Dense(98, 2), "argmax"])
    with pytest.raises(ExportError, match="begins with a whitening"):
        describe(Trained(network(), Inputs.real()))
    assert "whitening 3 x 3, stride 2" in repr(network())
