"""Elastic weight consolidation: the Fisher diagonal sample by sample, a step by hand, and BinaryNet where it has no
springs."""

from __future__ import annotations

import math

import pytest
import torch

from baselines.helpers import batch, copies
from cavity.baselines import BinaryNet, BinaryNetTrainer, ElasticTrainer
from cavity.baselines.elastic import fisher


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("activation", ["sign", "gate"])
def test_the_fisher_diagonal_is_the_mean_square_of_every_samples_derivative(outputs, activation):
    net = BinaryNet(9, (15, 7), outputs, activation=activation, seed=2)
    x, _ = batch(outputs, samples=6, inputs=9)
    weights = list(net.weights)
    expected = [torch.zeros_like(w) for w in weights]
    for sample in x.split(1):
        z = net.logits(sample)[0]
        log_p = torch.log_softmax(z if outputs > 1 else torch.cat([torch.zeros(1), z]), dim=0)
        for value in log_p:
            gradients = torch.autograd.grad(value, weights, retain_graph=True)
            for total, gradient in zip(expected, gradients, strict=True):
                total += value.detach().exp() * gradient.square() / len(x)
    for ours, wanted in zip(fisher(net, x), expected, strict=True):
        assert wanted.max() > 1e-4
        torch.testing.assert_close(ours, wanted, rtol=1e-5, atol=1e-9)


def test_one_unit_by_hand():
    """Two inputs, one label: p(+1) = σ(z), so that F_i = σ(z)σ(−z) x_i²/N; then a step of SGD with springs."""
    net = BinaryNet(2, (), 1)
    with torch.no_grad():
        net.weights[0][0] = torch.tensor([0.5, -0.25])
    trainer = ElasticTrainer(net, "sgd", strength=3.0, decay=0.5, lr=0.1)
    x = torch.tensor([[1.0, 2.0]])
    sigma = 1 / (1 + math.exp((1.0 - 2.0) / -math.sqrt(2)))  # z = (x₁ − x₂)/√2
    F = [sigma * (1 - sigma) * value**2 / 2 for value in (1.0, 2.0)]
    for wanted in (1.0, 1.5):  # decay halves the first task's
        trainer.end_task(x, torch.tensor([1]))
        torch.testing.assert_close(trainer.importance[0][0], wanted * torch.tensor(F))
    torch.testing.assert_close(trainer.centres[0][0], torch.tensor([0.5, -0.25]))
    with torch.no_grad():
        net.weights[0][0] = torch.tensor([0.7, -0.5])
    trainer.step(x, torch.tensor([1]))
    slopes = [-(1 - sigma) * value / math.sqrt(2) for value in (1.0, 2.0)]
    expected = [
        0.7 - 0.1 * (slopes[0] + 3.0 * 1.5 * F[0] * (0.7 - 0.5)),
        -0.5 - 0.1 * (slopes[1] + 3.0 * 1.5 * F[1] * (-0.5 + 0.25)),
    ]
    torch.testing.assert_close(net.weights[0].detach()[0], torch.tensor(expected))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_without_strength_it_is_binarynet(optimizer):
    ours, theirs = (BinaryNet(20, (31,), 5) for _ in range(2))
    one = ElasticTrainer(ours, optimizer, strength=0, lr=0.05)
    other = BinaryNetTrainer(theirs, optimizer, lr=0.05)
    for seed in range(6):
        x, y = batch(5, seed=seed)
        assert torch.equal(one.step(x, y), other.step(x, y))
        one.end_task(x, y)
        other.end_task(x, y)
    assert float(one.importance[0].max()) > 0
    for a, b in zip(ours.weights, theirs.weights, strict=True):
        assert torch.equal(a, b)


def test_springs_hold_what_matters():
    """In a second task, the weights that mattered for the first stay nearer to where they were."""
    moved = []
    for strength in (0.0, 1000.0):
        net = BinaryNet(20, (31,), 5)
        trainer = ElasticTrainer(net, strength=strength, lr=0.02)
        for seed, end in ((1, True), (2, False)):
            for _ in range(30):
                trainer.step(*batch(5, seed=seed))
            if end:
                trainer.end_task(*batch(5, seed=seed))
                start, F = copies(net.weights), copies(trainer.importance)
        distances = [(f * (w - old).square()).sum() for f, w, old in zip(F, net.weights, start, strict=True)]
        moved.append(float(sum(distances).detach()))
    assert moved[1] < moved[0] / 4


def test_bad_arguments_are_named():
    net = BinaryNet(4, (3,), 1)
    with pytest.raises(ValueError, match="strength must be a finite number >= 0, got -1"):
        ElasticTrainer(net, strength=-1)
    with pytest.raises(ValueError, match="decay must be from 0 to 1, got 2"):
        ElasticTrainer(net, decay=2)
    with pytest.raises(ValueError, match=r"x must have shape \(samples, 4\)"):
        ElasticTrainer(net).end_task(torch.zeros(3, 5), torch.ones(3))
