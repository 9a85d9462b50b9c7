"""Architectures in words: what they build, what they refuse, and the table that a network prints."""

from __future__ import annotations

import pytest
import torch

import cavity
from cavity.core import architecture


def test_words_build_what_the_parts_build() -> None:
    net = cavity.network("conv:4:5:2,pool:2,conv:6:3:1:1,average:3,dense:7", (2, 28, 28), 3, threshold=True, seed=3)
    parts = [
        cavity.Conv2d((2, 28, 28), 4, 5, stride=2),
        cavity.Conv2d((4, 6, 6), 6, 3, padding=1),
        cavity.Dense(24, 7),
    ]
    first, second, third = (cavity.Layer(part, threshold=True) for part in parts)
    last = cavity.Layer(cavity.Dense(7, 3))
    chain = [first, "sign", cavity.MaxPool(2), second, "sign", cavity.AveragePool(3), third, "sign", last, "argmax"]
    same = cavity.Network(chain, seed=3)
    assert net.state_dict().keys() == same.state_dict().keys()
    assert all(torch.equal(tensor, same.state_dict()[name]) for name, tensor in net.state_dict().items())
    x = torch.randn(2, 2, 28, 28, generator=torch.Generator().manual_seed(0))
    assert torch.equal(net(x), same(x))
    assert repr(net) == repr(same)


def test_dense_words_are_a_perceptron() -> None:
    net, mlp = cavity.network("dense:5,dense:4", 6, 1, bias=True, seed=2), cavity.mlp(6, (5, 4), 1, bias=True, seed=2)
    assert all(torch.equal(tensor, mlp.state_dict()[name]) for name, tensor in net.state_dict().items())
    assert isinstance(net.output, cavity.Label)
    assert len(cavity.network("none", 6, 2).layers) == 1
    assert architecture.dense((5, 4)) == "dense:5,dense:4"
    assert architecture.dense(()) == "none"


@pytest.mark.parametrize(("name", "shape"), [("lenet", (1, 28, 28)), ("cnv", (3, 32, 32))])
def test_named_architectures(name: str, shape: tuple[int, int, int]) -> None:
    net = cavity.network(name, shape, 10)
    rows = architecture.rows(name, shape, 10)
    assert [layer.coupling.output_shape for layer in net.weighted()] == [row.gives for row in rows if row.weights]
    assert architecture.weights(name, shape, 10) == sum(layer.free_weights for layer in net.weighted())
    assert architecture.depth(name) == len(net.layers)
    assert net(torch.zeros(1, *shape)).shape == (1, 10)


@pytest.mark.parametrize(
    ("layers", "reason"),
    [
        (
            "conv:8:5,pool:2,conv:8:13",
            r"input \(1, 28, 28\) -> conv:8:5 \(8, 24, 24\) -> pool:2 \(8, 12, 12\) -> conv:8:13",
        ),
        ("conv:8:5,pool:25", "larger than 24 by 24"),
        ("dense:9,conv:8:3", "conv:8:3 does not fit, it needs an image"),
        ("pool:2,dense:3", "pool:2 must follow a convolution"),
        ("conv:8:3,pool:2,pool:2", "pool:2 must follow a convolution"),
        ("conv:8", r"'conv:8' must be conv:CHANNELS:KERNEL\[:STRIDE\]\[:PADDING\]"),
        ("dense:5:5", "'dense:5:5' must be dense:UNITS"),
        ("convs:8:3", "did you mean conv"),
        ("conv:0:3", "channels of 'conv:0:3' must be at least 1, got 0"),
        ("conv:8:-3", "kernel of 'conv:8:-3' must be a whole number"),
        ("dense:99999999", "must be a whole number up to"),
        ("dense:", "must be a whole number"),
        ("", "neither one of dense, conv, white, pool, average nor lenet or cnv"),
    ],
)
def test_what_is_impossible_is_refused(layers: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        cavity.network(layers, (1, 28, 28), 10)


def test_the_table() -> None:
    net = cavity.network("conv:16:3:2,pool:2,dense:50", (1, 28, 28), 10, threshold=True)
    lines = [" ".join(line.split()) for line in repr(net).splitlines()]
    assert lines == [
        "layer gives weights products per sample",
        "input 1 x 28 x 28",
        "conv 3 x 3, stride 2 16 x 13 x 13 144 binary + 16 thresholds 24,336",
        "sign, MaxPool(2) 16 x 6 x 6",
        "dense 576 to 50 50 28,800 binary + 50 thresholds 28,800",
        "sign 50",
        "dense 50 to 10 10 500 binary 500",
        "argmax 10",
        "total 29,444 53,636",
    ]
