"""Networks as modules: state, types and devices, prediction, draws of the weights."""

import math

import pytest
import torch

import cavity
from cavity.analysis import landscape
from cavity.core.algorithms import ALGORITHMS
from cavity.core.messages import Fields, Moments, Preactivation
from cavity.core.priors import PRIORS
from products import pairs_first


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def conv_net(output="argmax", weights="binary", activation="sign", **options):
    layers = [cavity.Conv2d((1, 6, 6), 3, 3, stride=2, bias=True), cavity.Dense(12, 5), cavity.Dense(5, 4, bias=True)]
    lower, middle, upper = (cavity.Layer(part, weights, **options) for part in layers)
    return cavity.Network([lower, activation, middle, activation, upper, output])


def batch(output="argmax", samples=7):
    x = normal(samples, 1, 6, 6)
    targets = {
        "argmax": torch.arange(samples) % 4,
        "label": torch.where(normal(samples, 4, seed=1) < 0, -1, 1),
        "gaussian": normal(samples, 4, seed=1),
    }
    return x, targets[output]


def test_layers_have_the_shapes_of_their_couplings():
    net = conv_net()
    for layer, shape in zip(net.layers, [(3, 10), (5, 12), (4, 6)], strict=True):
        assert layer.shape == layer.mean.shape == layer.variance.shape == layer.field.shape == shape
        assert layer.free_weights == math.prod(shape)
    assert (net.input_shape, net.outputs) == ((1, 6, 6), 4)


def test_mlp_chooses_its_output():
    assert isinstance(cavity.mlp(3, (), 1).output, cavity.Label)
    assert isinstance(cavity.mlp(3, (2,), 5).output, cavity.ArgMax)
    net = cavity.mlp(3, (4, 5), 2, weights=cavity.Ternary(), activation=cavity.ReLU(), bias=True, density=0.5)
    assert [layer.shape for layer in net.layers] == [(4, 4), (5, 5), (2, 6)]
    assert all(layer.mask is not None for layer in net.layers)
    assert len(net.activations) == 2


def test_a_seed_decides_the_start():
    first, same, other = (cavity.mlp(8, (5,), 3, seed=seed, density=0.5).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("weights", PRIORS)
def test_double_and_back(weights):
    net = conv_net(weights=weights)
    x, y = batch()
    assert net.dtype == torch.float32
    net = net.double()
    assert net.dtype == torch.float64
    cavity.Trainer(net).step(x, y)
    for layer in net.layers:
        tensors = [*layer.natural, *layer.moments]
        assert {tensor.dtype for tensor in tensors if tensor is not None} == {torch.float64}
    assert net.predict_proba(x).dtype == torch.float64
    assert net.float().predict_proba(x).dtype == torch.float32


@pytest.mark.parametrize("weights", PRIORS)
def test_a_state_dict_carries_everything(weights):
    net, other = conv_net(weights=weights, density=0.7), conv_net(weights=weights, density=0.7)
    other.reset(9)
    x, y = batch()
    trainer = cavity.Trainer(net)
    trainer.step(x, y)
    kept = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    other.load_state_dict(net.state_dict())
    assert torch.equal(net.predict_proba(x), other.predict_proba(x))
    for one in (trainer, cavity.Trainer(other)):
        one.step(x, y)
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, net.state_dict()[name])
    assert any(not torch.equal(kept[name], tensor) for name, tensor in net.state_dict().items())


def test_a_loaded_mask_counts_as_its_own():
    """Polarisation divides by the weights that the mask leaves: the loaded one, not the one drawn before."""
    net, other = (cavity.mlp(50, (), 1, density=density, seed=seed) for density, seed in ((0.2, 0), (0.9, 1)))
    other.load_state_dict(net.state_dict())
    assert torch.equal(landscape.polarization(net), landscape.polarization(other))
    assert other.layers[0].free_weights == int(net.layers[0].mask.sum())


def test_tensors_handed_out_keep_their_values():
    net = conv_net()
    before = net.layers[0].mean
    copy = before.clone()
    cavity.Trainer(net).step(*batch())
    assert torch.equal(before, copy)
    assert not torch.equal(net.layers[0].mean, copy)


PARTS = {
    "binary": ("binary", "sign", "label", "label"),
    "gaussian": ("gaussian", "relu", "gaussian", "gaussian"),
    "ternary": ("ternary", "identity", cavity.ArgMax("pairwise"), "argmax"),
    "noisy": ("binary", cavity.Sign(noise=1.0), cavity.ArgMax("sampled"), "argmax"),
}


@pairs_first(parts=PARTS, algorithm=ALGORITHMS, iterations=(1, 3), masked=(False, True))
def test_a_step_never_looks_at_a_value(parts, algorithm, iterations, masked):
    """Tensors on the meta device have no values: a step that had to read one, as a transfer to the host would,
    fails."""
    weights, activation, output, labels = PARTS[parts]
    net = conv_net(output, weights, activation, density=0.5 if masked else 1.0).to("meta")
    x, y = (tensor.to("meta") for tensor in batch(labels))
    trainer = cavity.Trainer(net, algorithm, inner_iterations=iterations, reinforcement=0.1)
    info = trainer.step(x, y)
    assert info.iterations == iterations
    assert info.output.mean.shape == (7, 4)
    assert info.message_change.shape == info.polarization.shape == (3,)
    assert net.layers[0].mean.device.type == "meta"
    assert net.predict(x).device.type == "meta"


