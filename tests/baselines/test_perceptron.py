"""Continuous weights by gradient descent: against autograd on the plain equations, and learning."""

from __future__ import annotations

import pytest
import torch

import cavity.data
from baselines.helpers import batch
from cavity.analysis.metrics import TRAIN_SAMPLES, train_sample
from cavity.baselines import (
    BinaryNet,
    BinaryNetTrainer,
    ExpectationBackpropagation,
    ExpectationTrainer,
    Perceptron,
    PerceptronTrainer,
)
from cavity.runs import load_checkpoint, save_checkpoint


@pytest.mark.parametrize("activation", ["sign", "relu"])
def test_a_step_is_the_gradient_of_the_plain_network(activation):
    net = Perceptron(20, (15, 11), 1, activation=activation, seed=3)
    x, y = batch(1)
    weights = [w.detach().clone().requires_grad_() for w in net.weights]
    v = x
    for w in weights[:-1]:
        z = v @ w.T
        soft = z.clamp(-1, 1)
        v = z.relu() if activation == "relu" else soft + (torch.where(z >= 0, 1.0, -1.0) - soft).detach()
    z = (v @ weights[-1].T)[:, 0]
    loss = torch.nn.functional.binary_cross_entropy_with_logits(z, (y > 0).float())
    gradients = torch.autograd.grad(loss, weights)
    got = PerceptronTrainer(net, "sgd", lr=0.5).step(x, y)
    torch.testing.assert_close(got, loss.detach())
    for new, old, gradient in zip(net.weights, weights, gradients, strict=True):
        assert gradient.abs().max() > 1e-4
        torch.testing.assert_close(new.detach(), (old - 0.5 * gradient).detach())


def test_weights_are_not_clipped():
    net = Perceptron(20, (15,), 1)
    PerceptronTrainer(net, "sgd", lr=1000.0).step(*batch(1))
    assert max(float(w.detach().abs().max()) for w in net.weights) > 2


def test_masked_weights_stay_zero():
    net = Perceptron(20, (15,), 5, density=0.3, seed=1)
    before = [w == 0 for w in net.point_weights()]
    assert 0.5 < float(before[0].float().mean()) < 0.9
    PerceptronTrainer(net).step(*batch(5))
    assert all(torch.equal(w == 0, old) for w, old in zip(net.point_weights(), before, strict=True))


@pytest.mark.parametrize("activation", ["sign", "relu"])
def test_learns_digits(activation):
    data = cavity.data.load("digits")
    trainer = PerceptronTrainer(Perceptron(64, (101,), 10, activation=activation), "adam", lr=0.005)
    train, test = (data.x_train, data.y_train), (data.x_test, data.y_test)
    assert trainer.fit(train, epochs=15, batch_size=64, validation=test)[-1].test_error < 6


def fresh(kind, optimizer):
    if kind == "binarynet":
        net = BinaryNet(20, (15,), 5)
        return BinaryNetTrainer(net, optimizer, lr=0.01)
    if kind == "perceptron":
        return PerceptronTrainer(Perceptron(20, (15,), 5), optimizer, lr=0.01)
    return ExpectationTrainer(ExpectationBackpropagation(20, (15,), 5))


@pytest.mark.parametrize(
    ("kind", "optimizer"), [("binarynet", "adam"), ("perceptron", "sgd"), ("perceptron", "adam"), ("ebp", "")]
)
def test_a_checkpoint_of_any_baseline_continues_exactly(kind, optimizer, tmp_path):
    x, y = batch(5, samples=100)
    whole = fresh(kind, optimizer)
    whole.fit((x, y), epochs=1, batch_size=20)
    save_checkpoint(tmp_path / "half", whole.net, whole)
    whole.fit((x, y), epochs=3, batch_size=20)
    again = fresh(kind, optimizer)
    load_checkpoint(tmp_path / "half").restore(again.net, again)
    again.fit((x, y), epochs=3, batch_size=20)
    for (name, a), (_, b) in zip(whole.net.state_dict().items(), again.net.state_dict().items(), strict=True):
        assert torch.equal(a, b), name
    assert [r.train_error for r in again.history] == [r.train_error for r in whole.history]


def test_training_errors_are_measured_on_the_same_sample_as_message_passing():
    x, y = batch(1, samples=TRAIN_SAMPLES + 2000, inputs=5)
    net = Perceptron(5, (3,), 1)
    record = PerceptronTrainer(net, lr=1e-12).fit((x, y), epochs=1, batch_size=6000)[-1]
    chosen_x, chosen_y = train_sample(x, y)
    assert len(chosen_x) == TRAIN_SAMPLES
    assert record.train_error == 100 * float((net.predict(chosen_x) != chosen_y).double().mean())
    assert record.train_error != 100 * float((net.predict(x) != y).double().mean())


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="activation must be one of sign, relu, got 'tanh'"):
        Perceptron(4, (3,), 1, activation="tanh")
    with pytest.raises(ValueError, match="optimizer must be one of sgd, adam, got 'lbfgs'"):
        PerceptronTrainer(Perceptron(4, (3,), 1), "lbfgs")
