"""Gaussian weights, linear units, Gaussian noise: everything is one Gaussian, and the exact posterior is known.

At AMP's fixed point g = (y − Xm)/ν exactly, so its means are the exact ones. BP's cavities use the full variances
instead of the cavity ones, an error of 1/N per edge.
"""

import numpy as np
import pytest
import torch

import cavity
from cavity.core.messages import Fields, Moments
from truth.linear_regression import posterior

NOISE = 0.3
#: Stands for "known": a weight of this precision does not move.
PINNED = 1e12


def pinned(layer: cavity.Layer, w: np.ndarray) -> None:
    known = torch.tensor(w)
    natural = Fields(known * PINNED, torch.full_like(known, PINNED))
    layer.set_state(natural, Moments(known, torch.full_like(known, 1 / PINNED)))


def standard_normal(layer: cavity.Layer) -> None:
    zero, one = (make(layer.shape, dtype=torch.float64) for make in (torch.zeros, torch.ones))
    layer.set_state(Fields(zero, one), Moments(zero, one))


def converge(net: cavity.Network, algorithm: str, damping: float, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    trainer = cavity.Trainer(net, algorithm, rho=1.0, damping=damping, inner_iterations=400, tolerance=1e-9)
    info = trainer.step(torch.tensor(x), torch.tensor(y))
    assert info.iterations < 400
    assert float(info.clamped) == 0
    return net.layers[0].mean.numpy()


def relative(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def one_layer(algorithm: str, size: int, seed: int) -> tuple[float, float]:
    """Errors of the means and of the average variance, 2·size samples of a linear teacher with two outputs."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * size, size)) / np.sqrt(size)
    y = x @ rng.normal(size=(size, 2)) + np.sqrt(NOISE) * rng.normal(size=(2 * size, 2))
    net = cavity.Network([cavity.Layer(cavity.Dense(size, 2), "gaussian"), cavity.GaussianOutput(NOISE)]).double()
    standard_normal(net.layers[0])
    mean = converge(net, algorithm, 0.3, x, y)
    exact, covariance = posterior(x, y, np.zeros((2, size)), np.ones((2, size)), NOISE)
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    return relative(mean, exact), abs(float(net.layers[0].variance.mean()) / variance.mean() - 1)


def behind_identity(algorithm: str, size: int, seed: int) -> float:
    """Error of the means of the first layer; the second is known, y = U W x + noise, all of them size × size.

    In the basis of U's singular vectors the problem is one regression for each row of W.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * size, size)) / np.sqrt(size)
    W, U = rng.normal(size=(size, size)), rng.normal(size=(size, size)) / np.sqrt(size)
    y = x @ W.T @ U.T + np.sqrt(NOISE) * rng.normal(size=(2 * size, size))
    layers = [cavity.Layer(cavity.Dense(size, size), "gaussian") for _ in range(2)]
    net = cavity.Network([layers[0], "identity", layers[1], cavity.GaussianOutput(NOISE)]).double()
    standard_normal(layers[0])
    pinned(layers[1], U)
    mean = converge(net, algorithm, 0.8, x, y)
    left, stretch, right = np.linalg.svd(U)
    zero, one = np.zeros((1, size)), np.ones((1, size))
    rows = [posterior(x * s, (y @ left)[:, [j]], zero, one, NOISE)[0][0] for j, s in enumerate(stretch)]
    return relative(mean, right.T @ np.array(rows))


@pytest.mark.parametrize("size", [10, 40])
def test_amp_finds_the_exact_means(size):
    error, _ = one_layer("amp", size, seed=0)
    assert error < 1e-7


def test_amp_finds_the_exact_means_behind_an_identity():
    assert behind_identity("amp", 8, seed=0) < 1e-6


def test_bp_differs_by_one_over_n():
    sizes = [12, 24, 48, 96]
    errors = [np.mean([one_layer("bp", n, seed)[0] for seed in range(3)]) for n in sizes]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -1.25 < slope < -0.75
    assert errors[-1] < 0.02


def test_bp_approaches_the_exact_means_behind_an_identity():
    small, large = (np.mean([behind_identity("bp", n, seed) for seed in range(3)]) for n in (6, 24))
    assert large < 0.6 * small
    assert large < 0.12


@pytest.mark.parametrize("algorithm", ["bp", "amp"])
def test_variances_approach_the_exact_ones(algorithm):
    small, large = (np.mean([one_layer(algorithm, n, seed)[1] for seed in range(3)]) for n in (10, 80))
    assert large < 0.5 * small
    assert large < 0.03


def test_bpi_is_not_exact():
    """The same problem tells the algorithms apart: BPI, with its cavity on g alone, takes ν + V for the noise."""
    assert one_layer("bpi", 40, seed=0)[0] > 0.05
