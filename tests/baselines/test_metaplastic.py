"""The metaplastic rule against its formula by hand, and against Adam where it has no metaplasticity."""

from __future__ import annotations

import math

import pytest
import torch

from baselines.helpers import batch
from cavity.baselines import BinaryNet, BinaryNetTrainer, MetaplasticTrainer
from cavity.baselines.trainer import Adam


def test_one_step_by_hand():
    """Adam's first step is lr·sign(gradient), whatever its size; one label +1 has the gradient −σ(−z) x/√N."""
    net = BinaryNet(4, (), 1)
    weights, x = [0.5, -0.5, 2.0, -2.0], [1.0, 1.0, -1.0, -1.0]
    with torch.no_grad():
        net.weights[0][0] = torch.tensor(weights)
    MetaplasticTrainer(net, metaplasticity=0.7, lr=0.01).step(torch.tensor([x]), torch.tensor([1]))
    # Weights move along x: away from zero the first and the last, towards it the other two.
    softer = [1 - math.tanh(0.7 * 0.5) ** 2, 1 - math.tanh(0.7 * 2.0) ** 2]
    expected = [0.5 + 0.01, -0.5 + 0.01 * softer[0], 2.0 - 0.01 * softer[1], -2.0 - 0.01]
    torch.testing.assert_close(net.weights[0].detach()[0], torch.tensor(expected), rtol=0, atol=1e-6)


@pytest.mark.parametrize("activation", ["sign", "gate"])
def test_without_metaplasticity_it_is_adam_without_clipping(activation):
    ours, theirs = (BinaryNet(20, (31,), 5, activation=activation) for _ in range(2))
    one = MetaplasticTrainer(ours, metaplasticity=0, lr=0.3)
    other = BinaryNetTrainer(theirs, Adam(0.3, math.inf))
    for seed in range(8):
        one.step(*batch(5, seed=seed))
        other.step(*batch(5, seed=seed))
    assert float(ours.weights[0].detach().abs().max()) > 1
    for a, b in zip(ours.weights, theirs.weights, strict=True):
        assert torch.equal(a, b)


def test_a_firm_weight_needs_more_steps_to_flip():
    """One weight, pushed from w to zero by Adam's steps of lr: w/lr of them, or more by ∫₀ʷ cosh²(mv) dv / w."""
    steps = []
    for metaplasticity in (0.0, 1.0):
        net = BinaryNet(1, (), 1)
        with torch.no_grad():
            net.weights[0][0] = 1.0
        trainer = MetaplasticTrainer(net, metaplasticity=metaplasticity, lr=0.01)
        while float(net.weights[0].detach()) > 0:
            trainer.step(torch.ones(1, 1), torch.tensor([-1]))
        steps.append(trainer.steps)
    assert steps[0] == pytest.approx(100, abs=1)
    assert steps[1] == pytest.approx(100 * (0.5 + math.sinh(2.0) / 4), abs=3)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="metaplasticity must be a finite number >= 0, got -1"):
        MetaplasticTrainer(BinaryNet(4, (3,), 1), metaplasticity=-1)
    with pytest.raises(ValueError, match="lr must be a finite number > 0, got 0"):
        MetaplasticTrainer(BinaryNet(4, (3,), 1), lr=0)
