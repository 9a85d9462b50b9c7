"""The algorithms against each other, convolution against its unrolling, masks, and the order of the samples."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

import cavity
from cavity.core import channels
from cavity.core.algorithms import ALGORITHMS, AMP, BPI, MF
from cavity.core.arithmetic import EXACT
from cavity.core.messages import Fields, Moments, Preactivation, Target
from cavity.core.priors import PRIORS
from cavity.core.state import Factor, LayerState, Up
from oracle.message_passing import conv_edges

ACTIVATIONS = {
    "noisy sign": cavity.Sign(noise=0.5),
    **{name: kind() for name, kind in channels.ACTIVATIONS.items()},
}
IMAGE = (2, 4, 3)


def network(prior="binary", activation="sign", conv=False, bias=False, density=1.0, output="label"):
    """Two layers with three outputs in float64, on 24 inputs."""
    lower = cavity.Conv2d(IMAGE, 3, 2, padding=1, stride=(1, 2), bias=bias) if conv else cavity.Dense(24, 7, bias=bias)
    upper = cavity.Dense(math.prod(lower.output_shape), 3, bias=bias)
    layers = [cavity.Layer(part, prior, density=density) for part in (lower, upper)]
    return cavity.Network([layers[0], ACTIVATIONS[activation], layers[1], output], seed=1).double()


def batch(samples=6, classes=False, seed=0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn((samples, 24), generator=generator, dtype=torch.float64)
    if classes:
        return x, torch.randint(3, (samples,), generator=generator)
    return x, torch.randint(2, (samples, 3), generator=generator) * 2 - 1


def state(net: cavity.Network) -> list[Tensor]:
    return [tensor for layer in net.weighted() for tensor in (*layer.natural, *layer.moments) if tensor is not None]


@pytest.mark.parametrize("output", ["label", "argmax"])
@pytest.mark.parametrize("conv", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("prior", PRIORS)
def test_bp_and_bpi_are_the_same_in_one_iteration(prior, activation, conv, output):
    nets = [network(prior, activation, conv, bias=True, output=output) for _ in range(2)]
    for net, algorithm in zip(nets, ("bp", "bpi"), strict=True):
        trainer = cavity.Trainer(net, algorithm, rho=0.9, damping=0.5)
        for seed in range(3):
            trainer.step(*batch(classes=output == "argmax", seed=seed))
    for one, other in zip(*map(state, nets), strict=True):
        assert torch.equal(one, other)


def test_bp_and_bpi_differ_in_two_iterations():
    nets = [network() for _ in range(2)]
    for net, algorithm in zip(nets, ("bp", "bpi"), strict=True):
        cavity.Trainer(net, algorithm, inner_iterations=2).step(*batch())
    assert not torch.allclose(nets[0].layers[0].field, nets[1].layers[0].field, atol=1e-3)


def one_pass_down(algorithm, net, depth, step, seed=0):
    """B/step and H of one layer of ``net`` in the first iteration, the weights' means being scaled by ``step``."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    site = net.sites[depth]
    shapes = (4, *site.coupling.input_shape), (4, *site.coupling.output_shape)
    inputs = Moments(normal(*shapes[0]).tanh(), torch.full(shapes[0], 0.5, dtype=torch.float64))
    pre = Preactivation(normal(*shapes[1]), 1 + normal(*shapes[1]).square())
    message = Fields(normal(*shapes[1]), normal(*shapes[1]).square()) if depth == 0 else Target(pre.mean.sign(), None)
    weights = Moments(step * normal(*net.layers[depth].shape).tanh(), net.layers[depth].variance)
    state = LayerState(net.layers[depth].natural, weights)
    # A layer on data sends no B; here the lower layer's inputs are units, so that both fields can be looked at.
    below = net.activations[0]
    site = replace(site, below=below)
    up = Up(inputs, pre, pre, torch.zeros(()))
    down = algorithm.down(site, state, up, Factor(site.channel, message, pre), EXACT, False)
    return down.inputs / step, down.weights


@pytest.mark.parametrize("conv", [False, True])
@pytest.mark.parametrize(("activation", "depth"), [("sign", 0), ("noisy sign", 0), ("relu", 0), ("sign", 1)])
@pytest.mark.parametrize(("algorithm", "order"), [(AMP(), 2), (MF(), 1)], ids=["amp", "mf"])
def test_order_of_the_difference_to_bp(algorithm, order, activation, depth, conv):
    """AMP is BP to first order in the edge m·x̂, so its error falls as the square; mean field is order zero."""
    net = network(activation=activation, conv=conv)
    errors = []
    for step in (0.04, 0.02, 0.01, 0.005):
        fields, bp = (one_pass_down(which, net, depth, step) for which in (algorithm, BPI()))
        errors.append([float((a - b).abs().max()) for a, b in zip(fields, bp, strict=True)])
    for finer, coarser in itertools.pairwise(errors[::-1]):
        for one, other in zip(finer, coarser, strict=True):
            assert math.log2(other / one) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("prior", PRIORS)
