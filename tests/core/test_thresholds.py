"""Thresholds: as one more real weight with a constant input, against quadrature, and balanced by the data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.special import log_ndtr, logsumexp

import cavity
from cavity.core.algorithms import ALGORITHMS
from cavity.core.algorithms.mf import MF
from cavity.core.channels import Label
from cavity.core.messages import Fields, Moments
from cavity.core.pasp import Method, State, update
from cavity.core.state import Rule
from cavity.core.sweep import sweep_up


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def written(layer: cavity.Layer, field: torch.Tensor, precision: torch.Tensor | None) -> None:
    natural = Fields(field, precision)
    layer.set_state(natural, layer.prior.moments(natural))


@pytest.mark.parametrize("fisher", [False, True])
@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_threshold_is_a_real_weight_on_an_input_of_ones(algorithm: str, iterations: int, fisher: bool) -> None:
    """Of a layer of Gaussian weights, whose other inputs are the same."""
    x, y = normal(9, 6), torch.arange(9) % 3
    field, precision = normal(5, 7, seed=1), 3 + normal(5, 7, seed=2).square()
    upper = normal(3, 5, seed=3)
    nets = []
    for threshold in (False, True):
        lower = cavity.Layer(cavity.Dense(6 if threshold else 7, 5), "gaussian", threshold=threshold)
        net = cavity.Network([lower, "sign", cavity.Dense(5, 3), "argmax"]).double()
        first, last = net.weighted()
        written(last, upper, None)
        if first.threshold is None:
            written(first, field, precision)
        else:
            written(first, field[:, :-1], precision[:, :-1])
            written(first.threshold, field[:, -1:], precision[:, -1:])
        sites = tuple(site.sending(fisher) for site in net.sites)
        method = Method(ALGORITHMS[algorithm](), sites, iterations)
        inputs = x if threshold else torch.cat([x, torch.ones(9, 1)], dim=1)
        rule = Rule(0.9, 0.7, damping=0.3)
        rules = [rule._replace(threshold=rule), rule]
        state, info = update(method, State(net.states(), (0.0, 0.0)), rules, inputs, y)
        assert info.clamped == 0
        nets.append(state.layers)
    one, two = nets
    for found, extra, expected in zip(
        (*two[0].natural, *two[0].moments),
        (*two[0].threshold.natural, *two[0].threshold.moments),
        (*one[0].natural, *one[0].moments),
        strict=True,
    ):
        torch.testing.assert_close(torch.cat([found, extra], dim=1), expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(two[1].moments.mean, one[1].moments.mean, rtol=1e-10, atol=1e-12)


class Unit:
    """One unit of ±1 weights and a threshold b ~ 𝒩(b₀, s²), noisy labels, and the exact posterior mean of b: all
    weights are summed over, and b is integrated on a grid."""

    def __init__(self, inputs: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        samples, self.noise, self.centre, self.spread = 2 * inputs, 0.3 * inputs, rng.normal(), 1.5
        self.x, self.fields = rng.standard_normal((samples, inputs)), rng.normal(0, 0.5, inputs)
        z = self.x @ rng.choice([-1.0, 1.0], inputs) + rng.normal(0, 1.5) + self.noise**0.5 * rng.normal(size=samples)
        self.y = np.where(z >= 0, 1.0, -1.0)
        b = self.centre + self.spread * np.linspace(-6, 6, 241)
        weights = np.array(list(itertools.product((-1.0, 1.0), repeat=inputs)))
        sums = (weights @ self.x.T)[:, None, :] + b[:, None]
        log_p = log_ndtr(self.y * sums / self.noise**0.5).sum(axis=2) + (weights @ self.fields)[:, None]
        log_p -= 0.5 * ((b - self.centre) / self.spread) ** 2
        p = np.exp(log_p - logsumexp(log_p))
        self.exact = float((p.sum(axis=0) * b).sum())
        self.exact_spread = float(np.sqrt((p.sum(axis=0) * b**2).sum() - self.exact**2))

    def found(self, algorithm: str) -> tuple[float, float]:
        """Mean and standard deviation of b that message passing converges to."""
        inputs = self.x.shape[1]
        layer = cavity.Layer(cavity.Dense(inputs, 1), threshold=True)
        net = cavity.Network([layer, Label(self.noise)]).double()
        written(layer, torch.from_numpy(self.fields).unsqueeze(0), None)
        assert layer.threshold is not None
        precision = torch.full((1, 1), self.spread**-2, dtype=torch.float64)
        written(layer.threshold, self.centre * precision, precision)
        trainer = cavity.Trainer(net, algorithm, rho=1.0, damping=0.5, inner_iterations=500, tolerance=1e-8)
        trainer.step(torch.from_numpy(self.x), torch.from_numpy(self.y))
        return float(layer.threshold.mean), float(layer.threshold.variance.sqrt())


def test_belief_propagation_finds_the_exact_threshold() -> None:
    """Within a fifth of its exact standard deviation on average, closer than mean field, and as sure as it should be
    within a tenth."""
    units = [Unit(9, seed) for seed in range(12)]
    bp, mf = ([unit.found(algorithm) for unit in units] for algorithm in ("bp", "mf"))
    exact, spread = (np.array([getattr(unit, name) for unit in units]) for name in ("exact", "exact_spread"))
    errors = {name: np.abs(np.array(found)[:, 0] - exact) / spread for name, found in (("bp", bp), ("mf", mf))}
    assert errors["bp"].mean() < 0.2
    assert errors["bp"].mean() < 0.7 * errors["mf"].mean()
    assert abs(np.mean(np.array(bp)[:, 1] / spread) - 1) < 0.1


def network(**options) -> cavity.Network:
    parts = [cavity.Conv2d((1, 6, 6), 5, 3), cavity.Conv2d((5, 4, 4), 7, 2, padding=1), cavity.Dense(7 * 25, 3)]
    first, second, last = (cavity.Layer(part, threshold=True, **options) for part in parts)
    return cavity.Network([first, "sign", second, "sign", last, "argmax"])


def test_the_data_balance_every_unit() -> None:
    """Every preactivation has mean 0 over samples and positions, whatever the inputs are centred at."""
    net, x = network(), 2 + normal(50, 1, 6, 6).float()
    assert not net.balanced
    net.balance(x)
    assert net.balanced
    for up, layer in zip(sweep_up(MF(), net.sites, net.states(), x), net.weighted(), strict=True):
        means = up.pre.mean.transpose(0, 1).flatten(1).mean(dim=1)
        torch.testing.assert_close(means, torch.zeros_like(means), atol=1e-4, rtol=0)
        without = up.pre.mean - layer.threshold.coupling.apply(layer.threshold.mean, torch.ones(1, 1))
        size = float((without.square() + up.pre.variance - layer.threshold.variance[0]).mean().sqrt())
        assert float(layer.threshold.scale) == pytest.approx(size, rel=1e-5)


def test_fit_balances_once() -> None:
    net, x, y = network(), 2 + normal(50, 1, 6, 6).float(), torch.arange(50) % 3
    trainer = cavity.Trainer(net, "mf")
    trainer.fit((x, y), epochs=1, batch_size=10)
    assert net.balanced
    scales = [layer.threshold.scale.clone() for layer in net.weighted()]
    cavity.Trainer(net, "mf").fit((x - 1, y), epochs=1, batch_size=10)
    assert all(torch.equal(layer.threshold.scale, s) for layer, s in zip(net.weighted(), scales, strict=True))


def test_an_iterable_balances_by_its_first_mini_batch() -> None:
    first, second = network(), network()
    x, y = 2 + normal(40, 1, 6, 6).float(), torch.arange(40) % 3
    batches = [(x[:20], y[:20]), (x[20:], y[20:])]
    cavity.Trainer(first, "mf").fit(batches, epochs=1)
    second.balance(x[:20])
    scales = [[layer.threshold.scale for layer in net.weighted()] for net in (first, second)]
    assert all(map(torch.equal, *scales))


@pytest.mark.parametrize("rate", ["auto", 1.0])
def test_thresholds_learn_and_are_used(rate: str | float) -> None:
    """x > 1 or not cannot be told by a unit of ±1 weights without one: the sum would have to lie on one side of 0."""
    x = 3 * torch.rand(600, 1, generator=torch.Generator().manual_seed(0))
    y = torch.where(x[:, 0] > 1, 1, -1)
    net = cavity.mlp(1, (), 1, threshold=True)
    options = {"rate": rate} if rate == "auto" else {"rate": rate, "rho": 1.0, "damping": 0.0}
    cavity.Trainer(net, "mf", **options).fit((x, y), epochs=10, batch_size=20)
    layer = net.weighted()[0]
    assert -1.2 < float(layer.threshold.mean) < -0.8
    for method in ("point", "bayes"):
        assert float((net.predict(x, method) == y).float().mean()) > 0.95


def test_known_weights_hold_the_thresholds_in_their_last_column() -> None:
    net, x = network(), normal(8, 1, 6, 6).float()
    net.balance(x)
    layer = net.weighted()[1]
    assert layer.known_shape == (7, 21)
    w, inputs = layer.point(), torch.where(normal(3, 5, 4, 4) < 0, -1.0, 1.0).float()
    expected = torch.nn.functional.conv2d(inputs, w[:, :-1].reshape(7, 5, 2, 2), w[:, -1], padding=1)
    torch.testing.assert_close(layer.apply_known(w, inputs), expected)
    torch.testing.assert_close(w[:, -1:], layer.threshold.mean)
    draws = torch.stack([layer.sample(torch.Generator().manual_seed(seed)) for seed in range(400)])
    gap = (draws[:, :, -1].mean(dim=0) - layer.threshold.mean[:, 0]) / layer.threshold.variance[:, 0].sqrt()
    assert float(gap.abs().max()) < 4 / 20


def test_bayesian_prediction_counts_the_doubt_of_a_threshold() -> None:
    net, x = cavity.mlp(3, (), 1, threshold=True), normal(5, 3).float()
    layer = net.weighted()[0]
    before = net.predict_moments(x)
    moved = Moments(torch.full((1, 1), 2.0), torch.full((1, 1), 7.0))
    old = layer.threshold.moments
    layer.threshold.set_state(layer.threshold.natural, moved)
    after = net.predict_moments(x)
    torch.testing.assert_close(after.mean - before.mean, (2.0 - old.mean).expand(5, 1))
    torch.testing.assert_close(after.variance - before.variance, (7.0 - old.variance).expand(5, 1))
