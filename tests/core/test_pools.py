"""Pooling against sums over all states of a window, linear Gaussian models, enumerated networks, and windows of one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.special import log_ndtr, logsumexp, ndtr

import cavity
from cavity.core.algorithms import ALGORITHMS
from cavity.core.channels import Identity, Label, Sign
from cavity.core.messages import Fields, Preactivation


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def summed(u: np.ndarray, B: float) -> tuple[float, np.ndarray]:
    """The mean of max(x) under e^{B max} Π P(x_j), and the half log-odds that its factor gives each unit, by summing
    over all signs of a window."""
    states = np.array(list(itertools.product((-1, 1), repeat=len(u))))
    log_p = log_ndtr(states * u)
    tilt = B * states.max(axis=1)
    total = logsumexp(log_p.sum(axis=1) + tilt, b=states.max(axis=1), return_sign=True)
    mean = total[1] * np.exp(total[0] - logsumexp(log_p.sum(axis=1) + tilt))
    fields = np.empty(len(u))
    for j in range(len(u)):
        others = np.delete(log_p, j, axis=1).sum(axis=1) + tilt
        up, down = (logsumexp(others[states[:, j] == x]) for x in (1, -1))
        fields[j] = 0.5 * (up - down)
    return float(mean), fields


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("scale", [0.3, 2.0, 6.0])
def test_max_pooling_is_the_sum_over_all_states(scale: float, noise: float) -> None:
    pool, sign = cavity.MaxPool((2, 3)), Sign(noise)
    omega, V, B = (
        scale * normal(3, 2, 5, 7),
        0.5 + normal(3, 2, 5, 7, seed=1).square(),
        scale * normal(3, 2, 2, 2, seed=2),
    )
    pre = Preactivation(omega, V)
    pooled, units = pool.up(sign, pre), pool.units(sign)
    x, delta = units.moments(Fields(B, None), pooled)
    down = pool.down(sign, Fields(B, None), pre)
    assert down.precision is None
    assert x.shape == (3, 2, 2, 2)
    u = (omega / torch.sqrt(V + noise)).numpy()
    for n, c, i, j in itertools.product(range(3), range(2), range(2), range(2)):
        window = (n, c, slice(2 * i, 2 * i + 2), slice(3 * j, 3 * j + 3))
        mean, fields = summed(u[window].ravel(), float(B[n, c, i, j]))
        assert float(x[n, c, i, j]) == pytest.approx(mean, rel=1e-9, abs=1e-12)
        np.testing.assert_allclose(down.field[window].numpy().ravel(), fields, rtol=1e-8, atol=1e-12)
        assert float(delta[n, c, i, j]) == pytest.approx(1 - mean**2, rel=1e-6, abs=1e-12)
    assert float(down.field[:, :, 4:].abs().max()) == 0
    assert float(down.field[:, :, :, 6:].abs().max()) == 0


def test_the_slopes_of_a_max_are_those_of_its_free_energy() -> None:
    """∂φ/∂ω_j of log Σ e^{B max} Π P(x_j) is what a sign unit answers to the field that comes down."""
    pool, sign = cavity.MaxPool(2), Sign()
    omega, V, B = normal(4, 3, 4, 4).requires_grad_(), 0.5 + normal(4, 3, 4, 4, seed=1).square(), 2 * normal(4, 3, 2, 2)
    log_q = pool.sum(torch.special.log_ndtr(-omega / V.sqrt()))
    q = torch.exp(log_q)
    torch.log(torch.exp(B) * (1 - q) + torch.exp(-B) * q).sum().backward()
    pre = Preactivation(omega.detach(), V)
    found = sign.gradient(pool.down(sign, Fields(B, None), pre), pre)
    torch.testing.assert_close(found, omega.grad, rtol=1e-8, atol=1e-12)


def test_max_pooling_keeps_its_digits_in_single_precision() -> None:
    """Far into both tails, for fields as large as they come."""
    pool, sign = cavity.MaxPool((1, 2)), Sign()
    values = torch.tensor([-12.0, -8.0, -4.0, -1.0, 0.0, 1e-3, 1.0, 4.0, 12.0, 30.0])
    omega = torch.cartesian_prod(values, values).reshape(1, 1, 100, 2)
    for B in (-60.0, -9.0, -1.0, -1e-4, 0.0, 1e-4, 1.0, 9.0, 60.0):
        found = []
        for dtype in (torch.float32, torch.float64):
            pre = Preactivation(omega.to(dtype), torch.ones_like(omega, dtype=dtype))
            message = Fields(torch.full((1, 1, 100, 1), B, dtype=dtype), None)
            moments = pool.units(sign).moments(message, pool.up(sign, pre))
            # Of a unit that is certain no digit of its field matters: what counts is what it answers.
            found.append((*moments, sign.gradient(pool.down(sign, message, pre), pre)))
        for single, double in zip(*found, strict=True):
            assert torch.isfinite(single).all()
            torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-6)


def test_average_pooling_is_exact_for_gaussian_units() -> None:
    """x_j ~ 𝒩(ω_j, V_j) and a Gaussian factor on their mean: by matrices."""
    pool, unit = cavity.AveragePool((2, 2)), Identity()
    omega, V = normal(2, 3, 2, 2), 0.5 + normal(2, 3, 2, 2, seed=1).square()
    B, A = normal(2, 3, 1, 1, seed=2), 0.3 + normal(2, 3, 1, 1, seed=3).square()
    pre = Preactivation(omega, V)
    pooled = pool.up(unit, pre)
    mean = pool.units(unit).moments(Fields(B, A), pooled)
    down = pool.down(unit, Fields(B, A), pre)
    a = torch.full((4,), 0.25, dtype=torch.float64)
    for n, c in itertools.product(range(2), range(3)):
        h, P = (omega / V)[n, c].ravel() + B[n, c] * a, torch.diag(1 / V[n, c].ravel()) + A[n, c] * torch.outer(a, a)
        C = torch.linalg.inv(P)
        torch.testing.assert_close(mean.mean[n, c].ravel(), (a @ C @ h.ravel()).reshape(1))
        torch.testing.assert_close(mean.variance[n, c].ravel(), (a @ C @ a).reshape(1))
        for j in range(4):
            # The marginal of x_j is its own Gaussian times the message.
            marginal, own = C[j, j], 1 / V[n, c].ravel()[j]
            torch.testing.assert_close(down.precision[n, c].ravel()[j], 1 / marginal - own)
            field = (C @ h.ravel())[j] / marginal - (omega / V)[n, c].ravel()[j]
            torch.testing.assert_close(down.field[n, c].ravel()[j], field)


def chain(pool: cavity.core.pools.Pool | None, activation: str = "sign") -> cavity.Network:
    pools = [] if pool is None else [pool]
    lower, upper = cavity.Conv2d((1, 4, 4), 3, 3), cavity.Dense(12, 3)
    return cavity.Network([lower, activation, *pools, upper, "argmax"], seed=1).double()


@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_window_of_one_changes_nothing(algorithm: str, iterations: int) -> None:
    x, y = normal(8, 1, 4, 4), torch.arange(8) % 3
    nets = [chain(None), chain(cavity.MaxPool(1))]
    for net in nets:
        cavity.Trainer(net, algorithm, inner_iterations=iterations, damping=0.5).step(x, y)
    for one, other in zip(*(net.weighted() for net in nets), strict=True):
        torch.testing.assert_close(other.field, one.field, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(nets[1].predict_proba(x), nets[0].predict_proba(x), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_average_of_one_changes_nothing(algorithm: str) -> None:
    x, y = normal(8, 1, 4, 4), torch.arange(8) % 3
    nets = [chain(None, "identity"), chain(cavity.AveragePool(1), "identity")]
    for net in nets:
        cavity.Trainer(net, algorithm, rate=0.1, damping=0.5).step(x, y)
    for one, other in zip(*(net.weighted() for net in nets), strict=True):
        torch.testing.assert_close(other.field, one.field, rtol=1e-7, atol=1e-8)


def test_point_prediction_pools() -> None:
    x = normal(6, 2, 6, 6).float()
    lower = cavity.Conv2d((2, 6, 6), 3, 3)
    for pool, function in (
        (cavity.MaxPool(2), torch.nn.functional.max_pool2d),
        (cavity.AveragePool(2), torch.nn.functional.avg_pool2d),
    ):
        net = cavity.Network([lower, "sign", pool, cavity.Dense(12, 3), "argmax"])
        first, last = (layer.point() for layer in net.weighted())
        z = torch.nn.functional.conv2d(x, first.reshape(3, 2, 3, 3))
        expected = function(torch.where(z >= 0, 1.0, -1.0), 2).flatten(1) @ last.T
        torch.testing.assert_close(net(x), expected)


class Tiny:
    """Two channels over a row of four positions, pooled in pairs, and a noisy label: all 2⁸ weights are summed over."""

    def __init__(self, seed: int, average: bool) -> None:
        rng = np.random.default_rng(seed)
        self.average, self.noise = average, 1.0
        self.x, self.fields = rng.standard_normal((8, 1, 2, 4)), rng.normal(0, 0.5, 8)
        weights = np.array(list(itertools.product((-1.0, 1.0), repeat=8)))
        z = np.stack([self.forward(w) for w in weights])
        self.y = np.where(z[rng.integers(256)] + rng.standard_normal(8) >= 0, 1.0, -1.0)
        log_p = log_ndtr(self.y * z / self.noise**0.5).sum(axis=1) + weights @ self.fields
        self.exact = np.exp(log_p - logsumexp(log_p)) @ weights

    def forward(self, w: np.ndarray) -> np.ndarray:
        units = np.where(np.einsum("kr,nrp->nkp", w[:4].reshape(2, 2), self.x[:, 0]) >= 0, 1.0, -1.0)
        pairs = units.reshape(8, 2, 2, 2)
        pooled = pairs.mean(axis=3) if self.average else pairs.max(axis=3)
        return pooled.reshape(8, 4) @ w[4:]

    def distance(self, algorithm: str) -> float:
        pool = cavity.AveragePool((1, 2)) if self.average else cavity.MaxPool((1, 2))
        lower = cavity.Conv2d((1, 2, 4), 2, (2, 1))
        net = cavity.Network([lower, "sign", pool, cavity.Dense(4, 1), Label(self.noise)]).double()
        for layer, field in zip(net.weighted(), np.split(self.fields, 2), strict=True):
            natural = Fields(torch.from_numpy(field).reshape(layer.shape), None)
            layer.set_state(natural, layer.prior.moments(natural))
        # Two ±1 units are far from a Gaussian, and more iterations on it lead away.
        iterations = 1 if self.average else 20
        trainer = cavity.Trainer(net, algorithm, rho=1.0, damping=0.5, inner_iterations=iterations)
        trainer.step(torch.from_numpy(self.x), torch.from_numpy(self.y))
        means = np.concatenate([layer.mean.numpy().ravel() for layer in net.weighted()])
        return float(np.sqrt(np.mean((means - self.exact) ** 2)))


@pytest.mark.parametrize("average", [False, True])
def test_belief_propagation_through_a_pool_is_closer_to_the_truth_than_the_prior(average: bool) -> None:
    """Of what the samples say about the weights, more than a quarter is found, though two inputs are no limit of
    many."""
    cases = [Tiny(seed, average) for seed in range(8)]
    prior = np.mean([np.sqrt(np.mean((np.tanh(case.fields) - case.exact) ** 2)) for case in cases])
    found = np.mean([case.distance("bp") for case in cases])
    assert found < 0.75 * prior


def test_where_a_pool_may_stand() -> None:
    conv, dense = cavity.Conv2d((1, 6, 6), 2, 3), cavity.Dense(8, 3)
    for parts in (
        [conv, cavity.MaxPool(2), "sign", dense, "argmax"],
        [conv, "sign", cavity.MaxPool(2), cavity.MaxPool(1), dense, "argmax"],
        [conv, "sign", dense, "argmax", cavity.MaxPool(2)],
        [cavity.MaxPool(2), conv, "sign", dense, "argmax"],
    ):
        with pytest.raises(ValueError, match="a pool must follow an activation"):
            cavity.Network(parts)
    with pytest.raises(TypeError, match="max pooling is for sign units"):
        cavity.Network([conv, "relu", cavity.MaxPool(2), dense, "argmax"])
    with pytest.raises(ValueError, match="does not fit into"):
        cavity.Network([conv, "sign", cavity.MaxPool(5), dense, "argmax"])
    with pytest.raises(ValueError, match=r"takes inputs of shape \(7,\), but layer 0 gives \(2, 2, 2\)"):
        cavity.Network([conv, "sign", cavity.MaxPool(2), cavity.Dense(7, 3), "argmax"])


def test_ndtr_of_a_window() -> None:
    """Without a field the pooled mean is 1 − 2 Π Φ(−u)."""
    omega = normal(1, 1, 2, 2)
    pre = Preactivation(omega, torch.ones_like(omega))
    pool = cavity.MaxPool(2)
    mean = pool.units(Sign()).moments(None, pool.up(Sign(), pre)).mean
    assert float(mean) == pytest.approx(1 - 2 * np.prod(ndtr(-omega.numpy())), rel=1e-10)
