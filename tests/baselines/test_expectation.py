"""Expectation Backpropagation against sums over all weights, exact integrals, autograd and sampled networks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import cavity.data
from cavity.baselines import ExpectationBackpropagation, ExpectationTrainer
from truth.enumeration import posterior_means, random_fields


def increments(sizes, seed):
    """What one sample adds to every natural parameter: exactly, and by EBP."""
    rng = np.random.default_rng(seed)
    fields = random_fields(sizes, 0.5, rng)
    x, y = rng.standard_normal((1, sizes[0])), np.array([1.0])
    exact = [np.arctanh(m) - h for m, h in zip(posterior_means(x, y, fields), fields, strict=True)]
    net = ExpectationBackpropagation(sizes[0], sizes[1:-1], 1).double()
    for own, h in zip(net.fields, fields, strict=True):
        own.copy_(torch.from_numpy(h))
    ExpectationTrainer(net).step(torch.from_numpy(x), torch.tensor([1]))
    ours = [own.numpy() - h for own, h in zip(net.fields, fields, strict=True)]
    return (np.concatenate([part.ravel() for part in parts]) for parts in (exact, ours))


@pytest.mark.parametrize(("sizes", "least"), [((14, 1), 0.97), ((5, 3, 1), 0.9)])
def test_one_sample_against_the_sum_over_all_weights(sizes, least):
    """To first order in 1/√N, so the agreement of a dozen inputs is good and not perfect."""
    pairs = [tuple(increments(sizes, seed)) for seed in range(6)]
    correlations = [np.corrcoef(exact, ours)[0, 1] for exact, ours in pairs]
    assert np.mean(correlations) > least
    exact, ours = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    assert np.dot(exact, ours) / np.dot(exact, exact) == pytest.approx(1.0, abs=0.2)


def test_one_gaussian_unit_has_the_exact_posterior_mean():
    """W ~ 𝒩(m, s²), y = sign(W·x): only the component along x moves, by a one-dimensional integral."""
    generator = torch.Generator().manual_seed(4)
    net = ExpectationBackpropagation(6, (), 1, weights="gaussian", seed=3).double()
    x = torch.randn(1, 6, generator=generator, dtype=torch.float64)
    (m, second), *_ = net.moments()
    s2 = float((second - m.square())[0, 0])
    length = float(x.norm())
    mu, sigma = float((x @ m.T)[0, 0]), math.sqrt(s2) * length
    z = torch.linspace(mu - 10 * sigma, mu + 10 * sigma, 400_001, dtype=torch.float64)
    p = torch.exp(-0.5 * ((z - mu) / sigma).square()) * (z < 0)
    expected = m + (float((p * z).sum() / p.sum()) - mu) * x / length**2
    ExpectationTrainer(net).step(x, torch.tensor([-1]))
    (new, _), *_ = net.moments()
    torch.testing.assert_close(new, expected, rtol=1e-4, atol=1e-5)
    assert (new - m).abs().max() > 0.01


@pytest.mark.parametrize("weights", ["binary", "gaussian"])
@pytest.mark.parametrize("outputs", [1, 4])
def test_terms_are_derivatives_with_the_variances_held(weights, outputs):
    net = ExpectationBackpropagation(9, (7, 5), outputs, weights=weights, seed=1).double()
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(3, 9, generator=generator, dtype=torch.float64)
    y = torch.randint(outputs, (3,), generator=generator) if outputs > 1 else torch.tensor([1, -1, 1])
    moments = net.moments()
    sigmas = [level.sigma for level in net.up(x, moments)]
    means = [m.clone().requires_grad_() for m, _ in moments]
    v = x
    for m, sigma in zip(means, sigmas, strict=True):
        a = v @ m.T / sigma
        v = 2 * torch.special.ndtr(a) - 1
    target = torch.nn.functional.one_hot(y, outputs) * 2 - 1 if outputs > 1 else y.unsqueeze(1)
    log_p = torch.special.log_ndtr(target * a).sum()
    loss, terms = net.evidence(x, y)
    torch.testing.assert_close(loss, -log_p.detach() / 3)
    for term, derivative in zip(terms, torch.autograd.grad(log_p, means), strict=True):
        torch.testing.assert_close(term, derivative)


@pytest.mark.parametrize("weights", ["binary", "gaussian"])
def test_bayesian_probabilities_are_those_of_sampled_networks(weights):
    net = ExpectationBackpropagation(41, (61,), 1, weights=weights, seed=5)
    generator = torch.Generator().manual_seed(6)
    x = torch.randn(8, 41, generator=generator)
    # A little training, so that there is something to predict.
    ExpectationTrainer(net).step(x, torch.tensor([1, -1] * 4))
    frequency = torch.zeros(8)
    draws = 2000
    for _ in range(draws):
        v = x
        for m, second in net.moments():
            if weights == "binary":
                w = torch.where(torch.rand(m.shape, generator=generator) < (1 + m) / 2, 1.0, -1.0)
            else:
                w = m + (second - m.square()).sqrt() * torch.randn(m.shape, generator=generator)
            z = v @ w.T
            v = torch.where(z >= 0, 1.0, -1.0)
        frequency += v[:, 0] > 0
    probability = net.predict_proba(x)[:, 1]
    assert probability.std() > 0.2
    torch.testing.assert_close(probability, frequency / draws, rtol=0, atol=0.06)


def test_predictions_belong_together():
    net = ExpectationBackpropagation(12, (9,), 1, seed=2)
    x = torch.randn(50, 12, generator=torch.Generator().manual_seed(1))
    p = net.predict_proba(x)
    torch.testing.assert_close(p.sum(dim=1), torch.ones(50))
    assert torch.equal(net.predict(x, "bayes"), 2 * p.argmax(dim=1) - 1)
    w = net.point_weights()
    hidden = torch.where(x @ w[0].T >= 0, 1.0, -1.0)
    assert torch.equal(net.predict(x), torch.where(hidden @ w[1].T >= 0, 1, -1)[:, 0])
    assert set(torch.cat([part.flatten() for part in w]).tolist()) == {-1.0, 1.0}
    with pytest.raises(ValueError, match="method must be 'point' or 'bayes', got 'both'"):
        net.predict(x, "both")


@pytest.mark.slow
@pytest.mark.parametrize(("weights", "largest"), [("binary", 8.0), ("gaussian", 6.0)])
def test_learns_two_classes_of_digits(weights, largest):
    data = cavity.data.load("digits", binary_task=True)
    trainer = ExpectationTrainer(ExpectationBackpropagation(64, (101,), 1, weights=weights))
    train, test = (data.x_train, data.y_train), (data.x_test, data.y_test)
    record = trainer.fit(train, epochs=8, batch_size=10, validation=test)[-1]
    assert record.test_error_bayes < largest
    assert record.test_error < 1.5 * largest
    assert record.test_nll < 0.25
    assert record.polarization == [float(m.square().mean()) for m, _ in trainer.net.moments()]


@pytest.mark.slow
def test_learns_ten_classes_of_digits():
    data = cavity.data.load("digits")
    trainer = ExpectationTrainer(ExpectationBackpropagation(64, (151,), 10))
    train, test = (data.x_train, data.y_train), (data.x_test, data.y_test)
    assert trainer.fit(train, epochs=8, batch_size=10, validation=test)[-1].test_error_bayes < 10


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="weights must be one of binary, gaussian, got 'ternary'"):
        ExpectationBackpropagation(4, (3,), 1, weights="ternary")
    with pytest.raises(ValueError, match="init must be a finite number > 0, got 0"):
        ExpectationBackpropagation(4, (3,), 1, init=0)
    with pytest.raises(ValueError, match="hidden must be a positive integer, got 0"):
        ExpectationBackpropagation(4, (0,), 1)
