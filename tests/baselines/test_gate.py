"""Gates as units of BinaryNet: their values, and a derivative that is that of two signs."""

from __future__ import annotations

import pytest
import torch

from baselines.helpers import batch, copies
from cavity.baselines import BinaryNet, BinaryNetTrainer
from cavity.baselines.straight_through import binary_activation, gate_activation, just_above


def test_a_gate_is_one_beyond_the_threshold_on_both_sides():
    """With nine inputs of 1, z/√9 is an odd multiple of 1/3: open from 5/3 on, and shut at 1."""
    net = BinaryNet(9, (4,), 1, activation="gate")
    with torch.no_grad():
        for row, minus in enumerate((0, 2, 3, 7)):  # z/3 = 3, 5/3, 1, −5/3
            net.weights[0][row] = 0.5
            net.weights[0][row, :minus] = -0.5
        net.weights[1][:] = 0.5
    assert float(net(torch.ones(1, 9))) == pytest.approx(3 / 2)


def test_the_derivative_is_that_of_two_signs():
    """1[|z| > 1] = 1 + ½ sign(z − 1) − ½ sign(z + 1), except on the edges, which no z here is."""
    z = torch.linspace(-3, 3, 601)[1::2].requires_grad_()
    gate = gate_activation(z, 1.0, just_above(2.0), 1.0)
    signs = 1 + (binary_activation(z - 1, 1.0, just_above(1.0)) - binary_activation(z + 1, 1.0, just_above(1.0))) / 2
    assert torch.equal(gate, signs)
    (ours,), (theirs,) = (torch.autograd.grad(value.sum(), z) for value in (gate, signs))
    assert torch.equal(ours, theirs)
    assert set(ours.tolist()) == {-0.5, 0.0, 0.5}


def test_a_step_is_the_gradient_of_the_plain_network():
    net = BinaryNet(20, (31,), 5, activation="gate", seed=3)
    x, y = batch(5)
    first, second = (w.detach().clone().requires_grad_() for w in net.weights)
    z = x @ (first + (first.sign() - first).detach()).T / 20**0.5
    soft = z.abs().clamp_max(2) / 2
    units = soft + ((z.abs() > 1).float() - soft).detach()
    loss = torch.nn.functional.cross_entropy(units @ (second + (second.sign() - second).detach()).T / 31**0.5, y)
    expected = [w - 0.3 * g for w, g in zip((first, second), torch.autograd.grad(loss, (first, second)), strict=True)]
    before = copies(net.weights)
    torch.testing.assert_close(BinaryNetTrainer(net, lr=0.3).step(x, y), loss.detach())
    for new, old, wanted in zip(net.weights, before, expected, strict=True):
        assert (new - old).detach().abs().max() > 1e-3
        torch.testing.assert_close(new, wanted)


def test_other_units_are_refused():
    with pytest.raises(ValueError, match="activation must be one of sign, gate, got 'relu'"):
        BinaryNet(20, (31,), 5, activation="relu")
