"""Teacher–student perceptron and random patterns with ±1 weights, full batch: the engine against statistical physics.

The fixed point of AMP and BP is the Bayes-optimal posterior of ``truth.state_evolution`` when the number of weights is
large. Started from zero fields, with ρ = 1 and no damping, one ``Trainer.step`` is all the message passing there is.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import cavity
from truth import state_evolution as theory

N = 1001
KINDS = ["binary", "gaussian"]

Array = NDArray[np.float64]


def draw_inputs(kind: str, patterns: int, n: int, rng: np.random.Generator) -> Array:
    return rng.choice([-1.0, 1.0], (patterns, n)) if kind == "binary" else rng.standard_normal((patterns, n))


def teacher_student(kind: str, load: float, seed: int, n: int = N) -> tuple[Array, Array, Array]:
    """Inputs, labels and the teacher who gave them."""
    rng = np.random.default_rng(seed)
    x, teacher = draw_inputs(kind, round(load * n), n, rng), rng.choice([-1.0, 1.0], n)
    return x, np.where(x @ teacher >= 0, 1.0, -1.0), teacher


def posterior(x: Array, y: Array, algorithm: str, iterations: int, **settings: float) -> cavity.Network:
    """A perceptron after one step on all of the data."""
    dtype = torch.float32
    net = cavity.mlp(x.shape[1], (), 1, init=0.0).to(dtype)
    trainer = cavity.Trainer(net, algorithm, rho=1.0, damping=0.0, inner_iterations=iterations, **settings)
    trainer.step(torch.from_numpy(x).to(dtype), torch.from_numpy(y))
    return net


def mean_weights(net: cavity.Network) -> Array:
    return net.layers[0].mean[0].double().numpy()


def vote_error(x: Array, y: Array, teacher: Array, algorithm: str) -> float:
    """Probability that sign(m·x) contradicts the teacher on a fresh input."""
    m = mean_weights(posterior(x, y, algorithm, iterations=25))
    return float(np.arccos(m @ teacher / (np.linalg.norm(m) * np.linalg.norm(teacher))) / np.pi)


def mistakes(net: cavity.Network, teacher: Array) -> int:
    return int((net.layers[0].point()[0].double().numpy() != teacher).sum())


@pytest.mark.parametrize("load", [0.5, 1.0, 1.3])
def test_the_error_below_the_threshold_is_bayes_optimal(load: float) -> None:
    """AMP within 4 standard errors of the mean over instances, which are small enough to tell the vote from the clipped
    student; BP gives the same error on the same instance, whatever its finite-size deviation."""
    seeds = 12
    instances = [teacher_student(KINDS[seed % 2], load, seed) for seed in range(seeds)]
    errors = [vote_error(*instance, "amp") for instance in instances]
    expected, tolerance = theory.generalisation_error(load), 4 * np.std(errors, ddof=1) / seeds**0.5
    assert tolerance < theory.clipped_error(load) - expected
    assert np.mean(errors) == pytest.approx(expected, abs=tolerance)
    assert vote_error(*instances[0], "bp") == pytest.approx(errors[0], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "algorithm", "seeds"),
    [
        ("binary", "amp", 4),
        ("gaussian", "bp", 1),
        pytest.param("gaussian", "amp", 4, marks=pytest.mark.slow),
        pytest.param("binary", "bp", 1, marks=pytest.mark.slow),
    ],
)
def test_the_teacher_is_found_above_the_threshold_and_kept(kind: str, algorithm: str, seeds: int) -> None:
    """1.7 patterns per weight, the threshold is 1.49: not one wrong sign after 20 iterations, nor after 60, when V =
    0."""
    assert theory.algorithmic_threshold() < 1.7
    for seed in range(seeds):
        x, y, teacher = teacher_student(kind, 1.7, seed)
        for iterations in (20, 60):
            net = posterior(x, y, algorithm, iterations)
            assert mistakes(net, teacher) == 0
            assert np.abs(mean_weights(net)).min() > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [501, 1001, 2001])
def test_a_teacher_once_found_is_kept_at_every_size(kind: str, n: int) -> None:
    """Small systems may need longer, or never find the teacher; none loses it again."""
    found = 0
    for seed in range(12):
        x, y, teacher = teacher_student(kind, 1.7, seed, n)
        if mistakes(posterior(x, y, "amp", 20), teacher) == 0:
            found += 1
            assert all(mistakes(posterior(x, y, "amp", iterations), teacher) == 0 for iterations in (60, 61))
    assert found >= 9


@pytest.mark.parametrize(("algorithm", "seeds"), [("amp", 5), ("bp", 1)])
def test_reinforcement_stores_random_patterns(algorithm: str, seeds: int) -> None:
    """0.6 random patterns per weight: r → 1 drives the weights to one solution among many, with no error left."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        x = draw_inputs(KINDS[seed % 2], round(0.6 * N), N, rng)
        y = rng.choice([-1.0, 1.0], len(x))
        net = posterior(x, y, algorithm, iterations=80, reinforcement_step=0.05)
        assert (net.predict(torch.from_numpy(x).float()).numpy() == y).all()


def test_without_reinforcement_the_same_patterns_are_not_stored() -> None:
    """The posterior of many solutions clips to none of them."""
    rng = np.random.default_rng(0)
    x = draw_inputs("binary", round(0.6 * N), N, rng)
    y = rng.choice([-1.0, 1.0], len(x))
    net = posterior(x, y, "amp", iterations=80)
    assert (net.predict(torch.from_numpy(x).float()).numpy() != y).mean() > 0.02
