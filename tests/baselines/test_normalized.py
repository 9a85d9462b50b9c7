"""BinaryNet with batch normalisation against a plain autograd version of the same equations, and the network of ±1
weights and thresholds that it folds into."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

import cavity
from cavity.baselines import NormalizedBinaryNet, NormalizedTrainer
from cavity.baselines.normalized import EPSILON, normalized_logits
from cavity.engine.compiling import compiler_problem
from cavity.training.augmentation import Augmentation

LAYERS = "conv:6:3,pool:2,conv:5:2,average:2,dense:9"
SHAPE = (2, 9, 9)


def images(samples=24, seed=0, shape=SHAPE, classes=4):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(samples, *shape, generator=generator)
    return x, torch.randint(classes, (samples,), generator=generator)


def plain_sign(z):
    return torch.where(z >= 0, torch.ones_like(z), -torch.ones_like(z))


def straight_through(z):
    """sign(z) in value, clamp(z, −1, 1) in derivative."""
    soft = z.clamp(-1, 1)
    return soft + (plain_sign(z) - soft).detach()


def plain_normal(z, gamma, beta):
    """Batch normalisation by the statistics of z itself, written out."""
    axes = [0, *range(2, z.ndim)]
    shape = (1, -1, *(1 for _ in axes[1:]))
    mean = z.mean(axes).reshape(shape)
    variance = (z - mean).square().mean(axes).reshape(shape)
    return gamma.reshape(shape) * (z - mean) / (variance + EPSILON).sqrt() + beta.reshape(shape)


def plain_logits(net, weights, gammas, betas, x):
    w = [straight_through(w) for w in weights]
    a = plain_normal(F.conv2d(x, w[0].reshape(6, 2, 3, 3)), gammas[0], betas[0])
    x = straight_through(F.max_pool2d(a, 2))
    a = plain_normal(F.conv2d(x, w[1].reshape(5, 6, 2, 2)), gammas[1], betas[1])
    x = F.avg_pool2d(straight_through(a), 2).flatten(1)
    x = straight_through(plain_normal(x @ w[2].T, gammas[2], betas[2]))
    return plain_normal(x @ w[3].T, gammas[3], betas[3])


def scrambled(layers=LAYERS, shape=SHAPE, outputs=4, seed=3):
    """A network whose normalisations have seen data and whose γ and β are of either sign."""
    net = NormalizedBinaryNet(layers, shape, outputs, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for part in (*net.scales, *net.offsets):
            part.copy_(torch.randn(part.shape, generator=generator))
        x, _ = images(seed=seed, shape=shape)
        for _ in range(40):
            normalized_logits(list(net.weights), net.normalizations, net.stages, net.prepared(x))
    return net


def test_the_gradient_is_that_of_the_plain_network():
    net = scrambled().double()
    x, y = images()
    x = x.double()
    parts = [list(map(torch.clone, group)) for group in (net.weights, net.scales, net.offsets)]
    plain = [[tensor.detach().requires_grad_() for tensor in group] for group in parts]
    expected = F.cross_entropy(plain_logits(net, *plain, x), y)
    found = F.cross_entropy(normalized_logits(list(net.weights), net.normalizations, net.stages, x), y)
    torch.testing.assert_close(found, expected)
    theirs = torch.autograd.grad(expected, [tensor for group in plain for tensor in group])
    ours = torch.autograd.grad(found, [*net.weights, *net.scales, *net.offsets])
    for one, other in zip(ours, theirs, strict=True):
        assert float(other.abs().max()) > 1e-6
        torch.testing.assert_close(one, other)


def test_prediction_folds_the_normalisation_by_its_averages():
    """Forty mini-batches of the same images leave 1 − 0.9⁴⁰ of their statistics in the averages, the unbiased variance
    that torch keeps; folded or written out, the logits are the same."""
    net = scrambled()
    x, _ = images(seed=7)
    signs = [plain_sign(w) for w in net.weights]
    for number, (w, normal) in enumerate(zip(signs, net.normalizations, strict=True)):
        z = net.stages[number].coupling.apply(w, x.reshape(len(x), *net.stages[number].coupling.input_shape))
        shape = (1, -1, *(1 for _ in z.shape[2:]))
        gamma, beta, mean, variance = (part.reshape(shape) for part in normal)
        a = gamma * (z - mean) / (variance + EPSILON).sqrt() + beta
        if number == len(signs) - 1:
            break
        x = plain_sign(a)
        if net.stages[number].pool == "pool":
            x = F.max_pool2d(x, 2)
        elif net.stages[number].pool == "average":
            x = F.avg_pool2d(x, 2)
    assert any(bool((scale < 0).any()) for scale in net.scales[:-1])
    torch.testing.assert_close(net(images(seed=7)[0]), a.detach())


def test_averages_approach_the_statistics_of_the_data():
    net = scrambled()
    x, _ = images(seed=3)
    z = net.stages[0].coupling.apply(plain_sign(net.weights[0].detach()), x)
    left = 0.9**40
    normal = net.normalizations[0]
    torch.testing.assert_close(normal.mean, (1 - left) * z.mean((0, 2, 3)))
    torch.testing.assert_close(normal.variance, left + (1 - left) * z.transpose(0, 1).flatten(1).var(dim=1))


def test_it_folds_into_a_network_of_ours():
    """The same ±1 weights and thresholds in a ``cavity.Network`` give the same sums below the readout's factors."""
    net = scrambled()
    ours = cavity.network(LAYERS, SHAPE, 4, threshold=True)
    weights, thresholds = net.point_weights(), [*net.thresholds(), None]
    known = [w if b is None else torch.cat([w, b[:, None]], 1) for w, b in zip(weights, thresholds, strict=True)]
    x, _ = images(samples=50, seed=11)
    sums = cavity.core.predict.forward(ours, known, x)
    scale, offset, mean, variance = net.normalizations[-1]
    torch.testing.assert_close(net(x), (scale * (sums - mean) / (variance + EPSILON).sqrt() + offset).detach())


