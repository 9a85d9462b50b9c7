"""Every registered activation learns scikit-learn's digits, a little, in one epoch with ±1 weights."""

import math

import pytest
import torch
from sklearn.datasets import load_digits

import cavity
from cavity.core.channels import ACTIVATIONS

#: Ten classes: an activation through which nothing is learnt is right one time in ten.
ACCURACY = 0.35


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_it_learns(activation: str) -> None:
    """Inputs of size 1/√N make preactivations of order 1, where a gate has something to open for; one that is relative
    to their size wants inputs of size 1. Units without a bound need a small rate, as in ``test_trainer``."""
    x, y = (torch.from_numpy(part) for part in load_digits(return_X_y=True))
    size = 1.0 if activation == "relative-gate" else math.sqrt(x.shape[1])
    x = ((x - x.mean()) / x.std() / size).float()
    net = cavity.mlp(64, (31,), 10, activation=activation, output=cavity.ArgMax("pairwise"))
    trainer = cavity.Trainer(net, "mf", rate=0.1, rho=1.0, damping=0.5, compile=False, seed=0)
    trainer.fit((x[:1280], y[:1280]), epochs=1, batch_size=32)
    assert (net.predict(x[1280:], method="bayes") == y[1280:]).float().mean() > ACCURACY
