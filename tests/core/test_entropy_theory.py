"""The free entropy of large perceptrons with ±1 weights against the replica-symmetric theory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import cavity
from truth import capacity
from truth import state_evolution as theory

N = 1001
Array = NDArray[np.float64]


def entropy(x: Array, y: Array, algorithm: str) -> float:
    """log of the number of ±1 weights that give all labels, per weight."""
    net = cavity.mlp(x.shape[1], (), 1, init=0.0)
    data = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    found = cavity.entropy.log_evidence(net, *data, algorithm=algorithm, damping=0.3)
    return float(np.log(2)) + found.value / x.shape[1]


def random_labels(load: float, seed: int, n: int = N) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.choice([-1.0, 1.0], (round(load * n), n)), rng.choice([-1.0, 1.0], round(load * n))


def teacher_student(load: float, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.choice([-1.0, 1.0], (round(load * N), N))
    return x, np.where(x @ rng.choice([-1.0, 1.0], N) >= 0, 1.0, -1.0)


def test_the_theory_has_the_known_capacity() -> None:
    assert capacity.capacity() == pytest.approx(0.833, abs=5e-4)
    # Without patterns all weights count; the first pattern halves them.
    assert capacity.entropy(1e-6) == pytest.approx(np.log(2), abs=1e-5)
    assert (capacity.entropy(2e-4) - capacity.entropy(1e-4)) / 1e-4 == pytest.approx(-np.log(2), abs=1e-3)


@pytest.mark.parametrize("load", [0.1, pytest.param(0.3, marks=pytest.mark.slow), 0.5, 0.7])
def test_random_labels(load: float) -> None:
    """The mean over instances within 4 of its standard errors; BP agrees with AMP on the same instance."""
    found = [entropy(*random_labels(load, seed), "amp") for seed in range(6)]
    tolerance = 4 * np.std(found, ddof=1) / len(found) ** 0.5
    assert np.std(found) < N**-0.5
    assert np.mean(found) == pytest.approx(capacity.entropy(load), abs=tolerance)
    assert entropy(*random_labels(load, 0), "bp") == pytest.approx(found[0], abs=1e-3)


@pytest.mark.slow
def test_the_entropy_vanishes_at_the_capacity() -> None:
    """A parabola through the mean entropies at four loads is zero near 0.83."""
    loads = np.array([0.4, 0.5, 0.6, 0.7])
    means = [np.mean([entropy(*random_labels(load, seed, 2001), "amp") for seed in range(3)]) for load in loads]
    roots = np.roots(np.polyfit(loads, means, 2))
    nearest = roots[np.argmin(np.abs(roots - 0.83))]
    assert float(nearest.real) == pytest.approx(capacity.capacity(), abs=0.03)


@pytest.mark.parametrize("load", [0.5, *(pytest.param(load, marks=pytest.mark.slow) for load in (1.0, 1.2))])
def test_a_teacher(load: float) -> None:
    """Below the threshold: the Bayes-optimal free entropy, within 4 standard errors over instances."""
    q_hat = theory.conjugate(load)
    expected = theory.entropy(load, q_hat, theory.overlap(load))
    found = [entropy(*teacher_student(load, seed), "amp") for seed in range(6)]
    tolerance = 4 * np.std(found, ddof=1) / len(found) ** 0.5
    assert np.std(found) < N**-0.5
    assert np.mean(found) == pytest.approx(expected, abs=tolerance)
    assert entropy(*teacher_student(load, 0), "bp") == pytest.approx(found[0], abs=2e-3)