def test_a_scale_of_zero_leaves_the_sign_of_the_offset():
    net = scrambled("dense:4", (20,))
    with torch.no_grad():
        net.scales[0].zero_()
        net.offsets[0].copy_(torch.tensor([1.0, -1.0, 2.0, -0.5]))
    x = torch.randn(30, 20, generator=torch.Generator().manual_seed(0))
    z = x @ net.point_weights()[0].T + net.thresholds()[0]
    assert torch.equal(plain_sign(z), torch.tensor([1.0, -1.0, 1.0, -1.0]).expand(30, 4))


def test_weights_are_clipped_and_normalisation_is_not():
    net = NormalizedBinaryNet("dense:9", 20, 4)
    trainer = NormalizedTrainer(net, lr=3.0, schedule=None)
    x, y = images(shape=(20,))
    for _ in range(2):
        trainer.step(x, y)
    assert max(float(w.detach().abs().max()) for w in net.weights) == 1.0
    assert max(float(part.detach().abs().max()) for part in (*net.scales, *net.offsets)) > 2.0


def test_a_whitening_is_started_from_the_training_images_as_in_ours():
    x, y = images(samples=60)
    layers = "white:7:3,conv:6:3,pool:2"
    net, ours = NormalizedBinaryNet(layers, SHAPE, 4), cavity.network(layers, SHAPE, 4)
    NormalizedTrainer(net).fit((x, y), epochs=1, batch_size=20)
    trainer = cavity.Trainer(ours, "mf")
    trainer.watch = False  # three steps on noise teach nothing
    trainer.fit((x, y), epochs=1, batch_size=20)
    assert torch.equal(net.front.filters, ours.front.filters)
    assert not torch.equal(net.front.filters, torch.eye(7, 18))


def test_it_learns_digits():
    data = cavity.data.load("digits")
    net = NormalizedBinaryNet("conv:16:3,pool:2,dense:101", data.image_shape, 10)
    pairs = (data.x_train, data.y_train), (data.x_test, data.y_test)
    history = NormalizedTrainer(net).fit(pairs[0], validation=pairs[1], epochs=8, batch_size=64)
    assert history[-1].test_error < 12
    assert history[-1].test_error_bayes is None
    assert history[-1].polarization == [1.0] * 3


def test_augmented_images_are_those_of_message_passing(monkeypatch):
    """Same seed, same mini-batches, same moves."""
    x, y = images(samples=60)
    seen = {}
    for kind in (NormalizedTrainer, cavity.Trainer):
        net = (
            NormalizedBinaryNet("conv:6:3", SHAPE, 4)
            if kind is NormalizedTrainer
            else cavity.network("conv:6:3", SHAPE, 4)
        )
        trainer = kind(net, seed=5)
        trainer.watch = False
        inner = trainer.learn
        seen[kind] = []
        monkeypatch.setattr(
            trainer, "learn", lambda x, y, inner=inner, kind=kind: (seen[kind].append(x.flatten(1)), inner(x, y))[1]
        )
        trainer.fit((x, y), epochs=1, batch_size=20, augment=Augmentation(SHAPE, flip=True, shift=1))
    ours, theirs = seen.values()
    assert len(ours) == 3
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


def test_resumed_training_is_the_uninterrupted_one():
    x, y = images(samples=60)

    def trainer():
        return NormalizedTrainer(NormalizedBinaryNet("white:7:3,conv:6:3,pool:2", SHAPE, 4))

    whole, cut, again = trainer(), trainer(), trainer()
    whole.fit((x, y), epochs=2, batch_size=20)
    for first, second, epochs in ((cut, None, 2), (again, cut, 2)):
        if second is not None:
            first.net.load_state_dict(second.net.state_dict())
            first.load_state_dict(second.state_dict())
        callback = cavity.training.callbacks.OnEpoch(
            lambda trainer, record: setattr(trainer, "stop", record.epoch == 1)
        )
        first.fit((x, y), epochs=epochs, batch_size=20, callbacks=[callback])
    for one, other in zip(whole.net.state_dict().values(), again.net.state_dict().values(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.slow
@pytest.mark.skipif(compiler_problem() is not None, reason="nothing can be compiled here")
def test_compiled_steps_are_the_eager_ones():
    x, y = images()
    nets = [NormalizedBinaryNet(LAYERS, SHAPE, 4, seed=1) for _ in range(2)]
    losses = [
        float(NormalizedTrainer(net, compile=slow).step(x, y)) for net, slow in zip(nets, (False, True), strict=True)
    ]
    assert math.isclose(*losses, rel_tol=1e-5)
    for one, other in zip(nets[0].state_dict().values(), nets[1].state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_what_does_not_fit_is_said():
    with pytest.raises(ValueError, match="layers: conv:5:12 does not fit"):
        NormalizedBinaryNet("conv:5:12", SHAPE, 4)
