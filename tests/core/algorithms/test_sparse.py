"""Layers with few weights: their edges are listed, and the sums over the list are those over all edges."""

from __future__ import annotations

import pytest
import torch

import cavity
from cavity.core.algorithms.sums import exact_sums
from cavity.core.channels import Sign
from cavity.core.couplings import Conv2d, Coupling, Dense, free_columns
from cavity.core.messages import Fields, Preactivation
from cavity.core.state import Factor
from cavity.engine.compiling import compiler_problem

COUPLINGS: dict[str, Coupling] = {
    "dense": Dense(30, 7),
    "bias": Dense(30, 7, bias=True),
    "conv": Conv2d((2, 6, 6), 3, kernel=3, padding=1, stride=2),
}


def test_the_list_names_what_the_mask_leaves() -> None:
    mask = torch.tensor([[True, False, True, False], [False, False, False, True], [False] * 4])
    assert free_columns(mask).tolist() == [[0, 2], [3, 4], [4, 4]]


@pytest.mark.parametrize("name", COUPLINGS)
def test_sums_over_the_list_are_those_over_all_edges(name) -> None:
    coupling, samples = COUPLINGS[name], 5
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    shape = coupling.outputs, coupling.columns
    mask = torch.rand(shape, generator=generator) < 0.2
    mask[1] = False
    m, x = torch.tanh(normal(*shape)) * mask, normal(samples, *coupling.input_shape)
    omega = normal(samples, *coupling.output_shape)
    factor = Factor(
        Sign(), Fields(normal(*omega.shape), None), Preactivation(omega, 0.1 + normal(*omega.shape).square())
    )
    dense = exact_sums(coupling, factor, m, x, True)
    sparse = exact_sums(coupling, factor, m, x, True, free_columns(mask))
    torch.testing.assert_close(sparse.inputs, dense.inputs, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(sparse.weights, dense.weights * mask, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_step_does_not_depend_on_how_the_edges_are_listed(compile) -> None:
    if compile and compiler_problem() is not None:
        pytest.skip(str(compiler_problem()))

    def fields(listed: bool) -> list[torch.Tensor]:
        net = cavity.mlp(40, (21, 9), 3, density=0.3)
        assert all(layer.columns is not None for layer in net.layers)
        for layer in net.layers:
            layer.columns = layer.columns if listed else None
        generator = torch.Generator().manual_seed(1)
        x, y = torch.randn(16, 40, generator=generator), torch.randint(3, (16,), generator=generator)
        cavity.Trainer(net, "bp", accuracy="exact", compile=compile).step(x, y)
        return [layer.field for layer in net.layers]

    for listed, whole in zip(fields(True), fields(False), strict=True):
        torch.testing.assert_close(listed, whole, rtol=1e-5, atol=1e-6)


def test_the_list_comes_back_with_the_state() -> None:
    sparse, other = (cavity.mlp(20, (5,), 1, density=0.2, seed=seed) for seed in (0, 1))
    other.load_state_dict(sparse.state_dict())
    assert torch.equal(other.layers[0].columns, sparse.layers[0].columns)
    assert cavity.mlp(20, (5,), 1, density=0.8).layers[0].columns is None


def test_a_layer_without_any_weight_says_nothing() -> None:
    net = cavity.Network(
        [
            cavity.Layer(Dense(6, 4), mask=torch.zeros(4, 6, dtype=torch.bool)),
            "sign",
            cavity.Layer(Dense(4, 1)),
            "label",
        ]
    )
    cavity.Trainer(net, "bp", accuracy="exact").step(torch.randn(3, 6), torch.tensor([1, -1, 1]))
    assert not net.layers[0].field.any()
