"""The three contractions of dense and convolutional couplings against matrices written out edge by edge."""

import math

import pytest
import torch
from torch import Tensor

import cavity
from cavity.core.couplings import random_mask
from oracle.message_passing import conv_edges, dense_edges

CONVOLUTIONS = [
    {"image_shape": (1, 4, 4), "outputs": 2, "kernel": 3},
    {"image_shape": (2, 5, 4), "outputs": 3, "kernel": (3, 2), "stride": (2, 1), "padding": (1, 0)},
    {"image_shape": (3, 5, 6), "outputs": 2, "kernel": 2, "stride": 3, "padding": 1},
    # Stride 2 leaves the last column of the image unread.
    {"image_shape": (1, 4, 4), "outputs": 1, "kernel": 3, "stride": 2},
]


def cases(bias: bool) -> list[tuple[cavity.core.couplings.Coupling, list]]:
    """Couplings and the edges of their units."""
    pairs = [(cavity.Dense(5, 3, bias=bias), dense_edges(3, 5, bias).edges)]
    for options in CONVOLUTIONS:
        image = options["image_shape"]
        graph = conv_edges(
            *image, options["outputs"], options["kernel"], options.get("stride", 1), options.get("padding", 0), bias
        )
        pairs.append((cavity.Conv2d(**options, bias=bias), graph.edges))
    return pairs


ALL = [pytest.param(*case, id=repr(case[0])) for bias in (False, True) for case in cases(bias)]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def unrolled(edges: list, w: Tensor, inputs: int, constant: float) -> tuple[Tensor, Tensor]:
    """The matrix (units, inputs) and the offset (units,) that weights w stand for."""
    matrix, offset = w.new_zeros(len(edges), inputs), w.new_zeros(len(edges))
    for unit, row in enumerate(edges):
        for edge in row:
            if edge.input is None:
                offset[unit] += constant * w[edge.row, edge.column]
            else:
                matrix[unit, edge.input] += w[edge.row, edge.column]
    return matrix, offset


@pytest.mark.parametrize("constant", [1.0, 0.0])
@pytest.mark.parametrize(("coupling", "edges"), ALL)
def test_apply(coupling, edges, constant):
    w, x = normal(coupling.outputs, coupling.columns), normal(4, *coupling.input_shape, seed=1)
    matrix, offset = unrolled(edges, w, math.prod(coupling.input_shape), constant)
    z = coupling.apply(w, x, constant)
    assert z.shape == (4, *coupling.output_shape)
    torch.testing.assert_close(z.flatten(1), x.flatten(1) @ matrix.T + offset)


@pytest.mark.parametrize(("coupling", "edges"), ALL)
def test_back_to_inputs(coupling, edges):
    w, g = normal(coupling.outputs, coupling.columns), normal(4, *coupling.output_shape, seed=1)
    matrix, _ = unrolled(edges, w, math.prod(coupling.input_shape), 1.0)
    back = coupling.back_to_inputs(w, g)
    assert back.shape == (4, *coupling.input_shape)
    torch.testing.assert_close(back.flatten(1), g.flatten(1) @ matrix)


@pytest.mark.parametrize("constant", [1.0, 0.0])
@pytest.mark.parametrize(("coupling", "edges"), ALL)
def test_back_to_weights_is_the_transpose_of_apply(coupling, edges, constant):
    """⟨back_to_weights(g, x), w⟩ = ⟨g, apply(w, x)⟩ for each unit vector w."""
    x, g = normal(4, *coupling.input_shape), normal(4, *coupling.output_shape, seed=1)
    fields = coupling.back_to_weights(g, x, constant)
    expected = torch.zeros_like(fields)
    for unit, row in enumerate(edges):
        for edge in row:
            value = torch.full((4,), constant).double() if edge.input is None else x.flatten(1)[:, edge.input]
            expected[edge.row, edge.column] += (g.flatten(1)[:, unit] * value).sum()
    torch.testing.assert_close(fields, expected)


@pytest.mark.parametrize(("coupling", "edges"), ALL)
def test_gathered_rows_are_what_each_factor_sees(coupling, edges):
    w, x = normal(coupling.outputs, coupling.columns), normal(4, *coupling.input_shape, seed=1)
    rows = coupling.with_constant(coupling.gather(x), 1.0)
    assert rows.shape[1] == coupling.columns
    z = coupling.apply(w, x)
    torch.testing.assert_close(rows @ w.T, coupling.factors(z))
    torch.testing.assert_close(coupling.preactivations(coupling.factors(z)), z)


@pytest.mark.parametrize(("coupling", "edges"), ALL)
def test_scatter_is_the_transpose_of_gather(coupling, edges):
    x = normal(4, *coupling.input_shape)
    rows = normal(*coupling.gather(x).shape, seed=1)
    scattered = coupling.scatter(rows)
    torch.testing.assert_close((scattered * x.reshape(scattered.shape)).sum(), (rows * coupling.gather(x)).sum())
    assert torch.equal(coupling.without_constant(coupling.with_constant(rows, 1.0)), rows)


def test_dense_takes_images_as_they_come():
    dense, w, x = cavity.Dense(12, 3), normal(3, 12), normal(4, 3, 2, 2, seed=1)
    torch.testing.assert_close(dense.apply(w, x), dense.apply(w, x.flatten(1)))
    torch.testing.assert_close(
        dense.back_to_weights(normal(4, 3), x), dense.back_to_weights(normal(4, 3), x.flatten(1))
    )


def test_a_random_mask_has_the_density_asked_for():
    mask = random_mask((200, 300), 0.3, torch.Generator().manual_seed(0))
    assert mask.dtype == torch.bool
    # Five standard deviations of a mean of 60 000 independent draws.
    assert abs(float(mask.double().mean()) - 0.3) < 5 * math.sqrt(0.3 * 0.7 / 60000)
    assert random_mask((2, 3), 1.0, torch.Generator()) is None
