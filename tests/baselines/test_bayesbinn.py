"""BayesBiNN's rule by hand, its estimate against the exact derivative, and its two predictions."""

from __future__ import annotations

import math

import pytest
import torch

import cavity.data
from baselines.helpers import batch
from cavity.baselines import BayesBinaryNet, BayesBiNNTrainer, BinaryNet
from cavity.baselines.bayesbinn import relaxed


def logistic(z):
    return 1 / (1 + math.exp(-z))


def test_one_step_by_hand():
    """Two inputs, one label +1, prior λ₀ = 0; the draws are those of the seed."""
    net = BayesBinaryNet(2, (), 1)
    natural, x, tau, alpha, samples = [0.8, -0.3], [1.0, -2.0], 0.5, 0.1, 7.0
    with torch.no_grad():
        net.weights[0][0] = torch.tensor(natural)
    trainer = BayesBiNNTrainer(net, lr=alpha, temperature=tau, samples=samples, seed=5)
    loss = trainer.step(torch.tensor([x]), torch.tensor([1]))
    noise = torch.rand(1, 2, generator=torch.Generator().manual_seed(5))[0].tolist()
    w = [math.tanh((h + 0.5 * math.log(e / (1 - e))) / tau) for h, e in zip(natural, noise, strict=True)]
    z = (w[0] * x[0] + w[1] * x[1]) / math.sqrt(2)
    assert float(loss) == pytest.approx(-math.log(logistic(z)), rel=1e-5)
    for number in range(2):
        gradient = -logistic(-z) * x[number] / math.sqrt(2)
        s = samples * gradient * (1 - w[number] ** 2) / (tau * (1 - math.tanh(natural[number]) ** 2))
        expected = (1 - alpha) * natural[number] - alpha * s
        assert float(net.weights[0].detach()[0, number]) == pytest.approx(expected, rel=1e-4)


def test_the_prior_is_zero_and_then_the_posterior_of_the_last_task():
    net = BayesBinaryNet(20, (31,), 5, init=2.0)
    # So few samples that only the prior acts.
    trainer = BayesBiNNTrainer(net, lr=0.1, samples=1e-20)
    trainer.step(*batch(5))
    torch.testing.assert_close(net.weights[0].detach().abs(), torch.full((31, 20), 1.8))
    trainer.end_task(*batch(5))
    with torch.no_grad():
        net.weights[0].fill_(0.0)
    trainer.step(*batch(5))
    torch.testing.assert_close(net.weights[0].detach().abs(), torch.full((31, 20), 0.18))


def test_a_cold_draw_is_a_draw_of_the_weights():
    natural = torch.tensor([-1.5, -0.2, 0.0, 0.7, 3.0]).repeat(20_000, 1)
    w = relaxed(natural, torch.rand(natural.shape, generator=torch.Generator().manual_seed(1)), 1e-3)
    assert float((w.abs() > 0.99).float().mean()) > 0.99
    torch.testing.assert_close(w.mean(dim=0), torch.tanh(natural[0]), rtol=0, atol=4 / math.sqrt(20_000))


def test_the_mean_of_the_estimates_is_the_derivative_by_the_mean():
    """E[w] = μ has the derivative 1 by μ, and the relaxed draw is nearly a draw where τ is small."""
    natural = torch.tensor([-1.0, 0.0, 0.5]).repeat(200_000, 1).requires_grad_()
    noise = torch.rand(natural.shape, generator=torch.Generator().manual_seed(2))
    (slope,) = torch.autograd.grad(relaxed(natural, noise, 0.2).sum(), natural)
    error = slope.std(dim=0) / math.sqrt(len(slope))
    assert float(error.max()) < 0.02
    # The relaxation's own bias is of order τ².
    assert bool(((slope.mean(dim=0) - 1).abs() < 4 * error + 0.2**2).all())


@pytest.mark.parametrize("field", [50.0, -50.0])
def test_certain_weights_and_extreme_draws_have_finite_derivatives(field):
    natural = torch.full((4,), field, requires_grad=True)
    w = relaxed(natural, torch.tensor([0.0, 1e-8, 1 - 2**-24, 1.0]), 0.01)
    (slope,) = torch.autograd.grad(w.sum(), natural)
    assert bool((torch.isfinite(w) & torch.isfinite(slope)).all())


def test_the_mode_and_the_mean_predict():
    net = BayesBinaryNet(20, (31,), 5, seed=3)
    with torch.no_grad():
        for w in net.weights:
            w.copy_(torch.randn(w.shape, generator=torch.Generator().manual_seed(4)))
    plain = BinaryNet(20, (31,), 5)
    plain.load_state_dict(net.state_dict())
    x, _ = batch(5)
    assert torch.equal(net.predict(x), plain.predict(x))
    first, last = (torch.tanh(w.detach()) for w in net.weights)
    z = torch.where(x @ first.T >= 0, 1.0, -1.0) @ last.T / math.sqrt(31)
    assert torch.equal(net.predict(x, "bayes"), z.argmax(dim=1))
    torch.testing.assert_close(net.predict_proba(x), torch.softmax(z, dim=1))
    assert (net.predict(x) != net.predict(x, "bayes")).any()


def test_masked_weights_do_not_count():
    net = BayesBinaryNet(20, (31,), 5, density=0.3)
    x, y = batch(5)
    BayesBiNNTrainer(net).step(x, y)
    before = net.predict_proba(x), net.predict(x)
    with torch.no_grad():
        for w, layer in zip(net.weights, net.layers, strict=True):
            w[layer.magnitude == 0] += 3
    assert torch.equal(net.predict_proba(x), before[0])
    assert torch.equal(net.predict(x), before[1])


def test_learns_digits():
    data = cavity.data.load("digits")
    # The default rate is for tasks of 60,000 samples.
    trainer = BayesBiNNTrainer(BayesBinaryNet(64, (101,), 10), lr=1e-3, samples=len(data.x_train))
    train, test = (data.x_train, data.y_train), (data.x_test, data.y_test)
    record = trainer.fit(train, epochs=15, batch_size=32, validation=test)[-1]
    assert record.test_error < 15
    assert record.test_error_bayes < 15


def test_bad_arguments_are_named():
    net = BayesBinaryNet(4, (3,), 1)
    with pytest.raises(ValueError, match="temperature must be a finite number > 0, got 0"):
        BayesBiNNTrainer(net, temperature=0)
    with pytest.raises(ValueError, match="samples must be a finite number > 0, got 0"):
        BayesBiNNTrainer(net, samples=0)
    with pytest.raises(ValueError, match="lr must be at most 1, got 2"):
        BayesBiNNTrainer(net, lr=2)
    with pytest.raises(ValueError, match="init must be a finite number >= 0, got -1"):
        BayesBinaryNet(4, (3,), 1, init=-1)
