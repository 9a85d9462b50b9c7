"""Samples that count several times: as good as that many copies of each, for every algorithm and coupling."""

from __future__ import annotations

import pytest
import torch

import cavity
from cavity.core.algorithms import ALGORITHMS
from cavity.core.couplings import Conv2d
from cavity.core.network import Network
from cavity.core.pasp import Method, State, update
from cavity.core.state import Rule
from cavity.training.settings import sites_of

COUNTS = torch.tensor([1, 3, 0, 2, 1, 4])


def dense() -> Network:
    return cavity.mlp(5, (4,), 3, weights="gaussian", activation="relu", bias=True, threshold=True, seed=1)


def sparse() -> Network:
    return cavity.mlp(20, (9,), 1, weights="binary", density=0.4, seed=1)


def images() -> Network:
    return Network([Conv2d((2, 5, 5), 3, 3, bias=True), "sign", cavity.Dense(27, 1), "label"], seed=1)


@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("make", [dense, sparse, images])
@pytest.mark.parametrize("fisher", [True, False])
def test_a_count_is_that_many_copies(make, algorithm: str, iterations: int, fisher: bool) -> None:
    net = make().double()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((6, *net.input_shape), generator=generator, dtype=torch.float64)
    y = torch.randint(3, (6,), generator=generator)
    y = y if net.outputs == 3 else 2 * (y % 2) - 1
    method = Method(ALGORITHMS.make(algorithm), sites_of(net, fisher), iterations)
    rule = Rule(rate=0.3, damping=0.4, threshold=Rule(rate=0.1))

    def learnt(x, y, rule):
        state = State(net.states(), (0.0,) * len(net.layers))
        layers = update(method, state, [rule] * len(net.layers), x, y)[0].layers
        parts = [part for layer in layers for part in (layer, layer.threshold) if part is not None]
        return [tensor for part in parts for tensor in (*part.natural, *part.moments) if tensor is not None]

    copies = learnt(x.repeat_interleave(COUNTS, dim=0), y.repeat_interleave(COUNTS), rule)
    counted = learnt(x, y, rule._replace(counts=COUNTS))
    for one, other in zip(copies, counted, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-11)
    once = learnt(x, y, rule)
    assert not all(torch.allclose(one, other) for one, other in zip(copies, once, strict=True))