@pytest.mark.parametrize(("method", "focusing"), [("pairwise", (3.0, 1.0)), ("exact", None)])
def test_focusing_and_quadrature_never_look_at_a_value(method, focusing):
    net = conv_net(cavity.ArgMax(method)).to("meta")
    x, y = (tensor.to("meta") for tensor in batch())
    cavity.Trainer(net, "bp", focusing=focusing).step(x, y)
    assert net.layers[0].mean.device.type == "meta"
    assert net.predict_moments(x).mean.shape == (7, 4)


def test_point_prediction_is_a_forward_pass_of_the_likeliest_weights():
    net = conv_net().double()
    x = batch()[0].double()
    lower, middle, upper = (layer.point() for layer in net.layers)
    kernel, offset = lower[:, :-1].reshape(3, 1, 3, 3), lower[:, -1]
    hidden = torch.nn.functional.conv2d(x, kernel, offset, stride=2)
    hidden = torch.where(hidden < 0, -1.0, 1.0).double().flatten(1)
    hidden = torch.where(hidden @ middle.T < 0, -1.0, 1.0).double()
    z = hidden @ upper[:, :-1].T + upper[:, -1]
    torch.testing.assert_close(net(x), z)
    assert torch.equal(net.predict(x), z.argmax(dim=1))


def test_sign_of_zero_is_plus_one():
    net = cavity.mlp(2, (), 1)
    net.layers[0].set_state(Fields(torch.ones(1, 2), None), Moments(torch.ones(1, 2), torch.zeros(1, 2)))
    assert net.predict(torch.tensor([[1.0, -1.0], [-1.0, -1.0]])).tolist() == [1, -1]


@pytest.mark.parametrize("outputs", [1, 2, 10])
def test_probabilities_are_probabilities(outputs):
    net = cavity.mlp(6, (5,), outputs)
    p = net.predict_proba(10 * normal(200, 6))
    assert p.shape == (200, max(outputs, 2))
    assert (p >= 0).all()
    torch.testing.assert_close(p.sum(dim=1), torch.ones(200))
    decided = p.argmax(dim=1)
    assert torch.equal(net.predict(10 * normal(200, 6), "bayes"), 2 * decided - 1 if outputs == 1 else decided)


@pytest.mark.parametrize("method", ["pairwise", "sampled", "exact"])
def test_argmax_probabilities_against_monte_carlo(method):
    omega = torch.tensor([[0.3, -0.2, 1.0], [0.0, 0.0, 0.0], [2.0, 1.9, -3.0]], dtype=torch.float64)
    V = torch.tensor([[1.0, 0.1, 4.0], [1.0, 2.0, 3.0], [1e-4, 0.5, 9.0]], dtype=torch.float64)
    p = cavity.ArgMax(method).probabilities(Preactivation(omega, V))
    draws = 400_000
    for row in range(3):
        noise = normal(draws, 3, seed=row).double()
        winners = (omega[row] + V[row].sqrt() * noise).argmax(dim=1)
        frequency = torch.bincount(winners, minlength=3) / draws
        # Five standard deviations of a frequency.
        assert ((p[row] - frequency).abs() < 5 * (p[row] * (1 - p[row]) / draws).sqrt() + 1e-9).all()


@pytest.mark.parametrize("activation", ["sign", "relu"])
def test_bayesian_moments_against_draws_of_the_weights(activation):
    """For one hidden layer the means of wide preactivations are nearly those of sampled networks."""
    net = cavity.mlp(101, (51,), 1, activation=activation).double()
    x = normal(20, 101).double()
    pre = net.predict_moments(x)
    generator = torch.Generator().manual_seed(0)
    layers = net.weighted()
    outputs = []
    for _ in range(2000):
        hidden = net.activations[0].forward(layers[0].coupling.apply(layers[0].sample(generator), x))
        outputs.append(layers[1].coupling.apply(layers[1].sample(generator), hidden))
    drawn = torch.stack(outputs)
    assert ((pre.mean - drawn.mean(0)).abs() < 0.15 * drawn.std(0)).all()
    ratio = pre.variance / drawn.var(0)
    assert ratio.min() > 0.8
    assert ratio.max() < 1.2


@pytest.mark.parametrize("weights", PRIORS)
def test_draws_have_the_posterior_moments(weights):
    net = cavity.mlp(4, (), 3, weights=weights, init=0.8).double()
    layer = net.layers[0]
    generator = torch.Generator().manual_seed(0)
    # Damped: the mean is not that of the field.
    x, y = torch.randn((20, 4), generator=generator).double(), torch.randint(3, (20,), generator=generator)
    cavity.Trainer(net, "mf", rho=1.0, damping=0.8).step(x, y)
    draws = torch.stack([layer.sample(generator) for _ in range(4000)])
    squares = (draws - layer.mean).square()
    # Five standard errors.
    assert ((draws.mean(0) - layer.mean).abs() < 5 * (layer.variance / 4000).sqrt()).all()
    assert ((squares.mean(0) - layer.variance).abs() < 5 * (squares.var(0) / 4000).sqrt()).all()


def test_large_inputs_are_predicted_in_pieces(monkeypatch):
    net = conv_net()
    x = batch(samples=11)[0]
    whole = net.predict_proba(x), net.predict(x)
    monkeypatch.setattr(cavity.core.predict, "BATCH", 3)
    torch.testing.assert_close(net.predict_proba(x), whole[0])
    assert torch.equal(net.predict(x), whole[1])
