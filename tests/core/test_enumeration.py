"""Posterior means of networks small enough to sum over all weights: BP is closer to the truth than mean field.

Fields of the prior are drawn at random, because without them the exact means of a hidden layer vanish by symmetry. The
output is noisy, so that every set of labels is possible. Distances are root mean squares over all weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import cavity
from cavity.core.channels import ACTIVATIONS, Label, PiecewiseLinear
from cavity.core.messages import Fields
from truth import enumeration

Array = NDArray[np.float64]

#: Every activation, written once more.
HARD: dict[str, enumeration.Function] = {
    "sign": enumeration.sign,
    "relu": lambda z: np.maximum(z, 0),
    "identity": lambda z: z,
    "step": lambda z: (z >= 0).astype(float),
    "gate": lambda z: (np.abs(z) > 1).astype(float),
    "leaky-relu": lambda z: np.maximum(z, 0.1 * z),
    "hard-tanh": lambda z: np.clip(z, -1, 1),
    "abs": np.abs,
}


def hard(activation: str, inputs: int) -> enumeration.Function:
    """The activation of units with that many inputs."""
    if activation == "relative-gate":
        return lambda z: (np.abs(z) > inputs**0.5).astype(float)
    return HARD[activation]


class Instance:
    """Gaussian inputs, labels of a noisy ±1 teacher, prior fields, and the exact posterior means (all weights in a
    row)."""

    def __init__(self, sizes: Sequence[int], samples: int, noise: float, seed: int, activation: str = "sign") -> None:
        rng = np.random.default_rng(seed)
        self.activation = activation
        unit = hard(activation, sizes[0])
        self.sizes, self.noise = sizes, noise
        self.x = rng.standard_normal((samples, sizes[0]))
        teacher = [rng.choice([-1.0, 1.0], (1, outputs, inputs)) for inputs, outputs in pairwise(sizes)]
        z = enumeration.preactivations(self.x, teacher, unit)[0] + noise**0.5 * rng.standard_normal(samples)
        self.y = np.where(z >= 0, 1.0, -1.0)
        self.fields = enumeration.random_fields(sizes, 0.5, rng)
        exact = enumeration.posterior_means(self.x, self.y, self.fields, noise, unit)
        self.exact = np.concatenate([mean.ravel() for mean in exact])

    def distance(self, algorithm: str) -> float:
        """Of the means that message passing converges to."""
        options = {"activation": self.activation, "output": Label(self.noise)}
        net = cavity.mlp(self.sizes[0], self.sizes[1:-1], 1, **options).double()
        for layer, field in zip(net.weighted(), self.fields, strict=True):
            natural = Fields(torch.from_numpy(field), None)
            layer.set_state(natural, layer.prior.moments(natural))
        trainer = cavity.Trainer(net, algorithm, rho=1.0, damping=0.5, inner_iterations=500, tolerance=1e-7)
        trainer.step(torch.from_numpy(self.x), torch.from_numpy(self.y))
        means = np.concatenate([layer.mean.numpy().ravel() for layer in net.weighted()])
        return float(np.sqrt(np.mean((means - self.exact) ** 2)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "samples", "noise", "ratio"), [((9, 1), 9, 0.5, 0.6), ((5, 3, 1), 8, 2.0, 0.75)], ids=["unit", "network"]
)
def test_bp_is_closer_than_mean_field(sizes: tuple[int, ...], samples: int, noise: float, ratio: float) -> None:
    """On average by the stated ratio, and instance by instance by four standard errors of the difference."""
    instances = [Instance(sizes, samples, noise, seed) for seed in range(24)]
    bp, mf = (np.array([instance.distance(algorithm) for instance in instances]) for algorithm in ("bp", "mf"))
    assert bp.mean() < ratio * mf.mean()
    assert (mf - bp).mean() > 4 * (mf - bp).std(ddof=1) / len(instances) ** 0.5


def test_bp_of_a_unit_becomes_exact_as_it_grows() -> None:
    """One pattern per weight and a noise of 0.3 N: the distance falls at every step, to less than 0.6 of where it
    began, while that of mean field stays."""
    bp, mf = [], []
    for n in (5, 9, 17):
        instances = [Instance((n, 1), n, 0.3 * n, seed) for seed in range(24)]
        bp.append(np.mean([instance.distance("bp") for instance in instances]))
        mf.append(np.mean([instance.distance("mf") for instance in instances]))
    assert bp[0] > bp[1] > bp[2]
    assert bp[2] < 0.6 * bp[0]
    assert mf[2] > 0.8 * mf[0]


@pytest.mark.slow
@pytest.mark.parametrize("activation", [n for n, kind in ACTIVATIONS.items() if issubclass(kind, PiecewiseLinear)])
def test_bp_is_closer_than_the_prior_for_every_activation(activation: str) -> None:
    """Of what the samples say about the weights of a tiny network, BP finds more than a fifth."""
    instances = [Instance((4, 3, 1), 8, 2.0, seed, activation) for seed in range(6)]
    before = [np.concatenate([np.tanh(field).ravel() for field in instance.fields]) for instance in instances]
    prior = [np.sqrt(np.mean((b - instance.exact) ** 2)) for b, instance in zip(before, instances, strict=True)]
    assert np.mean([instance.distance("bp") for instance in instances]) < 0.8 * np.mean(prior)