def test_amp_is_bp_where_the_factors_are_linear(prior):
    """With linear units g is linear in ω, and the first order is all there is."""
    nets = [network(prior, "identity", output=cavity.GaussianOutput(2.0)) for _ in range(2)]
    x, y = batch()
    for net, algorithm in zip(nets, ("bp", "amp"), strict=True):
        assert float(cavity.Trainer(net, algorithm).step(x, y.double()).clamped) == 0
    for one, other in zip(*map(state, nets), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def unrolled(net: cavity.Network) -> tuple[cavity.Network, list[tuple[int, int, int, int]]]:
    """The convolution of ``net`` as a masked dense layer with a copy of each weight for each position, and which copies
    belong together: (unit, input) of the dense layer, (row, column) of the kernel."""
    conv = net.layers[0].coupling
    graph = conv_edges(*conv.input_shape, conv.outputs, conv.kernel, conv.stride, conv.padding, conv.bias)
    last = math.prod(conv.input_shape)
    ties = [
        (unit, last if edge.input is None else edge.input, edge.row, edge.column)
        for unit, edges in enumerate(graph.edges)
        for edge in edges
    ]
    dense = cavity.Dense(last, math.prod(conv.output_shape), bias=conv.bias)
    mask = torch.zeros((dense.outputs, dense.columns), dtype=torch.bool)
    unit, place, row, column = map(list, zip(*ties, strict=True))
    mask[unit, place] = True
    kernel = net.layers[0]
    layer = cavity.Layer(dense, kernel.prior, mask=mask)
    same = cavity.Network([layer, *net.activations, cavity.Layer(net.layers[1].coupling, kernel.prior), net.output])
    same = same.double()

    def spread(values: Tensor, fill: float) -> Tensor:
        wide = torch.full(mask.shape, fill, dtype=torch.float64)
        wide[unit, place] = values[row, column]
        return wide

    precision = None if kernel.precision is None else spread(kernel.precision, 1.0)
    moments = Moments(spread(kernel.mean, 0.0), spread(kernel.variance, 0.0))
    layer.set_state(Fields(spread(kernel.field, 0.0), precision), moments)
    same.layers[1].set_state(net.layers[1].natural, net.layers[1].moments)
    return same, ties


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("prior", ["binary", "gaussian"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_convolution_is_its_dense_unrolling_with_tied_weights(algorithm, prior, bias):
    conv = network(prior, conv=True, bias=bias)
    dense, ties = unrolled(conv)
    before = conv.layers[0].natural
    copies = dense.layers[0].natural
    for net in (conv, dense):
        cavity.Trainer(net, algorithm, rho=1.0).step(*batch())
    for old, new, old_copy, new_copy in zip(
        before, conv.layers[0].natural, copies, dense.layers[0].natural, strict=True
    ):
        if old is None:
            continue
        evidence = torch.zeros_like(old)
        for unit, place, row, column in ties:
            evidence[row, column] += new_copy[unit, place] - old_copy[unit, place]
        torch.testing.assert_close(new - old, evidence, rtol=1e-11, atol=1e-11)
    for one, other in zip(state(conv)[-2:], state(dense)[-2:], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("conv", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("prior", PRIORS)
def test_a_masked_weight_is_zero_for_certain(prior, algorithm, conv):
    net = network(prior, conv=conv, bias=True, density=0.5)
    trainer = cavity.Trainer(net, algorithm, inner_iterations=2, reinforcement=0.1)
    for seed in range(4):
        for layer in net.weighted():
            masked = ~layer.mask
            assert masked.any()
            assert layer.mask.any()
            drawn = layer.sample(torch.Generator().manual_seed(seed))
            for tensor in (layer.mean, layer.variance, layer.field, layer.point(), drawn):
                assert not tensor[masked].any()
            assert layer.variance[layer.mask].all()
        trainer.step(*batch(seed=seed))


def test_a_mask_survives_reset_only_if_it_was_given():
    mask = torch.rand((7, 24), generator=torch.Generator().manual_seed(0)) < 0.5
    net = cavity.Network([cavity.Layer(cavity.Dense(24, 7), mask=mask), "label"])
    net.reset(5)
    assert torch.equal(net.layers[0].mask, mask)
    drawn = network(density=0.5)
    before = drawn.layers[0].mask
    drawn.reset(5)
    assert not torch.equal(drawn.layers[0].mask, before)


@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("prior", PRIORS)
def test_the_order_of_the_samples_does_not_matter(prior, algorithm, iterations):
    nets = [network(prior, conv=True) for _ in range(2)]
    x, y = batch(samples=9)
    order = torch.tensor(np.random.default_rng(0).permutation(9))
    for net, index in zip(nets, (torch.arange(9), order), strict=True):
        cavity.Trainer(net, algorithm, inner_iterations=iterations).step(x[index], y[index])
    for one, other in zip(*map(state, nets), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_rate_scales_what_a_batch_says(algorithm):
    nets = [network("ternary", conv=True) for _ in range(2)]
    before = nets[0].layers[0].natural
    for net, rate in zip(nets, (1.0, 0.25), strict=True):
        cavity.Trainer(net, algorithm, rho=1.0, rate=rate).step(*batch())
    for old, full, quarter in zip(before, *(net.layers[0].natural for net in nets), strict=True):
        torch.testing.assert_close(quarter - old, 0.25 * (full - old), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_amp_is_bp_to_first_order_whatever_the_rate(rate):
    """The second iteration takes each factor's own part out of the weights: rate·H is what they had taken in."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn((40, 301), generator=generator, dtype=torch.float64)
    y = torch.randn(40, generator=generator, dtype=torch.float64).sign()
    moved = {}
    for algorithm in ("bp", "amp", "mf"):
        net = cavity.mlp(301, (31,), 1, seed=1).double()
        before = [layer.field.clone() for layer in net.layers]
        cavity.Trainer(net, algorithm, rho=1.0, rate=rate, damping=0.0, inner_iterations=2).step(x, y)
        moved[algorithm] = [layer.field - old for layer, old in zip(net.layers, before, strict=True)]
    for exact, first_order, none in zip(moved["bp"], moved["amp"], moved["mf"], strict=True):
        assert (first_order - exact).norm() < 0.04 * exact.norm()
        assert (none - exact).norm() > 0.2 * exact.norm()
