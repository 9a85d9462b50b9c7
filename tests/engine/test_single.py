"""One sample at a time in NumPy against the trainer, which the oracles judge."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import cavity
from cavity.core.algorithms.bp import BP
from cavity.core.algorithms.mf import MF
from cavity.engine.single import SingleSweep

DIGITS = cavity.data.load("digits")


def follow(net: cavity.Network, targets: torch.Tensor, tolerance: float) -> None:
    """Steps in a row on digits with these targets, by the trainer and in NumPy: h and m of every layer, and what is
    predicted before each step, agree to ``tolerance`` times their size."""
    other = copy.deepcopy(net)
    trainer, single = cavity.Trainer(net, "mf", memory=1000.0, compile=False), SingleSweep.of(other, MF())
    assert single is not None
    for x, y in zip(DIGITS.x_train.to(net.dtype), targets, strict=False):
        info = trainer.step(x.unsqueeze(0), y.unsqueeze(0))
        target = y.reshape(-1).numpy() if y.is_floating_point() else int(y)
        omega, V = single.step(x.numpy(), target, trainer.rules(trainer.place(1)))
        np.testing.assert_allclose(omega, info.output.mean[0], atol=10 * tolerance, rtol=10 * tolerance)
        np.testing.assert_allclose(V, info.output.variance[0], rtol=10 * tolerance)
    for layer, same in zip(net.weighted(), other.weighted(), strict=True):
        assert same.field.dtype == net.dtype
        torch.testing.assert_close(same.field, layer.field, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(same.mean, layer.mean, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(same.variance, layer.variance, rtol=tolerance, atol=tolerance)


#: Thirty steps, each of which hands its errors to the next, ten thousand times a step's own: of float32 6e-8, of
#: float64 1e-13, which is what the ten nodes of ``core/channels/truncated.py`` leave of a gate.
TYPES = [(torch.float32, 1e-3), (torch.float64, 1e-9)]


@pytest.mark.parametrize("activation", ["sign", "gate", "relative-gate"])
@pytest.mark.parametrize("hidden", [(31,), (31, 15), ()])
@pytest.mark.parametrize(("dtype", "tolerance"), TYPES)
def test_classes(activation, hidden, dtype, tolerance) -> None:
    follow(cavity.mlp(64, hidden, 10, activation=activation).to(dtype), DIGITS.y_train[:30], tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), TYPES)
def test_two_classes(dtype, tolerance) -> None:
    follow(cavity.mlp(64, (31,), 2, output="argmax").to(dtype), DIGITS.y_train[:30] % 2, tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), TYPES)
def test_numbers(dtype, tolerance) -> None:
    targets = torch.linspace(-1, 1, 60, dtype=dtype).reshape(30, 2)
    follow(cavity.mlp(64, (31,), 2, output=cavity.GaussianOutput(0.5)).to(dtype), targets, tolerance)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_probabilities(scale) -> None:
    """Sums over the same grid; where a class is so narrow that the grid would miss it, the careful way."""
    net = cavity.mlp(64, (31,), 10).double()
    layer = net.weighted()[-1]
    h = scale * layer.field * torch.linspace(0.1, 3, 10, dtype=torch.float64).unsqueeze(1)
    layer.set_state(layer.natural._replace(field=h), layer.prior.moments(layer.natural._replace(field=h)))
    single = SingleSweep.of(net, MF())
    assert single is not None
    x = DIGITS.x_test[:20].double()
    found = np.stack([single.probabilities(row.numpy()) for row in x])
    np.testing.assert_allclose(found, net.predict_proba(x).numpy(), atol=1e-9)


@pytest.mark.parametrize(
    "net",
    [
        cavity.mlp(64, (31,), 10, weights="gaussian"),
        cavity.mlp(64, (31,), 10, activation="relu"),
        cavity.mlp(64, (31,), 10, bias=True),
        cavity.mlp(64, (31,), 10, threshold=True),
        cavity.mlp(64, (31,), 10, density=0.5),
        cavity.mlp(64, (31,), 10, output=cavity.ArgMax("pairwise")),
        cavity.mlp(64, (31,), 1),
    ],
    ids=["gaussian", "relu", "bias", "threshold", "sparse", "pairwise", "label"],
)
def test_what_is_not_written_out_is_left_to_the_trainer(net) -> None:
    assert SingleSweep.of(net, MF()) is None


def test_other_algorithms_are_left_to_the_trainer() -> None:
    assert SingleSweep.of(cavity.mlp(64, (31,), 10), BP()) is None


def test_a_step_that_fails_leaves_the_network_as_it_was() -> None:
    net = cavity.mlp(64, (31,), 10)
    trainer, single = cavity.Trainer(net, "mf", memory=1000.0), SingleSweep.of(net, MF())
    assert single is not None
    before = [layer.field for layer in net.weighted()]
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="the field of layer 0 became non-finite"):
        single.step(np.full(64, np.nan, np.float32), 3, trainer.rules(trainer.place(1)))
    assert all(layer.field is old for layer, old in zip(net.weighted(), before, strict=True))


def test_inputs_without_a_finite_answer_are_refused() -> None:
    single = SingleSweep.of(cavity.mlp(64, (31,), 10), MF())
    assert single is not None
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="the inputs are too large"):
        single.probabilities(np.full(64, 3e38, np.float32))
