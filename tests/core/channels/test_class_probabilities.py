"""P(argmax z = k) of independent Gaussians, with variances that differ by many orders of magnitude."""

from __future__ import annotations

import math
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import log_ndtr

from cavity.core.channels.classes import class_probabilities
from cavity.core.messages import Preactivation

from . import exact

Array = NDArray[np.float64]


def adaptive(omega: Array, s: Array, k: int) -> float:
    """∫ dz 𝒩(z; ω_k, s_k²) Π_{j≠k} Φ((z − ω_j)/s_j) with breakpoints around all steps inside the Gaussian's support."""

    def integrand(z: float) -> float:
        steps = log_ndtr((z - omega) / s)
        return math.exp(steps.sum() - steps[k] - 0.5 * ((z - omega[k]) / s[k]) ** 2) / (s[k] * math.sqrt(2 * math.pi))

    marks = (omega[:, None] + s[:, None] * np.array([-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0])).ravel()
    low, high = omega[k] - 9 * s[k], omega[k] + 9 * s[k]
    edges = [low, *sorted(mark for mark in marks if low < mark < high), high]
    return math.fsum(quad(integrand, *piece, epsabs=1e-14, epsrel=1e-11)[0] for piece in pairwise(edges))


@pytest.mark.parametrize("orders", [0.0, 3.0, 8.0])
def test_six_classes_against_adaptive_quadrature(orders: float) -> None:
    """Variances that differ by up to 1e8; means as far apart as any of the widths."""
    rng = np.random.default_rng(0)
    for _ in range(8):
        V = 10 ** rng.uniform(-orders, 0, 6)
        omega = rng.standard_normal(6) * 10 ** rng.uniform(-orders / 2, 0, 6)
        got = class_probabilities(Preactivation(torch.from_numpy(omega)[None], torch.from_numpy(V)[None]))[0]
        np.testing.assert_allclose(got, [adaptive(omega, np.sqrt(V), k) for k in range(6)], rtol=0, atol=1e-10)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=str)
def test_three_classes_against_plackett(dtype: torch.dtype, tolerance: float) -> None:
    """Variances from 1e-12 to 1e8 side by side."""
    rng = np.random.default_rng(1)
    V = 10 ** rng.uniform(-12, 8, (6, 3))
    omega = np.sqrt(rng.permuted(V, axis=1)) * rng.standard_normal((6, 3)) * 2
    pre = Preactivation(torch.from_numpy(omega).to(dtype), torch.from_numpy(V).to(dtype))
    for row, *inputs in zip(class_probabilities(pre).tolist(), pre.mean.tolist(), pre.variance.tolist(), strict=True):
        with mp.workdps(50):
            numbers = [[mp.mpf(number) for number in numbers] for numbers in inputs]
            expected = [float(mp.exp(exact.three_classes(k, *numbers)["value"])) for k in range(3)]
        np.testing.assert_allclose(row, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_rows_sum_to_one_and_are_finite(dtype: torch.dtype) -> None:
    rng = np.random.default_rng(2)
    V = 10 ** rng.uniform(-12, 8, (200, 10))
    omega = np.sqrt(V) * rng.choice([-1, 1], V.shape) * 10 ** rng.uniform(-8, 4, V.shape)
    p = class_probabilities(Preactivation(torch.from_numpy(omega).to(dtype), torch.from_numpy(V).to(dtype)))
    assert (p >= 0).all()
    torch.testing.assert_close(p.sum(dim=1), torch.ones(200, dtype=dtype))
